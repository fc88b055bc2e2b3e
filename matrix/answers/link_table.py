"""The link table: every link with its rate, file size, counts and last result by size class."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.grid import occurring
from matrix.query.filters import LINK_FILTERS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.axes import EndpointInfo, LinkIndex
from matrix.statistics.pooling import Numbering, Pooling
from matrix.statistics.reduce import Reduced, ratio, reduce
from matrix.statistics.run import FAILED_BIT, Run
from matrix.statistics.states import Evidence, States
from matrix.store import registry, runs
from matrix.store.cache import Remembered
from matrix.store.registry import NO_PRIORITY, MeshPromises
from matrix.store.snapshot import snapshot
from sonar.models import Downtime, SizeClass
from sonar.units import MB
from sonar.windows import Window

ENDS = ("source", "destination")
ATTRIBUTES = ("name", "site", "cloud", "tier", "country", "label")


@dataclass(frozen=True)
class ClassColumns:
    """What the links have in one size class, a value for each; NaN where there is none.

    Rates are in MB/s, sizes in bytes and those of ok transfers alone; ``last_ok`` and
    ``last_failed`` are when the newest success and the newest failure started, in Unix s;
    ``state`` indexes cells.STATES; ``every`` is the shortest interval in seconds at which a mesh
    tests the link, infinity for none.
    """

    mean_mb_s: Floats
    std_mb_s: Floats
    size_mean_bytes: Floats
    size_std_bytes: Floats
    ok: Integers
    failed: Integers
    state: States
    last_ok: Floats
    last_failed: Floats
    every: Floats

    @property
    def last(self) -> Floats:
        """Return when the newest result started, in Unix s."""
        return np.fmax(self.last_ok, self.last_failed)

    def taken(self, rows: Integers | Flags | slice) -> ClassColumns:
        return ClassColumns(*(getattr(self, field.name)[rows] for field in fields(ClassColumns)))


# What is said of a link in a size class.
COLUMNS = (
    *("mean_mb_s", "std_mb_s", "size_mean_bytes", "size_std_bytes", "ok", "failed", "last"),
    *("state", "last_ok", "last_failed"),
)


@dataclass(frozen=True)
class LinkTable:
    """A row for each link that has a result in the window or that a mesh tests.

    ``source`` and ``destination`` are places in ``places``, ``priority`` is the highest of the
    meshes that test the link, NaN for none. The rows are in the order of the places until they
    are ordered otherwise; ``profiles`` are the ids of those that the results of all links have.
    About 243 bytes a link.
    """

    window: Window
    places: tuple[EndpointInfo, ...]
    source: Integers
    destination: Integers
    priority: Floats
    classes: dict[str, ClassColumns]
    profiles: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.source)

    def column(self, name: str) -> NDArray[Any]:
        """Return `source` or `destination` (names), `source.site`, `priority`, `large.mean_mb_s`.

        Raises KeyError for any other name.
        """
        of, _, field = name.rpartition(".")
        if (of or name) in ENDS:
            return np.array(self._of_places(name), dtype=object)[self._places_at(of or name)]
        if name == "priority":
            return self.priority
        if of not in self.classes or field not in COLUMNS:
            raise KeyError(name)
        values: NDArray[Any] = getattr(self.classes[of], field)
        return values

    def _of_places(self, name: str) -> list[str | int]:
        attribute = name.partition(".")[2] or "name"
        if attribute not in ATTRIBUTES:
            raise KeyError(name)
        return [getattr(place, attribute) for place in self.places]

    def _places_at(self, end: str) -> Integers:
        return self.source if end == "source" else self.destination

    def _ranks(self, name: str) -> NDArray[Any]:
        """Return numbers that order as a column does; links of one source by destination."""
        end = name.partition(".")[0]
        if end not in ENDS:
            return self.column(name)
        ranks = self._ranks_at(end, name)
        if name not in ENDS:
            return ranks
        other = "destination" if name == "source" else "source"
        return np.asarray(ranks * len(self.places) + self._ranks_at(other, other))

    def _ranks_at(self, end: str, name: str) -> Integers:
        """Rank by text, without regard to case: places are few and links are many."""
        texts = [str(value).casefold() for value in self._of_places(name)]
        ranks: NDArray[Any] = np.unique(texts, return_inverse=True)[1]
        return ranks[self._places_at(end)]

    def order(self, name: str, *, descending: bool = False, among: Flags | None = None) -> Integers:
        """Return rows sorted by a column: no value comes last, equal ones stay as they were.

        All rows, or those ``among`` which are to be sorted.
        """
        rows = np.arange(len(self)) if among is None else np.flatnonzero(among)
        ranks = self._ranks(name)[rows]
        if ranks.dtype == np.uint8:  # a state, whose negative would be another one
            ranks = ranks.astype(np.int16)
        # NaN sorts behind everything, whatever its sign.
        return rows[np.argsort(-ranks if descending else ranks, kind="stable")]

    def ordered_by(self, name: str, *, descending: bool = False) -> LinkTable:
        return self.taken(self.order(name, descending=descending))

    def taken(self, rows: Integers | Flags | slice) -> LinkTable:
        """Return some of the rows, in this order: a page, or what a search has found."""
        classes = {name: of_class.taken(rows) for name, of_class in self.classes.items()}
        ends = self.source[rows], self.destination[rows]
        priority = self.priority[rows]
        return LinkTable(self.window, self.places, *ends, priority, classes, self.profiles)

    def ends(self) -> list[EndpointInfo]:
        """Return the places that at least one of the links starts from or goes to."""
        used = np.zeros(len(self.places), dtype=bool)
        used[self.source] = used[self.destination] = True
        return [self.places[at] for at in np.flatnonzero(used).tolist()]

    def searched(self, text: str) -> Flags:
        """Say which links have every word of a text in some attribute of one of their ends."""
        found = np.ones(len(self), dtype=bool)
        texts = [place_text(place) for place in self.places]
        for word in text.casefold().split():
            flags = np.array([word in one for one in texts], dtype=bool)
            found &= flags[self.source] | flags[self.destination]
        return found

    def where(self, name: str, holds: Callable[[str], bool]) -> Flags:
        """Say which links have an end whose attribute, as text, is such; `name` as in column."""
        flags = np.array([holds(str(value)) for value in self._of_places(name)], dtype=bool)
        return flags[self._places_at(name.partition(".")[0])]


def place_text(place: EndpointInfo) -> str:
    """Return what a search looks into; a tier is found as `2`, `T2` and `Tier 2`."""
    tier = f"tier {place.tier} t{place.tier}"
    texts = (place.name, place.site, place.cloud, tier, place.country, place.label)
    return "\n".join(texts).casefold()


# One: of a thousand endpoints it is 243 MB. Whoever searches and turns pages asks for the same
# table again and again, and to build it takes longer than anything that is done with it.
_tables: Remembered[LinkTable] = Remembered(1)


def version(query: MatrixQuery, now: datetime) -> str:
    """Return what changes whenever the table may; as many SQL statements as classes, plus one."""
    window = query.window_at(now)
    sizes = SizeClass.objects.values_list("name", flat=True)
    found = [runs.fingerprint(size, window) for size in sizes]
    asked = f"{found} {query.filters} {window} {now:%Y-%m-%dT%H:%M}"
    return hashlib.sha256(asked.encode()).hexdigest()[:32]


def build(query: MatrixQuery, now: datetime, known_version: str = "") -> LinkTable:
    """Answer for all size classes, whichever the query asks for.

    All of one moment; the number of SQL statements depends on that of the classes alone.
    ``known_version`` is that of version(), and spares everything if it is that of the last table.
    """
    # Read before the data: an answer may be newer than its version, never older.
    key = known_version or version(query, now)
    return _tables.get(key, lambda: _build(query, now))


def _build(query: MatrixQuery, now: datetime) -> LinkTable:
    window = query.window_at(now)
    moment = min(now, window.end)
    with snapshot():
        versions = registry.read_versions()
        links = LinkIndex(registry.read_places(versions))
        down = Downtime.endpoints_down(moment)
        up = ~links.ends(place.id in down for place in links.places).reshape(links.shape)
        allowed = links.matching(query.filters)
        pooling = each_link_alone(links, allowed)
        narrowed = any(one.parameter in LINK_FILTERS for one in query.filters)
        plans, classes, profiles = {}, {}, set[int]()
        for size in SizeClass.objects.values_list("name", flat=True):
            plans[size] = plan = registry.read_plan(query.replace(size=size), links, versions)
            found = runs.read(
                size,
                window,
                query.filters,
                sizes=True,
                profiles=narrowed,
                distinct_profiles=not narrowed,
                failures=True,
            )
            classes[size] = reduced(found, pooling, plan, up, moment)
            profiles |= occurring(found, links, allowed if narrowed else None)
    shown = pooling.shown & either_measured_or_planned(classes.values())
    source, destination = np.nonzero(shown)
    taken = {size: of_class.taken(shown) for size, of_class in classes.items()}
    priority = highest_priority(plans.values(), links).reshape(links.shape)[shown]
    ids = frozenset(profiles)
    return LinkTable(window, links.places, source, destination, priority, taken, ids)


def either_measured_or_planned(classes: Iterable[ClassColumns]) -> Flags:
    parts = [np.isfinite(of_class.every) | ~np.isnan(of_class.last) for of_class in classes]
    return np.asarray(np.logical_or.reduce(parts))


def highest_priority(plans: Iterable[MeshPromises], links: LinkIndex) -> Floats:
    priority = MeshPromises.blank(links).priority
    for plan in plans:
        priority = np.maximum(priority, plan.priority)
    return np.where(priority == NO_PRIORITY, np.nan, priority)


def each_link_alone(links: LinkIndex, allowed: Flags) -> Pooling:
    ids = np.array([place.id for place in links.places], dtype=np.int64)
    places = np.arange(len(ids))
    shape = len(ids), len(ids)
    return Pooling(Numbering(ids), places, places, allowed.reshape(shape), shape)


def reduced(
    found: Sequence[Run], pooling: Pooling, plan: MeshPromises, up: Flags, moment: datetime
) -> ClassColumns:
    """Return arrays of shape (places, places), as they stand at a moment."""
    rates = reduce(found, pooling)
    numbering, every = pooling.numbering, plan.every.reshape(pooling.shape)
    size_mean, size_std = size_moments(found, numbering, rates.ok)
    last_ok, last_failed = (
        np.where(count > 0, numbering.newest(newest) / 1000, np.nan)
        for count, newest in (
            (rates.ok, [run.newest_ok() for run in found]),
            (rates.failed, [run.newest_failed() for run in found]),
        )
    )
    return ClassColumns(
        rates.mean / MB,
        rates.std / MB,
        size_mean,
        size_std,
        rates.ok,
        rates.failed,
        states(rates, moment.timestamp() - np.fmax(last_ok, last_failed), every, up),
        last_ok,
        last_failed,
        every,
    )


def states(rates: Reduced, age: Floats, every: Floats, up: Flags) -> States:
    """Judge each link as the cell of a matrix that it alone makes."""
    applicable = np.isfinite(every) | ~np.isnan(age)
    return Evidence(rates.ok, rates.failed, age, every, applicable, applicable & up).states()


def size_moments(found: Sequence[Run], numbering: Numbering, ok: Integers) -> tuple[Floats, Floats]:
    """Return mean and sample standard deviation of the sizes of ok samples, of which ``ok`` has
    the counts; shape (places, places).

    In two passes over the runs, one at a time: squares less the square of the sum lose
    digits, and a copy of all sizes would cost much memory.
    """
    stride = numbering.stride
    count = np.pad(ok, (0, 1)).ravel()
    total, squares = np.zeros((2, stride**2))
    for number, sizes in sizes_by_link(found, numbering):
        total += np.bincount(number, sizes, minlength=stride**2)
    mean = ratio(total, count)
    for number, sizes in sizes_by_link(found, numbering):
        squares += np.bincount(number, (sizes - mean[number]) ** 2, minlength=stride**2)
    std = np.sqrt(ratio(squares, np.maximum(count - 1, 0)))
    shape = (stride, stride)
    return mean.reshape(shape)[:-1, :-1], std.reshape(shape)[:-1, :-1]


def sizes_by_link(
    found: Iterable[Run], numbering: Numbering
) -> Iterator[tuple[NDArray[np.intp], Floats]]:
    """Yield for each run the links' numbers and the sizes of its ok samples."""
    for run in found:
        if run.sizes is None:
            raise ValueError("the link table needs runs with sizes")
        done = np.flatnonzero(run.keys & FAILED_BIT == 0)
        yield numbering.numbers(run.keys[done]), run.sizes[done].astype(np.float64)
