"""/api/v1/aliases/: what others call sites and endpoints."""

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
    """What a name of somebody else stands for: a site, or an endpoint."""

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
        "A name that somebody else has for a site or for an endpoint. Its origin is `hand`, or the "
        "source that said so.",
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
            (schema.choice("kind", KINDS, "Only names of this kind."),),
            lambda params: Q(kind=kind) if (kind := one_of(params, "kind", KINDS)) else Q(),
        ),
        of_row("site", "Names of this site.", "GLASGOW", Site),
        of_row("endpoint", "Names of this endpoint.", "GLASGOW_DATADISK", Endpoint),
    )
    calls = {
        "list": CallText(
            "Names that others have for sites and endpoints",
            "Those that are hosts are only for operators and administrators.",
        ),
        "add": CallText(
            "Say what a name stands for",
            "What others write with this name is taken for that of the site or the endpoint.",
        ),
        "show": CallText("One alias"),
        "change": CallText("Change an alias", "Fields that are left out stay as they are."),
        "remove": CallText("Remove an alias", "The name stands for nothing then."),
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
