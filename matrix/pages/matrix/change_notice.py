"""A comparison with too few tests to name a single link says so, and what would have more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from matrix.answers.comparison.changes import can_show_one
from matrix.answers.grid import Grid
from matrix.pages.notices import Notice
from matrix.query.comparison import MONTH, PREVIOUS, WEEK
from matrix.query.matrix_query import MatrixQuery
from sonar.units import format_count


def about_changes(grid: Grid, asking: Callable[[MatrixQuery], str]) -> Notice | None:
    """Say that no cell could be beyond chance by itself; None where one could, or some are."""
    compare, compared = grid.query.compare, int(np.count_nonzero(~np.isnan(grid.cells.value)))
    if compare is None or not compared or grid.changed.any() or can_show_one(grid):
        return None
    links: tuple[tuple[str, str], ...] = ()
    if compare.window in (PREVIOUS, WEEK):
        longer = grid.query.replace(compare=replace(compare, window=MONTH))
        links = (("Compare with the 30 days before", asking(longer)),)
    return Notice(
        "few-tests",
        "Too few tests to name a single link.",
        f"However far a link is off, chance alone may set one of {format_count(compared)} apart as "
        "clearly: take a longer window, or compare with more results.",
        links,
        quiet=True,
    )
