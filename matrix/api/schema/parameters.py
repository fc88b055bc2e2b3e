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
    after = text("cursor", "Position to continue from, as in the address that `next` contains.", "")
    return size, after


class Echo(BaseModel, extra="allow"):
    """The query with its defaults: `start` and `end` of the time range, and filters by name."""

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
        words = f"links {PREPOSITIONS[criterion.end]} this {attribute.title}"
    sentence = f"{besides}Only {words}. A leading ! excludes a value."
    return several(f"{prefix}{name}", sentence, **items)


SIZE_CLASS = text("size", "Name of the size class.", SIZE, default=DEFAULT_SIZE)
WINDOW = (
    choice(
        "window",
        PRESETS,
        "Length of a time range that ends now. Cannot be combined with `from` and `to`.",
        MatrixQuery.window,
    ),
    text(
        "from",
        "Start of the time range, ISO 8601, whole seconds. Requires `to`.",
        "2026-11-13T00:00:00Z",
    ),
    text(
        "to",
        "End of the time range (exclusive), ISO 8601. Requires `from`.",
        "2026-11-20T00:00:00Z",
    ),
)
STAT = choice(
    "stat",
    STATS,
    "What the cells show: `now`, `vs_usual` (now / usual, below 1 is slower) and `vs_target` "
    "(now / rate target) look back beyond the window. With compare it is the ratio of both "
    "sides, whichever is named.",
    MatrixQuery.stat,
)
ROWS = choice("rows", GROUPINGS, "Grouping of the sources: one row per value.", MatrixQuery.rows)
COLUMNS = choice(
    "columns",
    GROUPINGS,
    "Grouping of the destinations: one column per value.",
    MatrixQuery.columns,
)
MAX_AGE = text(
    "max_age",
    "Maximum age of the last success of a cell, in seconds or like 6h. Older cells have no value.",
    "6h",
)
LINKS_FILTERED = tuple(map(filter_of, LINK_FILTERS))
METHOD_FILTERED = tuple(map(filter_of, PROFILE_FILTERS))
MOMENT = r"[0-9T:.Z+-]+"
# What a question is compared with.
COMPARE = (
    several(
        "compare",
        "What to compare with: the preceding time range of the same length (previous), the same "
        "time range a week earlier (week), the 30 days before (month), the time range between two "
        "times (<from>..<to>), or the opposite direction of each link (reverse). `reverse` can be "
        "combined with one of the others.",
        anyOf=[
            {"enum": [*WINDOWS, REVERSE]},
            {"pattern": rf"^{MOMENT}\.\.{MOMENT}$", "examples": ["2026-11-01..2026-11-08"]},
        ],
    ),
    text(OF_SIZE, "Size class to compare with.", "small"),
    choice(OF_OF, OF, "Whether the comparison divides medians or means of rates.", OF[0]),
    text(
        OF_AROUND,
        "Compares the time range after this moment, up to now and at most 7 days, with the time "
        "range of the same length before. Replaces `window`, `from`, `to` and a time range in "
        "`compare`.",
        "2026-11-19T20:15:00Z",
    ),
)
OTHER_SIDE = (
    "Filter of the side to compare with, in place of the filter of the same name; empty for none. "
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
