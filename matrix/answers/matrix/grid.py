"""From a query to the answer that page, picture, API and CSV all show."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.comparison import sides as comparing
from matrix.answers.incidents import target_rates
from matrix.answers.matrix import standing
from matrix.answers.matrix.grid_cells import Grid
from matrix.query.catalogue import CARD_EXTRAS, EXTRAS, STATISTICS, TIMES, VS_TARGET
from matrix.query.filters import on_links
from matrix.query.forms import read_age
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.cells import CellArrays, Frame, value
from matrix.statistics.cells.standing import UNKNOWN, Standings
from matrix.statistics.cells.states import FAILING, Evidence
from matrix.statistics.compare.two_samples import Rule, Sides
from matrix.statistics.samples import reduce
from matrix.statistics.samples.pooling import Pooling
from matrix.statistics.samples.reduce import Reduced
from matrix.statistics.samples.reduce import reduce as reduce_runs
from matrix.statistics.samples.run import Run
from matrix.statistics.transfers import overhead
from matrix.statistics.transfers.overhead import ClassTimes
from matrix.store import data_version, registry, runs
from matrix.store.cache import ANSWERS
from matrix.store.data_version import DataVersion, snapshot
from sonar.models import Downtime, SizeClass
from sonar.notation.units import MB


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
    lines = None
    if query.statistic.of_line:
        # Those of the cells, each through the pooled times of its links.
        pooled, shape = frame.pooling, frame.pooling.shape
        pooling = Pooling(pooled.numbering, pooled.rows, pooled.columns, frame.applicable, shape)
        with snapshot():
            times = [
                ClassTimes.of_runs(runs.read(size, window, query.filters, sizes=True), pooling)
                for size in SizeClass.objects.values_list("name", flat=True)
            ]
        lines = overhead.fit(times)
    # The rule of all links, so that filters change nothing in what is said of one; a question about
    # all of them makes the rule itself.
    whole = comparing.all_links_query(query) if query.compare else None
    judged_by = build(whole, now).rule if whole else None
    reduced, sides = reduce_cells(query, now, frame, results, others, extras=extras, rule=judged_by)
    moment, shown = min(now, window.end), shown_stat(query)
    targets = outdated = comparison = None
    if shown == VS_TARGET.name:
        size_class = SizeClass.objects.get(name=query.size)
        targets = target_rates.read_target_rates(size_class, links, standings.usual, moment)
    if query.max_age:
        # The cells that have no success as young as the query asks for.
        newest = links.numbering.newest([run.newest_ok() for run in results])
        started = frame.pool(np.maximum, np.where(frame.newest > 0, newest, 0)) / 1000
        outdated = np.asarray(moment.timestamp() - started > read_age(query.max_age))
    cells = frame.cells(
        reduced,
        down=links.touching(Downtime.endpoints_down(moment)),
        stat=shown,
        moment=moment.timestamp(),
        standings=standings,
        outdated=outdated,
        of_line=None if lines is None else lines.of(query.stat),
        targets=targets,
    )
    if sides:
        # Without a mean it has no success, or none as young as was asked for. What fails is neither
        # slow nor fast.
        ratio = np.where(np.isnan(cells.mean), np.nan, sides.ratios.ratio)
        sure = sides.ratios.sure & ~np.isnan(ratio) & (cells.state != FAILING)
        cells = replace(cells, value=ratio)
        comparison = replace(sides.ratios, sure=sure)
    chosen = (links.numbering, allowed) if on_links(query.filters) else ()
    is_factor = query.statistic.unit == TIMES
    average = reduce.geometric_averages if is_factor else reduce.averages
    return Grid(
        query=query,
        window=window,
        moment=moment,
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


# What a glance leaves blank: the names of CellArrays, by the number that they have everywhere.
BLANK: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (np.nan, ("mean", "std", "usual", "now", "since")),
    (np.float32(np.nan), ("ratio_low", "ratio_high")),
    (False, ("partly",)),
    (np.uint8(UNKNOWN), ("level",)),
    (np.uint8(0), ("unconfirmed",)),
    (np.int32(0), ("streak", "condition", "tested_links", "judged_links")),
    (np.int32(0), ("silent_links", "slower_links", "faster_links")),
)


def is_glanced(query: MatrixQuery) -> bool:
    """Say whether the cells of a question are single links with a statistic of their own tests.

    All else (groups, comparisons, the newest rates, lines and models of all cells, an age) takes
    what is made for the whole answer.
    """
    statistic = query.statistic
    is_of_others = statistic.of_now or statistic.of_line or bool(statistic.base)
    is_of_links = (query.rows, query.columns) == ("endpoint", "endpoint")
    return is_of_links and not (is_of_others or query.compare or query.max_age)


def glance(query: MatrixQuery, now: datetime, known_version: DataVersion) -> Grid:
    """Return what the colours of a matrix need, in a part of the time that its whole answer takes.

    For a question that is_glanced(). Its cells have value, state, counts, and which are failing,
    without anything held against what is usual: all else is BLANK, as are facts of the grid.
    """
    links = registry.read_links(known_version)
    window = query.window_at(now)
    moment = min(now, window.end)
    results, _ = read_sides(query, now)
    allowed = links.matching(query.filters).reshape(links.shape)
    frame = lay_out(query, links, allowed, results, known_version)
    reduced, _ = reduce_cells(query, now, frame, results, (), extras=())
    is_up = frame.applicable & ~links.touching(Downtime.endpoints_down(moment))
    marks = standing.read_marks([query.size], window, now, links)[query.size]
    is_failing = is_up & marks.are("failing")
    of_links: tuple[NDArray[Any], ...] = (frame.newest, frame.promise, frame.applicable)
    # Each cell is one link: there is nothing to pool.
    newest, promise, applicable, up, failing = (
        frame.pool(np.logical_or, values) for values in (*of_links, is_up, is_failing)
    )
    last = np.where(newest > 0, newest / 1000, np.nan)
    age = moment.timestamp() - last
    evidence = Evidence(reduced.ok, reduced.failed, age, promise, applicable, up, failing)
    rate = ({"mean": reduced.mean, "std": reduced.std} | reduced.extras).get(query.stat)
    shape = reduced.ok.shape
    blank: dict[str, Any] = {
        name: np.broadcast_to(number, shape) for number, names in BLANK for name in names
    }
    cells = CellArrays(
        value=value(query.stat, reduced, age) if rate is None else rate / MB,
        state=evidence.states(),
        ok=reduced.ok,
        failed=reduced.failed,
        last=last,
        failing_links=failing.astype(np.int32),
        **blank,
    )
    return Grid(
        query=query,
        window=window,
        moment=moment,
        version=known_version,
        sources=frame.rows.groups,
        destinations=frame.columns.groups,
        cells=cells,
        averages=reduce.averages(cells.value),
        idle=(),
        left_out=frame.left_out(query.filters) if on_links(query.filters) else None,
    )
