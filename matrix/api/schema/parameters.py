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
        "Rows per page of JSON.",
        "integer",
        default=sizes.default,
        minimum=1,
        maximum=sizes.most,
    )
    after = text("cursor", "Where to continue: part of the address in `next`.", "")
    return size, after


class Echo(BaseModel, extra="allow"):
    """The query, including defaults: window as two times, filters by their names."""

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
    sentence = f"{besides}Only {words}; with a leading ! none of these."
    return several(f"{prefix}{name}", sentence, **items)


SIZE_CLASS = text("size", "The name of the size class of the files.", SIZE, default=DEFAULT_SIZE)
WINDOW = (
    choice(
        "window",
        PRESETS,
        "Length of the window, up to now; not together with from and to.",
        MatrixQuery.window,
    ),
    text(
        "from",
        "Start of the window, ISO 8601 to the second; together with to.",
        "2026-11-13T00:00:00Z",
    ),
    text("to", "End of the window, which is not part of it.", "2026-11-20T00:00:00Z"),
)
STAT = choice(
    "stat",
    STATS,
    "What the cells show: `now`, `vs_usual` (now / usual, below 1 is slower) and `expectation` "
    "(now / what is expected) look back beyond the window. With compare it is the ratio of both "
    "sides, whichever is named.",
    MatrixQuery.stat,
)
ROWS = choice(
    "rows", GROUPINGS, "What each row stands for, on the side of the sources.", MatrixQuery.rows
)
COLUMNS = choice("columns", GROUPINGS, "What each column stands for.", MatrixQuery.columns)
MAX_AGE = text(
    "max_age",
    "How old the last success of a cell may be, in seconds or as 6h; older cells have no value.",
    "6h",
)
LINKS_FILTERED = tuple(map(filter_of, LINK_FILTERS))
METHOD_FILTERED = tuple(map(filter_of, PROFILE_FILTERS))
MOMENT = r"[0-9T:.Z+-]+"
# What a question is compared with.
COMPARE = (
    several(
        "compare",
        "Compare with another window: as long and just before (previous), a week earlier (week), "
        "the 30 days before the window (month), or between two times (<from>..<to>); or each link "
        "with its opposite direction (reverse). A window and reverse may stand together.",
        anyOf=[
            {"enum": [*WINDOWS, REVERSE]},
            {"pattern": rf"^{MOMENT}\.\.{MOMENT}$", "examples": ["2026-11-01..2026-11-08"]},
        ],
    ),
    text(OF_SIZE, "The size class of the other side of the comparison.", "small"),
    choice(OF_OF, OF, "What is divided: medians or means of the rates.", OF[0]),
    text(
        OF_AROUND,
        "Before and after a moment: the window from it up to now, at most 7 days, compared with "
        "the one before it, as long. In place of window, from, to, and a window to compare.",
        "2026-11-19T20:15:00Z",
    ),
)
OTHER_SIDE = "Of the other side, in place of its filters of this name; empty for none. "


def compared_by(names: Iterable[str]) -> tuple[OpenApiParameter, ...]:
    """The filters of the other side of a comparison."""
    return tuple(filter_of(name, PREFIX, OTHER_SIDE) for name in names)


COMPARED = (*COMPARE, *compared_by(FILTERS))
# All of a MatrixQuery.
QUERY = (
    *(SIZE_CLASS, *WINDOW, STAT, ROWS, COLUMNS, MAX_AGE),
    *(*LINKS_FILTERED, *METHOD_FILTERED, *COMPARED),
)
