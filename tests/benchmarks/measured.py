"""What a benchmark measures: contestants in turn, medians with their spread, and goals."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.console import Console

Contestant = Callable[[], object]
WIDTH = 150


@dataclass(frozen=True)
class Spread:
    """Median and extremes of one figure, measured several times."""

    median: float
    minimum: float
    maximum: float
    rounds: int

    @classmethod
    def of(cls, figures: list[float]) -> Spread:
        return cls(statistics.median(figures), min(figures), max(figures), len(figures))


@dataclass(frozen=True)
class Goal:
    """One of the goals of docs/storage.md and what was measured for it.

    ``limit``, ``value``, ``minimum`` and ``maximum`` are in ``unit``: "x" for a ratio. A goal
    without a value could not be measured, and ``note`` says why.
    """

    number: int
    text: str
    limit: float
    value: float | None
    unit: str = "x"
    at_least: bool = True
    minimum: float | None = None
    maximum: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Say whether the limit holds; None if nothing was measured."""
        if self.value is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @classmethod
    def from_spread(
        cls,
        number: int,
        text: str,
        limit: float,
        spread: Spread,
        unit: str = "x",
        *,
        at_least: bool = True,
        note: str = "",
    ) -> Goal:
        """Judge the median; the extremes stand beside it."""
        figures = (spread.median, unit, at_least, spread.minimum, spread.maximum)
        return cls(number, text, limit, *figures, note)


def timed(rounds: int, contestants: Mapping[str, Contestant]) -> dict[str, list[float]]:
    """Time the contestants in turn, round after round; return the seconds of each.

    Each round begins with another one, so that nobody always runs behind the same neighbour.
    Call them once before: the first call is not what is measured here.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    names = list(contestants)
    for number in range(rounds):
        gc.collect()
        first = number % len(names)
        for name in names[first:] + names[:first]:
            seconds[name].append(elapsed(contestants[name]))
    return seconds


def one_time(contestant: Contestant) -> float:
    """Time a single call, with nothing left over for the garbage collector to do in it."""
    gc.collect()
    return elapsed(contestant)


def elapsed(contestant: Contestant) -> float:
    start = time.perf_counter()
    contestant()
    return time.perf_counter() - start


def ratio(slow: list[float], fast: list[float]) -> Spread:
    """Return how many times faster the second is: medians over medians, extremes by round."""
    by_round = [above / below for above, below in zip(slow, fast, strict=True)]
    median = statistics.median(slow) / statistics.median(fast)
    return Spread(median, min(by_round), max(by_round), len(by_round))


def of_the_fastest(slow: list[float], fast: list[float]) -> str:
    """Say the ratio of the fastest rounds: what is left when others use the machine as well."""
    return f"{min(slow) / min(fast):.3g}x by the fastest rounds"


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def wide_console() -> Console:
    """Return a console for tables: a pipe tells no width, and they need one."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)
