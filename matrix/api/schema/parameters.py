"""Query parameters of calls, and those that several share, from the tuples that forms check."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from drf_spectacular.utils import OpenApiParameter
from pydantic import BaseModel

from matrix.api.parameters import SHORT, PageSizes
from matrix.query.attributes import BY_NAME, GROUPINGS, PREPOSITIONS, ProfileAttribute
from matrix.query.catalogue import STATS
from matrix.query.comparison import OF, OF_AROUND, OF_OF, OF_SIZE, PREFIX, REVERSE, WINDOWS
from matrix.query.filters import FILTERS, LINK_FILTERS, PROFILE_FILTERS, Filter
from matrix.query.forms import ALLOWED_VALUES, DEFAULT_SIZE
from matrix.query.matrix_query import MatrixQuery
from sonar.notation.windows import PRESETS

QUERY_PLACE: Literal["query"] = "query"
# Stands for the name of a size class, which is data: put in when the schema is made.
SIZE = "{size}"


def parameter(
    name: str, schema: dict[str, Any], description: str, *, required: bool = False
) -> OpenApiParameter:
    return OpenApiParameter(name, schema, QUERY_PLACE, required=required, description=description)


def choice(
    name: str, allowed: Sequence[str], description: str, default: str | None = None
) -> OpenApiParameter:
    """One of some words; ``default`` is what stands for nothing."""
    schema: dict[str, Any] = {"type": "string", "enum": list(allowed)}
    return parameter(name, schema | ({"default": default} if default else {}), description)


def text(
    name: str, description: str, example: str, *, required: bool = False, **schema: object
) -> OpenApiParameter:
    """A text; ``schema`` may say more of it, as `pattern` or `maxLength`."""
    facts = {"type": "string", **schema, "examples": [example]}
    return parameter(name, facts, description, required=required)


def several(name: str, description: str, **items: object) -> OpenApiParameter:
    """A parameter that may be given several times; ``items`` says more of each, as `enum`."""
    schema = {"type": "array", "items": {"type": "string", **items}}
    return parameter(name, schema, description)


def number(
    name: str, description: str, kind: str = "number", default: float | None = None, **schema: float
) -> OpenApiParameter:
    """A number; ``kind`` may be `integer`, ``schema`` gives `minimum` and `maximum`."""
    facts: dict[str, Any] = {"type": kind, **schema}
    return parameter(name, facts | ({} if default is None else {"default": default}), description)


def paging(sizes: PageSizes = SHORT) -> tuple[OpenApiParameter, ...]:
    """`page_size` and `cursor` of a list."""
    size = number(
        "page_size",
        "Number of rows per page of JSON. CSV and NDJSON contain all rows.",
        "integer",
        default=sizes.default,
        minimum=1,
        maximum=sizes.most,
    )
    after = text(
        "cursor",
        "Position at which the page starts, taken from the `next` URL of the previous page.",
        "",
    )
    return size, after


class Echo(BaseModel, extra="allow"):
    """The query parameters, including default values.

    Each filter is a list of values, under the name of its parameter.
    """

    __pydantic_extra__: dict[str, list[str]]

    size: str
    window: str | None
    start: str
    end: str


def filter_of(name: str, prefix: str = "", besides: str = "") -> OpenApiParameter:
    criterion = Filter(name, "")
    attribute = BY_NAME[criterion.attribute]
    items: dict[str, Any] = {"minLength": 1, "maxLength": len("!") + attribute.longest}
    if allowed := ALLOWED_VALUES.get(attribute.name):
        items = {"enum": [f"{sign}{value}" for value in allowed for sign in ("", "!")]}
    if isinstance(attribute, ProfileAttribute):
        words = f"transfers {attribute.choice}"
    else:
        ends = attribute.ends or f"this {attribute.title}"
        words = f"links {PREPOSITIONS[criterion.end]} {ends}"
    sentence = f"{besides}Only {words}. A leading `!` excludes a value."
    return several(f"{prefix}{name}", sentence, **items)


SIZE_CLASS = text(
    "size", "Name of the size class (see `size-classes/`).", SIZE, default=DEFAULT_SIZE
)
WINDOW = (
    choice(
        "window",
        PRESETS,
        "Length of a time range that ends now. Cannot be combined with `from` or `to`.",
        MatrixQuery.window,
    ),
    text(
        "from",
        "Start of the time range (inclusive), ISO 8601 in whole seconds. Requires `to`.",
        "2026-11-13T00:00:00Z",
    ),
    text(
        "to",
        "End of the time range (exclusive), ISO 8601 in whole seconds. Requires `from`.",
        "2026-11-20T00:00:00Z",
    ),
)
STAT = choice(
    "stat",
    STATS,
    "Statistic of each cell. `vs_usual` is the current rate divided by the baseline, and "
    "`vs_target` is the current rate divided by the rate target. `vs_usual`, `vs_target` and `now` "
    "also use results from before the time range. With `compare`, each cell is the ratio of the "
    "two sides.",
    MatrixQuery.stat,
)
ROWS = choice(
    "rows",
    GROUPINGS,
    "Attribute that groups the sources into rows: one row per value.",
    MatrixQuery.rows,
)
COLUMNS = choice(
    "columns",
    GROUPINGS,
    "Attribute that groups the destinations into columns: one column per value.",
    MatrixQuery.columns,
)
MAX_AGE = text(
    "max_age",
    "Maximum age of the last successful test of a cell: a number of seconds, or a duration, for "
    "example, 6h. Cells whose last successful test is older have no value.",
    "6h",
)
LINKS_FILTERED = tuple(map(filter_of, LINK_FILTERS))
METHOD_FILTERED = tuple(map(filter_of, PROFILE_FILTERS))
MOMENT = r"[0-9T:.Z+-]+"
# What a question is compared with.
COMPARE = (
    several(
        "compare",
        "Other side of the comparison. `previous`: the preceding time range of the same length. "
        "`week`: the same time range a week earlier. `month`: the 30 days before the time range. "
        "`<from>..<to>`: the time range between these two times. `reverse`: the opposite direction "
        "of each link. `reverse` can be combined with one of the other values.",
        anyOf=[
            {"enum": [*WINDOWS, REVERSE]},
            {"pattern": rf"^{MOMENT}\.\.{MOMENT}$", "examples": ["2026-11-01..2026-11-08"]},
        ],
    ),
    text(
        OF_SIZE,
        "Size class of the other side of the comparison. Default: the same size class.",
        "small",
    ),
    choice(OF_OF, OF, "Whether the comparison is a ratio of median rates or of mean rates.", OF[0]),
    text(
        OF_AROUND,
        "Time of a change, ISO 8601. The time range begins at this time and ends now or 7 days "
        "later, whichever is earlier. This time range is compared with the preceding time range of "
        "the same length. The parameter replaces `window`, `from`, `to` and a time range in "
        "`compare`.",
        "2026-11-19T20:15:00Z",
    ),
)
OTHER_SIDE = (
    "Filter for the other side of the comparison. It replaces the filter of the same name; an "
    "empty value removes that filter. "
)


def compared_by(names: Iterable[str]) -> tuple[OpenApiParameter, ...]:
    """The filters of the other side of a comparison."""
    return tuple(filter_of(name, PREFIX, OTHER_SIDE) for name in names)


COMPARED = (*COMPARE, *compared_by(FILTERS))
# All of a MatrixQuery.
QUERY = (
    *(SIZE_CLASS, *WINDOW, STAT, ROWS, COLUMNS, MAX_AGE),
    *(*LINKS_FILTERED, *METHOD_FILTERED, *COMPARED),
)
