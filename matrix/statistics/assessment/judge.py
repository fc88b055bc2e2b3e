"""What is failing, slow or fast in a grid, since when, and whose it is: one judge. Pure numpy.

The judge reads the tests of one size class in the order in which they started. For each link, each
source and each destination it adds up the evidence that something has begun. Once that is enough,
it asks which endpoint, site or link explains all of it, opens a condition there, and from then on
expects the links of the condition to fail, or to be as slow, until their tests show the end. As
only the order of tests counts, it does not matter how often the judge is asked.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers, ranks
from matrix.statistics.assessment.baselines import FEWEST, SETTLED, medians
from matrix.statistics.assessment.common_ends import common_ends
from matrix.statistics.assessment.conditions import FAILING, SLOW, ClassCondition
from matrix.statistics.assessment.evidence import Cusum, TestGroups
from matrix.statistics.assessment.grid_links import (
    BLAMES_DESTINATION,
    BLAMES_SOURCE,
    DAY_MS,
    DESTINATION,
    ENDPOINT,
    GRID,
    LINK,
    NEVER,
    SITE,
    SOURCE,
    GridLinks,
    JudgedTests,
    Subject,
)
from matrix.statistics.assessment.midnight import (
    KINDS,
    MOST_OF_ONE,
    MOST_SIGMA,
    NAMED,
    Midnight,
    failing_gains,
    influence,
    slow_gains,
)
from matrix.statistics.assessment.slow_ends import Changes, name_slow
from matrix.statistics.estimates.student import one_quantile, two_sided_of_many

# So many days before a day say what is usual, and are looked back on.
BACK_DAYS = 28
# Cusum at which the judge looks closer; where it looked in vain, it waits for so much more.
LOOK, LOOK_AGAIN = 8.0, 1.15
# Cusum for the end of a condition.
END_OF_LINK, END_OF_MANY, END_OF_SLOW = 4.0, 8.0, 9.0
# Failing is confirmed by so much evidence, slow at a rate of false discoveries; by so many tests.
SURE_OF_LINK, SURE_OF_MANY, FALSE_DISCOVERIES = math.log(1e8), 14.0, 0.01
FEWEST_TESTS = 5
# Slow is listed, as unconfirmed, at this rate; both types by so many tests.
FALSE_IN_LISTS, FEWEST_LISTED = 0.07, 3
# A condition of rates is opened up to so much above what is slow, and below this factor.
OPENS_ABOVE, OPENS_BELOW_ALWAYS = 1.08, 0.97
# The rates of an endpoint wander by this, in both directions alike, and those of a link.
ENDS_WANDER, LINKS_WANDER = 0.08, 0.04
# Of a link with few tests it is asked whether two samples differ. So many must have been made
# before the change; their days differ by more than is known of them; and the change may have begun
# at about so many of the tests.
FEWEST_BEFORE, DAYS_WANDER, BEGINNINGS = 4, 0.08, 3
# What is slow and not confirmed so long after it was seen is not followed any further.
UNSURE_MS = 7 * DAY_MS
# After so many tests of a subject, each further one may be the first of a change by chance.
FREE_TESTS, TESTS_A_LOOK = 12, 4
LOOKS_A_TEST = 6.0
# Tests of a day resemble each other: a mean of more than so many is as uncertain as of these.
MOST_ALIKE = 8
# Both directions of an endpoint are one condition if they began so near and are as slow.
SAME_MS, SAME_SHIFT = DAY_MS // 2, math.log(1.5)
SAME_SITE_MS = DAY_MS // 8
# So long after it was seen, the beginning and the factor of a condition stand.
REFINED_MS = 3 * DAY_MS
# So long after it began, its tests are counted anew; later each day adds its own.
COUNTED_MS = (BACK_DAYS - 3) * DAY_MS
# A beginning is within the interval of 95 % as long as it is not less likely than this (Hansen
# 2000), as twice the logarithm.
WORSE = 7.35
OUTLYING = 4.0
# So many tests tell a level that is given.
CERTAIN = 10**6
# Of more links than these, those of the ends concerned are looked at, and a part of the others.
MOST_LINKS = 4000


class Alarm(NamedTuple):
    """Of which test today the judge has to look closer: at what, and since when."""

    at: int
    type: str
    kind: str
    group: int
    since: int
    evidence: float


class Rates(NamedTuple):
    """Tests of some links: ``rest`` is how far each is from what is expected without the
    condition in question (a natural log), ``is_known`` says of which that is so, and ``usable``
    which may tell the level before."""

    tests: JudgedTests
    rest: Floats
    is_known: Flags
    usable: Flags


class Judge:
    """Judges the tests of a day (``today``, up to now) after those of the days before.

    ``before`` are the conditions that were open at midnight or ended lately. ``run()`` returns them
    as they are now, and those that began.
    """

    def __init__(
        self,
        links: GridLinks,
        midnight: Midnight,
        today: JudgedTests,
        before: Sequence[ClassCondition] = (),
        hidden: Sequence[ClassCondition] = (),
        *,
        rates_only: bool = False,
    ) -> None:
        self.links, self.midnight, self.usual, self.today = links, midnight, midnight.usual, today
        self.rates_only, self.hidden, self.targets = rates_only, hidden, midnight.targets
        self.conditions = [replace(each) for each in before]
        self.groups = {
            kind: TestGroups.of(links.group(kind)[today.link], today.started) for kind in KINDS
        }
        self.limits: dict[tuple[str, str, int], float] = {}
        self.refused = midnight.refused.of(today)
        # The place of each link among those that are looked at; -1 between two looks.
        self._place = np.full(len(links), -1)
        self._whole: dict[Subject, JudgedTests] = {}
        self.learn_young()
        self.follow()

    def learn_young(self) -> None:
        """Take the first tests of links without a level for it: these tell nothing else."""
        self.level = self.usual.level.copy()
        self.taught = np.zeros(len(self.links), dtype=np.int64)
        tested = np.unique(self.today.link)
        young = tested[~np.isfinite(self.level[tested])]
        if not young.size:
            return
        chosen = np.zeros(len(self.links), dtype=bool)
        chosen[young] = True
        tests = self.midnight.past(chosen).followed_by(self.today.of_links(chosen))
        tests = tests.taken(tests.ok)
        place = young.searchsorted(tests.link)
        order = np.argsort(place, kind="stable")
        count = np.bincount(place, minlength=len(young))
        first = order[ranks(count) < FEWEST]
        level = medians(place[first], tests.log_rate[first], len(young))
        learned = count >= FEWEST
        self.level[young[learned]] = level[learned]
        np.maximum.at(self.taught, tests.link[first], tests.started[first])

    def follow(self) -> None:
        """Expect what conditions and the trend of all links say."""
        today = self.today
        _, shift, self.out = influence(self.links, today, self.conditions)
        rest = today.log_rate - self.level[today.link] - shift
        rest[today.started <= self.taught[today.link]] = np.nan
        rest[influence(self.links, today, self.hidden).away] = np.nan
        floor = self.targets.has_floor[today.link]
        of_trend = np.where(floor, np.nan, rest)
        self.trend = self.midnight.trend.with_tests(self.links, today, of_trend)
        rest -= np.where(floor, 0.0, self.trend.at(today.started))
        gains = slow_gains(rest, self.usual, today, self.targets)
        traces = [(SLOW, kind, self.trace(SLOW, kind, gains)) for kind in KINDS]
        if not self.rates_only:
            self.streaks = self.groups[LINK].streaks(~today.ok & ~self.out, self.midnight.streak)
            for kind in KINDS:
                gains = failing_gains(kind, self.usual, today, self.out)
                amount, since = self.trace(FAILING, kind, gains)
                if kind == LINK:
                    in_a_row = self.streaks >= self.targets.failures[today.link]
                    amount = np.where(in_a_row, np.maximum(amount, LOOK), 0.0)
                traces.append((FAILING, kind, Cusum(amount, since)))
        # Where something shows, in the order of the tests.
        self._alarms = sorted(
            (
                Alarm(at, type_, kind, group, since, amount)
                for type_, kind, evidence in traces
                for shows in [np.flatnonzero(evidence.amount >= LOOK)]
                for at, group, since, amount in zip(
                    shows.tolist(),
                    self.groups[kind].group[shows].tolist(),
                    evidence.since[shows].tolist(),
                    evidence.amount[shows].tolist(),
                    strict=True,
                )
            ),
            key=lambda alarm: alarm.at,
        )
        self._chances: dict[tuple[int, int], tuple[float, float]] = {}
        self.state = hash(
            tuple(
                (*each.subject, each.type, each.since, each.until, each.seen_at, each.shift)
                for each in (*self.conditions, *self.hidden)
            )
        )
        self.end, self.check = self.next_end(), self.next_check()

    def trace(self, type_: str, kind: str, gains: Floats) -> Cusum:
        return self.groups[kind].trace(gains, self.midnight.evidence[type_, kind])

    def tests_of(self, subject: Subject) -> JudgedTests:
        """Return all tests of the links of a subject, those of the weeks before included."""
        if subject not in self._whole:
            own = self.links.of(subject)
            self._whole[subject] = self.midnight.past(own).followed_by(self.today.of_links(own))
        return self._whole[subject]

    def rates(self, tests: JudgedTests, without: Sequence[ClassCondition]) -> Rates:
        """Return tests beside what is expected of them without some conditions."""
        others = [
            each
            for each in self.conditions
            if each.type == SLOW and not any(each is other for other in without)
        ]
        away, shift, _ = influence(self.links, tests, others)
        away |= (unseen := influence(self.links, tests, self.hidden).away)
        floor = self.targets.has_floor[tests.link]
        trend = np.where(floor, 0.0, self.trend.at(tests.started))
        rest = tests.log_rate - self.level[tests.link] - trend - shift
        there = np.isfinite(rest) & ~unseen
        is_known = there & (tests.started > self.taught[tests.link])
        return Rates(tests, np.where(there, rest, 0.0), is_known, there & ~away)

    # From one thing that shows to the next.

    def run(self) -> list[ClassCondition]:
        after = 0
        while True:
            alarm, end = self.next_alarm(after), self.end
            alarmed = NEVER if alarm is None else int(self.today.started[alarm.at])
            if self.check < min(alarmed, end[1] if end else NEVER):
                self.confirm_slow(self.check)
                self.check = self.next_check()
            elif end and end[1] <= alarmed:
                end[0].ended_at = end[2]
                self.follow()
            elif alarm is None:
                break
            else:
                after = int(self.today.started.searchsorted(alarmed))
                key = (*alarm, self.state)
                if key not in self.refused and (
                    self.see_failing(alarm) if alarm.type == FAILING else self.see_slow(alarm)
                ):
                    self.follow()
                else:
                    self.refused.add(key)
                    self.limits[alarm[1:4]] = LOOK_AGAIN * alarm.evidence
        for each in self.conditions:
            self.describe(each)
        # What was never sure, and is not borne out any more, has not been.
        return [
            each
            for each in self.conditions
            if each.type != SLOW
            or each.confirmed_at is not None
            or (
                each.factor <= self.opens_below(each.subject)
                and each.seen_at + UNSURE_MS > self.midnight.begin
            )
        ]

    def next_alarm(self, after: int) -> Alarm | None:
        """Return the first test, from one of them on, with which something shows."""
        first = bisect_left(self._alarms, after, key=lambda alarm: alarm.at)
        for alarm in islice(self._alarms, first, None):
            if alarm.evidence >= self.limits.get(alarm[1:4], LOOK):
                return alarm
        return None

    def next_end(self) -> tuple[ClassCondition, int, int] | None:
        """Return the condition that is over first, when that shows, and since when it is over."""
        ends = [
            (each, *end) for each in self.conditions if each.is_open and (end := self.end_of(each))
        ]
        return min(ends, key=lambda end: end[1], default=None)

    def end_of(self, condition: ClassCondition) -> tuple[int, int] | None:
        tests = self.tests_of(condition.subject)
        tests = tests.within(condition.since, NEVER)
        if condition.type == FAILING:
            gains = -failing_gains(LINK, self.usual, tests, np.zeros(len(tests), dtype=bool))
            limit = END_OF_LINK if condition.scope == LINK else END_OF_MANY
        else:
            rates, size = self.rates(tests, [condition]), condition.shift
            sigma = self.usual.sigma[tests.link]
            off = np.clip(rates.rest, size - MOST_SIGMA * sigma, MOST_SIGMA * sigma)
            noise = np.square(sigma) * (1 + 2 * self.usual.likeness)
            gains = np.minimum(size * (size / 2 - off) / noise, MOST_OF_ONE)
            # What is slow by itself is hardly slower on a machine that makes all others slow.
            tells = rates.is_known & ~self.trend.is_doubtful(tests.started)
            gains = np.where(tells, gains, 0.0)
            limit = END_OF_SLOW
        alone = TestGroups.of(np.zeros(len(tests), dtype=np.int64), tests.started)
        evidence = alone.trace(gains, Cusum.none(1))
        looked = max(condition.seen_at, self.midnight.begin)
        over = np.flatnonzero((evidence.amount >= limit) & (tests.started >= looked))
        if not over.size:
            return None
        return int(tests.started[over[0]]), int(evidence.since[over[0]])

    # Failing: which ends do the links that fail have in common?

    def see_failing(self, alarm: Alarm) -> bool:
        links, today = self.links, self.today
        seen, link = int(today.started[alarm.at]), int(today.link[alarm.at])
        near = {int(links.source[link]), int(links.destination[link])}
        related = [
            each
            for each in self.conditions
            if each.type == FAILING
            and each.is_open
            and each.scope in KINDS
            and near & {each.source, each.destination}
        ]
        begin = min([alarm.since, *(each.since for each in related)])
        # Of each link: whether its newest test failed, and whether it was tested since.
        others = [each for each in self.conditions if not any(each is other for other in related)]
        upto = slice(0, alarm.at + 1)
        bad, last = self.midnight.streak > 0, self.midnight.last.copy()
        bad[today.link[upto]] = ~today.ok[upto]
        last[today.link[upto]] = today.started[upto]
        recent = last >= begin
        for each in others:
            if each.type == FAILING and each.is_open:
                bad[links.places(each.subject)] = False
        bad &= recent
        votes = self.votes_since(begin, alarm.at + 1, bad)
        streak = self.midnight.streak.copy()
        streak[today.link[upto]] = self.streaks[upto]
        named = [each.subject for each in related]
        subjects = [*common_ends(links, bad, recent, votes, named, repeated=streak > 1)]
        if (
            alarm.kind == LINK
            and self.streaks[alarm.at] >= self.targets.failures[link]
            and not any(link in links.places(subject) for subject in subjects)
        ):
            subjects.append(Subject(LINK, int(links.source[link]), int(links.destination[link])))
        opened = [self.open_failing(subject, bad, begin, seen) for subject in subjects]
        return any(opened)

    def votes_since(self, begin: int, past: int, bad: Flags) -> dict[str, Integers]:
        """Count by endpoint the failures of some links since a moment whose error names it."""
        tests = self.today.taken(slice(0, past)).of_links(bad)
        if begin < self.midnight.begin:
            tests = self.midnight.past(bad).followed_by(tests)
        tests = tests.within(begin, NEVER)
        ends = len(self.links.site)
        return {
            kind: np.bincount(
                self.links.group(kind)[tests.link[tests.blamed == blames]], minlength=ends
            )
            for kind, blames in ((SOURCE, BLAMES_SOURCE), (DESTINATION, BLAMES_DESTINATION))
        }

    def open_failing(self, subject: Subject, bad: Flags, begin: int, seen: int) -> bool:
        links = self.links
        own = links.places(subject)
        open_ = [each for each in self.conditions if each.type == FAILING and each.is_open]
        inside = [each for each in open_ if self.is_inside(each.subject, subject)]
        if any(self.is_inside(subject, each.subject) for each in open_):
            return False
        # What began with this test and is over again does not begin with it again.
        if any(
            each.type == FAILING and each.subject == subject and each.seen_at >= seen
            for each in self.conditions
        ):
            return False
        tests = self.tests_of(subject).within(begin, NEVER)
        failed = tests.started[~tests.ok]
        since = [int(failed[0]) if failed.size else begin, *(each.since for each in inside)]
        seen = min([seen, *(each.seen_at for each in inside)])
        members = tuple(own[bad[own]].tolist())
        self.put(
            ClassCondition(*subject, FAILING, seen, min(since), links=members, listed_at=seen),
            inside,
        )
        for end in {subject.source, subject.destination} - {None}:
            if subject.scope != LINK:
                self.join_site(int(links.site[end]))
        return True

    def is_inside(self, part: Subject, whole: Subject) -> bool:
        """Say whether all links of a subject are those of another."""
        return bool(self.links.covered(whole, self.links.places(part)).all())

    def join_site(self, site: int) -> None:
        """Make one condition of those of all endpoints of a site that began to fail together."""
        links = self.links
        own = links.ends[links.site[links.ends] == site].tolist()
        failing = {
            end: each
            for each in self.conditions
            if each.type == FAILING and each.is_open and each.scope not in (LINK, SITE)
            for end in {each.source, each.destination} - {None}
        }
        if len(own) < 2 or not failing.keys() >= set(own):
            return
        ones = [failing[end] for end in own]
        if max(each.since for each in ones) - min(each.since for each in ones) <= SAME_SITE_MS:
            seen, since = (
                min(getattr(each, name) for each in ones) for name in ("seen_at", "since")
            )
            self.put(
                ClassCondition(SITE, None, None, site, FAILING, seen, since, listed_at=seen), ones
            )

    def put(self, condition: ClassCondition, in_place_of: Sequence[ClassCondition]) -> None:
        self.conditions = [
            *(each for each in self.conditions if not any(each is other for other in in_place_of)),
            condition,
        ]

    def slow_below(self, subject: Subject) -> float:
        """Return below which part of their level links of a subject are slow (a natural log)."""
        return float(np.median(self.targets.below[self.links.places(subject)]))

    def opens_below(self, subject: Subject) -> float:
        slow = OPENS_ABOVE * math.exp(self.slow_below(subject))
        return min(slow, OPENS_BELOW_ALWAYS)

    # Slow: which endpoint, site or link explains what is slower than before?

    def see_slow(self, alarm: Alarm) -> bool:
        links = self.links
        since, seen = alarm.since, int(self.today.started[alarm.at])
        young = [
            each
            for each in self.conditions
            if each.type == SLOW and each.is_open and each.since >= since - (seen - since) - 1
        ]
        concerned, chosen = self.concerned(alarm), np.zeros(len(links), dtype=bool)
        near = np.flatnonzero(concerned)
        # Others were not tested since.
        chosen[near] = self.midnight.last[near] >= since
        upto = slice(int(self.today.started.searchsorted(since)), alarm.at + 1)
        tested = self.today.link[upto]
        chosen[tested] |= concerned[tested]
        tests = self.midnight.past(chosen).followed_by(
            self.today.taken(slice(0, alarm.at + 1)).of_links(chosen)
        )
        rates = self.rates(tests, young)
        changes = self.changes(rates, since, by_midnight=True)
        opened = False
        for subject, shift in name_slow(changes, self.usual.dof, links):
            if shift <= self.slow_below(subject):
                opened |= self.open_slow(subject, shift, since, seen, young)
        own = np.flatnonzero(changes.links == alarm.group)
        is_young = alarm.kind == LINK and self.usual.tests[alarm.group] < SETTLED
        if is_young and own.size and not opened:
            # All links together do not tell it from chance: its own few tests may.
            source, destination = (
                int(links.source[alarm.group]),
                int(links.destination[alarm.group]),
            )
            link, shift = Subject(LINK, source, destination), float(changes.shift[own[0]])
            if shift <= self.slow_below(link):
                opened = self.open_slow(link, shift, since, seen, young)
        return opened

    def concerned(self, alarm: Alarm) -> Flags:
        """Return the links to look at: all of them, unless they are very many."""
        links = self.links
        if len(links) <= MOST_LINKS:
            return np.ones(len(links), dtype=bool)
        link = int(self.today.link[alarm.at])
        at_source, at_destination = (
            links.site[links.source[link]],
            links.site[links.destination[link]],
        )
        near = np.flatnonzero((links.site == at_source) | (links.site == at_destination))
        chosen = np.zeros(len(links), dtype=bool)
        for by_end in links.by_end.values():
            chosen[by_end.of_groups(near)] = True
        chosen[:: len(links) // MOST_LINKS] = True
        return chosen

    def changes(
        self, rates: Rates, since: int, until: int = NEVER, *, by_midnight: bool = False
    ) -> Changes:
        """Say how the tests of links since a moment differ from those before it.

        ``by_midnight``, well-known levels are those of midnight.
        """
        tests, usual = rates.tests, self.usual
        likeness = usual.likeness
        begin, end = tests.started.searchsorted([since, until]).tolist()
        own = begin + np.flatnonzero(rates.is_known[begin:end])
        links, link = np.unique(tests.link[own], return_inverse=True)
        rest, sigma = rates.rest[own], usual.sigma[links]
        count = np.bincount(link, minlength=len(links))
        middle = np.bincount(link, rest, minlength=len(links)) / count
        reach = OUTLYING * sigma
        rest = np.clip(rest, (middle - reach)[link], (middle + reach)[link])
        mean = np.bincount(link, rest, minlength=len(links)) / count
        # Of which links the tests before tell the level.
        is_new = usual.tests[links] < SETTLED if by_midnight else np.ones(len(links), dtype=bool)
        self._place[links[is_new]] = np.flatnonzero(is_new)
        place = self._place[tests.link[:begin]]
        self._place[links] = -1
        earlier = np.flatnonzero(rates.usable[:begin] & (place >= 0))
        of_earlier, level_rest = place[earlier], rates.rest[earlier]
        earlier_count = np.bincount(of_earlier, minlength=len(links))
        few = earlier_count < SETTLED
        level = np.where(
            few,
            np.bincount(of_earlier, level_rest, minlength=len(links))
            / np.maximum(earlier_count, 1),
            medians(of_earlier, level_rest, len(links)),
        )
        if by_midnight:
            earlier_count = np.where(is_new, earlier_count, usual.tests[links])
            few = earlier_count < SETTLED
            level = np.where(is_new, level, 0.0)
        # A floor is a level that is known, and so is one that was accepted, for a while.
        floor = self.targets.has_floor[links]
        is_accepted = np.isfinite(self.targets.accepted[links]) & (earlier_count < FEWEST)
        is_accepted &= ~floor
        level = np.where(floor | is_accepted, 0.0, level)
        earlier_count = np.select([floor, is_accepted], [CERTAIN, FEWEST], earlier_count)
        alike = 1 + np.minimum(count - 1, MOST_ALIKE) * likeness
        of_level = np.where(few, 1.0, math.pi / 2) * (1 + 2 * likeness)
        error = sigma * np.sqrt(alike / count + of_level / np.maximum(earlier_count, 1))
        is_told = earlier_count >= FEWEST_BEFORE
        return Changes(links[is_told], (mean - level)[is_told], error[is_told], count[is_told])

    def open_slow(
        self, subject: Subject, shift: float, since: int, seen: int, young: Sequence[ClassCondition]
    ) -> bool:
        open_ = [each for each in self.conditions if each.type == SLOW and each.is_open]
        replaced = list(young)
        for each in open_:
            if both := both_directions(each, subject, since, shift):
                subject, shift = both, (shift + each.shift) / 2
                replaced.append(each)
        if any(each.subject == subject for each in open_):
            return False
        inside = [each for each in replaced if self.is_inside(each.subject, subject)]
        seen = min([seen, *(each.seen_at for each in inside)])
        condition = ClassCondition(*subject, SLOW, seen, since, shift=shift)
        before = self.conditions
        self.put(condition, inside)
        self.refine(condition)
        if condition.factor <= self.opens_below(subject):
            return True
        self.conditions = before
        return False

    def refine(self, condition: ClassCondition) -> None:
        """Find the beginning of what is slow, with its interval, and the factor, by its tests."""
        until = min(condition.seen_at + REFINED_MS, condition.until)
        ended = [
            each.until
            for each in self.conditions
            if each is not condition and each.subject == condition.subject and not each.is_open
        ]
        start = max((end for end in ended if end <= condition.since), default=0)
        whole = self.rates(self.tests_of(condition.subject), [condition])
        places = np.flatnonzero(whole.is_known)
        started = whole.tests.started[places]
        places = places[(started >= start) & (started < until)]
        if not places.size:
            return
        started, link = whole.tests.started[places], whole.tests.link[places]
        sigma = self.usual.sigma[link]
        noise = np.square(sigma) * (1 + 2 * self.usual.likeness)
        reach = max(int(started.searchsorted(condition.seen_at, side="right")), 1)
        # With the factor the beginning moves, and with it the factor.
        for _ in range(3):
            size = condition.shift
            off = np.clip(whole.rest[places], size - MOST_SIGMA * sigma, MOST_SIGMA * sigma)
            # Of a beginning at each test: what speaks for it from there on.
            gains = np.cumsum((size * (off - size / 2) / noise)[::-1])[::-1][:reach]
            best = int(gains.argmax())
            fits = np.flatnonzero(2 * (gains[best] - gains) <= WORSE)
            condition.since = int(started[best])
            condition.since_low = int(started[max(int(fits[0]) - 1, 0)])
            condition.since_high = int(started[fits[-1]])
            changes = self.changes(whole, condition.since, until)
            shift, half = combined(changes.shift, changes.error, self.usual.dof)
            if not shift < 0:
                break
            condition.shift = shift
        condition.factor, condition.factor_low, condition.factor_high = (
            math.exp(each) for each in (shift, shift - half, shift + half)
        )
        condition.links = tuple(changes.links[changes.shift <= condition.shift / 2].tolist())
        condition.levels = {link: float(self.level[link]) for link in changes.links.tolist()}

    def next_check(self) -> int:
        """Return when it is next to be asked whether what is slow is beyond chance."""
        first = NEVER
        for each in self.conditions:
            if each.type != SLOW or each.confirmed_at is not None or not each.is_open:
                continue
            tests = self.tests_of(each.subject).within(each.since, NEVER)
            moments = tests.started[tests.ok]
            due = moments[[count - 1 for count in checkpoints(len(moments))]]
            if self.targets.has_floor[self.links.places(each.subject)].any():
                # It may have been below for long when somebody said so.
                due = moments[FEWEST_LISTED - 1 :]
            after = max(each.checked_at, each.seen_at - 1, self.midnight.begin - 1)
            due = due[due > after]
            if due.size:
                first = min(first, int(due[0]))
        return first

    def confirm_slow(self, moment: int) -> None:
        """Confirm what is beyond chance, at a rate of false discoveries over the whole grid."""
        open_ = [
            each
            for each in self.conditions
            if each.type == SLOW and each.is_open and each.since <= moment
        ]
        of_lists, of_all = np.array([self.chances_of(each, moment) for each in open_]).T
        counts = np.array([len(self.tests_of(each.subject)) for each in open_])
        looks = np.maximum((counts - FREE_TESTS) / TESTS_A_LOOK, 1.0)
        listed = beyond_chance(of_lists * looks, FALSE_IN_LISTS)
        sure = beyond_chance(of_all * np.maximum(counts * LOOKS_A_TEST, 1.0), FALSE_DISCOVERIES)
        for place, each in enumerate(open_):
            each.checked_at = moment
            if not listed[place]:
                each.listed_at = None
            elif each.listed_at is None:
                each.listed_at = moment
            if sure[place] and each.confirmed_at is None:
                tests = self.tests_of(each.subject).within(each.since, moment + 1)
                each.confirmed_at = moment if tests.ok.sum() >= FEWEST_TESTS else None

    def chances_of(self, condition: ClassCondition, moment: int) -> tuple[float, float]:
        """Return how many subjects of its kind look as slow by chance until a moment.

        The first is for lists, the other one, which is never less, for what is confirmed.
        """
        # They change with its tests, and with what is expected of these.
        upto = int(self.tests_of(condition.subject).started.searchsorted(moment, side="right"))
        key = id(condition), upto
        if key not in self._chances:
            self._chances[key] = self.chances_at(condition, moment)
        return self._chances[key]

    def chances_at(self, condition: ClassCondition, moment: int) -> tuple[float, float]:
        rates = self.rates(self.tests_of(condition.subject), [condition])
        changes = self.changes(rates, condition.since, moment + 1)
        if changes.tests.sum() < FEWEST_LISTED:
            return math.inf, math.inf
        weight = 1 / np.square(changes.error)
        pooled = float((weight * changes.shift).sum() / weight.sum())
        if pooled > self.slow_below(condition.subject) * 0.9:
            return math.inf, math.inf
        is_link = condition.scope == LINK
        error = math.sqrt(1 / weight.sum() + (LINKS_WANDER if is_link else ENDS_WANDER) ** 2)
        subjects = len(self.links) if is_link else 2 * len(self.links.site)
        dof = self.usual.dof + len(changes.links) - 1.0
        chance = upper_tail(-pooled / error, dof) * subjects
        earlier = int((rates.usable & (rates.tests.started < condition.since)).sum())
        if not is_link or not FEWEST_BEFORE <= earlier < SETTLED:
            return chance, chance
        if not self.is_usual(condition.subject):
            return chance, chance
        alone = self.two_samples(rates, condition.since, moment + 1) * subjects * BEGINNINGS
        return alone, max(chance, alone)

    def is_usual(self, subject: Subject) -> bool:
        """Say whether nobody expects anything of these links but what is usual."""
        own = self.links.places(subject)
        levels = self.targets.floor[own], self.targets.accepted[own]
        return not any(np.isfinite(each).any() for each in levels)

    def two_samples(self, rates: Rates, since: int, until: int) -> float:
        """Return how likely a link with few tests looks as slow by chance.

        So few tests scatter around two levels; midnight took them to scatter around one.
        """
        started = rates.tests.started
        before = rates.rest[rates.usable & (started < since)]
        during = rates.rest[rates.is_known & (started >= since) & (started < until)]
        squares = sum(np.square(each - each.mean()).sum() for each in (before, during))
        count = len(before) + len(during)
        variance, dof = self.usual.prior.moderated(squares, np.array(count - 2.0))
        error = math.sqrt(float(variance) * (1 / len(before) + 1 / len(during)) + DAYS_WANDER**2)
        return upper_tail(float(before.mean() - during.mean()) / error, float(dof))

    # What all tests say of a condition.

    def describe(self, condition: ClassCondition) -> None:
        if condition.type == SLOW and condition.seen_at + REFINED_MS >= self.midnight.begin:
            self.refine(condition)
        whole = self.tests_of(condition.subject)
        during = whole.within(condition.since, condition.until)
        failed = during.taken(~during.ok)
        if condition.since < self.midnight.begin - COUNTED_MS:
            # Its first tests are not read any more.
            during, failed = (each.within(self.midnight.begin, NEVER) for each in (during, failed))
            condition.tests += len(during)
            condition.failed += len(failed)
            return
        condition.tests, condition.failed = len(during), len(failed)
        if condition.type == SLOW or not len(failed):
            return
        condition.listed_at = condition.seen_at if len(failed) >= FEWEST_LISTED else None
        condition.links = tuple(np.unique(failed.link).tolist())
        members = np.zeros(len(self.links), dtype=bool)
        members[failed.link] = True
        good = whole.started[members[whole.link] & whole.ok & (whole.started < condition.since)]
        condition.since_high = condition.since
        condition.since_low = int(good[-1]) if good.size else condition.since
        if condition.confirmed_at is None:
            kind = condition.scope if condition.scope in KINDS else LINK
            gains = failing_gains(kind, self.usual, during, np.zeros(len(during), dtype=bool))
            if condition.scope in (ENDPOINT, SITE):
                gains = gains + np.where(~during.ok & (during.blamed > 0), NAMED, 0.0)
            limit = SURE_OF_LINK if condition.scope == LINK else SURE_OF_MANY
            likely = np.cumsum(gains) >= limit
            if condition.scope not in (LINK, GRID) and likely.any():
                condition.likely_at = int(during.started[likely.argmax()])
            sure = likely & (np.cumsum(~during.ok) >= FEWEST_TESTS)
            if sure.any():
                condition.confirmed_at = int(during.started[sure.argmax()])


def both_directions(
    condition: ClassCondition, subject: Subject, since: int, shift: float
) -> Subject | None:
    """Return the endpoint of which a condition and a subject are the two directions."""
    if {condition.scope, subject.scope} != {SOURCE, DESTINATION}:
        return None
    ends = {condition.source, condition.destination, subject.source, subject.destination} - {None}
    is_same = abs(condition.since - since) <= SAME_MS and abs(condition.shift - shift) <= SAME_SHIFT
    if len(ends) > 1 or not is_same:
        return None
    end = ends.pop()
    return Subject(ENDPOINT, end, end)


def upper_tail(t: float, dof: float) -> float:
    if t <= 0:
        return 1.0
    return float(two_sided_of_many(np.array([t]), np.array([dof]))[0]) / 2


def beyond_chance(chances: Floats, rate: float) -> Flags:
    """Say what is beyond chance at a rate of false discoveries (Benjamini, Hochberg).

    ``chances`` are how many of all subjects look so by chance.
    """
    order = np.argsort(chances, kind="stable")
    passed = np.flatnonzero(chances[order] <= rate * np.arange(1, len(order) + 1))
    flags = np.zeros(len(order), dtype=bool)
    flags[order[: passed[-1] + 1 if passed.size else 0]] = True
    return flags


def checkpoints(count: int) -> Iterator[int]:
    """Yield the numbers of tests at which it is asked whether something is sure."""
    upto = FEWEST_LISTED
    while upto <= count:
        yield upto
        upto += max(1, upto // 6)


def combined(changes: Floats, errors: Floats, dof: int) -> tuple[float, float]:
    """Return the mean change of links, and how far its interval of 95 % reaches to each side."""
    if not changes.size:
        return math.nan, math.nan
    weight = 1 / np.square(errors)
    mean = float((weight * changes).sum() / weight.sum())
    error = math.sqrt(1 / weight.sum())
    if len(changes) > 2:
        dof = len(changes) - 1
        spread = float((weight * np.square(changes - mean)).sum()) / dof
        error *= math.sqrt(max(spread, 0.8))
    return mean, error * one_quantile(0.975, dof)
