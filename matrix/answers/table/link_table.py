"""The link table: every link with its rate, file size, counts and last result by size class.

From the results of a window to the columns of all links, and from these to the rows of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.comparison import sides as comparing
from matrix.answers.matrix import standing
from matrix.query.attributes import BY_KEY, ENDS, search_text
from matrix.query.catalogue import STATISTICS, TABLE_QUANTILES
from matrix.query.filters import on_links, on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.statistics.cells.standing import FASTER, SILENT, SLOWER, USUAL, Standings
from matrix.statistics.cells.states import FAILED, FAILING, MEASURED, STATES, Evidence, fail_partly
from matrix.statistics.compare.two_samples import CHANGE_KINDS, CHANGES, SideRuns, compare_cells
from matrix.statistics.samples.pooling import Numbering, Pooling
from matrix.statistics.samples.reduce import Reduced, ratio, reduce
from matrix.statistics.samples.run import FAILED_BIT, Run
from matrix.statistics.transfers import overhead
from matrix.statistics.transfers.overhead import ClassTimes
from matrix.store import data_version, registry, runs
from matrix.store.cache import ANSWERS
from matrix.store.conditions import MARKS
from matrix.store.data_version import DataVersion, snapshot
from matrix.store.registry import NO_PRIORITY, MeshPromises
from sonar.models import Downtime, SizeClass
from sonar.notation.units import MB
from sonar.notation.windows import Window

ATTRIBUTES = tuple(BY_KEY)
# The field of what changed beyond chance, while comparing.
CHANGE = "change"
# An order of its own: how much trouble links are in, in the size class that is asked for.
TROUBLE = "trouble"
# What a link that fails does not have now: ordered by it, such a link is worse than any other.
NOT_WHILE_FAILING = ("now_mb_s", "ratio")
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
    fitted: Arrays = {}
    if lines:
        # Where the lines fit; NaN for no bound.
        of_all = overhead.fit([of_class.taken(shown) for of_class in times])
        bandwidths = (of_all.of(f"bandwidth{end}") for end in ("", "_low", "_high"))
        values: Sequence[NDArray[Any]] = (
            *(of_all.of(f"overhead{end}") for end in ("", "_low", "_high")),
            *(np.where(np.isinf(each), np.nan, each) for each in bandwidths),
            of_all.of("half_size") * MB,
            of_all.fit,
        )
        fitted = dict(zip(LINE_COLUMNS, values, strict=True))
    source, destination = np.nonzero(shown)
    return LinkColumns(
        window,
        links.places,
        source,
        destination,
        np.where(priority == NO_PRIORITY, np.nan, priority).reshape(links.shape)[shown],
        {
            size: {name: values[shown] for name, values in of_class.items()}
            for size, of_class in classes.items()
        },
        frozenset(profiles),
        fitted,
    )


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
    for run in results:
        if run.sizes is None:
            raise ValueError("the link table requires results that include file sizes")
        done = np.flatnonzero(run.keys & FAILED_BIT == 0)
        yield numbering.numbers(run.keys[done]), run.sizes[done].astype(np.float64)


@dataclass(frozen=True)
class LinkTable:
    """Rows of the links of LinkColumns, in the order of the places until ordered otherwise.

    ``rows`` says which links they are, None for all of them. A column is only copied when it is
    asked for: of a million links all are 357 MB. While comparing, ``changed`` says of all links
    which differ from the other side by more than chance explains, among those of the question.
    ``size`` is the size class that is asked for.
    """

    links: LinkColumns
    rows: Integers | None = None
    changed: Flags | None = None
    size: str = MatrixQuery.size

    def __len__(self) -> int:
        return len(self.links) if self.rows is None else len(self.rows)

    @property
    def window(self) -> Window:
        return self.links.window

    @property
    def places(self) -> tuple[EndpointInfo, ...]:
        return self.links.places

    @property
    def sizes(self) -> list[str]:
        return list(self.links.classes)

    @property
    def quantiles(self) -> tuple[str, ...]:
        arrays: Arrays = next(iter(self.links.classes.values()), {})
        return tuple(own.field for own in TABLE_QUANTILES.values() if own.field in arrays)

    def compared_fields(self, size: str) -> tuple[str, ...]:
        """Name what is said of a link beside COLUMNS while comparing, in a size class."""
        return (*COMPARED, SURE, CHANGE) if SURE in self.links.classes[size] else ()

    def of_class(self, size: str) -> Arrays:
        names = (*COLUMNS, *self.quantiles, *self.compared_fields(size))
        return {name: self.column(f"{size}.{name}") for name in names}

    @cached_property
    def source(self) -> Integers:
        return self._of_rows(self.links.source)

    @cached_property
    def destination(self) -> Integers:
        return self._of_rows(self.links.destination)

    @property
    def priority(self) -> Floats:
        return self._of_rows(self.links.priority)

    @property
    def lines(self) -> Arrays:
        return {name: self._of_rows(values) for name, values in self.links.lines.items()}

    def column(self, name: str) -> NDArray[Any]:
        """Return `source` or `destination` (names), `source.site`, `priority`, `large.mean_mb_s`.

        Those of LinkColumns.lines are called by their names: `overhead_s`. Raises KeyError for
        any other name.
        """
        of, _, field = name.rpartition(".")
        if (of or name) in ENDS:
            return np.array(self._of_places(name), dtype=object)[self._places_at(of or name)]
        if name == "priority":
            return self.priority
        if name in self.links.lines:
            return self._of_rows(self.links.lines[name])
        arrays = self.links.classes[of]
        if field in DERIVED:
            make, *made_of = DERIVED[field]
            return make(*(self._of_rows(arrays[name]) for name in made_of))
        if field == CHANGE and SURE in arrays:
            numbers = np.zeros(len(self), dtype=np.uint8)
            for look in CHANGES:
                numbers[self.of_change(of, look)] = CHANGE_KINDS.index(look)
            return numbers
        return self._of_rows(arrays[field])

    def _of_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.rows is None else values[self.rows]

    def _of_places(self, name: str) -> list[str | int]:
        attribute = name.partition(".")[2] or "name"
        if attribute not in ATTRIBUTES:
            raise KeyError(name)
        return [place.cell(attribute) for place in self.places]

    def _places_at(self, end: str) -> Integers:
        return self.source if end == "source" else self.destination

    def _ranks(self, name: str) -> NDArray[Any]:
        """Return numbers that order as a column does; links of one source by destination."""
        if name == TROUBLE:
            return trouble_of(self)
        if name.partition(".")[0] not in ENDS:
            size, _, field = name.rpartition(".")
            values = self.column(name)
            if field not in NOT_WHILE_FAILING:
                return values
            # As pages show it: a rate of 0 for links that fail now.
            fails = np.isin(self.column(f"{size}.state"), (FAILING, FAILED))
            return np.where(fails, 0.0, values)
        columns = {"source": ("source", "destination"), "destination": ("destination", "source")}
        ranks: NDArray[Any] = np.zeros(len(self), dtype=np.int64)
        for column in columns.get(name, (name,)):
            # By text, without regard to case: places are few and links are many.
            texts = [str(value).casefold() for value in self._of_places(column)]
            of_places = np.unique(texts, return_inverse=True)[1]
            at = self._places_at(column.partition(".")[0])
            ranks = ranks * len(self.places) + of_places[at]
        return ranks

    def order(self, name: str, *, descending: bool = False, among: Flags | None = None) -> Integers:
        """Return rows sorted by a column: no value comes last, equal ones stay as they were.

        By TROUBLE, the most comes last unless ``descending``. All rows, or those ``among`` which
        are to be sorted.
        """
        rows = np.arange(len(self)) if among is None else np.flatnonzero(among)
        if name == TROUBLE:  # those in no trouble stand by name, whichever way
            rows = rows[np.argsort(self._ranks(ENDS[0])[rows], kind="stable")]
        ranks = self._ranks(name)[rows]
        if ranks.dtype == np.uint8:  # a state, whose negative would be another one
            ranks = ranks.astype(np.int16)
        # NaN sorts behind everything, whatever its sign.
        return rows[np.argsort(-ranks if descending else ranks, kind="stable")]

    def taken(self, rows: Integers | Flags | slice) -> LinkTable:
        """Return some of the rows, in this order: a page, or what a search has found."""
        present = np.arange(len(self)) if self.rows is None else self.rows
        return LinkTable(self.links, present[rows], self.changed, self.size)

    def of_change(self, size: str, look: str) -> Flags | None:
        """Say which links are `slower` or `faster` than on the other side, beyond chance.

        None for another look, and where nothing is compared.
        """
        if self.changed is None or look not in CHANGES or SURE not in self.links.classes[size]:
            return None
        ratio = self.column(f"{size}.compared_ratio")
        is_such = ratio < 1 if look == "slower" else ratio > 1
        return np.asarray(self._of_rows(self.changed) & is_such)

    def ends(self) -> list[EndpointInfo]:
        used = np.zeros(len(self.places), dtype=bool)
        used[self.source] = used[self.destination] = True
        return [self.places[at] for at in np.flatnonzero(used).tolist()]

    def searched(self, text: str) -> Flags:
        """Say which links have every word of a text in some attribute of one of their ends."""
        texts = [
            search_text((attribute, place.value(key)) for key, attribute in BY_KEY.items())
            for place in self.places
        ]
        matches = np.ones(len(self), dtype=bool)
        for word in text.casefold().split():
            flags = np.array([word in endpoint_text for endpoint_text in texts], dtype=bool)
            matches &= flags[self.source] | flags[self.destination]
        return matches

    def where(self, name: str, holds: Callable[[str], bool]) -> Flags:
        """Say which links have an end whose attribute, as text, is such; `name` as in column."""
        flags = np.array([holds(str(value)) for value in self._of_places(name)], dtype=bool)
        return flags[self._places_at(name.partition(".")[0])]


def version(query: MatrixQuery, now: datetime) -> DataVersion:
    """Return what changes whenever the table may, for one SQL statement.

    Whatever links are filtered, tables of the same results share it.
    """
    window = query.window_at(now)
    minute = now.replace(second=0, microsecond=0)
    filters = on_profiles(query.filters)
    present = data_version.read(None, standing.reach(window))
    compared = None
    if query.compare:
        whole = comparing.all_links_query(query) or query
        other = whole.other(now)
        present, compared = comparing.with_other(present, other), (query.size, query.compare, other)
    return present.of_question((filters, window, minute, compared))


def build(
    query: MatrixQuery,
    now: datetime,
    known_version: DataVersion | None = None,
    quantiles: Collection[str] = (),
    *,
    lines: bool = False,
) -> LinkTable:
    """Answer for all size classes, whichever the query asks for.

    ``known_version`` is that of version(), for which the columns of all links are kept: filters
    on links only choose rows of them. ``quantiles`` are names out of TABLE_QUANTILES, columns
    that are there for who asks for them, as ``lines`` asks for those of overhead and bandwidth.
    """
    # Read before the data: an answer may be newer than its version, never older.
    known_version = known_version or version(query, now)
    key = ("links", known_version, frozenset(quantiles), lines)
    whole = comparing.all_links_query(query) or query
    links: LinkColumns = ANSWERS.get(key, lambda: reduce_links(whole, now, quantiles, lines=lines))
    filters = on_links(query.filters)
    shown = None
    if filters:
        matching = LinkIndex(links.places).matching(filters)
        shown = np.flatnonzero(matching[links.source * len(links.places) + links.destination])
    changed = links.classes[query.size].get(SURE)
    return LinkTable(links, shown, changed, query.size)


# The least trouble first: states, and how a link is beside that.
DEGREES = (
    *("not_applicable", "untested", "down", "measured", "stale"),
    *("faster", "partly", "failed", "unconfirmed", "silent", "slower", "failing"),
)


def trouble_of(table: LinkTable) -> Floats:
    """Return the place of each link in DEGREES, with a fraction for how bad it is among its like.

    What is certain is the most trouble. Of failing and silent links the first to be so is the
    worst, of slower ones the slowest, of those of unconfirmed conditions and those with too few
    tests for any the one with most failures, of those that fail partly the one with the largest
    share of them, of faster ones the one that changed most. They are compared with usual, or with
    what the question compares them with.
    """
    columns = table.of_class(table.size)
    slower, faster = (table.of_change(table.size, look) for look in CHANGES)
    level, state = columns["level"], columns["state"]
    measured = state == MEASURED
    if slower is None or faster is None:
        slower, faster = level == SLOWER, measured & (level == FASTER)
    else:
        slower, faster = measured & slower, measured & faster
    ratio = columns.get("compared_ratio", columns["ratio"])
    ok, failed, since = columns["ok"], columns["failed"], columns["since"]
    unconfirmed = columns["unconfirmed"] > MARKS.index("fast")
    badness = {
        "faster": (faster, ratio),
        "partly": (measured & fail_partly(ok, failed, False), failed / np.maximum(ok + failed, 1)),
        "failed": (state == FAILED, failed.astype(np.float64)),
        "unconfirmed": (unconfirmed, failed.astype(np.float64)),
        "silent": (level == SILENT, -since),
        "slower": (slower, -ratio),
        "failing": (state == FAILING, -since),
    }
    degrees = np.array([DEGREES.index(word) for word in STATES], dtype=np.float64)[state]
    for name, (links, of_all) in badness.items():
        values = of_all[links]
        # Ranks as shares below 1; where there is no value, it is 0.
        ranks: NDArray[np.int64] = np.unique(values, return_inverse=True)[1] + 1
        shares = np.where(np.isnan(values), 0, ranks / (len(values) + 1))
        degrees[links] = DEGREES.index(name) + shares
    return degrees
