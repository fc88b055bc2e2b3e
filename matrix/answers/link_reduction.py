"""From the results of a window to the columns of all links."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers import class_lines, standing
from matrix.answers.comparison import sides as comparing
from matrix.answers.link_columns import COMPARED, SURE, ClassColumns, LinkColumns
from matrix.query.catalogue import STATISTICS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.standing import NONE, SLOWER, UNKNOWN, Standings
from matrix.statistics.cells.states import FAILING, Evidence
from matrix.statistics.compare.two_samples import SideRuns, compare_cells
from matrix.statistics.samples.pooling import Numbering, Pooling
from matrix.statistics.samples.reduce import Reduced, ratio, reduce
from matrix.statistics.samples.run import FAILED_BIT, Run
from matrix.statistics.transfers.overhead import ClassTimes
from matrix.store import registry, runs
from matrix.store.data_version import snapshot
from matrix.store.registry import NO_PRIORITY, MeshPromises
from sonar.models import Downtime, SizeClass
from sonar.notation.units import MB


def reduce_links(
    query: MatrixQuery, now: datetime, quantiles: Collection[str] = (), *, lines: bool = False
) -> LinkColumns:
    """Read and reduce the results of every size class, all as of one moment.

    Filters on links are not applied. ``quantiles`` are names out of catalogue.QUANTILES; ``lines``
    asks for LinkColumns.lines. The number of SQL statements depends on that of the classes alone.
    """
    window = query.window_at(now)
    moment = min(now, window.end)
    with snapshot():
        versions = registry.read_versions()
        links = LinkIndex(registry.read_places(versions))
        down = Downtime.endpoints_down(moment)
        up = ~links.ends(place.id in down for place in links.places).reshape(links.shape)
        pooling = keeping_apart(links)
        classes, profiles, priority = {}, set[int](), MeshPromises.blank(links).priority
        times = []
        for size in SizeClass.objects.values_list("name", flat=True):
            plan = registry.read_plan(query.replace(size=size), links, versions)
            results = runs.read(
                size, window, query.filters, sizes=True, distinct_profiles=True, failures=True
            )
            standings = standing.read(size, query.filters, window, now, links)
            of_query = query if size == query.size else query.replace(compare=None)
            rates, comparison = reduce_rates(
                of_query, now, links, pooling, results, quantiles=quantiles
            )
            of_class = reduce_class(
                rates, results, pooling, plan, standings=standings, up=up, moment=moment
            )
            times += [ClassTimes.of_runs(results, pooling)] if lines else []
            if comparison:  # what fails is neither slow nor fast
                comparison[SURE] &= of_class.state != FAILING
            classes[size] = replace(of_class, compared=comparison)
            profiles |= runs.profiles_of(results)
            priority = np.maximum(priority, plan.priority)
    shown = pooling.shown & np.logical_or.reduce(
        [np.isfinite(of_class.every) | ~np.isnan(of_class.last) for of_class in classes.values()]
    )
    source, destination = np.nonzero(shown)
    return LinkColumns(
        window,
        links.places,
        source,
        destination,
        np.where(priority == NO_PRIORITY, np.nan, priority).reshape(links.shape)[shown],
        {size: of_class.taken(shown) for size, of_class in classes.items()},
        frozenset(profiles),
        class_lines.columns(times, shown) if lines else {},
    )


def keeping_apart(links: LinkIndex) -> Pooling:
    """Return the pooling that has a cell for each link."""
    place = np.arange(len(links.places))
    shown = links.matching(()).reshape(links.shape)
    return Pooling(links.numbering, place, place, shown, links.shape)


def reduce_rates(
    query: MatrixQuery,
    now: datetime,
    links: LinkIndex,
    pooling: Pooling,
    results: Sequence[Run],
    *,
    quantiles: Collection[str],
) -> tuple[Reduced, dict[str, NDArray[Any]]]:
    """Reduce the results of each link; while comparing, add what is COMPARED, by name."""
    if query.compare is None:
        return reduce(results, pooling, quantiles), {}
    other = comparing.runs_of_other(query, now, links, comparing.read(query.other(now)))
    own = SideRuns(results, pooling.shown)
    known_scatter = comparing.scatter(query, now, links)
    sides = compare_cells(
        pooling, own, other, comparing.centre(query), quantiles, known_scatter=known_scatter
    )
    arrays = {name: getattr(sides.ratios, field) for name, field in COMPARED.items()}
    arrays["compared_ratio"] = np.where(sides.ratios.enough, sides.ratios.ratio, np.nan)
    return sides.reduced, arrays | {SURE: sides.ratios.sure}


def reduce_class(
    rates: Reduced,
    results: Sequence[Run],
    pooling: Pooling,
    plan: MeshPromises,
    *,
    standings: Standings,
    up: Flags,
    moment: datetime,
) -> ClassColumns:
    """Return arrays of shape (places, places), as they stand at a moment."""
    numbering, every = pooling.numbering, plan.every.reshape(pooling.shape)
    size_mean, size_std = size_moments(results, numbering, rates.ok)
    last_ok, last_failed = (
        np.where(count > 0, numbering.newest(newest) / 1000, np.nan)
        for count, newest in (
            (rates.ok, [run.newest_ok() for run in results]),
            (rates.failed, [run.newest_failed() for run in results]),
        )
    )
    # Each link is judged as the cell of a matrix that it alone makes.
    age = moment.timestamp() - np.fmax(last_ok, last_failed)
    applicable = np.isfinite(every) | ~np.isnan(age)
    failing = standings.failing & applicable & up
    evidence = Evidence(rates.ok, rates.failed, age, every, applicable, applicable & up, failing)
    level = np.where(~np.isnan(age) & up, standings.level, UNKNOWN).astype(np.uint8)
    is_shifted = failing | (level >= SLOWER)
    return ClassColumns(
        rates.mean / MB,
        rates.std / MB,
        size_mean,
        size_std,
        rates.ok,
        rates.failed,
        evidence.states(),
        last_ok,
        last_failed,
        level,
        standings.usual / MB,
        standings.now / MB,
        np.where(level == UNKNOWN, NONE, standings.low),
        np.where(level == UNKNOWN, NONE, standings.high),
        np.where(is_shifted, standings.since, np.nan),
        np.where(is_shifted, standings.streak, np.int32(0)),
        every,
        {STATISTICS[name].field: values / MB for name, values in rates.extras.items()},
    )


def size_moments(
    results: Sequence[Run], numbering: Numbering, ok: Integers
) -> tuple[Floats, Floats]:
    """Return mean and sample standard deviation of the sizes of ok samples, of which ``ok`` has
    the counts; shape (places, places).

    In two passes over the runs, one at a time: squares less the square of the sum lose
    digits, and a copy of all sizes would cost much memory.
    """
    stride = numbering.stride
    count = np.pad(ok, (0, 1)).ravel()
    total, squares = np.zeros((2, stride**2))
    for number, sizes in sizes_by_link(results, numbering):
        total += np.bincount(number, sizes, minlength=stride**2)
    mean = ratio(total, count)
    for number, sizes in sizes_by_link(results, numbering):
        squares += np.bincount(number, (sizes - mean[number]) ** 2, minlength=stride**2)
    std = np.sqrt(ratio(squares, np.maximum(count - 1, 0)))
    shape = (stride, stride)
    return mean.reshape(shape)[:-1, :-1], std.reshape(shape)[:-1, :-1]


def sizes_by_link(
    results: Iterable[Run], numbering: Numbering
) -> Iterator[tuple[NDArray[np.intp], Floats]]:
    """Yield for each run the links' numbers and the sizes of its ok samples."""
    for run in results:
        if run.sizes is None:
            raise ValueError("the link table needs runs with sizes")
        done = np.flatnonzero(run.keys & FAILED_BIT == 0)
        yield numbering.numbers(run.keys[done]), run.sizes[done].astype(np.float64)
