"""What is failing or slow in a grid, since when, and whose it is: one judge. Pure numpy.

The judge reads the tests of one size class in the order in which they started. For each link, each
source and each destination it adds up the evidence that something has begun (CUSUM, Page 1954).
Once that is enough, it asks which endpoint, site or link explains all of it, opens a condition
there, and expects the links of the condition to fail, or to be as slow, until their tests show the
end. As only the order of the tests counts, it does not matter how often it is asked: judging each
minute and judging three years at once give the same conditions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.causes.candidates import MatrixCells
from matrix.statistics.causes.causes import Cause, CauseSearch, Rules
from matrix.statistics.causes.cell_noise import CellNoise
from matrix.statistics.estimates.moderation import Prior
from matrix.statistics.estimates.student import quantile, survival

DAY_MS = 86_400_000
FAILING, SLOW, FAST = "failing", "slow", "fast"
LINK, SOURCE, DESTINATION, ENDPOINT, SITE, GRID = (
    "link", "source", "destination", "endpoint", "site", "grid",
)  # fmt: skip
NOBODY, BLAMES_SOURCE, BLAMES_DESTINATION = range(3)


@dataclass(frozen=True)
class Links:
    """Where links lead: ``source`` and ``destination`` are places of endpoints, ``site`` the number
    of the site of each endpoint."""

    source: Integers
    destination: Integers
    site: Integers

    def __len__(self) -> int:
        return len(self.source)

    def of(self, subject: Subject) -> Flags:
        """Say which links a subject has."""
        if subject.scope == GRID:
            return np.ones(len(self), dtype=bool)
        if subject.scope == SITE:
            own = self.site == subject.site
            return np.asarray(own[self.source] | own[self.destination])
        at_source = self.source == subject.source
        at_destination = self.destination == subject.destination
        if subject.scope == LINK:
            return np.asarray(at_source & at_destination)
        return np.asarray(at_source | at_destination)


class Subject(NamedTuple):
    """What a condition is of. An endpoint has its place as source and as destination."""

    scope: str
    source: int | None = None
    destination: int | None = None
    site: int | None = None


@dataclass(frozen=True)
class Tests:
    """Tests of one size class in the order in which they started (Unix ms).

    ``link`` is a place among Links; ``log_rate`` the natural log of bytes/s, NaN of a failed test;
    ``blamed`` says which end the error of a failed test names.
    """

    link: Integers
    started: Integers
    log_rate: Floats
    blamed: Integers

    def taken(self, choice: slice | Integers | Flags) -> Tests:
        return Tests(*(each[choice] for each in vars(self).values()))

    def within(self, start: int, end: int) -> Tests:
        """Return those that started from one moment (Unix ms) until another."""
        return self.taken(slice(*self.started.searchsorted([start, end]).tolist()))


@dataclass(frozen=True)
class Baselines:
    """What is usual for each link: ``level`` (log of bytes/s, NaN unknown) with its standard
    ``error``, ``sigma`` of one test, how alike tests in a row are (``likeness``, a correlation),
    and the share of tests that fail."""

    level: Floats
    error: Floats
    sigma: Floats
    likeness: float
    failing: Floats
    dof: int


# A level needs so many successes.
FEWEST = 5
# The level of a link with fewer is that of the first half of them.
SETTLED = 20
# Failures are taken for what all links say with the weight of so many tests of the link.
PRIOR_TESTS = 50.0
LEAST_FAILING, MOST_FAILING = 0.01, 0.5
LEAST_SIGMA = 0.05
NORMAL_MAD = 1.4826


def baselines(tests: Tests, links: int, left_out: Flags | None = None) -> Baselines:
    """Learn what is usual from the tests before a day; ``left_out`` are those of conditions."""
    usable = np.ones(len(tests.link), dtype=bool) if left_out is None else ~left_out
    ok = np.flatnonzero(usable & np.isfinite(tests.log_rate))
    order = ok[np.argsort(tests.link[ok], kind="stable")]
    link, logs = tests.link[order], tests.log_rate[order]
    count = np.bincount(link, minlength=links)
    # Of a young link the first tests alone: the later ones may be slow already.
    rank = ranks(link)
    early = rank < np.where(count < SETTLED, np.maximum(FEWEST, count // 2), count)[link]
    level = medians(link[early], logs[early], np.bincount(link[early], minlength=links))
    known = count >= FEWEST
    rest = logs - level[link]
    # By how much a test differs from the one before it: a level that moved counts once at most.
    steps = np.diff(logs)[link[1:] == link[:-1]] if len(logs) else logs
    of_step = link[1:][link[1:] == link[:-1]] if len(logs) else link
    step_count = np.bincount(of_step, minlength=links)
    bound = 3 * NORMAL_MAD * medians(of_step, np.abs(steps), step_count)
    steps = np.clip(steps, -bound[of_step], bound[of_step])
    squares = np.bincount(of_step, np.square(steps), minlength=links) / 2
    # Neighbouring differences share a test: they are worth two thirds of as many.
    squares, dof = squares * 2 / 3, np.maximum(step_count, 1) * 2 / 3
    if known.sum() >= 3:
        prior = Prior.of(squares[known], dof[known])
        variance, whole = prior.moderated(squares, np.where(known, dof, 1e-9))
        typical = int(np.median(whole[known]))
    else:
        variance, typical = np.full(links, 0.09), 10
    sigma = np.maximum(np.sqrt(variance), LEAST_SIGMA)
    scaled = np.clip(rest / sigma[link], -3, 3)
    sigma = sigma.copy()
    pairs = (link[1:] == link[:-1]) & known[link[1:]]
    alike = float((scaled[1:] * scaled[:-1])[pairs].mean() / max(np.square(scaled).mean(), 1e-9)) if pairs.any() else 0.0
    likeness = float(np.clip(alike, 0, 0.8))
    sigma /= math.sqrt(1 - min(likeness, 0.5))
    tested = np.bincount(tests.link[usable], minlength=links)
    failed = np.bincount(tests.link[usable & ~np.isfinite(tests.log_rate)], minlength=links)
    of_all = float(np.clip(failed.sum() / max(tested.sum(), 1), LEAST_FAILING, 0.1))
    failing = (failed + PRIOR_TESTS * of_all) / (tested + PRIOR_TESTS)
    error = 1.2533 * sigma * np.sqrt((1 + 2 * likeness) / np.maximum(count, 1))
    return Baselines(
        np.where(known, level, np.nan), error, sigma, likeness,
        np.clip(failing, LEAST_FAILING, MOST_FAILING), max(typical, 3),
    )  # fmt: skip


def ranks(groups: Integers) -> Integers:
    """Return how many of its group come before each."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    counts = np.diff(np.append(first, len(ordered)))
    result = np.empty(len(groups), dtype=np.int64)
    result[order] = np.arange(len(ordered)) - np.repeat(first, counts)
    return result


