"""The columns of segments as numpy arrays, through a cache that this process keeps."""

import struct
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from cachetools import LRUCache
from django.conf import settings
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags
from matrix.store.read_plan import hour_of, merged, moment
from sonar.database import pg_copy
from sonar.results import segments

Array = NDArray[Any]
NAMES = tuple(segments.DTYPES)
# The start of a row in binary COPY: count of fields, then the widths of id and number of the
# column before them, then the width of the payload. 24 bytes, so that the payload behind it
# is aligned for any number and need not be copied.
_HEAD = struct.Struct(">hiqihi")
_SIGNATURE_BYTES = 19
_TRAILER_BYTES = 2


# Of which columns one is made that is of a part of the rows, where that is not the column itself.
SOURCES = {"links": ("keys", "offsets"), "lasts": ("keys", "offsets")}
ROWS = "rows apart"
# What others() keeps of these rows.
OTHERS = ("keys", "offsets", "profiles")
NOWHERE: Mapping[int, Array] = {}


# An import into a year leaves some 26,000 that are not sealed.
MOST_HOURS = 100_000


class RawHour(NamedTuple):
    """An hour of a size class (start in Unix ms) as of its marks: count, maximum and sum."""

    size_class: int
    start: int
    marks: tuple[int, int, int]


class RawHours:
    """The numbers of hours that are not sealed: segments that this process makes of raw rows.

    Who changes a result leaves a mark in the same transaction: an hour with the same marks has the
    same results. So such a segment never changes either, and is kept like those of the database.
    Its number is below 0, where the database has none. Safe for threads.
    """

    def __init__(self) -> None:
        self._numbers: LRUCache[RawHour, int] = LRUCache(MOST_HOURS)
        self._hours: LRUCache[int, RawHour] = LRUCache(MOST_HOURS)
        self._next = count(-1, -1)
        self._lock = Lock()

    def number(self, hour: RawHour) -> int:
        """Return the number of the segment of an hour, always the same one."""
        with self._lock:
            number = self._numbers.get(hour)
            if number is None:
                number = self._numbers[hour] = next(self._next)
            self._hours[number] = hour
            return number

    def hour(self, number: int) -> RawHour:
        with self._lock:
            return self._hours[number]


HOURS = RawHours()


class Key(NamedTuple):
    """A column of a segment; ``counted`` is one without the rows that are set apart."""

    segment: int
    column: str
    counted: bool = False


class Full(Exception):
    """Nothing may go that would make room."""


class NotKept(Exception):
    """A column would have to be read, and may not be."""


