"""Answers that are dear and may be some seconds old."""

from __future__ import annotations

import time
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
