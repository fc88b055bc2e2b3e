"""The numbers of hours that are not sealed: segments that a process makes of raw rows for itself.

Who changes a result leaves a mark in the same transaction: an hour with the same marks has the same
results. So such a segment never changes either, and is kept like those of the database. Its number
is below 0, where the database has none.
"""

from itertools import count
from threading import Lock
from typing import NamedTuple

from cachetools import LRUCache

# An import into a year leaves some 26,000 that are not sealed.
MOST_HOURS = 100_000


class RawHour(NamedTuple):
    """An hour of a size class (start in Unix ms) as of its marks: count, maximum and sum."""

    size_class: int
    start: int
    marks: tuple[int, int, int]


class RawHours:
    """The numbers of hours. Safe for threads."""

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