class Columns(LRUCache[Key, Array]):
    """Arrays up to a number of bytes; what was used longest ago goes first, but what is needed."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, getsizeof=lambda array: array.nbytes)
        self.needed: Collection[Key] = ()

    def popitem(self) -> tuple[Key, Array]:
        key, array = super().popitem()
        if key in self.needed:
            self[key] = array
            raise Full
        return key, array


class Cache:
    """Columns that this process keeps. Safe for threads.

    A segment never changes, so nothing in here is ever out of date.
    """

    def __init__(self, limit: int) -> None:
        self._columns = Columns(limit)
        self._lock = Lock()

    @property
    def bytes(self) -> float:
        return self._columns.currsize

    def get(self, keys: Iterable[Key]) -> dict[Key, Array]:
        with self._lock:
            return {key: self._columns[key] for key in keys if key in self._columns}

    def put(self, arrays: Mapping[Key, Array], needed: Collection[Key] = ()) -> None:
        """Take in as many of the arrays as fit.

        What is ``needed`` at present makes no room: a window that is larger than the cache
        would drive out its own beginning, and find nothing there the next time.
        """
        with self._lock:
            self._columns.needed = needed
            for key, array in arrays.items():
                # One that is larger than all room is a ValueError.
                with suppress(Full, ValueError):
                    self._columns.setdefault(key, array)

    def clear(self) -> None:
        with self._lock:
            self._columns.clear()


CACHE = Cache(settings.SONAR_SEGMENT_CACHE_MB * 2**20)


def derived(key: Key, make: Callable[[], Array]) -> Array:
    """Return what is made of columns of a segment once and kept beside them, read-only."""
    array = CACHE.get([key]).get(key)
    if array is None:
        array = make()
        array.flags.writeable = False
        CACHE.put({key: array})
    return array


def load(
    starts: Mapping[Key, int],
    once: Collection[Key] = (),
    apart: Mapping[int, Array] = NOWHERE,
    *,
    may_read: bool = True,
) -> dict[Key, Array]:
    """Return columns of segments, read-only; at most one SQL statement.

    None if it may not read: NotKept is raised where a column is not in the cache.

    ``starts`` has the start of each segment in Unix ms: ``lasts`` become int64 Unix ms. Those
    of ``once`` are not asked for again: they are not kept. The rows ``apart`` of a segment are left
    out: what is left of its columns is made once, and kept in their place.
    """
    counted = {key: key._replace(counted=True) for key in starts if key.segment in apart}
    kept = CACHE.get(counted.values())
    missing = [key for key, of_rest in counted.items() if of_rest not in kept]
    whole = {key: start for key, start in starts.items() if key not in counted}
    raw = {
        Key(key.segment, source): starts[key]
        for key in missing
        for source in SOURCES.get(key.column, (key.column,))
    }
    loaded = _load(whole | raw, {*once, *raw}, may_read=may_read)
    fresh = {
        counted[key]: _without(apart[key.segment], key, loaded, starts[key]) for key in missing
    }
    CACHE.put({counted[key]: fresh[counted[key]] for key in missing if key not in once}, fresh)
    rest = {key: (kept | fresh)[of_rest] for key, of_rest in counted.items()}
    return {key: loaded[key] for key in whole} | rest


def _without(rows: Array, key: Key, columns: Mapping[Key, Array], start: int) -> Array:
    sources = SOURCES.get(key.column, (key.column,))
    parts = [np.delete(columns[Key(key.segment, source)], rows) for source in sources]
    array: Array = parts[0]
    if key.column in SOURCES:
        links, lasts = segments.newest(*parts)
        array = links if key.column == "links" else lasts + np.int64(start)
    array.flags.writeable = False
    return array


def rows_with(
    profiles: Sequence[int], starts: Mapping[int, int], *, may_read: bool = True
) -> dict[int, Array]:
    """Return the rows with some profiles, of the segments that have any; one SQL statement or none.

    A result gets a profile once, and a segment never changes: what was found is kept, by segment,
    so that the profiles must be the same ones each time, or more. ``starts`` and ``may_read`` are
    as in load().
    """
    kept = CACHE.get(Key(segment, ROWS) for segment in starts)
    keys = {
        Key(segment, "profiles"): start
        for segment, start in starts.items()
        if Key(segment, ROWS) not in kept
    }
    is_other = all_but(profiles)
    fresh = {
        Key(key.segment, ROWS): np.flatnonzero(~is_other.take(column))
        for key, column in _load(keys, keys, may_read=may_read).items()
    }
    CACHE.put(fresh)
    return {key.segment: rows for key, rows in (kept | fresh).items() if rows.size}


def others(apart: Mapping[int, Array], starts: Mapping[int, int]) -> dict[Key, Array]:
    """Return OTHERS of the rows that rows_with() found; one SQL statement or none.

    They are kept next to the rest of each segment: few results, as a rule.
    """
    sources = {
        Key(segment, f"{name} apart"): Key(segment, name) for segment in apart for name in OTHERS
    }
    kept = CACHE.get(sources)
    missing = {key: source for key, source in sources.items() if key not in kept}
    starts_of = {source: starts[source.segment] for source in missing.values()}
    loaded = _load(starts_of, starts_of, may_read=True)
    fresh = {key: loaded[source].take(apart[key.segment]) for key, source in missing.items()}
    CACHE.put(fresh)
    return {sources[key]: array for key, array in (kept | fresh).items()}


def all_but(profiles: Sequence[int]) -> Flags:
    """Say of each id of a profile that it passes, but of these."""
    table = np.ones(segments.PROFILE_IDS, dtype=bool)
    table[list(profiles)] = False
    return table


def _load(starts: Mapping[Key, int], once: Collection[Key], *, may_read: bool) -> dict[Key, Array]:
    columns = CACHE.get(starts)
    missing = [key for key in starts if key not in columns]
    if missing and not may_read:
        raise NotKept
    if missing:
        starts_of = {key.segment: start for key, start in starts.items()}
        fetched = {}
        for key, array in fetch(missing):
            is_time = key.column == "lasts"
            fetched[key] = array + np.int64(starts_of[key.segment]) if is_time else array
            fetched[key].flags.writeable = False
        keep = {key: array for key, array in fetched.items() if key not in once or key.segment < 0}
        CACHE.put(keep, starts.keys())
        columns |= {key: fetched[key] for key in missing}
    return columns


def fetch(keys: Collection[Key]) -> Iterator[tuple[Key, Array]]:
    """Read columns, and all columns of hours that are not sealed: one SQL statement for each."""
    if raw := {key.segment for key in keys if key.segment < 0}:
        yield from _fetch_raw(raw)
    if sealed := [key for key in keys if key.segment >= 0]:
        # Binary COPY is a third faster here than a plain SELECT of bytea.
        with pg_copy.copying(f"COPY ({_query(sealed)}) TO STDOUT (FORMAT BINARY)") as copy:
            skipped = _SIGNATURE_BYTES
            for message in copy:  # PostgreSQL sends each row as a message of its own
                row = memoryview(message)[skipped:]
                skipped = 0
                if len(row) > _TRAILER_BYTES:
                    _, _, segment, _, number, _ = _HEAD.unpack_from(row)
                    # It shares the message's memory; only the first row is copied.
                    array = segments.decode(NAMES[number], row[_HEAD.size :])
                    yield Key(segment, NAMES[number]), np.require(array, requirements="A")


def _fetch_raw(numbers: Iterable[int]) -> Iterator[tuple[Key, Array]]:
    """Read the results of hours, which are of one size class."""
    hours = sorted((HOURS.hour(number), number) for number in numbers)
    spans = [hour_of(hour.start) for hour, _ in hours]
    moments = [(moment(span.start), moment(span.end)) for span in merged(spans)]
    rows = segments.read_rows(hours[0][0].size_class, moments)
    for (hour, number), part in zip(hours, segments.split(rows, spans), strict=True):
        columns = segments.encode(part, moment(hour.start))
        yield from ((Key(number, name), getattr(columns, name)) for name in NAMES)


def _query(keys: Iterable[Key]) -> str:
    """Write one SELECT for each column: no segment sends a column that is there already."""
    ids: defaultdict[str, list[int]] = defaultdict(list)
    for key in keys:
        ids[key.column].append(key.segment)
    return " UNION ALL ".join(
        f"SELECT id, {NAMES.index(column)}::int2, {column} FROM sonar_segment"  # noqa: S608
        f" WHERE id = ANY('{{{','.join(map(str, segment_ids))}}}'::bigint[])"
        for column, segment_ids in ids.items()
    )
