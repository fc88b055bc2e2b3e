"""How often a comparison of two windows finds the links that changed, and names others.

Beside it what nobody could do better: who knows how far each link scatters, and compares the means
of logarithms, with as many false ones.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import stats

from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.compare.two_samples import FALSE_SHARE, Pairs, judged
from matrix.statistics.estimates.moderation import discoveries

LINKS, CHANGED = 342, 6
# Of the natural log of a single test, and of the log of that where links differ.
SCATTER, UNEVENNESS = 0.2, 0.3
TRIALS = 200
# How many degrees of freedom the tails of t have, where they are heavy.
HEAVY = 4


@dataclass(frozen=True)
class Setting:
    """So many tests of each link in each window; of CHANGED links the rates are divided."""

    tests: int
    factor: int
    heavy: bool
    uneven: bool

    @property
    def name(self) -> str:
        tails = f"t with {HEAVY} degrees of freedom" if self.heavy else "normal"
        scatter = "differs from link to link" if self.uneven else "alike"
        return f"{self.tests} + {self.tests} tests, /{self.factor} | {tails} | {scatter}"

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """Return logs of both windows, (links, tests), and how far each link scatters."""
        spread = UNEVENNESS * rng.standard_normal(LINKS) if self.uneven else np.zeros(LINKS)
        scatter = SCATTER * np.exp(spread)
        shape = (2, LINKS, self.tests)
        noise = rng.standard_t(HEAVY, shape) / np.sqrt(2) if self.heavy else rng.normal(size=shape)
        now, before = scatter[:, None] * noise
        now[:CHANGED] -= np.log(self.factor)
        return now, before, scatter


@dataclass(frozen=True)
class Share:
    """Of CHANGED links those found, of those named the false ones; and of who knows the scatter."""

    found: float
    false: float
    limit: float
    quiet: float


def settings() -> Iterator[Setting]:
    for heavy, uneven, tests, factor in product((False, True), (False, True), (3, 6, 12), (2, 3)):
        yield Setting(tests, factor, heavy, uneven)


def share(setting: Setting, trials: int = TRIALS, seed: int = 1) -> Share:
    """Try it; ``quiet`` is how often anything is named where nothing changed."""
    rng = np.random.default_rng([seed, zlib.crc32(setting.name.encode())])
    found, false, limit, alarms = 0, 0, 0, 0
    for _ in range(trials):
        now, before, scatter = setting.draw(rng)
        named = named_in(now, before)
        found += int(named[:CHANGED].sum())
        false += int(named[CHANGED:].sum())
        limit += int(best(now, before, scatter)[:CHANGED].sum())
        quiet_now = now.copy()
        quiet_now[:CHANGED] += np.log(setting.factor)
        alarms += int(named_in(quiet_now, before).any())
    every = trials * CHANGED
    return Share(found / every, false / max(found + false, 1), limit / every, alarms / trials)


def named_in(now: Floats, before: Floats) -> Flags:
    """Compare as a matrix does."""
    counts = np.array([np.full(LINKS, logs.shape[1]) for logs in (now, before)])
    medians = np.array([np.median(np.exp(logs), axis=1) for logs in (now, before)])
    squares = [np.square(logs - logs.mean(axis=1)[:, None]).sum(axis=1) for logs in (now, before)]
    return judged(Pairs(counts, medians, np.sum(squares, axis=0)), "median")[0].sure


def best(now: Floats, before: Floats, scatter: Floats) -> Flags:
    """Compare the means of logs, the scatter of each link being known."""
    error = scatter * np.sqrt(2 / now.shape[1])
    z = (now.mean(axis=1) - before.mean(axis=1)) / error
    return discoveries(2 * stats.norm.sf(np.abs(z)), FALSE_SHARE)


def table() -> str:
    """Return what is found and what is false, a row for each setting."""
    rows = [
        "| window, change | noise | scatter of links | found | who knows the scatter | false | "
        "alarms where nothing changed |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for setting in settings():
        tried = share(setting)
        rows.append(
            f"| {setting.name} | {tried.found:.2f} | {tried.limit:.2f} | {tried.false:.1%} | "
            f"{tried.quiet:.1%} |"
        )
    return "\n".join(rows)
