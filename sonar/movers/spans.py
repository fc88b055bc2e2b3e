"""A step of a measurement: until when it must be through, and who may end it before.

Every exchange with a server looks here, so that no step has to hand on what is left of its
time, and a stop ends whatever exchange there is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sonar.movers.watch import Watch


class Span:
    """So many seconds from now, for one step."""

    def __init__(self, watch: Watch, seconds: float) -> None:
        self.watch = watch
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Return the seconds that are left, 0 at least."""
        return max(self.end - time.monotonic(), 0.0)


_CURRENT: ContextVar[Span | None] = ContextVar("span", default=None)


@contextmanager
def within(watch: Watch, seconds: float) -> Iterator[Span]:
    """Let all exchanges of this step end after so many seconds, or when the watch is stopped.

    One inside another stands alone, as what must be said after the outer one is over.
    """
    span = Span(watch, seconds)
    mark = _CURRENT.set(span)
    try:
        yield span
    finally:
        _CURRENT.reset(mark)


def current() -> Span | None:
    """Return the step that this thread is at; None outside of a measurement."""
    return _CURRENT.get()
