"""Match the conditions that a judge returns with the true faults of a history, and sum up."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tests.accuracy.histories import Fault, History

# What says where a condition of a scope is.
SUBJECTS = {
    "link": ("source", "destination"),
    "source": ("source",),
    "destination": ("destination",),
    "endpoint": ("source", "destination"),
    "site": ("site",),
    "grid": (),
}


@dataclass(frozen=True)
class Found:
    """A condition, as a judge returns it; any object with these attributes will do."""

    scope: str
    type: str
    since_low: int
    since_high: int
    source: int | None = None
    destination: int | None = None
    site: int | None = None
    confirmed_at: int | None = None
    ended_at: int | None = None
    factor: float | None = None
    factor_low: float | None = None
    factor_high: float | None = None
    tests: int = 0
    failed: int = 0
    links: Sequence[int] = ()


Judge = Callable[[History], Sequence[Found]]


@dataclass(frozen=True)
class Row:
    """A figure from ``count`` values, and between which limits it should be (None: no limit)."""

    what: str
    figure: float
    low: float | None
    high: float | None
    count: int
    share: bool

    @property
    def aim(self) -> str:
        low, high = (None if end is None else f"{end:.3g}" for end in (self.low, self.high))
        if low and high:
            return f"{low} to {high}"
        return f"at least {low}" if low else f"at most {high}" if high else ""

    @property
    def met(self) -> bool | None:
        """Say whether the aim is met; None without an aim. A figure of nothing meets none."""
        if self.low is None and self.high is None:
            return None
        low = -math.inf if self.low is None else self.low
        return low <= self.figure <= (math.inf if self.high is None else self.high)

    @property
    def verdict(self) -> str:
        """Say whether the aim is met, or missed by at most two standard errors of a share."""
        if self.met is not False:
            return "" if self.met is None else "yes"
        ends = [end for end in (self.low, self.high) if end is not None]
        near = any(
            abs(self.figure - end) <= 2 * math.sqrt(end * (1 - end) / self.count)
            for end in ends
            if self.share and self.count and 0 < end < 1
        )
        return "no, within chance" if near else "NO"


def row(
    what: str,
    values: Iterable[float],
    low: float | None = None,
    high: float | None = None,
    *,
    median: bool = False,
) -> Row:
    """Make a row of the mean (or median) of values; booleans make a share."""
    values = list(values)
    figure = float((np.median if median else np.mean)(values)) if values else math.nan
    share = all(isinstance(value, bool | np.bool_) for value in values) and not median
    return Row(what, figure, low, high, len(values), share)


def confirmed(judge: Judge, history: History) -> list[Found]:
    """Judge a history, and leave out what is not confirmed by then."""
    now = history.now
    return [each for each in judge(history) if each.confirmed_at and each.confirmed_at <= now]


def score(judge: Judge, history: History) -> tuple[list[Found | None], list[Found]]:
    """Return the confirmed condition of each fault, and confirmed ones that were not there."""
    return match(confirmed(judge, history), history.faults)


def is_right(found: Found, fault: Fault) -> bool:
    """Say whether type, scope and place are those of the fault, and the times overlap."""
    return (
        (found.type, found.scope) == (fault.type, fault.scope)
        and all(getattr(found, end) == getattr(fault, end) for end in SUBJECTS[fault.scope])
        and (fault.end is None or found.since_low < fault.end)
        and (found.ended_at is None or found.ended_at > fault.start)
    )


def match(
    conditions: Iterable[Found], faults: Iterable[Fault]
) -> tuple[list[Found | None], list[Found]]:
    """Return the condition of each fault, or None, and those that belong to no fault.

    A second condition of the same fault belongs to none.
    """
    left, pairs = list(conditions), []
    for fault in faults:
        right = [condition for condition in left if is_right(condition, fault)]
        best = min(
            right,
            key=lambda each: abs(each.since_low + each.since_high - 2 * fault.start),
            default=None,
        )
        pairs.append(best)
        left = [condition for condition in left if condition is not best]
    return pairs, left


def later(conditions: Iterable[Found], history: History) -> list[Found]:
    """Leave conditions out that were confirmed before the first fault began."""
    start = min(fault.start for fault in history.faults)
    return [each for each in conditions if (each.confirmed_at or 0) >= start]


def time_error(stated: float | None, true: int | None, history: History) -> float:
    """Return the distance of two moments in intervals between two tests of one link."""
    if stated is None or true is None:
        return math.inf
    return abs(stated - true) / (min(history.every_seconds.values()) * 1000)
