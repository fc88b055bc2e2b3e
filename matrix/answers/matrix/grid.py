"""From a query to the answer that page, picture, API and CSV all show."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.comparison import sides as comparing
from matrix.answers.comparison.sides import OtherSide
from matrix.answers.matrix import standing
from matrix.answers.words.names import short_names_of
from matrix.query.catalogue import CARD_EXTRAS, EXTRAS, STATISTICS, TIMES
from matrix.query.filters import on_links
from matrix.query.forms import read_age
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import AxisGroup, LinkIndex
from matrix.statistics.cells.cells import CellArrays, Frame
from matrix.statistics.cells.standing import Standings
from matrix.statistics.cells.states import FAILING, MEASURED, STALE, STATES
from matrix.statistics.compare.two_samples import CHANGES, Ratios, Rule, Sides
from matrix.statistics.samples import reduce
from matrix.statistics.samples.pooling import Pooling
from matrix.statistics.samples.reduce import Averages, Reduced
from matrix.statistics.samples.reduce import reduce as reduce_runs
from matrix.statistics.samples.run import Run
from matrix.statistics.transfers import overhead
from matrix.statistics.transfers.overhead import ClassTimes, Lines
from matrix.store import data_version, registry, runs
from matrix.store.cache import ANSWERS
from matrix.store.data_version import DataVersion, snapshot
from sonar.models import Downtime, SizeClass
from sonar.notation.windows import Window


@dataclass(frozen=True)
class Grid:
    """The answer to a query at a moment. Sources are rows, destinations are columns.

    Only endpoints with a link that a mesh tests, or that has results, make rows and columns;
    ``idle`` names the other endpoints in use that the filters let pass; ``shortest_promise``
    is the shortest interval in seconds at which a mesh tests one of these links, infinity
    for none; ``profiles`` are the ids of those that its results have, if they were asked for.
    ``left_out`` says of which cells the filters on ends let nothing pass, None if of none;
    ``lines`` are those of the cells where the statistic is read off them.
    While comparing there are ``comparison`` and ``other``, what it is compared with: then the
    value of a cell is its ratio where there are enough results, and all else is of this side;
    ``rule`` is what they were judged by.
    Arrays are shared, and read-only.
    """

    query: MatrixQuery
    window: Window
    moment: datetime
    version: DataVersion
    sources: tuple[AxisGroup, ...]
    destinations: tuple[AxisGroup, ...]
    cells: CellArrays
    averages: Averages
    idle: tuple[str, ...]
    shortest_promise: float = np.inf
    profiles: frozenset[int] = frozenset()
    left_out: Flags | None = None
    lines: Lines | None = None
    comparison: Ratios | None = None
    other: OtherSide | None = None
    rule: Rule | None = None

    def __post_init__(self) -> None:
        for values in self._arrays():
            values.flags.writeable = False

    def _arrays(self) -> list[NDArray[Any]]:
        cells = (*vars(self.cells).values(), *self.cells.extras.values())
        lines = vars(self.lines).values() if self.lines else ()
        compared = vars(self.comparison).values() if self.comparison else ()
        means = self.averages.row, self.averages.column
        arrays = (*cells, *lines, *compared, *means, self.left_out)
        # The statistic of the query is one of the others.
        return list(
            {id(values): values for values in arrays if isinstance(values, np.ndarray)}.values()
        )

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for values in self._arrays())

    @property
    def unit(self) -> str:
        return self.query.statistic.unit.name

    @property
    def simulated(self) -> bool:
        return any(group.simulated for group in (*self.sources, *self.destinations))

    @property
    def is_past(self) -> bool:
        """Whether its window has ended: nothing that comes will change it."""
        return self.moment >= self.window.end

    @property
    def has_results(self) -> bool:
        return bool(self.cells.ok.any() or self.cells.failed.any())

    def short_names(self) -> dict[str, str]:
        """Return what rows and columns are called in lists."""
        return short_names_of([*self.sources, *self.destinations])

    def states(self) -> dict[str, int]:
        """Count the cells by state; those that the filters leave out have none."""
        states = self.cells.state
        shown = states.ravel() if self.left_out is None else states[~self.left_out]
        counts = np.bincount(shown, minlength=len(STATES))
        return dict(zip(STATES, counts.tolist(), strict=True))

    @property
    def changed(self) -> Flags:
        """Say which cells surely differ from the other side, and are not failing.

        Of all that do, whichever are shown, one in thirty may differ by chance.
        """
        if self.comparison is None:
            return np.zeros(self.cells.state.shape, dtype=bool)
        sure: Flags = self.comparison.sure
        return sure

    @property
    def perhaps(self) -> Flags:
        """Say which cells differ from the other side without being sure, and are not failing."""
        if self.comparison is None:
            return np.zeros(self.cells.state.shape, dtype=bool)
        shown = ~np.isnan(self.cells.value) & (self.cells.state != FAILING)
        return np.asarray(shown & self.comparison.perhaps)

    @property
    def too_few(self) -> Flags:
        """Say which cells have results, but too few of them on a side to compare."""
        if self.comparison is None:
            return np.zeros(self.cells.state.shape, dtype=bool)
        has_results = np.isin(self.cells.state, (MEASURED, STALE))
        return has_results & ~self.comparison.enough

    def of_look(self, look: str) -> Flags:
        """Say which cells have one of LOOKS; while comparing, `slower` and `faster` are changes."""
        if self.comparison is None or look not in CHANGES:
            return self.cells.of_look(look)
        ratio = self.comparison.ratio
        return self.changed & ((ratio < 1) if look == "slower" else (ratio > 1))

    def links(self) -> dict[str, int]:
        """Count the links that are failing, slower, faster, and as usual."""
        kinds = ("failing", "slower", "faster", "judged")
        counts = {kind: int(getattr(self.cells, f"{kind}_links").sum()) for kind in kinds}
        counts["usual"] = counts.pop("judged") - counts["slower"] - counts["faster"]
        return counts


def version(query: MatrixQuery, now: datetime) -> DataVersion:
    """Return what changes whenever the answer may, for one small SQL query: also the ETag.

    While comparing for two, one for each side.
    """
    window = query.window_at(now)
    minute = now.replace(second=0, microsecond=0)
    size = None if query.statistic.of_line else query.size
    present = data_version.read(size, standing.reach(window))
    if query.compare:
        present = comparing.with_other(present, query.other(now))
    return present.of_question((query, window, minute))


def build(
    query: MatrixQuery,
    now: datetime,
    known_version: DataVersion | None = None,
    *,
    whole: bool = False,
) -> Grid:
    """Answer the query; what is kept for its version is not built again.

    ``known_version`` is that of version(). A ``whole`` grid has all that the page and its numbers
    show: catalogue.CARD_EXTRAS and ``profiles``. It serves those who need less.
    """
    # Read before the data: an answer may be newer than its version, never older.
    known_version = known_version or version(query, now)
    whole = whole or ("grid", known_version, True) in ANSWERS
    extras = CARD_EXTRAS if whole else ()
    grid: Grid = ANSWERS.get(
        ("grid", known_version, whole),
        lambda: compute(query, now, known_version, extras, profiles=whole),
    )
    return grid


def compute(
    query: MatrixQuery,
    now: datetime,
    known_version: DataVersion,
    extras: Collection[str] = (),
    results: Sequence[Run] | None = None,
    *,
    standings: Standings | None = None,
    profiles: bool = False,
) -> Grid:
    """Answer the query from the transfers that started in its window.

    The number of SQL queries does not depend on the data. ``extras`` are quantiles (of
    catalogue.QUANTILES) that CellArrays.extras is to have beside the statistic of the query;
    ``results`` and ``standings`` are there where the caller has read them already: results of this
    side alone are compared with nothing. ``profiles`` asks for Grid.profiles.
    """
    links = LinkIndex(registry.read_places(known_version))
    others: Sequence[Run] = ()
    if results is None:
        results, others = read_sides(query, now, profiles=profiles)
    else:
        query = query.replace(compare=None)
    window = query.window_at(now)
    allowed = links.matching(query.filters).reshape(links.shape)
    frame = lay_out(query, links, allowed, results, known_version)
    standings = standings or standing.read(
        query.size, query.filters, window, now, links, version=known_version
    )
    lines = fit_lines(query, window, frame)
    # The rule of all links, so that filters change nothing in what is said of one; a question about
    # all of them makes the rule itself.
    whole = comparing.all_links_query(query) if query.compare else None
    judged_by = build(whole, now).rule if whole else None
    reduced, sides = reduce_cells(query, now, frame, results, others, extras=extras, rule=judged_by)
    cells = fill(query, frame, results, reduced, now, standings=standings, lines=lines)
    cells, comparison = with_ratios(cells, sides.ratios if sides else None)
    chosen = (links.numbering, allowed) if on_links(query.filters) else ()
    is_factor = query.statistic.unit == TIMES
    average = reduce.geometric_averages if is_factor else reduce.averages
    return Grid(
        query=query,
        window=window,
        moment=min(now, window.end),
        version=known_version,
        sources=frame.rows.groups,
        destinations=frame.columns.groups,
        cells=cells,
        averages=average(cells.value),
        idle=links.idle(allowed.ravel(), frame.applicable),
        shortest_promise=float(frame.promise.min(initial=np.inf)),
        profiles=runs.profiles_of(results, *chosen) if profiles else frozenset(),
        left_out=frame.left_out(query.filters) if on_links(query.filters) else None,
        lines=lines,
        comparison=comparison,
        other=comparing.other_side(query, now, links) if query.compare else None,
        rule=sides.rule if sides else None,
    )


def read_sides(
    query: MatrixQuery, now: datetime, *, profiles: bool = False
) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """Read the results of a question, and of what it is compared with, as of one moment."""
    narrowed = bool(on_links(query.filters))
    with snapshot():
        results = runs.read(
            query.size,
            query.window_at(now),
            query.filters,
            sizes=query.statistic.needs_sizes,
            profiles=profiles and narrowed,
            distinct_profiles=profiles and not narrowed,
            failures=bool(query.max_age),
        )
        return results, comparing.read(query.other(now)) if query.compare else ()


def lay_out(
    query: MatrixQuery,
    links: LinkIndex,
    allowed: Flags,
    results: Sequence[Run],
    known_version: DataVersion,
) -> Frame:
    """Lay out the rows and columns of the links that are ``allowed``, of shape (places, places)."""
    promises = registry.read_promises(query, links, known_version).reshape(links.shape)
    newest = links.numbering.newest(results) * allowed
    grouping = query.rows, query.columns
    return Frame.around(links, newest, np.where(allowed, promises, np.inf), grouping)


def reduce_cells(
    query: MatrixQuery,
    now: datetime,
    frame: Frame,
    results: Sequence[Run],
    others: Sequence[Run],
    *,
    extras: Collection[str],
    rule: Rule | None = None,
) -> tuple[Reduced, Sides | None]:
    """Reduce the results of each cell, and compare them if the question does, by ``rule``."""
    stat = shown_stat(query)
    extras = EXTRAS & {stat, STATISTICS[stat].base, *extras}
    if not query.compare:
        return reduce_runs(results, frame.pooling, extras), None
    is_of_links = (query.rows, query.columns) == ("endpoint", "endpoint")
    scatter = standing.scatter(query, now, frame.links) if is_of_links else None
    sides = comparing.reduce_sides(
        query, now, frame, results, others, extras=extras, scatter=scatter, rule=rule
    )
    return sides.reduced, sides


def shown_stat(query: MatrixQuery) -> str:
    """Return the statistic of this side; what is shown while comparing is filled in afterwards."""
    return MatrixQuery.stat if query.compare else query.stat


def fill(
    query: MatrixQuery,
    frame: Frame,
    results: Sequence[Run],
    reduced: Reduced,
    now: datetime,
    *,
    standings: Standings,
    lines: Lines | None = None,
) -> CellArrays:
    """Compute the cells from the results, as they stand at the end of the window or now."""
    links, moment = frame.links, min(now, query.window_at(now).end)
    down = Downtime.endpoints_down(moment)
    outdated = None
    if query.max_age:
        # The cells that have no success as young as the query asks for.
        newest = links.numbering.newest([run.newest_ok() for run in results])
        started = frame.pool(np.maximum, np.where(frame.newest > 0, newest, 0)) / 1000
        outdated = np.asarray(moment.timestamp() - started > read_age(query.max_age))
    return frame.cells(
        reduced,
        down=links.ends(place.id in down for place in links.places).reshape(links.shape),
        stat=shown_stat(query),
        moment=moment.timestamp(),
        standings=standings,
        outdated=outdated,
        of_line=None if lines is None else lines.of(query.stat),
    )


def with_ratios(cells: CellArrays, comparison: Ratios | None) -> tuple[CellArrays, Ratios | None]:
    """Show the ratios to the other side, if there is one. What fails is neither slow nor fast."""
    if comparison is None:
        return cells, None
    # Without a mean it has no success, or none as young as was asked for.
    value = np.where(np.isnan(cells.mean), np.nan, comparison.ratio)
    sure = comparison.sure & ~np.isnan(value) & (cells.state != FAILING)
    return replace(cells, value=value), replace(comparison, sure=sure)


def fit_lines(query: MatrixQuery, window: Window, frame: Frame) -> Lines | None:
    """Fit the lines of the cells of a frame, each through the pooled times of its links.

    None where the statistic of the query is not read off them.
    The number of SQL statements depends on that of the classes alone.
    """
    if not query.statistic.of_line:
        return None
    pooled = frame.pooling
    pooling = Pooling(pooled.numbering, pooled.rows, pooled.columns, frame.applicable, pooled.shape)
    with snapshot():
        times = [
            ClassTimes.of_runs(runs.read(size, window, query.filters, sizes=True), pooling)
            for size in SizeClass.objects.values_list("name", flat=True)
        ]
    return overhead.fit(times)
