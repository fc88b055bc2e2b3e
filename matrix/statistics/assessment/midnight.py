"""What is known of the links of a size class as a day begins. Pure numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.assessment.baselines import Baselines, learn
from matrix.statistics.assessment.conditions import FAILING, SLOW, ClassCondition
from matrix.statistics.assessment.evidence import Cusum, TestGroups
from matrix.statistics.assessment.grid_links import (
    BLAMES_DESTINATION,
    BLAMES_SOURCE,
    DESTINATION,
    LINK,
    SOURCE,
    GridLinks,
    JudgedTests,
)
from matrix.statistics.assessment.targets import Targets
from matrix.statistics.assessment.trend import Trend

# Returns the tests of some links in the weeks before a day.
Past = Callable[[Flags], JudgedTests]
KINDS = (LINK, SOURCE, DESTINATION)
# Tests of more links than these are not gone through at once.
LINKS_AT_ONCE = 1 << 16
# What fails does so this often. An error is so much more likely to name an end that is dead.
FAILS_OFTEN = 0.9
NAMED = math.log(7.0)
# A single test is taken to be off by so many sigma at most, and speaks for so much at most: it
# takes three to be looked at.
MOST_SIGMA, MOST_OF_ONE = 3.0, 3.5


@dataclass
class Refused:
    """Where the judge looked closer in vain in the first tests of a day: what it is asked again
    with the same tests it need not look at again."""

    tests: JudgedTests | None = None
    keys: set[tuple[Any, ...]] = field(default_factory=set)

    def of(self, today: JudgedTests) -> set[tuple[Any, ...]]:
        """Forget all that was seen with other tests; each key begins with the place of a test."""
        earlier = self.tests
        if earlier is not None and earlier is not today:
            count = min(len(earlier), len(today))
            differs = np.zeros(count, dtype=bool)
            for old, new in zip(earlier.columns, today.columns, strict=True):
                # NaN to NaN.
                differs |= np.nan_to_num(old[:count]) != np.nan_to_num(new[:count])
            same = int(differs.argmax()) if differs.any() else count
            if same < len(earlier):
                self.keys = {key for key in self.keys if key[0] < same}
        self.tests = today
        return self.keys


@dataclass(frozen=True)
class Midnight:
    """What the tests before ``begin`` (Unix ms) say: what is usual, and the evidence so far.

    ``evidence`` has that of each group of a kind for failing and for slow. ``streak`` is how many
    tests of a link failed since its last success, ``last`` when its newest test started.
    ``own_level`` is the level that tests tell where another one is expected.
    """

    begin: int
    usual: Baselines
    past: Past
    trend: Trend
    evidence: Mapping[tuple[str, str], Cusum]
    streak: Integers
    last: Integers
    targets: Targets
    own_level: Floats
    refused: Refused = field(default_factory=Refused)

    @classmethod
    def of(
        cls,
        links: GridLinks,
        past: Past,
        begin: int,
        before: Sequence[ClassCondition],
        hidden: Sequence[ClassCondition] = (),
        *,
        usual: Baselines | None = None,
        targets: Targets | None = None,
    ) -> Self:
        """Go through the tests of the past; if what is ``usual`` is given, for rates alone.

        Without ``targets`` nobody expects anything but what is usual. Rates of tests in
        ``hidden`` conditions tell nothing but failures.
        """
        count, ends = len(links), len(links.site)
        targets = targets or Targets.usual(count)
        floor = targets.has_floor
        types = (FAILING, SLOW) if usual is None else (SLOW,)
        learns, usual = usual is None, usual or Baselines.unknown(count)
        own_level = usual.level
        evidence = {
            (type_, kind): Cusum.none(count if kind == LINK else ends)
            for type_ in types
            for kind in KINDS
        }
        streak, last = np.zeros((2, count), dtype=np.int64)
        trend = Trend.unknown()
        for kinds, chosen in parts(links):
            tests = past(chosen)
            away, shift, out = influence(links, tests, before)
            unseen = influence(links, tests, hidden).away
            if learns and LINK in kinds:
                usual = usual.with_part(chosen, learn(tests, count, away | unseen))
            usual = usual.held(before)
            own_level, usual = usual.level, usual.at(targets)
            rest = tests.log_rate - usual.level[tests.link] - shift
            rest[unseen] = np.nan
            if not len(trend.started):
                # Of many links those of the first part tell it.
                of_trend = np.where(floor[tests.link], np.nan, rest)
                trend = Trend.unknown().with_tests(links, tests, of_trend)
            rest -= np.where(floor[tests.link], 0.0, trend.at(tests.started))
            for kind in kinds:
                groups = TestGroups.of(links.group(kind)[tests.link], tests.started)
                gains = {SLOW: slow_gains(rest, usual, tests, targets)}
                gains[FAILING] = failing_gains(kind, usual, tests, out)
                for type_ in types:
                    none = evidence[type_, kind]
                    evidence[type_, kind] = groups.last(groups.trace(gains[type_], none), none)
                if kind == LINK:
                    last[tests.link] = tests.started
                    streak[tests.link] = groups.streaks(~tests.ok & ~out, streak)
        return cls(begin, usual, past, trend, evidence, streak, last, targets, own_level)


def parts(links: GridLinks) -> Iterator[tuple[tuple[str, ...], Flags]]:
    """Yield links by source, and again by destination if they are too many to be taken at once."""
    every = np.ones(len(links), dtype=bool)
    if len(links) <= LINKS_AT_ONCE:
        yield KINDS, every
        return
    for kinds, place in (((LINK, SOURCE), links.source), ((DESTINATION,), links.destination)):
        ends = np.unique(place)
        for part in np.array_split(ends, -(-len(links) // LINKS_AT_ONCE)):
            yield kinds, np.isin(place, part)


class Influence(NamedTuple):
    """Of each test: whether it was made ``away`` from its baseline, in a condition of rates, by how
    much that shifts it, and whether it was made while its subject was failing (``out``)."""

    away: Flags
    shift: Floats
    out: Flags


def influence(
    links: GridLinks, tests: JudgedTests, conditions: Sequence[ClassCondition]
) -> Influence:
    away, out = np.zeros((2, len(tests)), dtype=bool)
    shift = np.zeros(len(tests))
    for each in conditions:
        bounds = slice(*tests.started.searchsorted([each.since, each.until]).tolist())
        if bounds.start == bounds.stop:
            continue
        own = links.covered(each.subject, tests.link[bounds])
        if each.type == FAILING:
            out[bounds] |= own
        else:
            away[bounds] |= own
            shift[bounds] += np.where(own, each.shift, 0.0)
    return Influence(away, shift, out)


def failing_gains(kind: str, usual: Baselines, tests: JudgedTests, out: Flags) -> Floats:
    """Return how much each test speaks for failing beyond what is usual (log likelihood ratio).

    A failure that names the other end says nothing of this one.
    """
    often = usual.failing[tests.link]
    failed = math.log(FAILS_OFTEN) - np.log(often)
    if kind != LINK:
        own = BLAMES_SOURCE if kind == SOURCE else BLAMES_DESTINATION
        failed = np.select([tests.blamed == own, tests.blamed == 0], [failed + NAMED, failed], 0.0)
    passed = math.log(1 - FAILS_OFTEN) - np.log(1 - often)
    return np.where(out, 0.0, np.where(tests.ok, passed, failed))


def slow_gains(rest: Floats, usual: Baselines, tests: JudgedTests, targets: Targets) -> Floats:
    """Return how much each success speaks for a rate that is slow for its link.

    ``rest`` is its natural log beside what is expected, NaN where nothing is.
    """
    sigma = usual.sigma[tests.link]
    noise = np.square(sigma) * (1 + 2 * usual.likeness)
    shift = targets.below[tests.link]
    off = np.maximum(rest, shift / 2 - MOST_SIGMA * sigma)
    gains = shift * (np.minimum(off, MOST_SIGMA * sigma) - shift / 2) / noise
    return np.nan_to_num(np.minimum(gains, MOST_OF_ONE))
