"""Judging one day: from the conditions that the day before ended with to those of its own end.

What the tests of the weeks before a day say is found once and kept by the process, so that the
next look at the same day reads its new tests alone.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import IO, Any, Self

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from matrix.assessment.inputs import DayTests, Numbered, Registry
from matrix.statistics.arrays import Flags, Floats, Integers, Stretches, places_in
from matrix.statistics.assessment.baselines import FEWEST, medians
from matrix.statistics.assessment.conditions import FAST, SLOW, ClassCondition
from matrix.statistics.assessment.days import judge_day as judge_tests
from matrix.statistics.assessment.grid_links import DAY_MS, GRID, JudgedTests
from matrix.statistics.assessment.judge import BACK_DAYS
from matrix.statistics.assessment.midnight import Midnight, Past
from matrix.statistics.assessment.targets import Targets
from matrix.statistics.cells.cell_targets import LinkRules
from matrix.store.cache import Kept

# A condition of a size class as a day keeps it: fields of ClassCondition, with ids in the place
# of places, None for NaN, and its links with their baselines.
KeptCondition = dict[str, Any]
# The rules for links between the endpoints with these ids.
Rules = tuple[Integers, LinkRules]
FLOATS = {each.name for each in fields(ClassCondition) if each.type == "float"}
PLACES = ("source", "destination", "site", "links", "levels")
# What is unusually fast for so long is as usual from then on.
FAST_MS = 14 * DAY_MS


@dataclass(frozen=True)
class Accepted:
    """From when on (Unix ms) another level of a link is normal: a natural log of bytes/s."""

    at: int
    level: float


@dataclass(frozen=True)
class DayInputs:
    """What a day of a size class is judged by, up to ``end`` (Unix ms).

    ``past`` are the tests of the weeks before it, ``today`` those of the day. ``accepted`` has
    levels by link (source id << 16 | destination id); ``rules`` are those for links between
    endpoints with these ``ids``. ``key`` tells what the tests before it are from others.
    """

    past: Callable[[], Iterable[DayTests]]
    past_links: Integers
    today: DayTests
    begin: int
    end: int
    registry: Registry
    key: tuple[object, ...] = ()
    accepted: Mapping[int, Accepted] = field(default_factory=dict)
    rules: Rules | None = None


def judge_day(day: DayInputs, before: Sequence[KeptCondition]) -> list[KeptCondition]:
    """Return the conditions at the end of a day from those before it."""
    over = [each for each in before if each.get("is_normal")]
    before = [each for each in before if not each.get("is_normal")]
    levels = accepted_levels(day, over)
    for at in sorted({each.at for each in levels.values() if each.at >= day.begin}):
        until = {link: each for link, each in levels.items() if each.at < at}
        for each in fold(day, before, at, until):
            if is_accepted(each, levels, at):
                over.append(each | {"ended_at": at, "is_normal": True})
                before = [other for other in before if same_before(each, [other]) is None]
    result = fold(day, before, day.end, levels)
    for each in result:
        end = each["since"] + FAST_MS
        if each["type"] == FAST and each["ended_at"] is None and end < day.end:
            each |= {"ended_at": end, "is_normal": True}
    return [*over, *result]


def accepted_levels(day: DayInputs, over: Iterable[KeptCondition]) -> dict[int, Accepted]:
    """Return by link the level that somebody accepted, or that was fast for so long."""
    levels = {
        link: each
        for link, each in day.accepted.items()
        if day.begin - BACK_DAYS * DAY_MS <= each.at < day.end
    }
    for each in over:
        for source, end, level in each["levels"] if each["type"] == FAST else ():
            own = Accepted(each["ended_at"], level + each["shift"])
            link = source << 16 | end
            if link not in levels or levels[link].at < own.at:
                levels[link] = own
    return levels


def is_accepted(each: KeptCondition, levels: Mapping[int, Accepted], at: int) -> bool:
    """Say whether a condition of rates is open, and all its links have been accepted by then."""
    links = [source << 16 | end for source, end, _ in each["members"]]
    if each["ended_at"] is not None or each["type"] not in (SLOW, FAST) or not links:
        return False
    return all(link in levels and each["since"] <= levels[link].at <= at for link in links)


def fold(
    day: DayInputs, before: Sequence[KeptCondition], end: int, levels: Mapping[int, Accepted]
) -> list[KeptCondition]:
    """Judge a day up to ``end``, with levels that were accepted: earlier tests tell nothing."""
    today = without_earlier(day.today.until(end), levels)
    known_day = KnownDay.of(day, before, today, levels)
    numbered, tests = known_day.numbered, known_day.numbered.judged([today])
    opened: list[ClassCondition] = []
    apart: list[KeptCondition] = []
    for each in before:
        condition = unpacked(each, numbered)
        if condition is None:
            apart.append(each)
        else:
            opened.append(condition)
    after = judge_tests(
        numbered.links,
        known_day.past,
        tests,
        day.begin,
        opened,
        targets=targets_of(numbered, levels, day.rules),
        keep=known_day.keep,
    )
    return [*apart, *(packed(each, known_day, tests, before) for each in after)]


def without_earlier(tests: DayTests, levels: Mapping[int, Accepted]) -> DayTests:
    """Leave out tests of links before a level of theirs was accepted."""
    if not levels:
        return tests
    keys = np.array(sorted(levels), dtype=np.int64)
    moments = np.array([levels[key].at for key in keys.tolist()], dtype=np.int64)
    place = places_in(keys, tests.link)
    return tests.taken((place < 0) | (tests.started >= moments[place]))


def targets_of(
    numbered: Numbered, levels: Mapping[int, Accepted], rules: Rules | None
) -> Targets | None:
    """Return what people expect of links; None where that is nothing but what is usual."""
    if not levels and rules is None:
        return None
    targets = Targets.usual(len(numbered.keys))
    for own, each in zip(numbered.places([*levels]), levels.values(), strict=True):
        if own >= 0:
            targets.accepted[own] = each.level
    if rules is None:
        return targets
    ids, of_link = rules
    source, destination = (
        ids.searchsorted(ends) for ends in (numbered.keys >> 16, numbered.keys & 0xFFFF)
    )
    place = source * len(ids) + destination
    below, floor, failures = (
        of_link.each(name).ravel()[place].astype(np.float64)
        for name in ("below", "floor", "failures")
    )
    return Targets(np.log(below), np.log(floor), failures.astype(np.int64), targets.accepted)


# Tests of the past of more links and days than these are not kept in memory.
MOST_IN_MEMORY = 4_000_000
MOST_MB = 512
SPOOLED = np.dtype([("link", "<i4"), ("started", "<i8"), ("rate", "<f4")])
SPOOLED_AT_ONCE = 1 << 18


@dataclass
class KnownDay:
    """What a process keeps of a day: its links, the tests before it, and what these say.

    ``past`` returns the tests of some links. ``nights`` refer to it, too: as a method it would make
    a reference cycle, and a day would stay in memory until Python collects those. ``in_memory``
    counts tests.
    """

    begin: int
    numbered: Numbered
    past: Past
    in_memory: int
    nights: dict[str, Midnight] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        day: DayInputs,
        before: Sequence[KeptCondition],
        today: DayTests,
        levels: Mapping[int, Accepted],
    ) -> KnownDay:
        members = {source << 16 | end for each in before for source, end, _ in each["members"]}
        ends = set(day.registry.site_of)
        listed = [key for key in members if {key >> 16, key & 0xFFFF} <= ends]
        links = np.array(listed, dtype=np.int64)
        keys = with_more(day.past_links, np.concatenate([today.link.astype(np.int64), links]))
        facts = repr((before, sorted(levels.items()), sorted(day.registry.site_of.items())))
        digest = hashlib.blake2b(facts.encode() + keys.tobytes(), digest_size=16)
        if day.rules is not None:
            digest.update(rules_digest(day.rules[1]).encode())

        def build() -> KnownDay:
            past = (without_earlier(each, levels) for each in day.past())
            numbered = Numbered.of_links(keys, day.registry)
            return cls(day.begin, numbered, *stored(numbered, past))

        return _known_days.get((*day.key, digest.digest()), build) if day.key else build()

    def keep(self, type_: str, make: Callable[[], Midnight]) -> Midnight:
        """Return what the tests before the day say of what is slow, and of what is fast."""
        if type_ not in self.nights:
            self.nights[type_] = make()
        return self.nights[type_]

    @property
    def nbytes(self) -> int:
        """Return about how much memory it takes once it is used."""
        return 25 * self.in_memory + 170 * len(self.numbered.keys)


def with_more(keys: Integers, more: Integers) -> Integers:
    """Return keys (in order, each once) with some more; those that are there cost little."""
    new = more[places_in(keys, more) < 0]
    return np.union1d(keys, new) if len(new) else keys


_known_days: Kept[KnownDay] = Kept(
    LRUCache(MOST_MB << 20, getsizeof=lambda known_day: known_day.nbytes)
)


def forget() -> None:
    _known_days.forget()


def rules_digest(rules: LinkRules) -> str:
    """Return what changes with rules, or with the links that they are for."""
    digest = hashlib.blake2b(repr(rules.rules).encode(), digest_size=6)
    digest.update(rules.number.tobytes())
    return digest.hexdigest()


def stored(numbered: Numbered, days: Iterable[DayTests]) -> tuple[Past, int]:
    """Keep tests in memory or, if they are very many, in a file; count those in memory."""
    kept: list[DayTests] = []
    count, written = 0, None
    for each in days:
        count += len(each.link)
        kept.append(each)
        if written is None and count > MOST_IN_MEMORY:
            written = tempfile.TemporaryFile()  # noqa: SIM115 - closed once it is sorted
        if written is not None:
            for day in kept:
                written.write(spooled(numbered, day).tobytes())
            kept.clear()
    if written is None:
        return numbered.judged(kept).of_links, count
    with written:
        return Spool.of(written, len(numbered.keys)).read, 0


def spooled(numbered: Numbered, tests: DayTests) -> NDArray[np.void]:
    rows = np.empty(len(tests.link), SPOOLED)
    rows["link"] = numbered.keys.searchsorted(tests.link)
    rows["started"] = tests.started
    rows["rate"] = np.where(tests.rate > 0, tests.rate, -1.0 - tests.blamed)
    return rows


@dataclass
class Spool:
    """Tests of many days in a file without a name, by link and then by time.

    The rate (bytes/s) of a failed test is -1, less which end its error names. ``stretches`` has
    where the tests of each link are.
    """

    rows: NDArray[np.void]
    stretches: Stretches

    @classmethod
    def of(cls, written: IO[bytes], links: int) -> Self:
        """Sort tests that were written in the order of time, a part of them at once."""
        counts, total = np.zeros(links, dtype=np.int64), 0
        for part in parts_of(written):
            counts += np.bincount(part["link"], minlength=links)
            total += len(part)
        starts = np.cumsum(counts) - counts
        with tempfile.TemporaryFile() as file:
            rows = np.memmap(file, SPOOLED, "w+", shape=total)
        free = starts.copy()
        for part in parts_of(written):
            of_part = np.bincount(part["link"], minlength=links)
            by_link = np.argsort(part["link"], kind="stable")
            rows[Stretches(free, of_part).places()] = part[by_link]
            free += of_part
        return cls(rows, Stretches(starts, counts))

    def read(self, chosen: Flags) -> JudgedTests:
        rows = self.rows[self.stretches.taken(np.flatnonzero(chosen)).places()]
        rows = rows[np.argsort(rows["started"], kind="stable")]
        rate = rows["rate"].astype(np.float64)
        log_rate = np.full(len(rate), np.nan)
        np.log(rate, out=log_rate, where=rate > 0)
        blamed = np.where(rate < 0, -1 - rate, 0).astype(np.int64)
        return JudgedTests(
            rows["link"].astype(np.int64), rows["started"].astype(np.int64), log_rate, blamed
        )


def parts_of(written: IO[bytes]) -> Iterator[NDArray[np.void]]:
    written.seek(0)
    while part := written.read(SPOOLED_AT_ONCE * SPOOLED.itemsize):
        yield np.frombuffer(part, SPOOLED)


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
    links = numbered.places([(source << 16) | end for source, end, _ in each["members"]])
    values = {
        field.name: each[field.name] for field in fields(ClassCondition) if field.name not in PLACES
    }
    for name in FLOATS:
        values[name] = math.nan if values[name] is None else values[name]
    of_levels = numbered.places([(source << 16) | end for source, end, _ in each["levels"]])
    levels = {
        place: level
        for place, (_, _, level) in zip(of_levels, each["levels"], strict=True)
        if place >= 0
    }
    own = tuple(place for place in links if place >= 0)
    return ClassCondition(**places, **values, links=own, levels=levels)


def packed(
    condition: ClassCondition,
    known_day: KnownDay,
    today: JudgedTests,
    before: Iterable[KeptCondition],
) -> KeptCondition:
    """Return what is kept of a condition: its links with what was usual of them before it."""
    numbered, begin = known_day.numbered, known_day.begin
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
    tests = tests_of(condition, known_day, today)
    tested = len(np.unique(tests.link[tests.started >= condition.since]))
    if earlier and condition.scope == GRID:
        tested = max(tested, earlier["of_links"])
    elif earlier and condition.ended_at is not None and condition.ended_at < begin:
        tested = earlier["of_links"]
    result["of_links"] = max(tested, len(links))
    pairs = {link: numbered.pair(link) for link in {*condition.links, *condition.levels}}
    result["levels"] = [
        [*pairs[link], float(level)] for link, level in sorted(condition.levels.items())
    ]
    result["members"] = []
    if condition.scope != GRID:
        rates = {(source, end): rate for source, end, rate in (earlier or {}).get("members", ())}
        levels = levels_before(condition.since, links, tests)
        for link, median in zip(links.tolist(), levels.tolist(), strict=True):
            # As the judge has it; of what fails, as it was when the condition was new.
            level = condition.levels.get(link, median)
            rate = math.exp(level) if math.isfinite(level) else None
            if link not in condition.levels:
                rate = rates.get(pairs[link], rate)
            result["members"].append([*pairs[link], rate])
    return result


def tests_of(condition: ClassCondition, known_day: KnownDay, today: JudgedTests) -> JudgedTests:
    """Return the tests of its links; of the whole grid those of today."""
    if condition.scope == GRID:
        return today
    own = known_day.numbered.links.of(condition.subject)
    return known_day.past(own).followed_by(today.of_links(own))


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


def levels_before(since: int, links: Integers, tests: JudgedTests) -> Floats:
    """Return the median log rate of links, in order, in the tests before a moment; NaN of few."""
    place = places_in(links, tests.link)
    own = np.flatnonzero((place >= 0) & (tests.started < since) & tests.ok)
    successes = np.bincount(place[own], minlength=len(links))
    levels = medians(place[own], tests.log_rate[own], len(links))
    return np.asarray(np.where(successes >= FEWEST, levels, np.nan))
