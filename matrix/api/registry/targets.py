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
    """A target to add: a minimum rate, and limits for failures and missing results of links."""

    name: Annotated[str, own_name("target")]
    enabled: Annotated[
        bool, flag("Whether the target applies. A target that is not enabled applies to no link.")
    ] = True
    priority: Annotated[
        int,
        whole(
            0,
            32767,
            "Priority of the target. If several targets match a link, the target with the highest "
            "priority applies. Among targets of equal priority, the first by name applies.",
        ),
    ] = 5
    size_class: Annotated[
        str | None,
        name_of(
            "size class",
            "Size class that the target applies to. Null means all size classes.",
            or_null=True,
        ),
    ] = None
    mesh: Annotated[
        str | None,
        name_of(
            "mesh",
            "Mesh whose links the target applies to. Null means all links, whether or not they are "
            "in a mesh.",
            or_null=True,
        ),
    ] = None
    site: Annotated[
        str | None,
        name_of(
            "site",
            "The target applies to links from and to this site. Null means all sites.",
            or_null=True,
        ),
    ] = None
    sources: Annotated[
        Literal["all"] | Filter,
        end_by_filter("Source endpoints of the links that the target applies to."),
    ] = "all"
    destinations: Annotated[
        Literal["all"] | Filter,
        end_by_filter("Destination endpoints of the links that the target applies to."),
    ] = "all"
    floor_mb_s: Annotated[
        float | None,
        number(
            SLOWEST_MB_S,
            MOST_MB_S,
            "Minimum rate of a link in MB/s. Null means that the baseline of each link is used.",
            or_null=True,
        ),
    ] = None
    below: Annotated[
        float,
        number(
            0.05,
            1,
            "A link is slow if its rate is below this fraction of its minimum rate or baseline.",
        ),
    ] = DEFAULT_BELOW
    above: Annotated[
        float,
        number(
            0.05,
            2,
            "Upper limit of the rates that count as near target, as a fraction of the target. "
            "Only `stat=vs_target` uses this limit. Incidents do not depend on it.",
        ),
    ] = DEFAULT_ABOVE
    failures: Annotated[
        int, whole(2, 100, "Number of consecutive failed tests after which a link is failing.")
    ] = 3
    silent_after: Annotated[
        float,
        number(
            1.5, 1000, "Number of test intervals without a result after which a link is silent."
        ),
    ] = 3.0


End = Annotated[Literal["all"] | dict[str, list[str]], Field(json_schema_extra=without_constant)]
AS_ANSWERED: dict[str, Any] = {
    "sources": End,
    "destinations": End,
    "floor_mb_s": float | None,
    "links": Annotated[str, Field(description="The links that the target applies to, in words.")],
    "requirement": Annotated[
        str,
        Field(
            description="The required rate, and the limits for failures and missing results, in "
            "words."
        ),
    ],
}


class RateTargets(Resource[Target]):
    model = Target
    new = NewTarget
    answer = record_of(
        NewTarget,
        "A target for the rates and failures of links.",
        **AS_ANSWERED,
    )
    field_of = {"target_above_is_not_below": "above"}
    parameters = (
        of_row(
            "site",
            "Return only targets that are limited to the site with this name.",
            "GLASGOW",
            Site,
        ),
        of_row(
            "mesh",
            "Return only targets that are limited to the mesh with this name.",
            "everything",
            Mesh,
        ),
    )
    calls = {
        "list": CallText("List targets", "Returns all targets, sorted by name."),
        "add": CallText(
            "Add a target",
            "The target takes effect within a minute. Site admins can add targets for their own "
            "sites.",
        ),
        "show": CallText("Get a target", "Returns the target with this name."),
        "change": CallText(
            "Change a target",
            "Omitted fields keep their values. The change takes effect within a minute.",
        ),
        "remove": CallText(
            "Delete a target",
            "The next matching target then applies to the links of the deleted target. Links "
            "without a target are compared with their baseline.",
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
