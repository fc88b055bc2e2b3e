"""What the ends of the cells of a matrix explain of their rates. Pure numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matrix.statistics import two_way
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.axes import AxisGroup
from matrix.statistics.student import two_sided
from matrix.statistics.two_way import TwoWay


def within_sites(rows: Sequence[AxisGroup], columns: Sequence[AxisGroup]) -> Flags:
    """Say which cells are of one site with itself: no wide-area network, so none to compare."""
    sites = [
        np.array([group.site or "" for group in side], dtype=object) for side in (rows, columns)
    ]
    return np.asarray((sites[0][:, None] == sites[1]) & (sites[0] != "")[:, None], dtype=bool)


def explain(
    rates: Floats, rows: Sequence[AxisGroup], columns: Sequence[AxisGroup], how: str = "means"
) -> TwoWay:
    """Fit the two-way model to the logs of rates or of ratios, but for those within a site."""
    is_shown = (rates > 0) & ~within_sites(rows, columns)
    return two_way.fit(np.log(np.where(is_shown, rates, np.nan)), how)


def of_both_ends(
    stat: str, rates: Floats, rows: Sequence[AxisGroup], columns: Sequence[AxisGroup]
) -> Floats:
    """Return what both ends explain of each rate (`expected`), or the rate in parts of that."""
    model = explain(rates, rows, columns)
    logs = model.rest if stat == "residual" else model.fitted + 0 * model.rest
    return np.asarray(np.exp(logs))


def chances(model: TwoWay) -> Floats:
    """Return how probable what is left of a value is, as far as it is from 0, by chance alone.

    By the t of each value against the scatter of all the others (for a polish, of all); NaN of
    what is alone in a row or column.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(model.leverage < 1 - 1e-9, 1 - model.leverage, np.nan)
        squares = np.square(model.rest) / free
        # Least squares let a value draw sigma itself: that of the others is of those alone.
        others = (model.dof * model.sigma**2 - squares) / (model.dof - 1)
        is_own = model.how == "means"
        t = np.sqrt(squares / (np.maximum(others, 0) if is_own else model.sigma**2))
    dof = max(model.dof - is_own, 0)
    return two_sided(t, dof) if dof else np.full(model.rest.shape, np.nan)
