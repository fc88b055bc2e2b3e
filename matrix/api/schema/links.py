"""The description of links/."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Literal

from drf_spectacular.utils import OpenApiParameter
from pydantic import BaseModel, create_model

from matrix.answers import column_filters
from matrix.answers.link_columns import COMPARED as COMPARED_FIELDS
from matrix.answers.link_table import CHANGE
from matrix.answers.listing_fields import LONGEST_TEXT
from matrix.answers.table_query import SHORT, orderings
from matrix.api import pagination
from matrix.api.schema.describe import described
from matrix.api.schema.endpoints import GLASGOW, RAL, with_facts
from matrix.api.schema.names import SIZE
from matrix.api.schema.parameters import choice, number, paging, text
from matrix.api.schema.queries import COMPARED, LINKS_FILTERED, METHOD_FILTERED, SIZE_CLASS, WINDOW
from matrix.api.schema.schemas import Answer, CellChange, CellLevel, CellState, Listed
from matrix.http.negotiation import DOCUMENT, LIST
from matrix.query.attributes import BY_KEY, GROUPINGS
from matrix.query.catalogue import STATS, TABLE_QUANTILES
from matrix.statistics.cells.states import LOOKS
from matrix.statistics.transfers.overhead import FITS

WHILE_COMPARING = " Only with compare, in the size class that is asked for."
DESCRIPTIONS = {
    "has": "Only rows with this text in the column.",
    "is": "Only rows with this value in the column.",
    "min": "Only rows with at least this in the column.",
    "max": "Only rows with at most this in the column.",
}
LOOKING = "Only links in this state in the size class; separate several with commas."
SOME_LOOKS = rf"^({'|'.join(LOOKS)})(,({'|'.join(LOOKS)}))*$"
AGES = {
    "min": "Only links whose last success is at least this old.",
    "max": "Only links whose last success is at most this old.",
}


End = with_facts("End", "An endpoint at one end of a link.", ("simulated", "retired"))


class FixedColumns(Answer):
    mean_mb_s: float | None
    std_mb_s: float | None
    size_mean_bytes: float | None
    size_std_bytes: float | None
    ok: int
    failed: int
    last: datetime | None
    state: CellState
    last_ok: datetime | None
    last_failed: datetime | None
    level: CellLevel
    usual_mb_s: float | None
    now_mb_s: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    since: datetime | None
    streak: int


QUANTILES = {quantile.field: (float | None, None) for quantile in TABLE_QUANTILES.values()}


COMPARED_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(COMPARED_FIELDS, (float | None, None)),
    "other_ok": (int, None),
    CHANGE: (CellChange, None),
}


class OfClass(
    create_model("Columns", __base__=FixedColumns, **QUANTILES, **COMPARED_COLUMNS)  # type: ignore[misc]
):
    """What is known about a link in one size class in the window.

    `last` is the start of its newest result, `last_ok` and `last_failed` of the newest success and
    the newest failure. `state` is as in the matrix, as are `level`, which compares its newest
    successes with usual (`ratio` is now divided by usual, with an interval of 95 % from `ratio_low`
    to `ratio_high`), `since` and `streak`: since when and for how many tests it has been failing,
    slower or faster. Quantiles are there on request.

    While comparing the size class that is asked for has `this_mb_s` and `other_mb_s`, the medians
    (or means) of both sides, `compared_ratio` with its interval of 95 % from `compared_low` to
    `compared_high`, `compared_p` of chance, `other_ok`, the successes of the other side, and
    `change`: slower or faster beyond what chance makes of so many links, or nothing.
    """


class Link(BaseModel, extra="allow"):
    """A row: its ends, the highest priority of its meshes, and each size class by its name.

    With `overhead=1`, also the line seconds = overhead + size / bandwidth through the median times
    of all size classes, with 95 % intervals: null unless `line` is `line`. It is `few` without
    3 successes of two sizes, one 4 times the other, and `bent` where a class is off the line.
    A `bandwidth_high_mb_s` of null has no upper bound; of files of `half_size_bytes`, half of the
    time is overhead.
    """

    __pydantic_extra__: dict[str, OfClass]

    source: End  # type: ignore[valid-type]
    destination: End  # type: ignore[valid-type]
    priority: int | None
    overhead_s: float | None = None
    overhead_low_s: float | None = None
    overhead_high_s: float | None = None
    bandwidth_mb_s: float | None = None
    bandwidth_low_mb_s: float | None = None
    bandwidth_high_mb_s: float | None = None
    half_size_bytes: float | None = None
    line: Literal[FITS] = FITS[0]  # type: ignore[valid-type]


ECHO: dict[str, Any] = {
    "type": "object",
    "description": "The query: size, window, ordering, search, conditions and filters.",
    "properties": {
        **{name: {"type": "string"} for name in ("size", "start", "end", "ordering", "search")},
        "window": {"type": ["string", "null"]},
    },
    "required": ["size", "window", "start", "end", "ordering", "search"],
    "additionalProperties": {"type": ["string", "array"], "items": {"type": "string"}},
}


COMPARISON: dict[str, Any] = {
    "type": "object",
    "description": "While comparing: the other side, and how many links differ beyond chance.",
    "properties": {
        **{name: {"type": "string"} for name in ("description", "size", "start", "end")},
        "filters": {"type": "object"},
        **{name: {"type": "integer"} for name in ("compared", "slower", "faster")},
    },
}


def condition(name: str) -> OpenApiParameter:
    how = name.rpartition(".")[2]
    if name.endswith(".state.is"):
        return text(name, LOOKING, "failing,slower", pattern=SOME_LOOKS)
    if how == "is":
        return choice(name, BY_KEY[name.split(".")[1]].allowed, DESCRIPTIONS[how])
    if how == "has":
        return text(name, DESCRIPTIONS[how], "RAL", maxLength=LONGEST_TEXT)
    if ".age." in name:
        return text(name, AGES[how], "6h")
    column = name.rpartition(".")[0].rpartition(".")[2]
    compared = WHILE_COMPARING if column in column_filters.COMPARED_NUMBERS else ""
    return bound(name, f"{DESCRIPTIONS[how]}{compared}")


def bound(name: str, description: str) -> OpenApiParameter:
    """A number as it is written for its column: sizes may have a unit."""
    column = name.removesuffix(".min").removesuffix(".max").rpartition(".")[2]
    sizes = {"size_mean_bytes": "200MB", "size_std_bytes": "1MB", "half_size_bytes": "76MB"}
    example = sizes.get(column)
    if example:
        return text(name, description, example)
    return number(name, description, minimum=0)


def short(name: str) -> OpenApiParameter:
    """A bound on a column of the size class that the query asks for."""
    column, _, how = SHORT[name].rpartition(".")
    if column == "state":
        return text(name, LOOKING, "failing,slower", pattern=SOME_LOOKS)
    if column != "age":
        return bound(name, DESCRIPTIONS[how])
    return text(name, AGES[how], "6h")


EXAMPLE = {
    "query": {
        "size": "large",
        "window": "7d",
        "start": "2026-11-13T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
        "ordering": "-large.mean_mb_s",
        "search": "",
        "source.has": "Glasgow",
    },
    "total": 12,
    "found": 1,
    "links": [
        {
            "source": GLASGOW | {"retired": False},
            "destination": RAL | {"retired": False},
            "priority": 0,
            "large": {
                "mean_mb_s": 4.7,
                "std_mb_s": 0.4,
                "size_mean_bytes": 2000000000.0,
                "size_std_bytes": 0.0,
                "ok": 3,
                "failed": 1,
                "last": "2026-11-20T11:30:00Z",
                "state": "measured",
                "last_ok": "2026-11-20T11:30:00Z",
                "last_failed": "2026-11-19T23:30:00Z",
                "level": "usual",
                "usual_mb_s": 4.8,
                "now_mb_s": 4.6,
                "ratio": 0.958333,
                "ratio_low": 0.83,
                "ratio_high": 1.11,
                "since": None,
                "streak": 0,
            },
        }
    ],
    "next": None,
}
CSV = """source,source.site,source.cloud,...,destination,...,large.mean_mb_s,large.std_mb_s,...
Glasgow_DATADISK,Glasgow,UK,...,RAL_DATADISK,...,4.7,0.4,...
"""
MARKDOWN = """Rates of links by size class, the last 7 days. Window: ...

