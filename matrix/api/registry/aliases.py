"""/api/v1/aliases/: names that other services have for sites and endpoints."""

from collections.abc import Collection
from typing import Annotated

from django.db.models import Q
from pydantic import Field
from rest_framework.request import Request

from matrix.api.parameters import one_of
from matrix.api.registry.resource import BY_ID, CallText, Parameter, Resource, of_row
from matrix.api.registry.values import ID, Values, field, name_of, needed_text, record_of
from matrix.api.schema import parameters as schema
from matrix.api.schema.schemas import Body
from sonar.models import Alias, Endpoint, Site
from sonar.models.aliases import BY_HAND, HOSTS, LONGEST_NAME, AliasKind
from sonar.notation.enumeration import either
from sonar.people.roles import Anyone
from sonar.registry import aliases

KINDS = AliasKind.values
KIND_WORDS = (
    "Kind of name. `rse`: a name in Rucio. `se_host` and `perfsonar_host`: the host of a storage "
    "service or perfSONAR service. `rcsite`: a site in WLCG CRIC. `gocdb_site`: a site in GOCDB. "
    "`netsite`: a network site in WLCG CRIC. `osg_group` and `osg_resource`: names in OSG Topology."
)
SEE = "sonar.view_alias"


class NewAlias(Body):
    """An alias to add: the name that another service uses for a site or an endpoint."""

    kind: Annotated[str, field(either(KINDS), KIND_WORDS, pattern=f"^({'|'.join(KINDS)})$")]
    name: Annotated[
        str, needed_text(LONGEST_NAME, "The alias, exactly as the other service writes it.")
    ]
    site: Annotated[
        str | None,
        name_of(
            "site",
            "Site that the alias refers to. Null if the alias refers to an endpoint.",
            or_null=True,
        ),
    ] = None
    endpoint: Annotated[
        str | None,
        name_of(
            "endpoint",
            "Endpoint that the alias refers to. Null if the alias refers to a site.",
            or_null=True,
        ),
    ] = None


class Aliases(Resource[Alias]):
    model = Alias
    word, key = "alias", "id"
    new = NewAlias
    answer = record_of(
        NewAlias,
        "An alias: the name that another service uses for a site or an endpoint.",
        id=ID,
        origin=Annotated[
            str,
            Field(
                description="Where the alias comes from: `hand` if a person entered the alias, "
                "otherwise the name of the topology source."
            ),
        ],
    )
    missing = "Alias {key} does not exist, or you are not allowed to see it."
    order = BY_ID
    field_of = {
        "alias_means_one_thing": "name",
        "alias_of_one_site_or_endpoint": "site",
    }
    parameters = (
        Parameter(
            (
                schema.choice(
                    "kind",
                    KINDS,
                    "Return only aliases of this kind, such as `rse` for names in Rucio. "
                    "Default: all kinds.",
                ),
            ),
            lambda params: Q(kind=kind) if (kind := one_of(params, "kind", KINDS)) else Q(),
        ),
        of_row("site", "Return only aliases of the site with this name.", "GLASGOW", Site),
        of_row(
            "endpoint",
            "Return only aliases of the endpoint with this name.",
            "GLASGOW_DATADISK",
            Endpoint,
        ),
    )
    calls = {
        "list": CallText(
            "List aliases",
            "Returns the names that other services use for sites and endpoints, sorted by id. "
            "Aliases that are host names are shown only to operators and administrators.",
        ),
        "add": CallText(
            "Add an alias",
            "Imported results and downtimes that use the new alias are assigned to its site or "
            "endpoint.",
        ),
        "show": CallText("Get an alias", "Returns the alias with this id."),
        "change": CallText(
            "Change an alias",
            "Omitted fields keep their values. The `origin` of the alias becomes `hand`.",
        ),
        "remove": CallText(
            "Delete an alias",
            "Results and downtimes that use the deleted alias can no longer be assigned to a site "
            "or endpoint. When such a result or downtime is imported, the name is listed as an "
            "unknown alias.",
        ),
    }

    def visible_to(self, reader: Anyone) -> Q:
        return Q() if reader.has_perm(SEE) else ~Q(kind__in=HOSTS)

    def signature(self, row: Alias, columns: Values, request: Request) -> Values:
        return {"origin": BY_HAND}

    def save_related(self, row: Alias, values: Values) -> None:
        aliases.forget([(row.kind, row.name)])

    def sites(self, row: Alias) -> Collection[int]:
        return ()


ALIASES = Aliases()
