"""A Grid as the bytes that the API answers: JSON in one piece, CSV with one line for each link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from matrix.answers.grid import Grid
from matrix.api import cell_text
from matrix.api.cell_text import WORDS, dumps
from matrix.query.catalogue import STATISTICS
from matrix.query.filters import by_parameter, either
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.axes import AxisGroup
from matrix.statistics.cells import CellArrays
from matrix.statistics.rounding import rounded
from matrix.statistics.states import NOT_APPLICABLE
from sonar import csv_text
from sonar.windows import format_time

FIELDS = ("value", "std", "ok", "failed", "last", "state")


def chosen_fields(texts: Sequence[str]) -> tuple[str, ...]:
    """Read `fields=value,ok`; all of them for nothing."""
    names = {name.strip() for text in texts for name in text.split(",") if name.strip()}
    for name in sorted(names - set(FIELDS)):
        raise BadQueryError({"fields": [f"fields “{name}” is not known: use {either(FIELDS)}."]})
    return tuple(name for name in FIELDS if name in names or not names)


def as_json(grid: Grid, fields: Sequence[str]) -> bytes:
    return b"".join(json_parts(grid, fields))


def json_parts(grid: Grid, fields: Sequence[str]) -> Iterator[bytes]:
    yield dumps(before_cells(grid)).removesuffix(b"}")
    yield b',"cells":{'
    for number, name in enumerate(fields):
        yield b'%s"%s":[' % (b"," if number else b"", name.encode())
        for place, block in enumerate(cell_text.blocks(grid.cells, name)):
            yield b"," if place else b""
            yield block
        yield b"]"
    yield b"},"
    yield dumps(after_cells(grid)).removeprefix(b"{")


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


def after_cells(grid: Grid) -> dict[str, Any]:
    return {
        "source_average": rounded(grid.averages.row),
        "destination_average": rounded(grid.averages.column),
        "average": rounded(np.asarray(grid.averages.grand)),
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
        "std": STATISTICS["std"].field,
    }
    frame = pd.DataFrame(
        {
            "source": names(grid.sources)[row],
            "destination": names(grid.destinations)[column],
            **{units.get(name, name): csv_column(grid.cells, name, shown) for name in fields},
        }
    )
    text = frame.to_csv(index=False, lineterminator="\n", date_format="%Y-%m-%dT%H:%M:%SZ")
    return str(text).encode()


def csv_column(cells: CellArrays, name: str, shown: Flags) -> NDArray[Any]:
    array: NDArray[Any] = getattr(cells, name)[shown]
    if name == "state":
        return WORDS.take(array)
    if name == "last":
        return unix_time(array)
    return array if name in ("ok", "failed") else rounded(array)


def unix_time(seconds: Floats) -> NDArray[np.datetime64]:
    """Turn Unix times into dates to the second; NaN into none."""
    dates = np.full(seconds.shape, np.datetime64("NaT"), dtype="datetime64[s]")
    present = ~np.isnan(seconds)
    dates[present] = np.floor(seconds[present]).astype(np.int64).astype("datetime64[s]")
    return dates


def names(groups: Sequence[AxisGroup]) -> NDArray[np.object_]:
    return np.array([csv_text.quoted(group.name) for group in groups], dtype=object)
