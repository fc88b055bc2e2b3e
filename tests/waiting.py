"""Waiting for what comes, and trying again what a busy machine may have spoilt."""

import time
from collections.abc import Callable
from contextlib import suppress

TRIES = 20
SOON = 120.0
"""Seconds within which even a busy machine does what an idle one does at once."""


def wait_for(done: Callable[[], object], seconds: float, pause: float = 0.2) -> bool:
    """Wait until something holds; return whether it does."""
    deadline = time.monotonic() + seconds
    while not (over := done()) and time.monotonic() < deadline:
        time.sleep(pause)
    return bool(over)


def sooner_or_later(check: Callable[[], None], *late: type[Exception]) -> None:
    """Hold what a clock shows in one of several tries.

    A machine that is at something else meanwhile makes all later; what is too late each time is
    so without it, too. ``late`` are errors of what gives up when it is too late.
    """
    for _ in range(TRIES - 1):
        with suppress(AssertionError, *late):
            check()
            return
    check()