def medians(link: Integers, values: Floats, count: Integers) -> Floats:
    """Return the median of the values of each link, NaN for none; sorted by link."""
    order = np.lexsort((values, link))
    first = np.cumsum(count) - count
    low, high = first + np.maximum(count - 1, 0) // 2, first + count // 2
    there = count > 0
    result = np.full(len(count), np.nan)
    ordered = values[order]
    result[there] = (ordered[low[there]] + ordered[high[there]]) / 2
    return result


@dataclass
class Condition:
    """Something that is wrong, from when until when; times in Unix ms.

    It began between ``since_low`` and ``since_high``, most likely at ``since``. ``factor`` is the
    rate since over the baseline with its interval of 95 %. ``links`` are its members.
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

    @property
    def subject(self) -> Subject:
        return Subject(self.scope, self.source, self.destination, self.site)


# In a condition tests fail this often; what is slow is at most at this part of its baseline.
FAILS_OFTEN = 0.9
SLOWEST_WELL = 2 / 3
SLOW_SHIFT = math.log(SLOWEST_WELL)
# So far off its level, in sigma, a single test counts at most.
MOST_SIGMA = 3.0
# A named end: what the error says is so much more likely of an end that is dead.
NAMED = math.log(7.0)
# Evidence (log likelihood ratios) at which the judge looks closer.
LOOK = 8.0
FAILURES_IN_A_ROW = 3
SURE_FAILING = math.log(1e8)
END_OF_LINK, END_OF_MANY, END_OF_SLOW = 4.0, 8.0, 9.0
FEWEST_TESTS = 5
SHARED, FEWEST_LINKS, FEWEST_VOTES = 0.6, 3, 2
MOST_OF_GRID = 1 / 3
BACK_DAYS = 28
# How often something of a kind may be named by chance, each time that the judge looks.
SEEN = dict(source=0.02, destination=0.02, both=5e-3, site=5e-3, link=0.3)
SURE = 0.03
TESTS_A_LOOK = 12
# Tests of a day resemble each other: a mean of more than so many is as uncertain as they make it.
MOST_ALIKE = 8
SAME_MS, SAME_SHIFT = DAY_MS // 2, math.log(1.5)
REFINED_MS = 3 * DAY_MS
# So much a single test says at most: it takes three to look.
MOST_OF_ONE = 3.5
ENDS_WANDER = 0.08
WELL_BELOW = 0.72
WORSE = 7.35
BIG = 1e7
NEVER = 1 << 62
TREND_TESTS, TREND_SITES = 61, 5


class Traces(NamedTuple):
    """Of each test: the evidence that something has begun, and the place of the test since which."""

    evidence: Floats
    onset: Integers


@dataclass(frozen=True)
class Groups:
    """Tests by what they are of: places of tests in the order of group and time."""

    group: Integers
    order: Integers
    first: Flags

    @classmethod
    def of(cls, group: Integers) -> Groups:
        order = np.argsort(group, kind="stable")
        ordered = group[order]
        return cls(group, order, np.diff(ordered, prepend=-1) != 0)

    def trace(self, gains: Floats) -> Traces:
        """Add the gains of each group up, from its lowest point on."""
        ordered = gains[self.order]
        total = np.cumsum(ordered)
        before = total - ordered
        rank = np.cumsum(self.first) * BIG
        lowest = np.minimum.accumulate(before - rank) + rank
        is_lowest = np.diff(lowest - rank, prepend=np.inf) < 0
        place = np.maximum.accumulate(np.where(is_lowest, np.arange(len(total)), 0))
        evidence, onset = np.empty(len(total)), np.empty(len(total), dtype=np.int64)
        evidence[self.order] = total - lowest
        onset[self.order] = self.order[place]
        return Traces(evidence, onset)

    def streaks(self, flags: Flags) -> Integers:
        """Return how many tests of its group in a row are flagged, up to each."""
        ordered = flags[self.order]
        place = np.arange(len(ordered))
        last_off = np.maximum.accumulate(np.where(~ordered, place, -1))
        first = np.maximum.accumulate(np.where(self.first, place, 0))
        run = np.where(ordered, place - np.maximum(last_off, first - 1), 0)
        result = np.empty(len(run), dtype=np.int64)
        result[self.order] = run
        return result


class Alarm(NamedTuple):
    """Of which test on the judge has to look closer, at what, and since which test."""

    at: int
    type: str
    kind: str
    group: int
    onset: int
    evidence: float


class Judge:
    """Judges the tests from ``begin`` (Unix ms) on; those before it are what led to them.

    ``opened`` are the conditions that were open then. ``run()`` returns all that were open or began
    since, those given included.
    """

    def __init__(
        self,
        links: Links,
        usual: Baselines,
        tests: Tests,
        begin: int,
        opened: Sequence[Condition] = (),
        *,
        rates_only: bool = False,
    ) -> None:
        self.links, self.usual, self.tests, self.begin = links, usual, tests, begin
        self.rates_only = rates_only
        self.conditions = [replace(each) for each in opened]
        self._tests_of: dict[Subject, Integers] = {}
        self._traces: list[tuple[str, str, Groups, Traces]] = []
        self.ok = np.isfinite(tests.log_rate)
        link = tests.link
        self.kinds = {
            LINK: Groups.of(link),
            SOURCE: Groups.of(links.source[link]),
            DESTINATION: Groups.of(links.destination[link]),
        }
        self.sigma = usual.sigma[link]
        rest = tests.log_rate - self.levels_from_first_tests()[link]
        self.known = np.isfinite(rest) & ~self.teaches
        self.rest = np.where(self.known | self.teaches & np.isfinite(rest), rest, 0.0)
        self.in_others = np.zeros(len(rest), dtype=bool)
        self.follow_trend()
        # What of a subject has been looked at in vain: it takes more evidence to look again.
        self.limits: dict[tuple[str, str, int], float] = {}

    def levels_from_first_tests(self) -> Floats:
        """Return the level of each link; of a new one that of its first tests, which then only
        ``teaches``."""
        tests, level = self.tests, self.usual.level.copy()
        new = ~np.isfinite(level)
        place = np.flatnonzero(self.ok & new[tests.link])
        rank = ranks(tests.link[place])
        first = place[rank < FEWEST]
        count = np.bincount(tests.link[first], minlength=len(level))
        link = tests.link[first]
        order = np.argsort(link, kind="stable")
        middle = medians(link[order], tests.log_rate[first][order], count)
        learned = new & (count >= FEWEST)
        level[learned] = middle[learned]
        self.teaches = np.zeros(len(self.ok), dtype=bool)
        self.teaches[first] = True
        self.usual.error[learned] = 1.2533 * self.usual.sigma[learned] * math.sqrt(
            (1 + 2 * self.usual.likeness) / FEWEST
        )
        return level

    def follow(self) -> None:
        """Take note of what has become of the conditions."""
        self._traces = []
        self.follow_trend()

    def follow_trend(self) -> None:
        """Find the level of all links together at each test, by the tests before it: 0 where
        there are too few sites to tell it from what one of them does."""
        trend = self.trend = np.zeros(len(self.rest))
        shift, _ = self.explained()
        known = np.flatnonzero(self.known)
        sites = len(np.unique(self.links.site[self.links.source]))
        if sites < TREND_SITES or len(known) < TREND_TESTS:
            return
        values = np.clip((self.rest - shift)[known], -2, 2)
        windows = np.lib.stride_tricks.sliding_window_view(values, TREND_TESTS)[::6]
        at = np.arange(TREND_TESTS - 1, len(values), 6)
        middles = np.median(windows, axis=1)
        every = np.concatenate([[0.0], middles])[np.searchsorted(at, np.arange(len(values)), side="right")]
        trend[known] = every

    # What of the tests is explained already.

    def explained(self, without: Sequence[Condition] = ()) -> tuple[Floats, Flags]:
        """Return by how much tests are slower by open conditions, and which fail because of one."""
        shift, out = np.zeros(len(self.ok)), np.zeros(len(self.ok), dtype=bool)
        self.in_others = np.zeros(len(self.ok), dtype=bool)
        for condition in self.conditions:
            if any(condition is each for each in without):
                continue
            own = self.during(condition)
            if condition.type == FAILING:
                out[own] = True
            else:
                shift[own] += condition.shift
                self.in_others[own] = True
        return shift, out

    def during(self, condition: Condition) -> Integers:
        """Return the tests of the links of a condition, from its beginning to its end."""
        own, started = self.tests_of(condition.subject), self.tests.started
        ends = [condition.since, NEVER if condition.ended_at is None else condition.ended_at]
        return own[slice(*started[own].searchsorted(ends).tolist())]

    def tests_of(self, subject: Subject) -> Integers:
        """Return the tests of the links of a subject, in the order of time."""
        if subject not in self._tests_of:
            self._tests_of[subject] = np.flatnonzero(self.links.of(subject)[self.tests.link])
        return self._tests_of[subject]

    def failing_gains(self, kind: str, out: Flags) -> Floats:
        """Return how much each test speaks for failing beyond what is usual."""
        usual = self.usual.failing[self.tests.link]
        failed = math.log(FAILS_OFTEN) - np.log(usual)
        if kind != LINK:
            own = BLAMES_SOURCE if kind == SOURCE else BLAMES_DESTINATION
            blamed = self.tests.blamed
            failed = np.where(blamed == own, failed + NAMED, np.where(blamed == 0, failed, 0.0))
        passed = math.log(1 - FAILS_OFTEN) - np.log(1 - usual)
        return np.where(out, 0.0, np.where(self.ok, passed, failed))

    def slow_gains(self, shift: Floats) -> Floats:
        """Return how much each success speaks for a rate below two thirds of its level."""
        noise = np.square(self.sigma) * (1 + 2 * self.usual.likeness)
        bound = MOST_SIGMA * self.sigma
        rest = np.clip(self.rest - self.trend - shift, SLOW_SHIFT / 2 - bound, bound)
        gains = SLOW_SHIFT * (rest - SLOW_SHIFT / 2) / noise
        return np.where(self.known, np.minimum(gains, MOST_OF_ONE), 0.0)

    # The judge looks from one thing that shows to the next.

    def run(self) -> list[Condition]:
        moment = self.begin - 1
        while True:
            alarm = self.next_alarm(moment)
            end = self.next_end()
            until = min(
                end[1] if end else 1 << 62, int(self.tests.started[alarm.at]) if alarm else 1 << 62
            )
            if (check := self.next_check(until)) is not None:
                self.confirm_slow(check)
                continue
            if end and (alarm is None or end[1] <= self.tests.started[alarm.at]):
                condition, _, since = end
                condition.ended_at = since
                self.follow()
                continue
            if alarm is None:
                break
            moment = max(moment, int(self.tests.started[alarm.at]) - 1)
            handled = self.see_failing(alarm) if alarm.type == FAILING else self.see_slow(alarm)
            if handled:
                self.follow()
            else:
                self.raise_limit(alarm)
        for condition in self.conditions:
            self.describe(condition)
        # What was never sure, and is not borne out any more, has not been.
        return [
            each for each in self.conditions
            if each.type != SLOW or each.confirmed_at is not None or each.factor <= WELL_BELOW
        ]  # fmt: skip

    def next_check(self, until: int) -> int | None:
        """Return when it is next to be asked whether unconfirmed conditions are beyond chance."""
        first: int | None = None
        for each in self.conditions:
            if each.type == SLOW and each.confirmed_at is None and each.ended_at is None:
                moments = self.tests.started[[*self.during(each)]]
                due = moments[[count - 1 for count in checkpoints_upto(len(moments))]]
                after = max(each.checked_at, each.seen_at - 1, self.begin - 1)
                due = due[(due > after) & (due < until)]
                if due.size and (first is None or due[0] < first):
                    first = int(due[0])
        return first

    def confirm_slow(self, moment: int) -> None:
        """Confirm what is beyond chance among all subjects, at a false discovery rate."""
        shift_of_all, _ = self.explained()
        open_ = [
            each for each in self.conditions
            if each.type == SLOW and each.ended_at is None and each.since <= moment
        ]  # fmt: skip
        chances = [self.chance_of(each, moment) for each in open_]
        for each in open_:
            each.checked_at = moment
        order = np.argsort(chances)
        passed = [rank for rank, place in enumerate(order, start=1) if chances[place] <= SURE * rank]
        for place in order[: max(passed, default=0)].tolist():
            if open_[place].confirmed_at is None:
                open_[place].confirmed_at = moment

    def chance_of(self, condition: Condition, moment: int) -> float:
        """Return how many subjects of its kind would look as slow by chance until a moment."""
        shift, _ = self.explained(without=[condition])
        tests = self.tests
        places = self.during(condition)
        places = places[self.known[places] & (tests.started[places] <= moment)]
        if len(places) < FEWEST_TESTS:
            return 1e9
        mean, error, _ = self.means(places, shift)
        there = np.isfinite(mean)
        if not there.any():
            return 1e9
        weight = 1 / np.square(error[there])
        pooled = float((weight * mean[there]).sum() / weight.sum())
        if pooled > SLOW_SHIFT * 0.9:
            return 1e9
        is_link = condition.scope == LINK
        scatter = math.sqrt(1 / weight.sum() + (0.0 if is_link else ENDS_WANDER**2))
        subjects = len(self.links) if is_link else 2 * len(self.links.site)
        # Each test of the subject might have been the first.
        looks = max((len(self.tests_of(condition.subject)) - 12) / 4, 1.0)
        return float(survival(-pooled / scatter, self.usual.dof + there.sum() - 1)) * subjects * looks

    def raise_limit(self, alarm: Alarm) -> None:
        self.limits[alarm.type, alarm.kind, alarm.group] = 1.15 * alarm.evidence

    def traces(self) -> list[tuple[str, str, Groups, Traces]]:
        """Return the evidence for failing and for slow of every link, source and destination."""
        if not self._traces:
            shift, out = self.explained()
            slow = self.slow_gains(shift)
            for kind, groups in self.kinds.items():
                self._traces.append((SLOW, kind, groups, groups.trace(slow)))
                if self.rates_only:
                    continue
                failing = groups.trace(self.failing_gains(kind, out))
                if kind == LINK:
                    in_a_row = groups.streaks(~self.ok & ~out) >= FAILURES_IN_A_ROW
                    evidence = np.where(in_a_row, np.maximum(failing.evidence, LOOK), 0.0)
                    failing = Traces(evidence, failing.onset)
                self._traces.append((FAILING, kind, groups, failing))
        return self._traces

    def next_alarm(self, after: int) -> Alarm | None:
        """Return the first test behind a moment with which something shows."""
        first: Alarm | None = None
        start = int(self.tests.started.searchsorted(after, side="right"))
        for type_, kind, groups, trace in self.traces():
            there = start + np.flatnonzero(trace.evidence[start:] >= LOOK)
            for at in there.tolist():
                if first is not None and at >= first.at:
                    break
                group = int(groups.group[at])
                if trace.evidence[at] >= self.limits.get((type_, kind, group), LOOK):
                    first = Alarm(at, type_, kind, group, int(trace.onset[at]), float(trace.evidence[at]))
                    break
        return first

    def next_end(self) -> tuple[Condition, int, int] | None:
        """Return the open condition that is over first, when that shows, and since when."""
        best: tuple[Condition, int, int] | None = None
        for condition in self.conditions:
            if condition.ended_at is None and (end := self.end_of(condition)):
                if best is None or end[0] < best[1]:
                    best = condition, *end
        return best

    def end_of(self, condition: Condition) -> tuple[int, int] | None:
        own = self.during(condition)
        if not own.size:
            return None
        if condition.type == FAILING:
            gains = -self.failing_gains(LINK, np.zeros(len(self.ok), dtype=bool))[own]
            limit = END_OF_LINK if condition.scope == LINK else END_OF_MANY
        else:
            shift, _ = self.explained(without=[condition])
            noise = np.square(self.sigma) * (1 + 2 * self.usual.likeness)
            size = condition.shift
            bound = MOST_SIGMA * self.sigma
            rest = np.clip(self.rest - self.trend - shift, size - bound, bound)
            gains = np.where(self.known, size * (size / 2 - rest) / noise, 0.0)[own]
            limit = END_OF_SLOW
        trace = Groups(own, np.arange(len(own)), np.arange(len(own)) == 0).trace(gains)
        over = np.flatnonzero((trace.evidence >= limit) & (self.tests.started[own] >= condition.seen_at))
        if not over.size:
            return None
        first = trace.onset[over[0]]
        return int(self.tests.started[own[over[0]]]), int(self.tests.started[own[first]])

    # Failing: which ends do the links that fail have in common?

    def see_failing(self, alarm: Alarm) -> bool:
        tests, links = self.tests, self.links
        upto = slice(0, alarm.at + 1)
        since, seen = int(tests.started[alarm.onset]), int(tests.started[alarm.at])
        own = int(tests.link[alarm.at])
        near = {int(links.source[own]), int(links.destination[own])}
        related = [
            each for each in self.conditions
            if each.type == FAILING and each.ended_at is None and each.scope in (LINK, SOURCE, DESTINATION)
            and near & {each.source, each.destination}
        ]  # fmt: skip
        _, out = self.explained(without=related)
        begin = min([since, *(each.since for each in related)])
        # Of each link: failures in a row up to now, since when, and whether it was tested since.
        groups = self.kinds[LINK]
        streak_of = np.zeros(len(links), dtype=np.int64)
        last = np.zeros(len(links), dtype=np.int64) - 1
        last[tests.link[upto]] = np.arange(alarm.at + 1)
        streak = groups.streaks(~self.ok & ~out)
        there = last >= 0
        streak_of[there] = streak[last[there]]
        bad = streak_of > 0
        recent = np.zeros(len(links), dtype=bool)
        recent[tests.link[upto][tests.started[upto] >= begin]] = True
        bad &= recent
        blamed = self.blamed_ends(upto, begin, out)
        subjects = [*self.common_ends(bad, recent, blamed, related)]
        covered = np.zeros(len(links), dtype=bool)
        for subject in subjects:
            covered |= links.of(subject)
        if alarm.kind == LINK and not covered[own] and streak_of[own] >= FAILURES_IN_A_ROW:
            subjects.append(Subject(LINK, int(links.source[own]), int(links.destination[own])))
        opened = False
        for subject in subjects:
            opened |= self.open_failing(subject, bad & links.of(subject), begin, seen)
        return opened

    def blamed_ends(self, upto: slice, begin: int, out: Flags) -> tuple[Integers, Integers]:
        """Count by endpoint the failed tests since a moment whose error names it, and by role."""
        tests = self.tests
        own = np.flatnonzero((tests.started[upto] >= begin) & ~self.ok[upto] & ~out[upto])
        link, blamed = tests.link[own], tests.blamed[own]
        ends = int(max(self.links.source.max(), self.links.destination.max())) + 1
        as_source = np.bincount(self.links.source[link[blamed == BLAMES_SOURCE]], minlength=ends)
        as_destination = np.bincount(self.links.destination[link[blamed == BLAMES_DESTINATION]], minlength=ends)
        return as_source, as_destination

    def common_ends(
        self,
        bad: Flags,
        recent: Flags,
        blamed: tuple[Integers, Integers],
        related: Sequence[Condition],
    ) -> Iterator[Subject]:
        """Yield the endpoints and sites that links that fail have in common."""
        links = self.links
        all_bad, all_recent = bad, recent
        bad, recent = bad.copy(), recent.copy()
        ends = len(blamed[0])
        named: dict[str, set[int]] = {SOURCE: set(), DESTINATION: set()}
        sites = links.site
        # Errors that name one end tell more than how many links fail.
        most = max(int(votes.max(initial=0)) for votes in blamed)
        if 2 * most < bad.sum() and self.is_of_grid(bad, recent):
            yield Subject(GRID)
            return
        while True:
            best: tuple[float, str, int] | None = None
            for kind, place, votes in (
                (SOURCE, links.source, blamed[0]), (DESTINATION, links.destination, blamed[1]),
            ):  # fmt: skip
                count = np.bincount(place[bad], minlength=ends)
                of = np.bincount(place[recent], minlength=ends)
                # Votes of errors stand for links where an endpoint has few.
                enough = (count >= FEWEST_LINKS) | (votes >= FEWEST_VOTES) & (count >= 1)
                score = np.where(enough & (count >= SHARED * of) & (count > 0), count + 0.1 * np.minimum(votes, 9), 0.0)
                at = int(score.argmax())
                if score[at] > 0 and (best is None or score[at] > best[0]):
                    best = float(score[at]), kind, at
            if best is None:
                break
            _, kind, at = best
            named[kind].add(at)
            own = (links.source if kind == SOURCE else links.destination) == at
            bad &= ~own
            recent &= ~own
        # Of an endpoint that is named, or was, few failures show that its other role fails, too.
        for kind, other, place, votes in (
            (SOURCE, DESTINATION, links.source, blamed[0]),
            (DESTINATION, SOURCE, links.destination, blamed[1]),
        ):  # fmt: skip
            for end in named[other] | {getattr(each, other) for each in related if each.scope == other}:
                own = place == end
                count, of = int((own & all_bad).sum()), int((own & all_recent).sum())
                if end not in named[kind] and count and count >= SHARED * of and (votes[end] or count >= FEWEST_LINKS):
                    named[kind].add(end)
                    named[other].add(end)
        for site in sorted({int(sites[end]) for end in named[SOURCE] | named[DESTINATION]}):
            own_ends = np.flatnonzero(sites == site).tolist()
            if len(own_ends) > 1 and all(end in named[SOURCE] | named[DESTINATION] for end in own_ends):
                yield Subject(SITE, site=site)
                for role in named.values():
                    role -= set(own_ends)
        for end in sorted(named[SOURCE] | named[DESTINATION]):
            if end in named[SOURCE] and end in named[DESTINATION]:
                yield Subject(ENDPOINT, end, end)
            elif end in named[SOURCE]:
                yield Subject(SOURCE, source=end)
            else:
                yield Subject(DESTINATION, destination=end)

    def is_of_grid(self, bad: Flags, recent: Flags) -> bool:
        links = self.links
        flagged = bad & recent
        sites = np.unique(links.site)
        if len(sites) < 4 or flagged.sum() < max(MOST_OF_GRID * recent.sum(), FEWEST_LINKS):
            return False
        by_site = np.bincount(links.site[links.source[flagged]], minlength=sites.max() + 1)
        by_site = by_site + np.bincount(links.site[links.destination[flagged]], minlength=sites.max() + 1)
        worst = int(by_site.argmax())
        others = recent & (links.site[links.source] != worst) & (links.site[links.destination] != worst)
        for place in (links.source, links.destination):
            of = np.bincount(place[others])
            share = np.bincount(place[others & bad], minlength=len(of))[of > 0] / of[of > 0]
            if not share.size or np.median(share) < MOST_OF_GRID:
                return False
        return True

    def open_failing(self, subject: Subject, members: Flags, begin: int, seen: int) -> bool:
        links = self.links
        own = links.of(subject)
        inside = [
            each for each in self.conditions
            if each.type == FAILING and each.ended_at is None and not (links.of(each.subject) & ~own).any()
        ]  # fmt: skip
        covering = [
            each for each in self.conditions
            if each.type == FAILING and each.ended_at is None and each not in inside and not (own & ~links.of(each.subject)).any()
        ]  # fmt: skip
        if covering or any(each.subject == subject for each in inside):
            return False
        failed = np.flatnonzero(own[self.tests.link] & ~self.ok & (self.tests.started >= begin))
        since = int(self.tests.started[failed[0]]) if failed.size else begin
        since = min([since, *(each.since for each in inside)])
        seen_first = min([seen, *(each.seen_at for each in inside)])
        self.conditions = [each for each in self.conditions if not any(each is other for other in inside)]
        self.conditions.append(Condition(*subject, FAILING, seen_first, since, links=tuple(np.flatnonzero(members).tolist())))
        return True

    # Slow: which ends, site or link explains what is slower than before?

    def see_slow(self, alarm: Alarm) -> bool:
        tests, links = self.tests, self.links
        since, seen = int(tests.started[alarm.onset]), int(tests.started[alarm.at])
        young = [
            each for each in self.conditions
            if each.type == SLOW and each.ended_at is None and each.since >= since - (seen - since) - 1
        ]  # fmt: skip
        shift, _ = self.explained(without=young)
        changes, errors, count = self.changes_since(since, alarm.at + 1, shift)
        causes = name_slow(changes, errors, self.usual.dof, links)
        slow = [each for each in causes if each.factor <= SLOWEST_WELL and each.p <= 1.0]
        opened = False
        for cause in slow:
            subject = subject_of(cause, links)
            opened |= self.open_slow(subject, cause, since, seen, young)
        return opened

    def changes_since(self, since: int, past: int, shift: Floats) -> tuple[Floats, Floats, Integers]:
        """Return by link the mean of its tests since a moment, its standard error, and their number."""
        tests = self.tests
        own = np.flatnonzero((tests.started[:past] >= since) & self.known[:past])
        return self.means(own, shift)

    def means(self, own: Integers, shift: Floats) -> tuple[Floats, Floats, Integers]:
        usual, link = self.usual, self.tests.link[own]
        bound = 4 * self.sigma[own]
        left = self.rest - self.trend - shift
        rest = left[own]
        count = np.bincount(link, minlength=len(self.links))
        middle = np.bincount(link, rest, minlength=len(self.links)) / np.maximum(count, 1)
        rest = np.clip(rest, middle[link] - bound, middle[link] + bound)
        mean = np.bincount(link, rest, minlength=len(self.links)) / np.maximum(count, 1)
        alike = 1 + (np.maximum(count, 1) - 1) * usual.likeness
        alike = np.minimum(alike, 1 + MOST_ALIKE * usual.likeness)
        # The level before is that of the tests before the first of these.
        first = self.tests.started[own[0]] if own.size else 0
        upto = int(self.tests.started.searchsorted(first))
        usable = (self.known[:upto] | self.teaches[:upto]) & ~self.in_others[:upto]
        before = np.flatnonzero(usable & (count > 0)[self.tests.link[:upto]])
        of = self.tests.link[before]
        order = np.argsort(of, kind="stable")
        before_count = np.bincount(of, minlength=len(self.links))
        level = medians(of[order], left[before][order], before_count)
        # Of few tests a mean tells more.
        few = before_count < SETTLED
        level = np.where(few, np.bincount(of, left[before], len(level)) / np.maximum(before_count, 1), level)
        error = np.sqrt(
            np.square(usual.sigma)
            * (alike / np.maximum(count, 1) + np.where(few, 1, 1.571) * (1 + 2 * usual.likeness) / np.maximum(before_count, 1))
        )
        mean = np.where((count > 0) & (before_count >= FEWEST), mean - level, np.nan)
        return mean, error, count

    def open_slow(self, subject: Subject, cause: Cause, since: int, seen: int, young: Sequence[Condition]) -> bool:
        links = self.links
        own = links.of(subject)
        same = [each for each in self.conditions if each.type == SLOW and each.ended_at is None and each.subject == subject]
        if same:
            return False
        shift = math.log(cause.factor)
        if subject.scope in (SOURCE, DESTINATION):
            end = subject.source if subject.scope == SOURCE else subject.destination
            for each in self.conditions:
                is_other = each.scope in (SOURCE, DESTINATION) and each.scope != subject.scope and end in (each.source, each.destination)
                if each.type == SLOW and each.ended_at is None and is_other and abs(each.since - since) <= SAME_MS and abs(each.shift - shift) <= SAME_SHIFT:
                    subject, shift = Subject(ENDPOINT, end, end), (shift + each.shift) / 2
                    own, young = links.of(subject), [*young, each]
                    break
        inside = [each for each in young if not (links.of(each.subject) & ~own).any()]
        condition = Condition(*subject, SLOW, min([seen, *(each.seen_at for each in inside)]), since, shift=shift, links=tuple(np.flatnonzero(own).tolist()))
        before, self.conditions = self.conditions, [
            *(each for each in self.conditions if not any(each is other for other in inside)),
            condition,
        ]
        self.refine(condition)
        if not condition.factor <= WELL_BELOW:
            self.conditions = before
            return False
        return True

    def refine(self, condition: Condition) -> None:
        """Find the beginning, with an interval, and the factor of what is slow, by all its tests."""
        tests = self.tests
        shift, _ = self.explained(without=[condition])
        until = min(condition.seen_at + REFINED_MS, condition.ended_at or NEVER)
        others = [
            each.ended_at for each in self.conditions
            if each is not condition and each.type == SLOW and each.subject == condition.subject and each.ended_at and each.ended_at <= condition.since
        ]  # fmt: skip
        places = self.tests_of(condition.subject)
        places = places[slice(*tests.started[places].searchsorted([max(others, default=0), until]).tolist())]
        places = places[self.known[places]]
        if not places.size:
            return
        # Twice: with the factor the beginning moves.
        for _ in range(3):
            rest = (self.rest - self.trend - shift)[places]
            noise = np.square(self.sigma[places]) * (1 + 2 * self.usual.likeness)
            size = condition.shift
            bound = MOST_SIGMA * self.sigma[places]
            clipped = np.clip(rest, size - bound, bound)
            gains = size * (clipped - size / 2) / noise
            # Of a beginning at each test: what speaks for it from there on.
            after = np.cumsum(gains[::-1])[::-1]
            reach = np.searchsorted(tests.started[places], condition.seen_at, side="right")
            best = int(after[: max(reach, 1)].argmax())
            fits = np.flatnonzero(2 * (after[best] - after[: max(reach, 1)]) <= WORSE)
            first, last = int(fits[0]), int(fits[-1])
            condition.since = int(tests.started[places[best]])
            condition.since_low = int(tests.started[places[first - 1]]) if first else condition.since
            condition.since_high = int(tests.started[places[last]])
            mean, error, count = self.means(places[best:], shift)
            there = np.flatnonzero(np.isfinite(mean))
            factor = combined(mean[there], error[there], self.usual.dof)
            if not math.isfinite(factor[0]) or factor[0] >= 0:
                break
            condition.shift = factor[0]
        low, high = factor[0] - factor[1], factor[0] + factor[1]
        condition.factor, condition.factor_low, condition.factor_high = map(math.exp, (factor[0], low, high))
        condition.links = tuple(there[mean[there] <= condition.shift / 2].tolist())
        since = self.during(condition)
        condition.tests, condition.failed = len(since), int((~self.ok[since]).sum())

    def describe(self, condition: Condition) -> None:
        """Fill in what all tests say of a condition."""
        if condition.type == SLOW:
            self.refine(condition)
            return
        tests = self.tests
        own = self.links.of(condition.subject)[tests.link]
        during = self.during(condition)
        if not during.size:
            return
        failed = during[~self.ok[during]]
        condition.tests, condition.failed = len(during), len(failed)
        condition.links = tuple(np.unique(tests.link[failed]).tolist())
        members = np.zeros(len(self.links), dtype=bool)
        members[list(condition.links)] = True
        before = np.flatnonzero(members[tests.link] & own & self.ok & (tests.started < condition.since))
        condition.since_high = condition.since
        condition.since_low = int(tests.started[before[-1]]) if before.size else condition.since
        if condition.confirmed_at is None and len(failed) >= FEWEST_TESTS:
            kind = condition.scope if condition.scope in (SOURCE, DESTINATION) else LINK
            gains = self.failing_gains(kind, np.zeros(len(self.ok), dtype=bool))
            if condition.scope in (ENDPOINT, SITE):
                named = self.tests.blamed > 0
                gains = np.where(named & ~self.ok, gains + NAMED, gains)
            total = np.cumsum(gains[during])
            failures = np.cumsum(~self.ok[during])
            limit = SURE_FAILING if condition.scope == LINK else 14.0
            sure = np.flatnonzero((total >= limit) & (failures >= FEWEST_TESTS))
            if sure.size:
                condition.confirmed_at = int(tests.started[during[sure[0]]])


def checkpoints_upto(count: int) -> Iterator[int]:
    """Yield the numbers of tests at which it is asked whether something is sure."""
    upto = FEWEST_TESTS
    while upto <= count:
        yield upto
        upto += max(1, upto // 6)


def combined(mean: Floats, error: Floats, dof: int) -> tuple[float, float]:
    """Return the mean change of links, and how far its interval of 95 % reaches to each side."""
    if not mean.size:
        return math.nan, math.nan
    weight = 1 / np.square(error)
    pooled = float((weight * mean).sum() / weight.sum())
    expected = math.sqrt(1 / weight.sum())
    if len(mean) > 2:
        square = float((weight * np.square(mean - pooled)).sum()) / (len(mean) - 1)
        expected *= math.sqrt(max(square, 0.8))
        return pooled, expected * float(quantile(0.975, len(mean) - 1))
    return pooled, expected * float(quantile(0.975, dof))


def name_slow(changes: Floats, errors: Floats, dof: int, links: Links) -> list[Cause]:
    """Return the ends, sites and links that explain changes beyond chance, slower ones alone."""
    ends = len(links.site)
    matrix, scatter = np.full((2, ends, ends), np.nan)
    matrix[links.source, links.destination] = changes
    scatter[links.source, links.destination] = errors
    is_known = np.isfinite(matrix) & (scatter > 0)
    cells = MatrixCells.of(is_known, None, [f"{site:06}" for site in links.site])
    if len(cells) < 4:
        return []
    scatter = np.where(is_known, scatter, np.nan)
    noise = CellNoise.of_history(scatter, (matrix / scatter)[None], cells.site_of_row, cells.site_of_column)
    search = CauseSearch(matrix[cells.row, cells.column], cells, noise, Rules(SEEN, slower_only=True, known_dof=dof, after_the_first=1.0))
    search.run()
    return [cause for cause, _ in search.causes() if cause.factor < 1]


def subject_of(cause: Cause, links: Links) -> Subject:
    if cause.kind == "site":
        end = cause.row if cause.row is not None else cause.column
        return Subject(SITE, site=int(links.site[end]))
    if cause.kind == "both":
        return Subject(ENDPOINT, cause.row, cause.row)
    return Subject(cause.kind, cause.row, cause.column)


def judge_day(
    links: Links, tests: Tests, begin: int, end: int, before: Sequence[Condition]
) -> list[Condition]:
    """Judge the tests from ``begin`` (a UTC midnight, Unix ms) until ``end``.

    ``tests`` are those of the 28 days before, too; ``before`` the conditions that were open at
    ``begin`` or ended in these days. Return them as they are at the end, and those that began.
    """
    past = tests.within(begin - BACK_DAYS * DAY_MS, begin)
    out = np.zeros(len(past.link), dtype=bool)
    for each in before:
        if each.type == SLOW:
            own = links.of(each.subject)[past.link] & (past.started >= each.since)
            out |= own & (past.started < (each.ended_at or NEVER))
    usual = baselines(past, len(links), out)
    window = tests.within(begin - BACK_DAYS * DAY_MS, end)
    found = Judge(links, usual, window, begin, [each for each in before if each.type != FAST]).run()
    # What is fast is slow with its rates upside down, where nothing else is the matter.
    rates = -window.log_rate
    for each in found:
        own = links.of(each.subject)[window.link] & (window.started >= each.since)
        rates[own & (window.started < (each.ended_at or NEVER))] = np.nan
    fast = Judge(
        links,
        replace(usual, level=-usual.level),
        replace(window, log_rate=rates),
        begin,
        [turned(each, SLOW) for each in before if each.type == FAST],
        rates_only=True,
    ).run()
    return [*found, *(turned(each, FAST) for each in fast)]


def turned(condition: Condition, type_: str) -> Condition:
    """Return a condition with its rates upside down."""
    return replace(
        condition,
        type=type_,
        shift=-condition.shift,
        factor=1 / condition.factor,
        factor_low=1 / condition.factor_high,
        factor_high=1 / condition.factor_low,
    )


@dataclass
class Merged:
    """One condition of one or several size classes: ``parts`` by the name of the class."""

    parts: list[tuple[str, Condition]]

    @property
    def main(self) -> Condition:
        """Return the part of the largest subject; of several, what was seen first."""
        return min((part for _, part in self.parts), key=lambda part: (-SIZES[part.scope], part.seen_at))

    def joins(self, other: Condition, links: Links) -> bool:
        """Say whether a condition of another class is the same, or a part of it."""
        main = self.main
        if other.type != main.type:
            return False
        if (main.ended_at or NEVER) < other.since or (other.ended_at or NEVER) < main.since:
            return False
        if other.subject == main.subject:
            return True
        inside = not (links.of(other.subject) & ~links.of(main.subject)).any()
        near = abs(other.since - main.since) <= SAME_MS or (
            other.since_low <= main.since_high and main.since_low <= other.since_high
        )
        return inside and near

    def condition(self) -> Condition:
        """Return what all classes say together."""
        parts = [part for _, part in self.parts]
        main = self.main
        low, high = max(part.since_low for part in parts), min(part.since_high for part in parts)
        if low > high:
            first = min(parts, key=lambda part: part.since)
            low, high = first.since_low, first.since_high
        sure = sorted(part.confirmed_at for part in parts if part.confirmed_at is not None)
        seen = sorted({name: part.seen_at for name, part in reversed(self.parts)}.values())
        if len(seen) > 1:
            sure = sorted([*sure, seen[1]])
        ends = [part.ended_at for part in parts]
        factor = {}
        rated = [part for part in parts if part.factor == part.factor and part.factor_high > part.factor_low > 0]
        if main.type != FAILING and rated:
            logs = np.log([[part.factor, part.factor_low, part.factor_high] for part in rated])
            error = np.maximum((logs[:, 2] - logs[:, 1]) / (2 * 1.96), 1e-6)
            weight = 1 / np.square(error)
            mean = float((weight * logs[:, 0]).sum() / weight.sum())
            wide = max(1.0, float((weight * np.square(logs[:, 0] - mean)).sum()) / max(len(rated) - 1, 1))
            half = 1.96 * math.sqrt(wide / weight.sum())
            factor = {"factor": math.exp(mean), "factor_low": math.exp(mean - half), "factor_high": math.exp(mean + half)}
        return replace(
            main,
            seen_at=min(part.seen_at for part in parts),
            since=min(max(min(part.since for part in parts), low), high),
            since_low=low,
            since_high=high,
            confirmed_at=sure[0] if sure else None,
            ended_at=None if None in ends else max(end for end in ends if end is not None),
            tests=sum(part.tests for part in parts),
            failed=sum(part.failed for part in parts),
            links=tuple(sorted({link for part in parts for link in part.links})),
            **factor,
        )


SIZES = {LINK: 0, SOURCE: 1, DESTINATION: 1, ENDPOINT: 2, SITE: 3, GRID: 4}


def together(by_class: Mapping[str, Sequence[Condition]], links: Links) -> list[Merged]:
    """Make one condition of what several size classes say of the same, or of a part of it."""
    every = [(name, each) for name, conditions in by_class.items() for each in conditions]
    merged: list[Merged] = []
    for name, each in sorted(every, key=lambda pair: (-SIZES[pair[1].scope], pair[1].since)):
        for other in merged:
            if other.joins(each, links):
                other.parts.append((name, each))
                break
        else:
            merged.append(Merged([(name, each)]))
    return merged


@dataclass
class History:
    """Judges day after day; ``conditions`` are all that were found."""

    links: Links
    conditions: list[Condition] = field(default_factory=list)

    def judge(self, tests: Tests, start: int, end: int) -> list[Condition]:
        """Judge the days from ``start`` (a UTC midnight) on, up to ``end`` (Unix ms)."""
        for day in range(start, end, DAY_MS):
            oldest = day - BACK_DAYS * DAY_MS
            kept = [each for each in self.conditions if each.ended_at and each.ended_at < oldest]
            recent = [each for each in self.conditions if not each.ended_at or each.ended_at >= oldest]
            found = judge_day(self.links, tests, day, min(day + DAY_MS, end), recent)
            self.conditions = [*kept, *found]
        return self.conditions
