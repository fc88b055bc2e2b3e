"""What static/js/matrix/ knows of a matrix before the numbers of its cells arrive."""

from __future__ import annotations

from typing import Any

import numpy as np

from matrix.pages.compare import own_words
from matrix.pages.matrix.cell_links import CellLinks, parameters
from matrix.plots import display
from matrix.plots.arrangement import Arrangement, Side
from matrix.plots.layout import labels_for
from matrix.plots.matrix import figure
from matrix.query.addresses import address
from matrix.query.catalogue import CARD_EXTRAS, RATE, STATISTICS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats, rounded
from sonar.notation.windows import format_window

Json = dict[str, Any]


def payload(arrangement: Arrangement, cell_links: CellLinks) -> Json:
    """Return the figure, and the names and means of rows and columns as they are drawn."""
    grid, labels = arrangement.grid, labels_for(arrangement)
    statistic = grid.query.statistic
    params = display.write(grid.query, arrangement.display)
    return {
        "figure": figure(arrangement),
        "cells_url": address("cells") + parameters(params),
        "arrangement": arrangement.digest,
        "version": arrangement.version.text,
        "transposed": arrangement.display.transpose,
        # Of two strips, how many rows (columns, if transposed) are sources; the others receive.
        "sending": arrangement.own and arrangement.own.sending,
        "rows": side_numbers(arrangement.rows, labels.rows),
        "columns": side_numbers(arrangement.columns, labels.columns),
        "average": numbers(grid.averages.grand)[0],
        "period": f"From {format_window(grid.window)}",
        "stat": statistic.name,
        # What the card of a cell calls the statistic, unless it says it anyway.
        "said": None if statistic.on_card else statistic.words,
        "unit": statistic.unit.behind,
        "written": statistic.unit.written,
        "rate_unit": RATE.name,
        "card_extras": {STATISTICS[name].words: name for name in CARD_EXTRAS},
        # Of a comparison, what the card calls its sides.
        "compared": sides_of(grid.query),
        "open": opening(cell_links),
        "link_url": address("link", ":source", ":destination"),
        "square": grid.query.rows == grid.query.columns,
    }


def side_numbers(side: Side, labels: list[str]) -> Json:
    return {
        "names": side.names,
        "labels": labels,
        "at": side.at.tolist(),
        "average": numbers(side.average),
    }


def numbers(values: Floats | float) -> list[float | None]:
    """Return numbers for JSON, which has no NaN."""
    return [
        None if np.isnan(value) else value
        for value in rounded(np.atleast_1d(np.asarray(values))).tolist()
    ]


def sides_of(query: MatrixQuery) -> Json | None:
    if query.compare is None:
        return None
    of = query.compare.of
    return {"here": f"{of}, {own_words(query)}", "there": f"{of}, {query.other_words()}"}


def opening(cell_links: CellLinks) -> Json:
    if cell_links.of_links:
        return {"kind": "link", "query": cell_links.query()}
    grid = cell_links.grid
    return {
        "kind": "narrow",
        "query": cell_links.query(),
        **{
            end: {group.name: cell_links.narrowing(end, group) for group in groups}
            for end, groups in (("source", grid.sources), ("destination", grid.destinations))
        },
    }
