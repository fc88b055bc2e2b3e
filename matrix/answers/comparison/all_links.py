"""All links of a choice compared together: a factor for each choice, and sentences on it.

And what is left of a change when what the others did is taken off it: difference in differences.
Each link's change between two windows is a row effect, a column effect and a rest. What the rest of
the grid says of a link, or of the links of a site, is what was to be expected of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, Self

import numpy as np

from matrix.answers.matrix import grid, standing
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.words.phrases import counted
from matrix.answers.words.ratios import SURE, PairRatio
from matrix.query.filters import on_links, on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats
from matrix.statistics.compare.together import DayScatter, Together, days_apart
from matrix.statistics.compare.two_samples import SMALLEST_RATIO, Ratios, is_far
from matrix.statistics.estimates import student, two_way
from matrix.store import registry
from sonar.notation.units import format_count, format_factor

Link = tuple[str, str]
CONFIDENCE = 0.95
# An interval from below 1 to above it, whose ends differ by more than this factor, has no use.
WIDEST = 10.0
# A link that alone decides its row or its column is expected to be anything.
ALONE = 1 - 1e-9


def build(query: MatrixQuery, now: datetime) -> Grid:
    if query.compare is None:
        raise ValueError("the query has no comparison")
    whole = query.replace(
        stat=MatrixQuery.stat,
        rows="endpoint",
        columns="endpoint",
        max_age="",
        filters=tuple(on_profiles(query.filters)),
        compare=query.compare.on_profiles() or query.compare,
    )
    return grid.build(whole, now)


def ratios_of(whole: Grid, links: Sequence[Link]) -> Ratios:
    """Return how some links compare, given by the names of their ends; NaN for unknown ones."""
    ratios = whole.comparison
    if ratios is None:
        raise ValueError("the query has no comparison")
    rows = {group.name: row for row, group in enumerate(whole.sources)}
    columns = {group.name: column for column, group in enumerate(whole.destinations)}
    places = [(rows.get(source, -1), columns.get(there, -1)) for source, there in links]
    row, column = np.array(places, dtype=np.int64).reshape(-1, 2).T
    is_known = (row >= 0) & (column >= 0)
    return Ratios.blank(len(links)).put(is_known, ratios.taken((row[is_known], column[is_known])))


def link_ratio(query: MatrixQuery, now: datetime, source: str, destination: str) -> PairRatio:
    return PairRatio.at(ratios_of(build(query, now), [(source, destination)]), (0,))


ENDPOINTS = ("endpoint", "endpoint")


class CountWords(NamedTuple):
    """What stands behind the numbers of tests of both sides: `now` and `before`."""

    own: str
    other: str

    @classmethod
    def of(cls, query: MatrixQuery, now: datetime) -> Self:
        if query.other(now).window_at(now).end > query.window_at(now).start:
            return cls("here", "there")
        return cls("now" if query.window else "after", "before")


AROUND = CountWords("after", "before")


def ratios_together(
    ratios: Ratios, of: str, scatter: DayScatter | None = None, apart: float = 0.0
) -> Together:
    """Put links together that were compared each by itself; ``of`` is `median` or `mean`.

    A link that is alone has its own interval, where there is no ``scatter``; that and ``apart`` are
    as Together.of() has them.
    """
    centres = np.stack([ratios.value, ratios.other])
    together = Together.of(centres, np.stack([ratios.ok, ratios.other_ok]), of, scatter, apart)
    if together.links != 1 or not np.isnan(together.low):
        return together
    (place,) = np.flatnonzero((centres > 0).all(axis=0))
    alone = PairRatio.at(ratios, (int(place),))
    return replace(together, low=alone.low, high=alone.high, p=alone.p)


def grid_together(grid: Grid, now: datetime) -> Together | None:
    """Put the links together that a grid shows and compares.

    None where they have nothing in common: the sides differ in their links, or each direction is
    compared with the other. One SQL statement; some more where a grid is of other cells than links.
    """
    query, compare = grid.query, grid.query.compare
    if compare is None or compare.on_profiles() != compare or grid.is_mirrored:
        return None
    links = registry.read_links(grid.version)
    choice = links.matching(query.filters).reshape(links.shape)
    is_whole = (query.rows, query.columns) == ENDPOINTS and not on_links(query.filters)
    whole = grid if is_whole else build(query, now)
    if whole.comparison is None:
        return None
    scatter, apart = None, 0.0
    if compare.is_of_time:
        windows = query.window_at(now), query.other(now).window_at(now)
        (of_choices,) = standing.day_to_day(
            query.size, query.filters, windows[:1], links, choice[None], of=compare.of
        )
        scatter, apart = of_choices, days_apart(*windows)
    place = {info.name: number for number, info in enumerate(links.places)}
    rows, columns = (
        [place[group.name] for group in groups] for groups in (whole.sources, whole.destinations)
    )
    shown = whole.comparison.taken(choice[np.ix_(rows, columns)])
    return ratios_together(shown, compare.of, scatter, apart)


def factor_words(together: Together, tests: CountWords) -> str:
    """Write the factor with its interval, whether it is significant, and the number of tests."""
    counts = f"{counted(together.ok, 'test')} {tests.own}"
    others = f"{format_count(together.other_ok)} {tests.other}"
    said = ", ".join(filter(None, [factor_alone(together), verdict(together)]))
    return f"{said}: {counts} and {others}"


def factor_alone(together: Together) -> str:
    """Write the factor with its interval, if it has one; nothing if that is too wide to tell."""
    if np.isnan(together.low):
        return format_factor(together.ratio)
    if tells_nothing(together):
        return ""
    return format_factor(together.ratio, together.low, together.high)


def tells_nothing(together: Together) -> bool:
    return together.low < 1 < together.high and together.high > WIDEST * together.low


def verdict(together: Together) -> str:
    if together.kind in ("slower", "faster"):
        return together.kind
    if tells_nothing(together):
        return "too few tests to assess"
    is_close = together.low > 1 / SMALLEST_RATIO and together.high < SMALLEST_RATIO
    return "about the same" if is_close else "not significant"


def sentence(grid: Grid, now: datetime) -> str:
    """Say how all links of a grid together compare; nothing where they cannot be put together."""
    together = grid_together(grid, now)
    if together is None or not together.links:
        return ""
    states, query = grid.states(), grid.query
    links = sum(states.values()) - states["not_applicable"]
    count = counted(together.links, "link")
    # All that are shown, or those of them that have tests on both sides.
    subject = f"{'These' if on_links(query.filters) else 'All'} {count} together"
    if (query.rows, query.columns) != ENDPOINTS or together.links != links:
        subject = f"{count} with tests on both sides, combined"
    return f"{subject}: {factor_words(together, CountWords.of(query, now))}."


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
    def of_logs(cls, expected: float, own: float, error: float, dof: int, links: int) -> Self:
        """Take what is beyond, as a logarithm with a standard error."""
        half = student.one_quantile((1 + CONFIDENCE) / 2, dof) * error
        p = float(student.two_sided(own / error, dof)) if error else float(not own)
        low, factor, high = np.exp([own - half, own, own + half]).tolist()
        return cls(float(np.exp(expected)), factor, low, high, p, links)

    def sentence(self, subject: str, *, has_changed: bool) -> str:
        """Say what others did, and what `it sent` beyond; ``has_changed`` says if it surely did."""
        others = f"{counted(self.links, 'link')}, {format_factor(self.expected)}"
        is_same = not is_far(np.array(self.expected))
        if self.p < SURE:
            factor = format_factor(self.factor, self.low, self.high)
            begin = "Other links did not change" if is_same else "Other links changed as well"
            return f"{begin} ({others}). Relative to them, {subject} at {factor}."
        if is_same:
            return f"Other links did not change{'' if has_changed else ' either'} ({others})."
        return f"Other links changed by a similar factor ({others})."


def changes(query: MatrixQuery, now: datetime) -> Grid | None:
    """Return the changes of all links; None where more differs than the window."""
    compare = query.compare
    if compare is None or not compare.is_of_time:
        return None
    return build(query, now)


def finite_logs(changes: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(changes)
    return np.where(np.isfinite(logs), logs, np.nan)


def link_net_change(matrix: Grid, source: str, destination: str) -> NetChange | None:
    """Return what a link did beyond the others; None if no others say what was to be expected."""
    rows = {group.name: row for row, group in enumerate(matrix.sources)}
    columns = {group.name: column for column, group in enumerate(matrix.destinations)}
    if source not in rows or destination not in columns:
        return None
    at, logs = (rows[source], columns[destination]), finite_logs(matrix.cells.value)
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
    if matrix.comparison is None:
        raise ValueError("the matrix has no comparison")
    if not is_own.any():
        return None
    # Of links with a test on both sides, however few.
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = finite_logs(matrix.comparison.value / matrix.comparison.other)
    logs = logs if end == "source" else logs.T
    model = two_way.fit(np.where(is_own[:, None], np.nan, logs))
    rest = (logs[is_own] - (model.level + model.column)).ravel()
    rest = rest[~np.isnan(rest)]
    if rest.size < 2 or not model.cells:
        return None
    error = float(rest.std(ddof=1) / np.sqrt(rest.size))
    return NetChange.of_logs(model.level, float(rest.mean()), error, rest.size - 1, model.cells)
