"""Judging the tests of each size class day by day, and storing the conditions that they show.

A day is judged from the conditions that the day before ended with. What it ends with itself is
kept, so that only the days are judged again whose results have changed, and those after them:
normally today alone. Judging all days at once gives the same conditions.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from django.conf import settings
from django.db import transaction

from matrix.assessment import inputs, silence
from matrix.assessment.inputs import BEFORE_DAYS, DayTests, Numbered, Registry
from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.assessment import judge
from matrix.statistics.assessment.baselines import FEWEST, medians
from matrix.statistics.assessment.conditions import SILENT, ClassCondition
from matrix.statistics.assessment.grid_links import DAY_MS, GRID, SITE
from matrix.statistics.assessment.merging import Merged, grouped
from matrix.store.read_plan import floor, moment
from sonar.models import AssessedDay, SizeClass
from sonar.notation.windows import unix_ms
from sonar.results import conditions
from sonar.results.conditions import (
    ConditionSubject,
    FoundCondition,
    FoundPart,
    MemberLink,
    Recorded,
)

# A condition of a size class as a day keeps it: fields of ClassCondition, with ids in the place
# of places, None for NaN, and its links with their baselines.
KeptCondition = dict[str, Any]
# What was judged is kept at least so often, and others get their turn.
COMMIT_SECONDS = 10.0
STAYS_MS = round(conditions.STAYS / timedelta(milliseconds=1))
FLOATS = {each.name for each in fields(ClassCondition) if each.type == "float"}
PLACES = ("source", "destination", "site", "links", "levels")


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
                return Assessed(days, run.record())
        if time.monotonic() - began > seconds:
            return Assessed(days, Recorded(), is_finished=False)


class AssessmentRun:
    """A part of an assessment that is one transaction; the caller holds the lock."""

    def __init__(self, now: datetime) -> None:
        self.now, self.began = now, time.monotonic()
        self.until = unix_ms(now) + 1
        self.today = floor(unix_ms(now), DAY_MS)
        self.registry = Registry.read(now)
        self.size_classes = list(SizeClass.objects.all())
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
        reach = range(first - BEFORE_DAYS * DAY_MS, self.today + 1, DAY_MS)
        texts = dict(zip(reach, inputs.versions(size_class, reach, self.registry), strict=True))
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
            if number == 0 and row and row.digest == tests.digest:
                if not is_over or row.version != texts[day]:
                    conditions.note_unchanged(row.id, moment(end), texts[day])
                continue
            if number == 0:
                conditions.forget_days(moment(day).date(), size_class)
            number += 1
            self.judge_day(size_class, day, texts, tests)
            yield JudgedDay(size_class.name, day, number, number + (self.today - day) // DAY_MS)

    def judge_day(
        self, size_class: SizeClass, day: int, texts: Mapping[int, str], tests: DayTests
    ) -> None:
        before = AssessedDay.objects.filter(
            size_class=size_class, day=moment(day - DAY_MS).date()
        ).first()
        opened = before.kept if before else []
        if len(tests.link):
            window = [
                inputs.read_day(size_class, past, texts[past], self.registry)
                for past in range(day - BEFORE_DAYS * DAY_MS, day, DAY_MS)
                if past in texts
            ]
            opened = fold(
                [*window, tests], opened, day, min(day + DAY_MS, self.until), self.registry
            )
        stays = day + DAY_MS - STAYS_MS
        kept = [each for each in opened if each["ended_at"] is None or each["ended_at"] >= stays]
        AssessedDay.objects.create(
            size_class=size_class,
            day=moment(day).date(),
            until=moment(min(day + DAY_MS, self.until)),
            version=texts[day],
            digest=tests.digest,
            kept=kept,
            left=[each for each in opened if each not in kept],
        )

    def record(self) -> Recorded:
        """Store the conditions of all days that were judged since they were stored last."""
        parts: list[FoundPart] = []
        begins: dict[int, datetime] = {}
        by_id = {size_class.id: size_class for size_class in self.size_classes}
        for row in conditions.days_to_record(moment(self.today).date()):
            size_class = by_id[row.size_class_id]
            begins.setdefault(size_class.id, moment(unix_ms_of(row.day)))
            last = row.kept if row.day == moment(self.today).date() else []
            of_day = [each for each in (*row.left, *last) if each["listed_at"] is not None]
            parts += [part_of(each, size_class, self.registry) for each in of_day]
        testing = silence.Testing.read(self.now, self.registry)
        for size_class in self.size_classes:
            if size_class.id in self.texts:
                begins.setdefault(size_class.id, moment(self.today))
                parts += self.silent_parts(size_class, testing)
        names = {size_class.id: size_class.name for size_class in self.size_classes}
        earlier = conditions.earlier_parts(parts, begins)
        parts = joined(parts, earlier, names, self.registry.site_of)
        recorded = conditions.record(parts, begins, partial(together, names=names), self.now)
        conditions.note_recorded(testing.noted(size_class) for size_class in self.size_classes)
        return recorded

    def silent_parts(self, size_class: SizeClass, testing: silence.Testing) -> Iterator[FoundPart]:
        texts = self.texts[size_class.id]
        yesterday, today = (
            inputs.read_day(size_class, day, texts[day], self.registry).until(self.until)
            for day in (self.today - DAY_MS, self.today)
        )
        newest = inputs.newest_before(size_class, self.today, texts, self.registry)
        newest = newest.followed_by(today)
        yield from silence.silent_parts(size_class, newest, [yesterday, today], testing)


def unix_ms_of(day: date) -> int:
    return (day - date(1970, 1, 1)).days * DAY_MS


def fold(
    days: Sequence[DayTests],
    before: Sequence[KeptCondition],
    begin: int,
    end: int,
    registry: Registry,
) -> list[KeptCondition]:
    """Return the conditions at the end of a day (Unix ms) from those before it.

    ``days`` are those whose tests lead to it, and the day itself.
    """
    members = {(source << 16) | target for each in before for source, target, _ in each["members"]}
    ends = set(registry.site_of)
    registered = (key for key in sorted(members) if {key >> 16, key & 0xFFFF} <= ends)
    numbered = Numbered.of(days, registered, registry)
    opened: list[ClassCondition] = []
    apart: list[KeptCondition] = []
    for each in before:
        condition = unpacked(each, numbered)
        if condition is None:
            apart.append(each)
        else:
            opened.append(condition)
    tests = numbered.tests
    past = tests.within(begin - BEFORE_DAYS * DAY_MS, begin).of_links
    today = tests.within(begin, end)
    after = judge.judge_day(numbered.links, past, today, begin, opened)
    return [*apart, *(packed(each, numbered, before, begin) for each in after)]


def unpacked(each: KeptCondition, numbered: Numbered) -> ClassCondition | None:
    """Return a condition for the judge; None where its subject has no links any more."""
    places: dict[str, Any] = {}
    for name, ids in (
        ("source", numbered.ids), ("destination", numbered.ids), ("site", numbered.sites),
    ):  # fmt: skip
        place = None if each[name] is None else int(ids.searchsorted(each[name]))
        if place is not None and (place == len(ids) or ids[place] != each[name]):
            return None
        places[name] = place
    keys = np.array([(source << 16) | end for source, end, _ in each["members"]], dtype=np.int64)
    links = numbered.keys.searchsorted(keys[np.isin(keys, numbered.keys)])
    values = {
        field.name: each[field.name] for field in fields(ClassCondition) if field.name not in PLACES
    }
    for name in FLOATS:
        values[name] = math.nan if values[name] is None else values[name]
    levels = {
        int(numbered.keys.searchsorted(key)): level
        for source, end, level in each["levels"]
        if (key := (source << 16) | end) in numbered.known_keys
    }
    return ClassCondition(**places, **values, links=tuple(links.tolist()), levels=levels)


def packed(
    condition: ClassCondition,
    numbered: Numbered,
    before: Iterable[KeptCondition],
    begin: int,
) -> KeptCondition:
    """Return what is kept of a condition: its links with what was usual of them before it."""
    result = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in vars(condition).items()
        if name not in PLACES
    }
    for name in FLOATS:
        result[name] = value if math.isfinite(value := result[name]) else None
    for name, ids in (
        ("source", numbered.ids), ("destination", numbered.ids), ("site", numbered.sites),
    ):  # fmt: skip
        place = getattr(condition, name)
        result[name] = None if place is None else int(ids[place])
    earlier = same_before(result, before)
    links = np.array(condition.links, dtype=np.int64)
    result["link_count"] = len(links)
    own = numbered.links.of(condition.subject)[numbered.tests.link]
    own &= numbered.tests.started >= condition.since
    tested = len(np.unique(numbered.tests.link[own]))
    if earlier and condition.ended_at is not None and condition.ended_at < begin:
        tested = earlier["of_links"]
    result["of_links"] = max(tested, len(links))
    pairs = {link: numbered.pair(link) for link in {*condition.links, *condition.levels}}
    result["levels"] = [
        [*pairs[link], float(level)] for link, level in sorted(condition.levels.items())
    ]
    result["members"] = []
    if condition.scope != GRID:
        rates = {(source, end): rate for source, end, rate in (earlier or {}).get("members", ())}
        levels = levels_before(condition.since, links, numbered)
        for link, median in zip(links.tolist(), levels.tolist(), strict=True):
            # As the judge has it; of what fails, as it was when the condition was new.
            level = condition.levels.get(link, median)
            rate = math.exp(level) if math.isfinite(level) else None
            if link not in condition.levels:
                rate = rates.get(pairs[link], rate)
            result["members"].append([*pairs[link], rate])
    return result


def same_before(each: KeptCondition, before: Iterable[KeptCondition]) -> KeptCondition | None:
    """Return the condition that it was a day earlier, of several the one that began nearest."""
    names = ("scope", "source", "destination", "site", "type")
    same = [
        other
        for other in before
        if all(other[name] == each[name] for name in names)
        and other["since"] <= (each["ended_at"] or math.inf)
        and each["since"] <= (other["ended_at"] or math.inf)
    ]
    return min(same, key=lambda other: abs(other["since"] - each["since"]), default=None)


def levels_before(since: int, links: Integers, numbered: Numbered) -> Floats:
    """Return the median log rate of links in the tests before a moment; NaN where they are few."""
    tests = numbered.tests
    chosen = np.zeros(len(numbered.keys), dtype=bool)
    chosen[links] = True
    own = np.flatnonzero(chosen[tests.link] & (tests.started < since) & np.isfinite(tests.log_rate))
    count = np.bincount(tests.link[own], minlength=len(numbered.keys))
    levels = medians(tests.link[own], tests.log_rate[own], len(numbered.keys))
    return np.where(count >= FEWEST, levels, np.nan)[links]


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
