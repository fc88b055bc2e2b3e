"""What is left of a change when what the others did is taken off it: difference in differences.

Each link's change between two windows is a row effect, a column effect and a rest. What the rest of
the grid says of a link, or of the links of a site, is what was to be expected of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from matrix.answers.comparison import all_links
from matrix.answers.matrix.grid import Grid
from matrix.answers.words.phrases import counted
from matrix.answers.words.ratios import SURE
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats
from matrix.statistics.compare.two_samples import is_far
from matrix.statistics.estimates import student, two_way
from sonar.notation.units import format_factor

CONFIDENCE = 0.95
# A link that alone decides its row or its column is expected to be anything.
ALONE = 1 - 1e-9


@dataclass(frozen=True)
class NetChange:
    """A change beyond what was ``expected`` from ``links`` others; factors, NaN for unknown."""

    expected: float
    factor: float
    low: float
    high: float
    p: float
    links: int

    @classmethod
    def of_logs(cls, expected: float, own: float, error: float, dof: int, links: int) -> NetChange:
        """Take what is beyond, as a logarithm with a standard error."""
        half = float(student.quantile((1 + CONFIDENCE) / 2, dof)) * error
        p = float(student.two_sided(own / error, dof)) if error else float(not own)
        low, factor, high = np.exp([own - half, own, own + half]).tolist()
        return cls(float(np.exp(expected)), factor, low, high, p, links)

    def sentence(self, subject: str, *, has_changed: bool) -> str:
        """Say what the others did meanwhile, and what `it sent` beyond that.

        ``has_changed`` says whether it is certain that this one has changed at all.
        """
        others = f"{counted(self.links, 'link')}, {format_factor(self.expected)}"
        is_same = not is_far(np.array(self.expected))
        if self.p < SURE:
            factor = format_factor(self.factor, self.low, self.high)
            if is_same:
                return f"Others did not change ({others}); relative to them {subject} at {factor}."
            return f"Others changed, too ({others}); relative to them {subject} at {factor}."
        if is_same:
            return f"Others did not change{'' if has_changed else ' either'} ({others})."
        return f"Others changed as much ({others})."


def changes(query: MatrixQuery, now: datetime) -> Grid | None:
    """Return the changes of all links between the two windows of a question.

    None where more differs between its sides than the window: then nothing has changed.
    """
    compare = query.compare
    if compare is None or not compare.is_of_time:
        return None
    return all_links.build(query, now)


def logs_of(matrix: Grid) -> Floats:
    """Return the logarithms of the changes, NaN for holes."""
    with np.errstate(divide="ignore"):
        logs = np.log(matrix.cells.value)
    return np.where(np.isfinite(logs), logs, np.nan)


def paired_logs(matrix: Grid) -> Floats:
    """Return the logarithms of the changes of links with a test on both sides, however few."""
    if matrix.comparison is None:
        raise ValueError("the grid is compared with nothing")
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matrix.comparison.value / matrix.comparison.other)
    return np.where(np.isfinite(logs), logs, np.nan)


def link_net_change(matrix: Grid, source: str, destination: str) -> NetChange | None:
    """Return what a link did beyond the others; None if no others say what was to be expected."""
    rows = {group.name: row for row, group in enumerate(matrix.sources)}
    columns = {group.name: column for column, group in enumerate(matrix.destinations)}
    if source not in rows or destination not in columns:
        return None
    at, logs = (rows[source], columns[destination]), logs_of(matrix)
    model = two_way.fit(logs)
    leverage = float(model.leverage[at])
    if not leverage < ALONE or model.dof < 2:
        return None
    # Of a fit without the link itself, as that of the whole tells.
    own = float(model.rest[at]) / (1 - leverage)
    squares = max(model.dof * model.sigma**2 - own**2 * (1 - leverage), 0.0)
    error = float(np.sqrt(squares / (model.dof - 1) / (1 - leverage)))
    return NetChange.of_logs(float(logs[at]) - own, own, error, model.dof - 1, model.cells - 1)


def site_net_change(matrix: Grid, site: str, end: str) -> NetChange | None:
    """Return what the links of one end of a site did, on average, beyond those of the others."""
    groups = matrix.sources if end == "source" else matrix.destinations
    is_own = np.array([group.site == site for group in groups], dtype=bool)
    logs = paired_logs(matrix) if end == "source" else paired_logs(matrix).T
    if not is_own.any():
        return None
    model = two_way.fit(np.where(is_own[:, None], np.nan, logs))
    rest = (logs[is_own] - (model.level + model.column)).ravel()
    rest = rest[~np.isnan(rest)]
    if rest.size < 2 or not model.cells:
        return None
    error = float(rest.std(ddof=1) / np.sqrt(rest.size))
    return NetChange.of_logs(model.level, float(rest.mean()), error, rest.size - 1, model.cells)
