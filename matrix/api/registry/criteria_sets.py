"""/api/v1/criteria-sets/: what links have to reach to be commissioned."""

from typing import Annotated, Any, Literal

from pydantic import Field

from matrix.api.registry.mesh_ends import ATTRIBUTES, EXAMPLE, Filter, filter_at, without_constant
from matrix.api.registry.resource import CallText, Resource
from matrix.api.registry.values import Values, field, name_of, number, own_name, record_of, whole
from matrix.api.schema.records import Json
from matrix.api.schema.schemas import Body
from matrix.query.forms import BadQueryError
from sonar.models import CriteriaSet, SizeClass
from sonar.models.commissioning import LONGEST_PERIOD, MOST_MB_S, MOST_TESTS, MOST_VOLUME
from sonar.models.member_filters import ENDS, filter_column
from sonar.notation.enumeration import either, not_registered
from sonar.registry.file.sections import ALL

LEAST = 0.001


def ends(meaning: str) -> Any:  # noqa: ANN401 - a field of pydantic
    rule = f'"all", or a filter of at least one of {either(ATTRIBUTES)}, like {EXAMPLE}'
    return field(rule, meaning, strict=None, json_schema_extra=without_constant)


Fitting = Literal["all"] | Filter
Answered = Annotated[
    Literal["all"] | dict[str, list[str]], Field(json_schema_extra=without_constant)
]


class NewCriteriaSet(Body):
    """What each link between some endpoints has to reach over a period, in one size class."""

    name: Annotated[str, own_name()]
    size: Annotated[str, name_of("size class")]
    period_hours: Annotated[
        int, whole(1, LONGEST_PERIOD, "length in hours of the period that is evaluated")
    ]
    least_tests: Annotated[
        int, whole(1, MOST_TESTS, "a link with fewer tests in the period is not evaluated")
    ]
    least_mb_s: Annotated[
        float | None,
        number(
            LEAST,
            MOST_MB_S,
            "minimum throughput: bytes of all successful tests divided by their seconds",
            "for any rate",
        ),
    ] = None
    least_success_percent: Annotated[
        float | None, number(LEAST, 100, "minimum share of successful tests", "for any share")
    ] = None
    least_bytes: Annotated[
        int | None,
        whole(
            1,
            MOST_VOLUME,
            "minimum volume of successful tests, required to pass but not to stay passed",
            "for any",
        ),
    ] = None
    sources: Annotated[Fitting, ends("sources of its links")] = "all"
    destinations: Annotated[Fitting, ends("destinations of its links")] = "all"


class CriteriaSets(Resource[CriteriaSet]):
    model = CriteriaSet
    new = NewCriteriaSet
    answer = record_of(
        NewCriteriaSet,
        "A criteria set. The states of its links are in `commissioning/`.",
        sources=Answered,
        destinations=Answered,
    )
    field_of = {"criteriaset_asks_for_something": "least_mb_s"}
    calls = {
        "list": CallText("List criteria sets", "By name."),
        "add": CallText(
            "Add a criteria set", "A minimum rate or a minimum success rate is required."
        ),
        "show": CallText("Get a criteria set"),
        "change": CallText(
            "Change a criteria set",
            "Omitted fields are not changed. Records of the last 90 days are\n"
            "computed again; older records keep the criteria of their time.",
        ),
        "remove": CallText("Delete a criteria set", "Its records are deleted, too."),
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
