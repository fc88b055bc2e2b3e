"""Judging the tests of each size class day by day, and storing the conditions that they show.

A day is judged from the conditions that the day before ended with. What it ends with itself is
kept, so that only the days are judged again whose results have changed, and those after them:
normally today alone. Judging all days at once gives the same conditions.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from cachetools import LRUCache
from django.conf import settings
from django.db import transaction

from matrix.assessment import folding, inputs, silence
from matrix.assessment.folding import Accepted, DayInputs, KeptCondition, Rules
from matrix.assessment.inputs import DayTests, Registry
from matrix.statistics.assessment.conditions import SILENT, ClassCondition
from matrix.statistics.assessment.grid_links import DAY_MS, DESTINATION, GRID, NEVER, SITE, SOURCE
from matrix.statistics.assessment.judge import BACK_DAYS
from matrix.statistics.assessment.merging import Merged, SeenTests, confirmed_by_all, grouped
from matrix.store import data_version
from matrix.store.cache import Kept
from matrix.store.read_plan import floor, moment
from matrix.store.registry import read_links, read_versions
from sonar.database.cursors import planned_rows
from sonar.models import AssessedDay, HeldLevel, SizeClass
from sonar.notation.windows import unix_ms
from sonar.results import conditions
from sonar.results.conditions import (
    ConditionSubject,
    FoundCondition,
    FoundPart,
    MemberLink,
    Recorded,
)

# What was judged is kept at least so often, and others get their turn.
COMMIT_SECONDS = 10.0
STAYS_MS = round(conditions.STAYS / timedelta(milliseconds=1))


class JudgedDay(NamedTuple):
    """That a day (Unix ms) of a size class was judged, the how manieth of how many."""

    size_class: str
    day: int
    number: int
    days: int


@dataclass(frozen=True)
class Assessed:
    """What an assessment did; None of ``recorded`` where another one was going on."""

    days: int
    recorded: Recorded | None
    is_finished: bool = True


def assess(
    now: datetime,
    *,
    since: date | None = None,
    wait: bool = True,
    seconds: float = math.inf,
    report: Callable[[JudgedDay], None] = lambda _: None,
) -> Assessed:
    """Judge all days whose results have changed, and store the conditions that they show.

    Judge all days ``since`` this one again, whether they have changed or not. Return after about
    so many ``seconds``, even if days are left; what was judged by then is kept. Two assessments at
    once take turns; without ``wait`` the second does nothing.
    """
    if since is not None:
        with transaction.atomic():
            conditions.lock()
            conditions.forget_days(since)
    state = read_state()
    if since is None and not wait and is_quiet(now, state):
        conditions.note_quiet(now)
        return Assessed(days=0, recorded=Recorded())
    began, days = time.monotonic(), 0
    while True:
        with transaction.atomic():
            if not conditions.lock(wait=wait):
                return Assessed(days, None, is_finished=False)
            run = AssessmentRun(now)
            for judged in run.judge():
                days += 1
                report(judged)
                if time.monotonic() - run.began > COMMIT_SECONDS:
                    break
            else:
                recorded = run.record()
                _quiet.update(state=state, until=run.quiet_until)
                return Assessed(days, recorded)
        if time.monotonic() - began > seconds:
            return Assessed(days, Recorded(), is_finished=False)


# When conditions were confirmed by the tests of all size classes, by all that this depends on.
_confirmed: Kept[int | None] = Kept(LRUCache(10_000))
# As of when this process has assessed all that there is, and until when it need not look closer.
_quiet: dict[str, Any] = {"state": None, "until": None}
# So much time may pass without a look at downtimes and the clock.
QUIET = timedelta(minutes=10)
STATE = f"""
    {data_version.OF_ALL},
        (SELECT concat_ws('.', count(*), max(id), count(*) FILTER (WHERE NOT is_recorded))
         FROM sonar_assessedday)
