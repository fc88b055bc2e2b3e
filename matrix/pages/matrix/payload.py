"""What static/js/matrix/ knows of a matrix before the numbers of its cells arrive."""

from __future__ import annotations

from typing import Any

import numpy as np

from matrix.answers.grid import RATE_UNIT
from matrix.pages.controls import STAT_LABELS
from matrix.pages.matrix.cell_links import CellLinks, parameters
from matrix.plots.arrangement import Arrangement, Side
from matrix.plots.labels import labels_for
from matrix.plots.matrix import figure
from matrix.query.addresses import address
from matrix.statistics.arrays import Floats
from matrix.statistics.rounding import rounded

Json = dict[str, Any]

# The card of a cell says these whatever the statistic is.
ALWAYS_SAID = ("mean", "std", "median", "count", "last")


def payload(arrangement: Arrangement, openings: CellLinks) -> Json:
    """Return the figure, and the names and means of rows and columns as they are drawn."""
    grid, labels = arrangement.grid, labels_for(arrangement)
    asked = grid.query.to_params() | arrangement.display.to_params()
    return {
        "figure": figure(arrangement),
        "cells_url": address("cells") + parameters(asked),
        "arrangement": arrangement.digest,
        "version": arrangement.version.text,
        "transposed": arrangement.display.transpose,
        "rows": side(arrangement.rows, labels.rows),
        "columns": side(arrangement.columns, labels.columns),
        "average": numbers(grid.averages.grand)[0],
        "stat": grid.query.stat,
        "said": said(grid.query.stat),
        "unit": grid.unit,
        "rate_unit": RATE_UNIT,
        "open": opening(arrangement, openings),
        "link_url": address("link", ":source", ":destination"),
        "square": grid.query.rows == grid.query.columns,
    }


def said(stat: str) -> str | None:
    """Return what the card calls a statistic, without its unit; None if it says it anyway."""
    return None if stat in ALWAYS_SAID else STAT_LABELS.get(stat, stat).partition(" (")[0]


def side(one: Side, labels: list[str]) -> Json:
    return {
        "names": one.names,
        "labels": labels,
        "at": one.at.tolist(),
        "average": numbers(one.average),
    }


def numbers(values: Floats | float) -> list[float | None]:
    """Return numbers for JSON, which has no NaN."""
    found = rounded(np.atleast_1d(np.asarray(values))).tolist()
    return [None if np.isnan(value) else value for value in found]


def opening(arrangement: Arrangement, openings: CellLinks) -> Json:
    if openings.of_links:
        return {"kind": "link", "query": openings.query()}
    return {
        "kind": "narrow",
        "query": openings.query(),
        "rows": narrowings(arrangement.rows, openings),
        "columns": narrowings(arrangement.columns, openings),
    }


def narrowings(one: Side, openings: CellLinks) -> list[str | None]:
    return [openings.narrowing(one.end, group) for group in one.groups]
