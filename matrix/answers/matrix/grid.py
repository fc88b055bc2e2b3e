"""From a query to the answer that page, picture, API and CSV all show."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from matrix.answers.comparison import sides as comparing
from matrix.answers.incidents import expectations
from matrix.answers.matrix import standing
from matrix.answers.matrix.grid_cells import Grid
from matrix.query.catalogue import CARD_EXTRAS, EXPECTATION, EXTRAS, STATISTICS, TIMES
from matrix.query.filters import on_links
from matrix.query.forms import read_age
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.cells import CellArrays, Frame
from matrix.statistics.cells.expected import Expected
from matrix.statistics.cells.standing import Standings
from matrix.statistics.cells.states import FAILING
from matrix.statistics.compare.two_samples import Ratios, Rule, Sides
from matrix.statistics.samples import reduce
from matrix.statistics.samples.pooling import Pooling
from matrix.statistics.samples.reduce import Reduced
from matrix.statistics.samples.reduce import reduce as reduce_runs
from matrix.statistics.samples.run import Run
from matrix.statistics.transfers import overhead
from matrix.statistics.transfers.overhead import ClassTimes, Lines
from matrix.store import data_version, registry, runs
from matrix.store.cache import ANSWERS
from matrix.store.data_version import DataVersion, snapshot
from sonar.models import Downtime, SizeClass
from sonar.notation.windows import Window


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
    links = registry.read_links(known_version)
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

    def own() -> tuple[Run, ...]:
        return runs.read(
            query.size,
            query.window_at(now),
            query.filters,
            sizes=query.statistic.needs_sizes,
            profiles=profiles and narrowed,
            distinct_profiles=profiles and not narrowed,
            failures=bool(query.max_age),
        )

    if not query.compare:
        return own(), ()
    with snapshot():
        return own(), comparing.read(query.other(now))


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
        down=links.touching(down),
        stat=shown_stat(query),
        moment=moment.timestamp(),
        standings=standings,
        outdated=outdated,
        of_line=None if lines is None else lines.of(query.stat),
        expected=expected_by(query, links, standings, moment),
    )


def expected_by(
    query: MatrixQuery, links: LinkIndex, standings: Standings, moment: datetime
) -> Expected | None:
    """Return what is expected of links, where the cells say how they do against it.

    Three SQL queries then, and one for each expectation of a mesh; none else.
    """
    if shown_stat(query) != EXPECTATION.name:
        return None
    size_class = SizeClass.objects.get(name=query.size)
    return expectations.expected(size_class, links, standings.usual, moment)


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
