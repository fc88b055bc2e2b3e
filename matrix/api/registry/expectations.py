"""/api/v1/expectations/: what is expected of links."""

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import Field

from matrix.answers.incidents.expected_words import expects_words, links_words
from matrix.api.registry.mesh_ends import Filter, end_by_filter, filter_at, without_constant
from matrix.api.registry.resource import CallText, Resource, of_row
from matrix.api.registry.values import (
    Values,
    field,
    flag,
    name_of,
    number,
    own_name,
    record_of,
    whole,
)
from matrix.api.schema.records import Json
from matrix.api.schema.schemas import Body
from sonar.models import Expectation, Mesh, Site
from sonar.models.incidents import DEFAULT_ABOVE, DEFAULT_BELOW
from sonar.models.member_filters import ENDS, filter_column
from sonar.notation.units import FASTEST
from sonar.registry.file.sections import ALL, rate

FLOOR = field(
    f"a rate like 20 MB/s, or a number of bytes per second from 1 to {FASTEST:.0f}",
    "the least rate",
    "for the usual rate of each link",
    strict=None,
)
RATE = r"^[0-9]{1,12}(\.[0-9]{1,12})?( ?[kMGT]?B/s)?$"
Rate = (
    Annotated[str, Field(strict=True, pattern=RATE)]
    | Annotated[float, Field(strict=True, ge=1, le=FASTEST, allow_inf_nan=False)]
)


class NewExpectation(Body):
    """What is expected of some links; of several that match one, the highest priority counts."""

    name: Annotated[str, own_name()]
    enabled: Annotated[bool, flag("false: nothing is judged by it")] = True
    priority: Annotated[int, whole(0, 32767, "the highest counts, then the first by name")] = 5
    size_class: Annotated[str | None, name_of("size class", "for every size class")] = None
    mesh: Annotated[str | None, name_of("mesh", "for links of any mesh, or of none")] = None
    site: Annotated[str | None, name_of("site", "for links of every site")] = None
    sources: Annotated[Literal["all"] | Filter, end_by_filter("the sources of its links")] = "all"
    destinations: Annotated[
        Literal["all"] | Filter, end_by_filter("the destinations of its links")
    ] = "all"
    floor: Annotated[Rate | None, FLOOR] = None
    below: Annotated[
        float, number(0.05, 1, "a link is slow below this part of what is expected")
    ] = DEFAULT_BELOW
    above: Annotated[
        float,
        number(
            0.05,
            2,
            "stat=expectation calls a link near its rate from `below` up to this part of it; "
            "conditions do not use it",
        ),
    ] = DEFAULT_ABOVE
    failures: Annotated[int, whole(2, 100, "failed tests in a row, from which on it fails")] = 3
    silent_after: Annotated[
        float, number(1.5, 1000, "intervals of its mesh without a result, then it is silent")
    ] = 3.0


End = Annotated[Literal["all"] | dict[str, list[str]], Field(json_schema_extra=without_constant)]
AS_ANSWERED: dict[str, Any] = {
    "sources": End,
    "destinations": End,
    "floor": float | None,
    "links": str,
    "expects": str,
}


class Expectations(Resource[Expectation]):
    model = Expectation
    new = NewExpectation
    answer = record_of(
        NewExpectation,
        "An expectation. `floor` is in bytes per second; `links` and `expects` say in words of "
        "which links it is, and what it expects of them.",
        **AS_ANSWERED,
    )
    field_of = {"expectation_above_is_not_below": "above"}
    parameters = (
        of_row("site", "Only those for this site.", "GLASGOW", Site),
        of_row("mesh", "Only those for this mesh.", "everything", Mesh),
    )
    calls = {
        "list": CallText("All expectations", "By name."),
        "add": CallText(
            "Add an expectation",
            "Links are held against it when they are next evaluated. Site admins add those for "
            "their sites.",
        ),
        "show": CallText("One expectation"),
        "change": CallText("Change an expectation", "Fields that are left out stay as they are."),
        "remove": CallText(
            "Remove an expectation",
            "Its links are held against the next one that matches them, or their usual rate.",
        ),
    }

    def others(self, row: Expectation) -> Json:
        return {
            **{end: row.filter_of(end) or ALL for end in ENDS},
            "links": links_words(row),
            "expects": expects_words(row),
        }

    def columns_of(self, row: Expectation, values: Values) -> Values:
        columns = {name: value for name, value in values.items() if name not in ENDS}
        if isinstance(values.get("floor"), str):
            columns["floor"] = rate(values["floor"])
        filters = {filter_column(end): filter_at(end, values[end]) for end in ENDS if end in values}
        return columns | filters

    def sites(self, row: Expectation) -> Collection[int]:
        return [row.site_id] if row.site_id else []


EXPECTATIONS = Expectations()
