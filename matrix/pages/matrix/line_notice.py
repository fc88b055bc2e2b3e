"""Which cells of a matrix of overheads or bandwidths have none, and why."""

from __future__ import annotations

from matrix.answers.grid import Grid
from matrix.pages.notices import Notice
from matrix.statistics.transfers.overhead import BENT, FEW, FEWEST_TRANSFERS, LEAST_RATIO
from sonar.notation.units import format_count


def about_lines(grid: Grid) -> Notice | None:
    """Count the cells that have successes and no line; None if there are none, or no lines."""
    if grid.lines is None:
        return None
    fit = grid.lines.fit[grid.cells.ok > 0]
    bent, few = (int((fit == kind).sum()) for kind in (BENT, FEW))
    if not bent + few:
        return None
    reasons = []
    if bent:
        reasons.append(
            f"In {format_count(bent)} the times of the size classes do not lie on one line. "
            "Overhead and bandwidth cannot be separated there."
        )
    if few:
        reasons.append(
            f"{format_count(few)} lack {FEWEST_TRANSFERS} successes of two sizes, one "
            f"{LEAST_RATIO:g} times the other."
        )
    cells = f"{format_count(bent + few)} of {format_count(fit.size)} cells with results"
    return Notice("no-line", f"{cells} have no value.", " ".join(reasons), (), quiet=True)
