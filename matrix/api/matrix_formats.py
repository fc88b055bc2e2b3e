"""A Grid as the bytes that the API answers: JSON in one piece, CSV with one line for each link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from matrix.answers.grid import Grid
from matrix.api import cell_text
from matrix.api.cell_text import WORDS, dumps
from matrix.query.catalogue import RATE, STATISTICS
from matrix.query.filters import by_parameter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats
from matrix.statistics.axes import AxisGroup
from matrix.statistics.rounding import rounded
from matrix.statistics.states import NOT_APPLICABLE
from sonar import csv_text
from sonar.windows import format_time

# Arrays of cells that an answer has, and those that it has for who asks for them.
DEFAULT_FIELDS = ("value", "std", "ok", "failed", "last", "state", "level", "since")
FIELDS = (*DEFAULT_FIELDS, "streak", "usual", "now")
TIMES = ("last", "last_ok", "last_failed", "since")
COUNTS = ("ok", "failed", "streak")


def as_json(grid: Grid, fields: Sequence[str]) -> bytes:
    pieces = [dumps(before_cells(grid)).removesuffix(b"}"), b',"cells":{']
    for number, name in enumerate(fields):
        pieces.append(b'%s"%s":[' % (b"," if number else b"", name.encode()))
        for place, block in enumerate(cell_text.blocks(grid.cells, name)):
            pieces += (b",", block) if place else (block,)
        pieces.append(b"]")
    averages = {
        "source_average": rounded(grid.averages.row),
        "destination_average": rounded(grid.averages.column),
        "average": rounded(np.asarray(grid.averages.grand)),
    }
    return b"".join([*pieces, b"},", dumps(averages).removeprefix(b"{")])


def before_cells(grid: Grid) -> dict[str, Any]:
    return {
        "query": echo(grid),
        "description": grid.query.describe(),
        "unit": grid.unit,
        "version": grid.version.text,
        "simulated": grid.simulated,
        "sources": [group.record() for group in grid.sources],
        "destinations": [group.record() for group in grid.destinations],
    }


def echo(grid: Grid) -> dict[str, Any]:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    query: MatrixQuery = grid.query
    return {
        "size": query.size,
        "window": query.window or None,
        "start": format_time(grid.window.start),
        "end": format_time(grid.window.end),
        "stat": query.stat,
        "rows": query.rows,
        "columns": query.columns,
        "max_age": query.max_age or None,
        **by_parameter(query.filters),
    }


def as_csv(grid: Grid, fields: Sequence[str]) -> bytes:
    """Write one line for each link, row by row; cells that are not applicable are left out."""
    shown = grid.cells.state != NOT_APPLICABLE
    row, column = np.nonzero(shown)
    units = {
        "value": f"value_{STATISTICS[grid.query.stat].unit.suffix}",
        **{name: f"{name}_{RATE.suffix}" for name in ("std", "usual", "now")},
    }
    frame = pd.DataFrame(
        {
            "source": names(grid.sources)[row],
            "destination": names(grid.destinations)[column],
            **{
                units.get(name, name): csv_column(name, getattr(grid.cells, name)[shown])
                for name in fields
            },
        }
    )
    text = frame.to_csv(index=False, lineterminator="\n", date_format="%Y-%m-%dT%H:%M:%SZ")
    return str(text).encode()


def csv_column(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return what stands in CSV of cells or of links, by the name of their array."""
    if name in TIMES:
        return unix_time(values)
    if name in WORDS:
        return WORDS[name].take(values)
    return values if name in COUNTS else rounded(values)


def unix_time(seconds: Floats) -> NDArray[np.datetime64]:
    """Turn Unix times into dates to the second; NaN into none."""
    dates = np.full(seconds.shape, np.datetime64("NaT"), dtype="datetime64[s]")
    present = ~np.isnan(seconds)
    dates[present] = np.floor(seconds[present]).astype(np.int64).astype("datetime64[s]")
    return dates


def names(groups: Sequence[AxisGroup]) -> NDArray[np.object_]:
    return np.array([csv_text.quoted(group.name) for group in groups], dtype=object)
