"""The description of matrix/."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from matrix.api.matrix_formats import FIELDS
from matrix.api.schema.describe import described
from matrix.api.schema.endpoints import GLASGOW, RAL, with_facts
from matrix.api.schema.parameters import choice, text
from matrix.api.schema.queries import QUERY, Echo
from matrix.api.schema.schemas import Answer, CellChange, CellLevel, CellState
from matrix.http.negotiation import DOCUMENT, FIGURE, TABLE
from matrix.query.catalogue import UNITS

Numbers = list[list[float | None]]
Counts = list[list[int]]


class MatrixEcho(Echo):
    stat: str
    rows: str
    columns: str
    max_age: str | None


Group = with_facts(
    "Group",
    "A row or a column; attributes that its endpoints do not share are null.",
    ("simulated",),
    shared=True,
)


class Cells(Answer):
    """Arrays of rows, those that `fields` names; null where there is no value.

    `level` compares the newest successes with usual: `now` with `usual`, both in MB/s. `since` is
    the start of the first of the `streak` tests that made a cell failing, slower or faster.
    `ratio_low` and `ratio_high` bound `now` / `usual` of a single link with 95 % confidence. These
    two, `streak`, `usual` and `now` are there only if `fields` names them.

    While comparing, `value` is the ratio where both sides have enough results, and there are `rate`
    and `other`, the medians (or means) of both sides in MB/s, `ratio` with its interval of 95 %
    from `low` to `high`, `p` of chance, `other_ok`, the successes of the other side, and
    `change`: slower or faster beyond what chance makes of so many cells, or nothing.
    """

    value: Numbers = []
    std: Numbers = []
    ok: Counts = []
    failed: Counts = []
    last: list[list[datetime | None]] = []
    state: list[list[CellState]] = []
    level: list[list[CellLevel]] = []
    since: list[list[datetime | None]] = []
    streak: Counts = []
    usual: Numbers = []
    now: Numbers = []
    ratio_low: Numbers = []
    ratio_high: Numbers = []
    rate: Numbers = []
    other: Numbers = []
    ratio: Numbers = []
    low: Numbers = []
    high: Numbers = []
    p: Numbers = []
    other_ok: Counts = []
    change: list[list[CellChange]] = []


class OtherAnswer(Answer):
    """What the cells are compared with, and how many of them there are.

    `compared` have enough results on both sides, `too_few` have not; `slower` and `faster` differ
    by more than chance: of those, one in thirty may be chance.
    """

    description: str
    size: str
    start: datetime
    end: datetime
    simulated: bool
    filters: dict[str, list[str]]
    compared: int
    too_few: int
    slower: int
    faster: int


class Matrix(Answer):
    query: MatrixEcho
    description: str
    unit: Annotated[str, Field(json_schema_extra={"enum": list(UNITS)})]
    version: str
    simulated: bool
    comparison: OtherAnswer | None = None
    sources: list[Group]  # type: ignore[valid-type]
    destinations: list[Group]  # type: ignore[valid-type]
    cells: Cells
    source_average: list[float | None]
    destination_average: list[float | None]
    average: float | None


EXAMPLE = {
    "query": {
        "size": "large",
        "window": "7d",
        "start": "2026-11-13T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
        "stat": "mean",
        "rows": "endpoint",
        "columns": "endpoint",
        "max_age": None,
        "cloud": ["UK"],
    },
    "description": "Mean rate of large-file transfers, the last 7 days",
    "unit": "MB/s",
    "version": "1f0c-9-3b1d0f9c2a77",
    "simulated": False,
    "sources": [GLASGOW, RAL],
    "destinations": [GLASGOW, RAL],
    "cells": {
        "value": [[None, 4.7], [8.1, None]],
        "std": [[None, 0.4], [None, None]],
        "ok": [[0, 3], [1, 0]],
        "failed": [[0, 1], [0, 0]],
        "last": [[None, "2026-11-20T11:30:00Z"], ["2026-11-20T04:00:00Z", None]],
        "state": [["not_applicable", "measured"], ["stale", "not_applicable"]],
        "level": [["unknown", "slower"], ["unknown", "unknown"]],
        "since": [[None, "2026-11-19T20:15:00Z"], [None, None]],
    },
    "source_average": [4.7, 8.1],
    "destination_average": [8.1, 4.7],
    "average": 6.4,
}
CSV = """source,destination,value_mb_s,std_mb_s,ok,failed,last,state,level,since
Glasgow_DATADISK,RAL_DATADISK,4.7,0.4,3,1,2026-11-20T11:30:00Z,measured,slower,2026-11-19T20:15:00Z
RAL_DATADISK,Glasgow_DATADISK,8.1,,1,0,2026-11-20T04:00:00Z,stale,unknown,
"""
MARKDOWN = r"""Mean rate of large-file transfers, the last 7 days, ... Means are of measured cells.

| from \\ to | Glasgow\_DATADISK | RAL\_DATADISK | mean |
| :-- | --: | --: | --: |
| Glasgow\_DATADISK |  | 4.70 | 4.70 |
| RAL\_DATADISK | 8.10 stale |  | 8.10 |
| mean | 8.10 | 4.70 | 6.40 |
"""
LATEX = r"""\begin{table}
\centering
\caption{Mean rate of large{-}file transfers, ...}
\begin{tabular}{lrrr}
\hline
from \textbackslash{} to & Glasgow\_DATADISK & RAL\_DATADISK & mean \\
\hline
Glasgow\_DATADISK &  & 4.70 & 4.70 \\
RAL\_DATADISK & 8.10 stale &  & 8.10 \\
\hline
mean & 8.10 & 4.70 & 6.40 \\
\hline
\end{tabular}
\end{table}
"""
FORMATS = (*TABLE, *DOCUMENT, *FIGURE)
SHAPES = ("long", "wide")
FIELD_LIST = rf"^({'|'.join(FIELDS)})(,({'|'.join(FIELDS)}))*$"

MATRIX = described(
    "The whole matrix, source by destination",
    answer=Matrix,
    parameters=[
        *QUERY,
        text(
            "fields",
            "The arrays of cells to return; by default all but streak, usual, now and its bounds. "
            "Those of a comparison are there with compare.",
            "value,ok",
            pattern=FIELD_LIST,
        ),
        choice(
            "shape",
            SHAPES,
            "Of CSV: a line for each link (long), or for each source, with a column for each "
            "destination and their means as last row and column (wide).",
            default=SHAPES[0],
        ),
    ],
    formats=FORMATS,
    example=EXAMPLE,
    csv_example=CSV,
    document_examples={"markdown": MARKDOWN, "latex": LATEX},
    tag="results",
)
