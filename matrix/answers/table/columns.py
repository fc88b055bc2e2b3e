"""From the results of a window to the columns of all links."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.comparison import sides as comparing
from matrix.answers.matrix import standing
from matrix.query.catalogue import STATISTICS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.statistics.cells.standing import SLOWER, USUAL, Standings
from matrix.statistics.cells.states import FAILING, Evidence
from matrix.statistics.compare.two_samples import SideRuns, compare_cells
from matrix.statistics.samples.pooling import Numbering, Pooling
from matrix.statistics.samples.reduce import Reduced, ratio, reduce
from matrix.statistics.samples.run import FAILED_BIT, Run
from matrix.statistics.transfers import overhead
from matrix.statistics.transfers.overhead import ClassTimes
from matrix.store import registry, runs
from matrix.store.data_version import snapshot
from matrix.store.registry import NO_PRIORITY, MeshPromises
from sonar.models import Downtime, SizeClass
from sonar.notation.units import MB
from sonar.notation.windows import Window

# What the line through the times of all size classes says of a link, for who asks for it.
LINE_COLUMNS = (
    *("overhead_s", "overhead_low_s", "overhead_high_s"),
    *("bandwidth_mb_s", "bandwidth_low_mb_s", "bandwidth_high_mb_s"),
    *("half_size_bytes", "line"),
)
# What is said of a link in a size class, NaN where there is none: rates in MB/s, sizes in bytes of
# ok transfers alone, and when the newest result, success and failure started, in Unix s. `state`
# indexes STATES, `level` LEVELS; `ratio_low` and `ratio_high` bound `ratio`,
# the rate now divided by the usual one, with 95 % confidence. `since` (Unix s), `streak`,
# `unconfirmed` and `condition` are as Standings has them.
COLUMNS = (
    *("mean_mb_s", "std_mb_s", "size_mean_bytes", "size_std_bytes", "ok", "failed", "last"),
    *("state", "last_ok", "last_failed"),
    *("level", "usual_mb_s", "now_mb_s", "ratio", "ratio_low", "ratio_high", "since", "streak"),
    *("unconfirmed", "condition"),
)
EVERY = "every"
"""Beside them, the shortest interval in seconds at which a mesh tests it, infinity for none."""
# Those of COLUMNS that are made of these two when they are asked for.
DERIVED: dict[str, tuple[Callable[[Any, Any], NDArray[Any]], str, str]] = {
    "last": (np.fmax, "last_ok", "last_failed"),
    "ratio": (np.divide, "now_mb_s", "usual_mb_s"),
}

# And while comparing, in the size class that is asked for: the rates of this side and of the other
# (medians, or means), their ratio, its interval, the p of chance, and the successes there.
COMPARED = {
    "this_mb_s": "value",
    "other_mb_s": "other",
    "compared_ratio": "ratio",
    "compared_low": "low",
    "compared_high": "high",
    "compared_p": "p",
    "other_ok": "other_ok",
}
SURE = "compared_sure"
"""Beside them, which of these differ beyond chance among all links."""
# A value for each link, by what is said: COLUMNS but DERIVED, EVERY, quantiles for who asks for
# them, COMPARED and SURE.
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class LinkColumns:
    """A value for each link that has a result in the window or that a mesh tests.

    ``source`` and ``destination`` are places in ``places``, ``priority`` is the highest of the
    meshes that test the link, NaN for none. The links are in the order of the places;
    ``profiles`` are the ids of those that the results of all links have. ``lines`` are
    LINE_COLUMNS by name, for who asks for them: `line` indexes FITS, the others are numbers where
    the line fits. Arrays are shared, and read-only: 357 bytes a link.
    """

    window: Window
    places: tuple[EndpointInfo, ...]
    source: Integers
    destination: Integers
    priority: Floats
    classes: dict[str, Arrays]
    profiles: frozenset[int] = frozenset()
    lines: Arrays = field(default_factory=dict)

    def __post_init__(self) -> None:
        for values in self._arrays():
            values.flags.writeable = False

    def __len__(self) -> int:
        return len(self.source)

    def _arrays(self) -> Iterator[NDArray[Any]]:
        yield from (self.source, self.destination, self.priority)
        for arrays in (self.lines, *self.classes.values()):
            yield from arrays.values()

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for values in self._arrays())


def line_columns(times: Sequence[ClassTimes], shown: Flags) -> Arrays:
    """Return LINE_COLUMNS of the links that are shown, where their lines fit; NaN for no bound."""
    lines = overhead.fit([of_class.taken(shown) for of_class in times])
    bandwidths = (lines.of(f"bandwidth{end}") for end in ("", "_low", "_high"))
    values: Sequence[NDArray[Any]] = (
        *(lines.of(f"overhead{end}") for end in ("", "_low", "_high")),
        *(np.where(np.isinf(each), np.nan, each) for each in bandwidths),
        lines.of("half_size") * MB,
        lines.fit,
    )
    return dict(zip(LINE_COLUMNS, values, strict=True))


def reduce_links(
    query: MatrixQuery, now: datetime, quantiles: Collection[str] = (), *, lines: bool = False
) -> LinkColumns:
    """Read and reduce the results of every size class, all as of one moment.

    Filters on links are not applied. ``quantiles`` are names out of TABLE_QUANTILES; ``lines``
    asks for LinkColumns.lines. The number of SQL statements depends on that of the classes alone.
    """
    window = query.window_at(now)
    moment = min(now, window.end)
    with snapshot():
        versions = registry.read_versions()
        links = registry.read_links(versions)
        up = ~links.touching(Downtime.endpoints_down(moment))
        place = np.arange(len(links.places))
        own_cells = links.matching(()).reshape(links.shape)  # each link has one
        pooling = Pooling(links.numbering, place, place, own_cells, links.shape)
        classes, profiles, priority = {}, set[int](), MeshPromises.blank(links).priority
        times = []
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        marks = standing.read_marks(sizes, window, now, links)
        for size in sizes:
            plan = registry.read_plan(query.replace(size=size), links, versions)
            results = runs.read(
                size, window, query.filters, sizes=True, distinct_profiles=True, failures=True
            )
            standings = standing.read(size, query.filters, window, now, links, marks=marks[size])
            of_query = query if size == query.size else query.replace(compare=None)
            rates, comparison = reduce_rates(
                of_query, now, links, pooling, results, quantiles=quantiles
            )
            of_class = reduce_class(
                rates, results, pooling, plan, standings=standings, up=up, moment=moment
            )
            times += [ClassTimes.of_runs(results, pooling)] if lines else []
            if comparison:  # what fails is neither slow nor fast
                comparison[SURE] &= of_class["state"] != FAILING
            classes[size] = of_class | comparison
            profiles |= runs.profiles_of(results)
            priority = np.maximum(priority, plan.priority)
    shown = pooling.shown & np.logical_or.reduce(
        [
            np.isfinite(of_class[EVERY]) | (of_class["ok"] + of_class["failed"] > 0)
            for of_class in classes.values()
        ]
    )
    source, destination = np.nonzero(shown)
    return LinkColumns(
        window,
        links.places,
        source,
        destination,
        np.where(priority == NO_PRIORITY, np.nan, priority).reshape(links.shape)[shown],
        {size: taken(of_class, shown) for size, of_class in classes.items()},
        frozenset(profiles),
        line_columns(times, shown) if lines else {},
    )


def taken(arrays: Mapping[str, NDArray[Any]], rows: Integers | Flags | slice) -> Arrays:
    return {name: values[rows] for name, values in arrays.items()}


def reduce_rates(
    query: MatrixQuery,
    now: datetime,
    links: LinkIndex,
    pooling: Pooling,
    results: Sequence[Run],
    *,
    quantiles: Collection[str],
) -> tuple[Reduced, Arrays]:
    """Reduce the results of each link; while comparing, add what is COMPARED, by name."""
    if query.compare is None:
        return reduce(results, pooling, quantiles), {}
    other = comparing.runs_of_other(query, now, links, comparing.read(query.other(now)))
    own = SideRuns(results, pooling.shown)
    known_scatter = standing.scatter(query, now, links)
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
) -> Arrays:
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
    has_level = applicable & up & (~np.isnan(age) | (standings.level != USUAL))
    level = standings.level * has_level
    is_member = failing | (level >= SLOWER)
    return {
        "mean_mb_s": rates.mean / MB,
        "std_mb_s": rates.std / MB,
        "size_mean_bytes": size_mean,
        "size_std_bytes": size_std,
        "ok": rates.ok,
        "failed": rates.failed,
        "state": evidence.states(),
        "last_ok": last_ok,
        "last_failed": last_failed,
        "level": level,
        "usual_mb_s": standings.usual / MB,
        "now_mb_s": standings.now / MB,
        "ratio_low": standings.low,
        "ratio_high": standings.high,
        "since": np.where(is_member, standings.since, np.nan),
        "streak": standings.streak * failing,
        "unconfirmed": standings.unconfirmed * (applicable & up),
        "condition": standings.condition * (applicable & up),
        EVERY: every,
        **{STATISTICS[name].field: values / MB for name, values in rates.extras.items()},
    }


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
