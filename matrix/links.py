"""The link table: every link with its rate, file size, counts and last result by size class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix import records, runs
from matrix.places import Links, Place
from matrix.pooling import Numbering, Pooling
from matrix.query import MatrixQuery
from matrix.runs import Run
from matrix.snapshot import snapshot
from matrix.statistics import Flags, Floats, Integers, ratio, reduce
from sonar.models import SizeClass
from sonar.units import MB
from sonar.windows import Window

ENDS = ("source", "destination")
ATTRIBUTES = ("name", "site", "cloud", "tier", "country", "label")
# The sign of a rate, set for a failed sample, as a key has it.
FAILED_BIT = np.uint64(1 << 31)


@dataclass(frozen=True)
class OfClass:
    """What the links have in one size class, a value for each; NaN where there is none.

    Rates are in MB/s, sizes in bytes and those of ok transfers alone; ``last`` is when the
    newest result started, in Unix s.
    """

    mean_mb_s: Floats
    std_mb_s: Floats
    size_mean_bytes: Floats
    size_std_bytes: Floats
    ok: Integers
    failed: Integers
    last: Floats

    def taken(self, rows: Integers | Flags) -> OfClass:
        return OfClass(*(getattr(self, name)[rows] for name in COLUMNS))


COLUMNS = tuple(field.name for field in fields(OfClass))


@dataclass(frozen=True)
class LinkTable:
    """A row for each link that has a result in the window or that a mesh tests.

    ``source`` and ``destination`` are places in ``places``. The rows are in the order of
    these until they are ordered otherwise.
    """

    query: MatrixQuery
    window: Window
    places: tuple[Place, ...]
    source: Integers
    destination: Integers
    classes: dict[str, OfClass]

    def __len__(self) -> int:
        return len(self.source)

    def column(self, name: str) -> NDArray[Any]:
        """Return `source` or `destination` (names), `source.site`, or `large.mean_mb_s`.

        Raises KeyError for any other name.
        """
        of, _, field = name.rpartition(".")
        if (of or name) in ENDS:
            return np.array(self._of_places(name), dtype=object)[self._places_at(of or name)]
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
        """Return numbers that order as a column does; text without regard to case."""
        end = name.partition(".")[0]
        if end not in ENDS:
            return self.column(name)
        # Places are few and links are many.
        texts = [str(value).casefold() for value in self._of_places(name)]
        ranks: NDArray[Any] = np.unique(texts, return_inverse=True)[1]
        return ranks[self._places_at(end)]

    def ordered_by(self, name: str, *, descending: bool = False) -> LinkTable:
        """Sort by a column; links without a value come last, equal ones stay in their order."""
        ranks = self._ranks(name)
        # NaN sorts behind everything, whatever its sign.
        return self.taken(np.argsort(-ranks if descending else ranks, kind="stable"))

    def taken(self, rows: Integers | Flags) -> LinkTable:
        """Return some of the rows, in this order: a page, or what a search has found."""
        classes = {name: of_class.taken(rows) for name, of_class in self.classes.items()}
        ends = self.source[rows], self.destination[rows]
        return LinkTable(self.query, self.window, self.places, *ends, classes)


def build(query: MatrixQuery, now: datetime) -> LinkTable:
    """Answer for all size classes, whichever the query asks for.

    All of one moment; the number of SQL statements depends on that of the classes alone.
    """
    window = query.window_at(now)
    with snapshot():
        versions = records.read_versions()
        links = Links(records.read_places(versions))
        pooling = each_link_alone(links, links.matching(query.filters))
        shown = np.zeros(pooling.shape, dtype=bool)
        classes = {}
        for size in SizeClass.objects.values_list("name", flat=True):
            classes[size] = of_class = reduced(
                runs.read(size, window, query.filters, sizes=True), pooling
            )
            promise = records.read_promises(query.replace(size=size), links, versions)
            shown |= np.isfinite(promise.reshape(pooling.shape)) | ~np.isnan(of_class.last)
    shown &= pooling.shown
    source, destination = np.nonzero(shown)
    taken = {size: of_class.taken(shown) for size, of_class in classes.items()}
    return LinkTable(query, window, links.places, source, destination, taken)


def each_link_alone(links: Links, allowed: Flags) -> Pooling:
    ids = np.array([place.id for place in links.places], dtype=np.int64)
    places = np.arange(len(ids))
    shape = len(ids), len(ids)
    return Pooling(Numbering(ids), places, places, allowed.reshape(shape), shape)


def reduced(found: Sequence[Run], pooling: Pooling) -> OfClass:
    """Return arrays of shape (places, places)."""
    rates = reduce(found, pooling)
    size_mean, size_std = size_moments(found, pooling.numbering, rates.ok)
    newest = pooling.numbering.newest(found)
    return OfClass(
        rates.mean / MB,
        rates.std / MB,
        size_mean,
        size_std,
        rates.ok,
        rates.failed,
        last=np.where(rates.ok + rates.failed > 0, newest / 1000, np.nan),
    )


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