"""  # noqa: S608 - constants


def read_state() -> tuple[str, ...]:
    """Return what changes with all that is assessed, but for the time; one SQL statement."""
    ((*state,),) = planned_rows(STATE)
    return tuple(state)


def is_quiet(now: datetime, state: tuple[str, ...]) -> bool:
    """Say whether nothing has changed, by ``state``, since this process assessed it."""
    until = _quiet["until"]
    return until is not None and now < until and state == _quiet["state"]


class AssessmentRun:
    """A part of an assessment that is one transaction; the caller holds the lock."""

    def __init__(self, now: datetime) -> None:
        self.now, self.began = now, time.monotonic()
        self.until = unix_ms(now) + 1
        self.today = floor(unix_ms(now), DAY_MS)
        self.registry = Registry.read(now)
        self.size_classes = list(SizeClass.objects.all())
        self.version = read_versions()
        self.quiet_until = now
        self.accepted = read_accepted(now)
        self.rules: dict[int, Rules | None] = {}
        # By class: the version of each day (Unix ms).
        self.texts: dict[int, dict[int, str]] = {}

    def judge(self) -> Iterator[JudgedDay]:
        """Judge what has to be, one day of one size class after the other; yield each."""
        for size_class in self.size_classes:
            yield from self.judge_class(size_class)

    def judge_class(self, size_class: SizeClass) -> Iterator[JudgedDay]:
        first = inputs.first_day(size_class, self.now, settings.SONAR_KEEP_DAYS)
        if first is None:
            return
        days = range(first, self.today + 1, DAY_MS)
        # The tests that teach what is usual may be older than what is judged first.
        reach = range(first - BACK_DAYS * DAY_MS, self.today + 1, DAY_MS)
        versions = inputs.versions(size_class, reach, self.registry)
        texts = {
            day: text + f"/{accepted}" if (accepted := self.accepted_on(size_class, day)) else text
            for day, text in zip(reach, versions, strict=True)
        }
        self.texts[size_class.id] = texts
        judged = conditions.judged_days(size_class)
        number = 0
        for day in days:
            end = min(day + DAY_MS, self.until)
            row = judged.get(moment(day).date())
            is_over = row is not None and unix_ms(row.until) >= day + DAY_MS
            if number == 0 and row and is_over and row.version == texts[day]:
                continue
            tests = inputs.read_day(size_class, day, texts[day], self.registry).until(end)
            if (
                number == 0
                and row
                and self.is_same(size_class, day, tests, row.digest, is_over=is_over)
            ):
                if not is_over or row.version != texts[day]:
                    conditions.note_unchanged(row.id, moment(end), texts[day])
                continue
            if number == 0:
                conditions.forget_days(moment(day).date(), size_class)
            number += 1
            self.judge_day(size_class, day, texts, tests)
            yield JudgedDay(size_class.name, day, number, number + (self.today - day) // DAY_MS)

    def is_same(
        self, size_class: SizeClass, day: int, tests: DayTests, judged: str, *, is_over: bool
    ) -> bool:
        digest = self.digest(size_class, day, tests)
        if is_over:
            digest, judged = digest.partition("/")[0], judged.partition("/")[0]
        return digest == judged

    def judge_day(
        self, size_class: SizeClass, day: int, texts: Mapping[int, str], tests: DayTests
    ) -> None:
        before = AssessedDay.objects.filter(
            size_class=size_class, day=moment(day - DAY_MS).date()
        ).first()
        opened = before.kept if before else []
        if len(tests.link) or self.accepted_on(size_class, day):
            opened = folding.judge_day(self.inputs_of(size_class, day, texts, tests), opened)
        stays = day + DAY_MS - STAYS_MS
        kept = [each for each in opened if each["ended_at"] is None or each["ended_at"] >= stays]
        AssessedDay.objects.create(
            size_class=size_class,
            day=moment(day).date(),
            until=moment(min(day + DAY_MS, self.until)),
            version=texts[day],
            digest=self.digest(size_class, day, tests),
            kept=kept,
            left=[each for each in opened if each["ended_at"] and each["ended_at"] < stays],
        )

    def inputs_of(
        self, size_class: SizeClass, day: int, texts: Mapping[int, str], tests: DayTests
    ) -> DayInputs:
        past = [each for each in range(day - BACK_DAYS * DAY_MS, day, DAY_MS) if each in texts]
        return DayInputs(
            lambda: (
                inputs.read_day(size_class, each, texts[each], self.registry) for each in past
            ),
            inputs.newest_before(size_class, day, texts, self.registry).link.astype(np.int64),
            tests,
            day,
            min(day + DAY_MS, self.until),
            self.registry,
            (size_class.id, day, *(texts[each] for each in past)) if day == self.today else (),
            self.accepted.get(size_class.id, {}),
            self.rules_of(size_class),
        )

    def accepted_on(self, size_class: SizeClass, day: int) -> str:
        """Return what changes with the levels that were accepted on a day; empty for none."""
        own = [
            (link, each)
            for link, each in sorted(self.accepted.get(size_class.id, {}).items())
            if day <= each.at < day + DAY_MS
        ]
        return hashlib.blake2b(repr(own).encode(), digest_size=6).hexdigest() if own else ""

    def rules_of(self, size_class: SizeClass) -> Rules | None:
        """Return what people expect of links now; None if it is nothing but what is usual."""
        if size_class.id not in self.rules:
            rules = silence.read_rules(size_class, self.version)
            ids = read_links(self.version).numbering.ids
            is_usual = len(rules.rules) == 1 or not rules.number.any()
            self.rules[size_class.id] = None if is_usual else (ids, rules)
        return self.rules[size_class.id]

    def digest(self, size_class: SizeClass, day: int, tests: DayTests) -> str:
        """Return what changes with the tests of a day and, after a slash, with the targets.

        Targets change how today is judged, and no day that is over.
        """
        own = "-".join(filter(None, (tests.digest, self.accepted_on(size_class, day))))
        rules = self.rules_of(size_class)
        return f"{own}/" + (folding.rules_digest(rules[1]) if rules else "")

    def record(self) -> Recorded:
        """Store the conditions of all days that were judged since they were stored last."""
        parts: list[FoundPart] = []
        begins: dict[int, datetime] = {}
        by_id = {size_class.id: size_class for size_class in self.size_classes}
        for row in conditions.days_to_record(moment(self.today).date()):
            size_class = by_id[row.size_class_id]
            begins.setdefault(size_class.id, moment(unix_ms_of(row.day)))
            last = row.kept if row.day == moment(self.today).date() else []
            parts += [
                part_of(
                    each | {"confirmed_at": self.confirmed_at(each, size_class)},
                    size_class,
                    self.registry,
                )
                for each in (*row.left, *last)
                if each["listed_at"] is not None
            ]
        testing = silence.Testing.read(self.now, self.registry)
        for size_class in self.size_classes:
            if size_class.id in self.texts:
                begins.setdefault(size_class.id, moment(self.today))
                parts += self.silent_parts(size_class, testing)
        names = {size_class.id: size_class.name for size_class in self.size_classes}
        earlier = conditions.earlier_parts(parts, begins)
        parts = joined(parts, earlier, names, self.registry.site_of)
        recorded = conditions.record(parts, begins, partial(together, names=names), self.now)
        # What time alone may change: a day that ends, a link that is silent, a pause that is over.
        midnight = moment(self.today + DAY_MS)
        self.quiet_until = min(self.now + QUIET, midnight, *testing.due)
        if testing.is_passing:
            self.quiet_until = self.now
        conditions.note_recorded(testing.noted(size_class) for size_class in self.size_classes)
        return recorded

    def confirmed_at(self, each: KeptCondition, size_class: SizeClass) -> int | None:
        """Return when a condition was confirmed (Unix ms), by its class or by all of them.

        The tests of other classes count for a day from its beginning on.
        """
        likely: int | None = each.get("likely_at")
        confirmed: int | None = each["confirmed_at"]
        since: int = each["since"]
        if likely is None or likely == confirmed:
            return confirmed
        end = min(each["ended_at"] or NEVER, since + DAY_MS, self.until)
        days = [
            (of_class, day, text)
            for of_class in self.size_classes
            for day in range(floor(since, DAY_MS), end, DAY_MS)
            if (text := self.texts.get(of_class.id, {}).get(day))
        ]
        at_site = [id_ for id_, site in self.registry.site_of.items() if site == each["site"]]
        sources, destinations = (
            at_site if each["scope"] == SITE else [each[kind]] if each[kind] else []
            for kind in (SOURCE, DESTINATION)
        )

        def build() -> int | None:
            seen = []
            for of_class, day, text in days:
                tests = inputs.read_day(of_class, day, text, self.registry)
                own = np.isin(tests.link >> 16, sources)
                own |= np.isin(tests.link & 0xFFFF, destinations)
                tests = tests.taken(own & (tests.started >= since) & (tests.started < end))
                seen.append(SeenTests(of_class == size_class, tests.started, tests.rate > 0))
            return confirmed_by_all(likely, confirmed, seen) if seen else confirmed

        texts = [(of_class.id, *of_day) for of_class, *of_day in days]
        ends = (self.registry.key, sources, destinations)
        key = (size_class.id, *ends, since, likely, confirmed, end, texts)
        return _confirmed.get(repr(key), build)

    def silent_parts(self, size_class: SizeClass, testing: silence.Testing) -> Iterator[FoundPart]:
        texts = self.texts[size_class.id]
        yesterday, today = (
            inputs.read_day(size_class, day, texts[day], self.registry).until(self.until)
            for day in (self.today - DAY_MS, self.today)
        )
        newest = inputs.newest_before(size_class, self.today, texts, self.registry)
        newest = newest.followed_by(today)
        yield from silence.silent_parts(size_class, newest, [yesterday, today], testing)


def read_accepted(now: datetime) -> dict[int, dict[int, Accepted]]:
    """Return by size class and link (key) the level that somebody took for normal, and when."""
    rows = HeldLevel.objects.filter(since__lte=now).exclude(note="")
    accepted: dict[int, dict[int, Accepted]] = {}
    for row in rows:
        link = row.source_id << 16 | row.destination_id
        of_class = accepted.setdefault(row.size_class_id, {})
        of_class[link] = Accepted(unix_ms(row.since), math.log(row.rate))
    return accepted


def unix_ms_of(day: date) -> int:
    return (day - date(1970, 1, 1)).days * DAY_MS


def part_of(each: KeptCondition, size_class: SizeClass, registry: Registry) -> FoundPart:
    """Return a condition of a size class as it is stored."""
    since = each["since"]
    ended = each["ended_at"]
    if ended is None and (retired := retired_at(each, registry)) is not None:
        ended = max(since, retired)
    confirmed = each["confirmed_at"]
    factors = {name: each[name] for name in ("factor", "factor_low", "factor_high")}
    if None in factors.values():
        factors = dict.fromkeys(factors)
    subject = (each[name] for name in ("scope", "source", "destination", "site", "type"))
    return FoundPart(
        size_class_id=size_class.id,
        subject=ConditionSubject(*subject),
        since=moment(since),
        since_low=moment(min(each["since_low"] or since, since)),
        since_high=moment(max(each["since_high"], since)),
        confirmed_at=None if confirmed is None else moment(confirmed),
        ended_at=None if ended is None else moment(ended),
        **factors,
        links=each["link_count"],
        of_links=each["of_links"],
        shown_at=moment(each["seen_at"]),
        tests=each["tests"],
        failed=each["failed"],
        members=[MemberLink(*member) for member in each["members"]],
    )


def retired_at(each: KeptCondition, registry: Registry) -> int | None:
    """Return when what a condition is of was retired: an end of a link, all endpoints of a site."""
    retired = registry.retired
    if each["scope"] == GRID:
        return None
    if each["scope"] == SITE:
        own = [end for end, site in registry.site_of.items() if site == each["site"]]
        return max(retired[end] for end in own) if all(end in retired for end in own) else None
    ends = {each["source"], each["destination"]} - {None}
    return min((retired[end] for end in ends if end in retired), default=None)


def joined(
    parts: Sequence[FoundPart],
    earlier: Sequence[FoundPart],
    names: Mapping[int, str],
    site_of: Mapping[int, int],
) -> list[FoundPart]:
    """Give parts the subject that another size class shows instead, if theirs is a part of it.

    ``earlier`` are other parts whose subjects they may get. What is silent is found again by its
    own subject, and keeps it.
    """
    every = [*parts, *earlier]
    judged = [(names[part.size_class_id], judged_of(part)) for part in every]
    place = {id(each): number for number, (_, each) in enumerate(judged)}
    changed = [pair for pair in judged if pair[1].type != SILENT]
    for group in grouped(changed, site_of):
        subject = every[place[id(group.main)]].subject
        for _, each in group.parts:
            number = place[id(each)]
            if every[number].subject != subject:
                every[number] = replace(every[number], subject=subject)
    return every[: len(parts)]


def together(parts: Sequence[FoundPart], *, names: Mapping[int, str]) -> list[FoundCondition]:
    """Make conditions of the parts of one subject, by ``since``: of those that overlap in time."""
    groups: list[list[int]] = []
    lasts: list[datetime | None] = []
    for place, part in enumerate(parts):
        if groups and (lasts[-1] is None or part.since < lasts[-1]):
            groups[-1].append(place)
            lasts[-1] = latest(lasts[-1], part.ended_at)
        else:
            groups.append([place])
            lasts.append(part.ended_at)
    return [
        merged([parts[place] for place in group], group, names, ended)
        for group, ended in zip(groups, lasts, strict=True)
    ]


def latest(first: datetime | None, second: datetime | None) -> datetime | None:
    return None if first is None or second is None else max(first, second)


def merged(
    parts: Sequence[FoundPart],
    places: Sequence[int],
    names: Mapping[int, str],
    ended: datetime | None,
) -> FoundCondition:
    """Make one condition of parts of one subject, with the figures that merging.Merged has."""
    classes = {part.size_class_id for part in parts}
    both = Merged([(names[part.size_class_id], judged_of(part)) for part in parts]).condition()
    since = moment(both.since) if ended is None else min(moment(both.since), ended)
    factors = (both.factor, both.factor_low, both.factor_high)
    factor, low, high = (two_digits(value) if math.isfinite(value) else None for value in factors)
    return FoundCondition(
        size_classes=[name for number, name in names.items() if number in classes],
        since=since,
        since_low=min(moment(both.since_low), since),
        since_high=max(moment(both.since_high), since),
        confirmed_at=None if both.confirmed_at is None else moment(both.confirmed_at),
        ended_at=ended,
        factor=factor,
        factor_low=low,
        factor_high=high,
        links=max(part.links for part in parts),
        of_links=max(part.of_links for part in parts),
        parts=places,
    )


def judged_of(part: FoundPart) -> ClassCondition:
    """Return the figures of a part as the judge has them, with ids in the place of places."""
    times: dict[str, Any] = {
        name: value and unix_ms(value)
        for name in ("since", "since_low", "since_high", "confirmed_at", "ended_at")
        for value in [getattr(part, name)]
    }
    factors: dict[str, Any] = {
        name: math.nan if value is None else value
        for name in ("factor", "factor_low", "factor_high")
        for value in [getattr(part, name)]
    }
    return ClassCondition(
        scope=part.subject.scope,
        source=part.subject.source_id,
        destination=part.subject.destination_id,
        site=part.subject.site_id,
        type=part.subject.type,
        seen_at=unix_ms(part.shown_at),
        tests=part.tests,
        failed=part.failed,
        **times,
        **factors,
    )


def two_digits(value: float) -> float:
    """Round as pages show it, so that it changes no more often than what they show."""
    return float(f"{value:.2g}")
