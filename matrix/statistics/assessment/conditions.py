"""A condition: something that is wrong, or unusually fast, from when until when."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from matrix.statistics.assessment.grid_links import NEVER, Subject

FAILING, SLOW, SILENT, FAST = ("failing", "slow", "silent", "fast")


@dataclass
class ClassCondition:
    """Of one size class; times in Unix ms.

    It began between ``since_low`` and ``since_high``, most likely at ``since``; ``seen_at`` is when
    the judge first had enough evidence, ``listed_at`` when so much that people may see it, and
    ``confirmed_at`` when it was beyond chance. ``likely_at`` is when the odds of an endpoint or a
    site that fails were enough for that, however few its tests were. ``factor`` is the rate since
    over the baseline, with an interval of 95 %; NaN where tests fail or are missing.
    ``links`` are those of the subject that show it. ``shift`` is what the judge expects of their
    rates, as a natural log, beside their ``levels`` before it (by link, natural logs of bytes/s).
    """

    scope: str
    source: int | None
    destination: int | None
    site: int | None
    type: str
    seen_at: int
    since: int
    since_low: int = 0
    since_high: int = 0
    confirmed_at: int | None = None
    ended_at: int | None = None
    factor: float = math.nan
    factor_low: float = math.nan
    factor_high: float = math.nan
    tests: int = 0
    failed: int = 0
    links: tuple[int, ...] = ()
    shift: float = 0.0
    checked_at: int = 0
    listed_at: int | None = None
    likely_at: int | None = None
    levels: dict[int, float] = field(default_factory=dict)

    @property
    def subject(self) -> Subject:
        return Subject(self.scope, self.source, self.destination, self.site)

    @property
    def until(self) -> int:
        return NEVER if self.ended_at is None else self.ended_at

    @property
    def is_open(self) -> bool:
        return self.ended_at is None

    def turned(self, type_: str) -> ClassCondition:
        """Return the same with rates upside down: what is fast is slow there."""
        return replace(
            self,
            type=type_,
            shift=-self.shift,
            factor=1 / self.factor,
            factor_low=1 / self.factor_high,
            factor_high=1 / self.factor_low,
            levels={link: -level for link, level in self.levels.items()},
        )
