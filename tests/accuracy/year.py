"""A simulated year of a grid: results of all links, with faults that are known, from one seed.

Errors of rates are those of the grids of `make accuracy`, one window of it being one test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from matrix.statistics.arrays import Flags, Floats
from tests.accuracy import faults
from tests.accuracy.faults import Name
from tests.accuracy.grids import Grid

START = datetime(2025, 1, 1, tzinfo=UTC)
# What is usual is learned before the first fault.
LEARNING = timedelta(days=35)
SLOW, FAILING, SILENT, DOWN = "slow", "failing", "silent", "down"
FAILURES = 0.01
# Of a fault by which tests fail.
FAILURES_OF_FAULT = 0.97
# What befalls, how often of a hundred times, and where (tests.accuracy.faults).
KINDS = (
    (22, SLOW, faults.source),
    (22, SLOW, faults.destination),
    (14, SLOW, faults.both),
    (6, SLOW, faults.site),
    (8, FAILING, faults.source),
    (8, FAILING, faults.destination),
    (8, FAILING, faults.both),
    (6, SLOW, faults.link),
    (6, DOWN, faults.both),
)
OF_SONAR = ((SLOW, 3.0), (FAILING, 1.0), (SILENT, 1.0))
FACTOR, LINK_FACTOR = (2.0, 6.0), 12.0


@dataclass(frozen=True)
class FaultOfYear:
    """What is wrong with some links, of a shape (size, size), from when until when.

    ``name`` is what should be named, None for Sonar itself; rates are divided by ``factor``.
    """

    condition: str
    name: Name | None
    links: Flags
    start: datetime
    end: datetime
    factor: float = 1.0

    def lasts(self, moment: datetime, margin: timedelta = timedelta()) -> bool:
        return self.start - margin <= moment < self.end + margin


@dataclass(frozen=True)
class Year:
    """A grid that is tested ``tests_a_day`` times a day; about a fault in ``gap`` days."""

    grid: Grid
    days: int
    seed: int
    noise: float = 1.5
    tests_a_day: int = 2
    gap: float = 3.0

    @property
    def round(self) -> timedelta:
        return timedelta(days=1) / self.tests_a_day

    @property
    def end(self) -> datetime:
        return START + timedelta(days=self.days)

    def rng(self, *of: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *of])

    def tested(self) -> Flags:
        return self.grid.tested(self.rng(1)) & ~np.eye(self.grid.size, dtype=bool)

    def usual(self) -> Floats:
        """Return the typical rate of each link in bytes/s."""
        return 30e6 * np.asarray(self.rng(2).lognormal(0.0, 1.0, (self.grid.size,) * 2))

    def faults(self) -> list[FaultOfYear]:
        """Return all that goes wrong, in the order of time; a site has one at a time."""
        rng, every = self.rng(3), list[FaultOfYear]()
        moment = START + LEARNING
        while (moment := moment + timedelta(days=rng.exponential(self.gap))) < self.end:
            every.append(self._fault(rng, moment, every))
        count = max(3, self.days // 75)
        for number in range(count):
            condition, factor = OF_SONAR[number % len(OF_SONAR)]
            start = START + LEARNING + (self.end - START - LEARNING) * ((number + 0.5) / count)
            end = start + 2.5 * self.round if condition != SILENT else start + 5 * self.round
            every.append(
                FaultOfYear(condition, None, np.ones_like(self.tested()), start, end, factor)
            )
        return sorted(every, key=lambda fault: fault.start)

    def _fault(
        self, rng: np.random.Generator, start: datetime, others: Sequence[FaultOfYear]
    ) -> FaultOfYear:
        weights = np.array([weight for weight, *_ in KINDS], dtype=float)
        end = start + self.round * max(4.0, rng.lognormal(np.log(10), 0.5))
        while True:
            _, condition, place = KINDS[rng.choice(len(KINDS), p=weights / weights.sum())]
            names, links = place(self.grid, self.tested(), rng)
            near = [
                other
                for other in others
                if other.end > start - 3 * self.round
                and sites_of(other.name, self) & sites_of(names[0], self)
            ]
            if not near:
                break
        factor = 1.0
        if condition == SLOW:
            factor = float(np.exp(rng.uniform(*np.log(FACTOR))))
            factor = LINK_FACTOR if place is faults.link else factor
        return FaultOfYear(condition, names[0], links & self.tested(), start, end, factor)

    def rounds(self) -> Iterator[tuple[Floats, Floats, Flags, Flags]]:
        """Yield of each round when links were tested (Unix s), rates (bytes/s), failed, tested.

        Each of the shape (size, size).
        """
        tested, usual, every = self.tested(), self.usual(), self.faults()
        for number in range(self.days * self.tests_a_day):
            rng = self.rng(4, number)
            begin = START + number * self.round
            started = begin.timestamp() + rng.random(tested.shape) * self.round.total_seconds()
            errors = self.grid.windows(rng, self.noise, 1).errors[0]
            rates, failing = usual * np.exp(errors), np.full(tested.shape, FAILURES)
            here = tested.copy()
            for fault in every:
                if fault.start > begin + self.round or fault.end < begin:
                    continue
                bad = during(fault, started) & fault.links
                if fault.condition == FAILING:
                    failing[bad] = FAILURES_OF_FAULT
                elif fault.condition == SLOW:
                    rates[bad] /= fault.factor
                else:
                    here &= ~bad
            yield started, rates, rng.random(tested.shape) < failing, here


def sites_of(name: Name | None, year: Year) -> set[str]:
    """Return the sites that a fault is at; none of Sonar itself."""
    sites = year.grid.sites()
    return {sites[end] for end in (name or ())[1:] if isinstance(end, int)}


def during(fault: FaultOfYear, started: Floats) -> Flags:
    """Say which tests started while a fault lasted."""
    return np.asarray((started >= fault.start.timestamp()) & (started < fault.end.timestamp()))
