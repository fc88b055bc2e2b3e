"""A Grid as the API answers it: JSON in one piece, CSV with one line for each link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from matrix.cells import NOT_APPLICABLE, STATES
from matrix.filters import either
from matrix.forms import BadQueryError
from matrix.grid import Grid
from matrix.query import MatrixQuery
from matrix.statistics import Floats
from sonar.windows import format_time

FIELDS = ("value", "std", "ok", "failed", "last", "state")
# Rates to the byte per second; more digits than that are noise that costs bytes.
DECIMALS = 6
UNIT_SUFFIX = {"MB/s": "mb_s", "%": "percent", "transfers": "transfers", "s": "seconds"}


def chosen_fields(texts: Sequence[str]) -> tuple[str, ...]:
    """Read `fields=value,ok`; all of them for nothing."""
    names = {name.strip() for text in texts for name in text.split(",") if name.strip()}
    for name in sorted(names - set(FIELDS)):
        raise BadQueryError({"fields": [f"fields “{name}” is not known: use {either(FIELDS)}."]})
    return tuple(name for name in FIELDS if name in names or not names)


def as_json(grid: Grid, fields: Sequence[str]) -> dict[str, Any]:
    return {
        "query": echo(grid),
        "description": grid.query.describe(),
        "unit": grid.unit,
        "version": grid.version,
        "simulated": grid.simulated,
        "sources": [asdict(group) for group in grid.sources],
        "destinations": [asdict(group) for group in grid.destinations],
        "cells": {name: cell_array(grid, name).tolist() for name in fields},
        "source_average": numbers(grid.averages.row).tolist(),
        "destination_average": numbers(grid.averages.column).tolist(),
        "average": numbers(np.array([grid.averages.grand])).tolist()[0],
    }


def echo(grid: Grid) -> dict[str, Any]:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    query: MatrixQuery = grid.query
    filters: dict[str, list[str]] = {}
    for one in query.filters:
        filters.setdefault(one.parameter, []).append(one.text)
    return {
        "size": query.size,
        "window": query.window or None,
        "start": format_time(grid.window.start),
        "end": format_time(grid.window.end),
        "stat": query.stat,
        "rows": query.rows,
        "columns": query.columns,
        **filters,
    }


def cell_array(grid: Grid, name: str) -> NDArray[Any]:
    """Return an array of cells as it stands in the answer: blank is None."""
    cells = grid.cells
    if name == "state":
        return np.array(STATES, dtype=object)[cells.state]
    if name == "last":
        return times(cells.last)
    array: NDArray[Any] = getattr(cells, name)
    return array if name in ("ok", "failed") else numbers(array)


def numbers(values: Floats) -> NDArray[np.object_]:
    rounded = np.round(values, DECIMALS).astype(object)
    rounded[np.isnan(values)] = None
    return rounded


def times(unix: Floats) -> NDArray[np.object_]:
    """Write Unix times as ISO 8601, to the second."""
    known = ~np.isnan(unix)
    written = np.full(unix.shape, None, dtype=object)
    seconds = np.floor(unix[known]).astype("datetime64[s]")
    written[known] = np.char.add(np.datetime_as_string(seconds), "Z")
    return written


def as_csv(grid: Grid, fields: Sequence[str]) -> str:
    """Write one line for each link, row by row; cells that are not applicable are left out."""
    shape = grid.cells.state.shape
    row, column = (axis.ravel() for axis in np.indices(shape))
    units = {"value": f"value_{UNIT_SUFFIX[grid.unit]}", "std": "std_mb_s"}
    frame = pd.DataFrame(
        {
            "source": names(grid.sources)[row],
            "destination": names(grid.destinations)[column],
            **{units.get(name, name): cell_array(grid, name).ravel() for name in fields},
        }
    )
    links = frame[grid.cells.state.ravel() != NOT_APPLICABLE]
    return str(links.to_csv(index=False, lineterminator="\n"))


def names(groups: Sequence[Any]) -> NDArray[np.object_]:
    return np.array([group.name for group in groups], dtype=object)
