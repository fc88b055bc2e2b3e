"""A Grid as the bytes that the API answers: JSON in one piece, CSV with one line for each link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from matrix.answers.comparison import changes
from matrix.answers.comparison.sides import OtherSide
from matrix.answers.grid import Grid
from matrix.api import cell_text
from matrix.api.cell_text import WORDS, dumps
from matrix.query.catalogue import RATE
from matrix.query.filters import by_parameter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats, rounded, significant
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.states import NOT_APPLICABLE
from sonar.notation import csv_text
from sonar.notation.windows import format_time

# Arrays of cells that an answer has, and those that it has for who asks for them. Those of a
# comparison it has while comparing.
DEFAULT_FIELDS = ("value", "std", "ok", "failed", "last", "state", "level", "since")
COMPARED = ("rate", "other", "ratio", "low", "high", "p", "other_ok", "change")
PLAIN_FIELDS = (*DEFAULT_FIELDS, "streak", "usual", "now", "ratio_low", "ratio_high")
FIELDS = (*PLAIN_FIELDS, *COMPARED)
TIMES = ("last", "last_ok", "last_failed", "since")
COUNTS = ("ok", "failed", "streak", "other_ok")
CHANCES = ("p", "compared_p")


def as_json(grid: Grid, fields: Sequence[str]) -> bytes:
    pieces = [dumps(before_cells(grid)).removesuffix(b"}"), b',"cells":{']
    for number, name in enumerate(fields):
        pieces.append(b'%s"%s":[' % (b"," if number else b"", name.encode()))
        for place, block in enumerate(cell_text.blocks(name, array_of(grid, name))):
            pieces += (b",", block) if place else (block,)
        pieces.append(b"]")
    averages = {
        "source_average": rounded(grid.averages.row),
        "destination_average": rounded(grid.averages.column),
        "average": rounded(np.asarray(grid.averages.grand)),
    }
    return b"".join([*pieces, b"},", dumps(averages).removeprefix(b"{")])


def array_of(grid: Grid, name: str) -> NDArray[Any]:
    """Return an array of cells by the name of its field."""
    if name not in COMPARED:
        array: NDArray[Any] = getattr(grid.cells, name)
        return array
    if grid.comparison is None:
        raise ValueError(f"{name} is of a comparison, and there is none")
    if name == "change":
        return changes.kinds(grid)
    of_ratios: NDArray[Any] = getattr(grid.comparison, {"rate": "value"}.get(name, name))
    return of_ratios


def before_cells(grid: Grid) -> dict[str, Any]:
    return {
        "query": echo(grid),
        "description": grid.query.describe(),
        "unit": grid.unit,
        "version": grid.version.text,
        "simulated": grid.simulated,
        **({"comparison": compared(grid, grid.other)} if grid.other else {}),
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
        **(query.compare.to_params() if query.compare else {}),
    }


def compared(grid: Grid, other: OtherSide) -> dict[str, Any]:
    """Say what the cells are compared with, and how many of them differ beyond chance."""
    return {
        "description": other.words,
        "size": other.query.size,
        "start": format_time(other.window.start),
        "end": format_time(other.window.end),
        "simulated": other.simulated,
        "filters": by_parameter(other.query.filters),
        **changes.counts(grid),
    }


def as_csv(grid: Grid, fields: Sequence[str]) -> bytes:
    """Write one line for each link, row by row; cells that are not applicable are left out."""
    shown = grid.cells.state != NOT_APPLICABLE
    row, column = np.nonzero(shown)
    units = {
        "value": f"value_{grid.query.statistic.unit.suffix}",
        **{name: f"{name}_{RATE.suffix}" for name in ("std", "usual", "now", "rate", "other")},
    }
    frame = pd.DataFrame(
        {
            "source": names(grid.sources)[row],
            "destination": names(grid.destinations)[column],
            **{
                units.get(name, name): csv_column(name, array_of(grid, name)[shown])
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
    if name in CHANCES:
        return significant(values)
    return values if name in COUNTS else rounded(values)


def unix_time(seconds: Floats) -> NDArray[np.datetime64]:
    """Turn Unix times into dates to the second; NaN into none."""
    dates = np.full(seconds.shape, np.datetime64("NaT"), dtype="datetime64[s]")
    present = ~np.isnan(seconds)
    dates[present] = np.floor(seconds[present]).astype(np.int64).astype("datetime64[s]")
    return dates


def names(groups: Sequence[AxisGroup]) -> NDArray[np.object_]:
    return np.array([csv_text.quoted(group.name) for group in groups], dtype=object)
