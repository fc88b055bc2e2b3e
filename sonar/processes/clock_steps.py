"""Jumps of this machine's clock, as it is put right: monotonic clocks have none."""

import time
from datetime import timedelta

# Clocks that are put right slowly, as they should be, differ by less from one look to the next.
LEAST_SECONDS = 1.0


class ClockSteps:
    """Notices jumps of the time of day; each who wants to know keeps one of its own."""

    def __init__(self) -> None:
        self._ahead = _ahead()

    def since_last(self) -> timedelta:
        """Return by how much it has jumped forward since it was last asked; below zero: back."""
        before, self._ahead = self._ahead, _ahead()
        seconds = self._ahead - before
        return timedelta(seconds=seconds if abs(seconds) >= LEAST_SECONDS else 0)


def _ahead() -> float:
    return time.time() - time.monotonic()
