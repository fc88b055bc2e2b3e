"""/api/v1/targets/: rate targets of links."""

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import Field

from matrix.answers.incidents.target_words import links_words, target_sentence
from matrix.api.registry.mesh_ends import Filter, end_by_filter, filter_at, without_constant
from matrix.api.registry.resource import CallText, Resource, of_row
from matrix.api.registry.values import (
    Values,
    flag,
    name_of,
    number,
    own_name,
    record_of,
    whole,
)
from matrix.api.schema.records import Json
from matrix.api.schema.schemas import Body
from sonar.models import Mesh, Site, Target
from sonar.models.commissioning import MOST_MB_S
from sonar.models.incidents import DEFAULT_ABOVE, DEFAULT_BELOW, SLOWEST_MB_S
from sonar.models.member_filters import ENDS, filter_column
from sonar.registry.file.sections import ALL


class NewTarget(Body):
    """A rate target for the links that it matches; the highest priority applies to a link."""

    name: Annotated[str, own_name()]
    enabled: Annotated[bool, flag("false: it applies to no link")] = True
    priority: Annotated[int, whole(0, 32767, "the highest applies, then the first by name")] = 5
    size_class: Annotated[str | None, name_of("size class", "for all size classes")] = None
    mesh: Annotated[str | None, name_of("mesh", "for links of any mesh, or without a mesh")] = None
    site: Annotated[str | None, name_of("site", "for links of all sites")] = None
    sources: Annotated[Literal["all"] | Filter, end_by_filter("sources of its links")] = "all"
    destinations: Annotated[Literal["all"] | Filter, end_by_filter("destinations of its links")] = (
        "all"
    )
    floor_mb_s: Annotated[
        float | None,
        number(SLOWEST_MB_S, MOST_MB_S, "minimum rate in MB/s", "to use the baseline of each link"),
    ] = None
    below: Annotated[
        float, number(0.05, 1, "a link is slow below this fraction of its minimum rate or baseline")
    ] = DEFAULT_BELOW
    above: Annotated[
        float,
        number(
            0.05,
            2,
            "with stat=vs_target a link is near target from `below` up to this fraction; "
            "incidents do not depend on it",
        ),
    ] = DEFAULT_ABOVE
    failures: Annotated[
        int, whole(2, 100, "consecutive failed tests after which a link is failing")
    ] = 3
    silent_after: Annotated[
        float, number(1.5, 1000, "test intervals without a result after which a link is silent")
    ] = 3.0


End = Annotated[Literal["all"] | dict[str, list[str]], Field(json_schema_extra=without_constant)]
AS_ANSWERED: dict[str, Any] = {
    "sources": End,
    "destinations": End,
    "floor_mb_s": float | None,
    "links": str,
    "requirement": str,
}


class RateTargets(Resource[Target]):
    model = Target
    new = NewTarget
    answer = record_of(
        NewTarget,
        "A target. `links` and `requirement` are sentences about the links that it matches, and "
        "about its rate and limits.",
        **AS_ANSWERED,
    )
    field_of = {"target_above_is_not_below": "above"}
    parameters = (
        of_row("site", "Only targets for this site.", "GLASGOW", Site),
        of_row("mesh", "Only targets for this mesh.", "everything", Mesh),
    )
    calls = {
        "list": CallText("List targets", "By name."),
        "add": CallText(
            "Add a target",
            "It takes effect within a minute. Site admins can add targets for their sites.",
        ),
        "show": CallText("Get a target"),
        "change": CallText("Change a target", "Omitted fields are not changed."),
        "remove": CallText(
            "Delete a target",
            "The next matching target then applies to its links, or their baseline.",
        ),
    }

    def others(self, row: Target) -> Json:
        return {
            **{end: row.filter_of(end) or ALL for end in ENDS},
            "links": links_words(row),
            "requirement": target_sentence(row),
        }

    def columns_of(self, row: Target, values: Values) -> Values:
        columns = {name: value for name, value in values.items() if name not in ENDS}
        filters = {filter_column(end): filter_at(end, values[end]) for end in ENDS if end in values}
        return columns | filters

    def sites(self, row: Target) -> Collection[int]:
        return [row.site_id] if row.site_id else []


TARGETS = RateTargets()
