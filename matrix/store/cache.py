"""Answers that are dear and may be some seconds old."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """The last answer of this process, read anew when it is too old or about something else.

    One thread reads, and those that want the same meanwhile wait for it.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = Lock()
        self._known: tuple[Hashable, float, T] | None = None

    def get(self, about: Hashable, read: Callable[[], T]) -> T:
        with self._lock:
            if self._known is not None:
                key, since, answer = self._known
                if key == about and time.monotonic() - since < self._seconds:
                    return answer
            answer = read()
            self._known = about, time.monotonic(), answer
            return answer

    def forget(self) -> None:
        with self._lock:
            self._known = None


class Remembered(Generic[T]):
    """The answers that were used last, a bounded number of them. Safe for threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, read: Callable[[], T]) -> T:
        """Return the answer for a key; two threads may both read one that is not there yet."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        answer = read()
        with self._lock:
            self._answers[key] = answer
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
        return answer
