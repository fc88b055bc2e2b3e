"""/api/v1/criteria-sets/: what links have to reach to be commissioned."""

from typing import Annotated, Any, Literal

from pydantic import Field

from matrix.api.registry.mesh_ends import Filter, end_by_filter, filter_at, without_constant
from matrix.api.registry.resource import CallText, Resource
from matrix.api.registry.values import Values, name_of, number, own_name, record_of, whole
from matrix.api.schema.records import Json
from matrix.api.schema.schemas import Body
from matrix.query.forms import BadQueryError
from sonar.models import CriteriaSet, SizeClass
from sonar.models.commissioning import LONGEST_PERIOD, MOST_MB_S, MOST_TESTS, MOST_VOLUME
from sonar.models.member_filters import ENDS, filter_column
from sonar.notation.enumeration import not_registered
from sonar.registry.file.sections import ALL

LEAST = 0.001


Fitting = Literal["all"] | Filter
Answered = Annotated[
    Literal["all"] | dict[str, list[str]], Field(json_schema_extra=without_constant)
]


class NewCriteriaSet(Body):
    """A criteria set to add: criteria that links in one size class must meet to be commissioned."""

    name: Annotated[str, own_name("criteria set")]
    size: Annotated[
        str, name_of("size class", "Size class whose tests are evaluated, for example, `large`.")
    ]
    period_hours: Annotated[
        int, whole(1, LONGEST_PERIOD, "Length of the evaluated period, in hours.")
    ]
    least_tests: Annotated[
        int,
        whole(
            1,
            MOST_TESTS,
            "Minimum number of tests in the period. A link with fewer tests is not checked.",
        ),
    ]
    least_mb_s: Annotated[
        float | None,
        number(
            LEAST,
            MOST_MB_S,
            "Minimum throughput of a link in MB/s. The throughput is the total bytes of "
            "successful tests in the period divided by their total duration. Null means that "
            "any throughput is enough.",
            or_null=True,
        ),
    ] = None
    least_success_percent: Annotated[
        float | None,
        number(
            LEAST,
            100,
            "Minimum percentage of successful tests in the period. Null means that any "
            "percentage is enough.",
            or_null=True,
        ),
    ] = None
    least_bytes: Annotated[
        int | None,
        whole(
            1,
            MOST_VOLUME,
            "Minimum number of bytes that successful tests move in the period. A link needs this "
            "volume to pass, but not to keep the state `passed`. Null means that any volume is "
            "enough.",
            or_null=True,
        ),
    ] = None
    sources: Annotated[Fitting, end_by_filter("Source endpoints of the evaluated links.")] = "all"
    destinations: Annotated[
        Fitting, end_by_filter("Destination endpoints of the evaluated links.")
    ] = "all"


class CriteriaSets(Resource[CriteriaSet]):
    model = CriteriaSet
    new = NewCriteriaSet
    answer = record_of(
        NewCriteriaSet,
        "A criteria set: criteria that links must meet to be commissioned.",
        sources=Answered,
        destinations=Answered,
    )
    field_of = {"criteriaset_asks_for_something": "least_mb_s"}
    calls = {
        "list": CallText("List criteria sets", "Returns all criteria sets, sorted by name."),
        "add": CallText(
            "Add a criteria set",
            "At least one of `least_mb_s` and `least_success_percent` is required.",
        ),
        "show": CallText("Get a criteria set", "Returns the criteria set with this name."),
        "change": CallText(
            "Change a criteria set",
            "Omitted fields keep their values. Commissioning records from the last 90 days are "
            "evaluated again. Older records keep the criteria that applied when the records were "
            "made.",
        ),
        "remove": CallText(
            "Delete a criteria set",
            "The records of links that met the criteria of this set are also deleted.",
        ),
    }

    def rows(self) -> Any:  # noqa: ANN401 - a QuerySet
        return CriteriaSet.objects.select_related("size_class")

    def others(self, row: CriteriaSet) -> Json:
        chosen = {end: row.filter_of(end) or ALL for end in ENDS}
        return {"size": row.size_class.name, **chosen}

    def columns_of(self, row: CriteriaSet, values: Values) -> Values:
        columns = {name: value for name, value in values.items() if name not in ("size", *ENDS)}
        filters = {filter_column(end): filter_at(end, values[end]) for end in ENDS if end in values}
        if "size" in values:
            columns["size_class"] = size_class_of(values["size"])
        return columns | filters


def size_class_of(name: str) -> SizeClass:
    """Return a size class; raise BadQueryError."""
    row = SizeClass.objects.filter(name=name).first()
    if row is None:
        raise BadQueryError({"size": [f"{not_registered('size', name, 'size class')}."]})
    return row


CRITERIA_SETS = CriteriaSets()