| from | to | large MB/s | large file size | large ok | large failed | large state |
| :-- | :-- | --: | --: | --: | --: | --: |
| Glasgow\\_DATADISK | RAL\\_DATADISK | 4.70 ± 0.400 | 2 GB | 3 | 1 | measured |
"""
LATEX = r"""\begin{table}
\centering
\caption{Rates of links by size class, the last 7 days. Window: ...}
\begin{tabular}{llrrrrr}
\hline
from & to & large MB/s & large file size & large ok & large failed & large state \\
\hline
Glasgow\_DATADISK & RAL\_DATADISK & 4.70 $\pm$ 0.400 & 2 GB & 3 & 1 & measured \\
\hline
\end{tabular}
\end{table}
"""
FORMATS = (*LIST, *DOCUMENT)
OF_THE_MATRIX = {"stat": STATS, "rows": GROUPINGS, "columns": GROUPINGS}
IGNORED = "A parameter of the matrix: the address of a page may have it; it has no effect here."
# A column of a size class has its name in front.
OF_ANY_CLASS = [
    column.replace(re.escape(SIZE), ".+") for column in map(re.escape, orderings([SIZE], SIZE))
]
ORDERING = rf"^-?({'|'.join(OF_ANY_CLASS)})$"

LINKS = described(
    "The table of links",
    answer=Listed(
        "links",
        Link,
        also={"query": ECHO, "total": {"type": "integer"}, "found": {"type": "integer"}},
        optional={"comparison": COMPARISON},
    ),
    parameters=[
        SIZE_CLASS,
        *WINDOW,
        *LINKS_FILTERED,
        *METHOD_FILTERED,
        *COMPARED,
        *(choice(name, OF_THE_MATRIX[name], IGNORED) for name in OF_THE_MATRIX),
        text(
            "ordering",
            "The column to sort by, as in CSV; - for descending order. What is compared is there "
            "only with compare. By now_mb_s and ratio a link that fails is the least. -trouble: "
            "failing links first, by how long, then slower ones, in the size class asked for.",
            f"-{SIZE}.mean_mb_s",
            default="source",
            pattern=ORDERING,
        ),
        text(
            "search",
            "Only links where each word is in an attribute of one end.",
            "RAL",
            maxLength=LONGEST_TEXT,
        ),
        text(
            "quantiles",
            "Quantiles of rates that each size class has beside the rest, as p95_mb_s; those that "
            "rows are ordered or chosen by are there anyway.",
            ",".join(TABLE_QUANTILES),
            pattern=rf"^({'|'.join(TABLE_QUANTILES)})(,({'|'.join(TABLE_QUANTILES)}))*$",
        ),
        choice("overhead", ("1",), "With the columns of overhead and bandwidth."),
        *map(short, SHORT),
        *map(condition, column_filters.names([SIZE], SIZE)),
        *paging(pagination.LINKS),
    ],
    formats=FORMATS,
    example=EXAMPLE,
    csv_example=CSV,
    document_examples={"markdown": MARKDOWN, "latex": LATEX},
    tag="results",
)
