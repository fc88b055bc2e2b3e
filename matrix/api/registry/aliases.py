"""/api/v1/aliases/: names that other services have for sites and endpoints."""

from collections.abc import Collection
from typing import Annotated

from django.db.models import Q
from rest_framework.request import Request

from matrix.api.parameters import one_of
from matrix.api.registry.resource import BY_ID, CallText, Parameter, Resource, of_row
from matrix.api.registry.values import Values, field, name_of, needed_text, record_of
from matrix.api.schema import parameters as schema
from matrix.api.schema.schemas import Body
from sonar.models import Alias, Endpoint, Site
from sonar.models.aliases import BY_HAND, HOSTS, LONGEST_NAME, AliasKind
from sonar.people.roles import Anyone
from sonar.registry import aliases

KINDS = AliasKind.values
KIND_WORDS = f"one of the kinds {', '.join(KINDS)}"
SEE = "sonar.view_alias"


class NewAlias(Body):
    """A name that another service has for a site or for an endpoint."""

    kind: Annotated[str, field(KIND_WORDS, pattern=f"^({'|'.join(KINDS)})$")]
    name: Annotated[str, needed_text(LONGEST_NAME)]
    site: Annotated[str | None, name_of("site", "where it is an endpoint's")] = None
    endpoint: Annotated[str | None, name_of("endpoint", "where it is a site's")] = None


class Aliases(Resource[Alias]):
    model = Alias
    word, key = "alias", "id"
    new = NewAlias
    answer = record_of(
        NewAlias,
        "A name that another service has for a site or for an endpoint. `origin` is `hand`, or the "
        "source that it comes from.",
        id=int,
        origin=str,
    )
    missing = "There is no alias {key} that you may see."
    order = BY_ID
    field_of = {
        "alias_means_one_thing": "name",
        "alias_of_one_site_or_endpoint": "site",
    }
    parameters = (
        Parameter(
            (schema.choice("kind", KINDS, "Only aliases of this kind."),),
            lambda params: Q(kind=kind) if (kind := one_of(params, "kind", KINDS)) else Q(),
        ),
        of_row("site", "Aliases of this site.", "GLASGOW", Site),
        of_row("endpoint", "Aliases of this endpoint.", "GLASGOW_DATADISK", Endpoint),
    )
    calls = {
        "list": CallText(
            "Aliases: names that other services have for sites and endpoints",
            "Aliases that are hosts are only for operators and administrators.",
        ),
        "add": CallText(
            "Add an alias",
            "Imported results and downtimes with this name then belong to the site or endpoint.",
        ),
        "show": CallText("One alias"),
        "change": CallText("Change an alias", "Fields that are left out stay as they are."),
        "remove": CallText("Remove an alias", "Its name is unknown then."),
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
