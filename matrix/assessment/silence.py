"""What is silent now: which scheduled links have had no test for too long, though nothing known
keeps Sonar from testing them.

Known are downtimes, pauses, quiet hours, endpoints that are not enabled, open circuit breakers, a
stop of all tests, and times in which Sonar itself did not run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

import numpy as np
from cachetools import LRUCache
from django.conf import settings

from matrix.assessment import targets
from matrix.assessment.inputs import DayTests, LastTests, Numbered, Registry
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.assessment.common_ends import SHARED
from matrix.statistics.assessment.conditions import ClassCondition
from matrix.statistics.assessment.grid_links import GRID, LINK, Subject
from matrix.statistics.assessment.merging import covering
from matrix.statistics.assessment.silence import Promise, silent_conditions
from matrix.statistics.cells.cell_targets import LinkRules
from matrix.store import registry as places
from matrix.store.cache import Kept
from matrix.store.data_version import DataVersion
from matrix.store.read_plan import moment
from sonar.models import AllTests, Assessment, MeshInterval, SizeClass
from sonar.notation.windows import unix_ms
from sonar.obstacles.obstacle import Restrictions
from sonar.results import circuits, conditions
from sonar.results.conditions import ConditionSubject, FoundPart, MemberLink

# Assessments that are further apart than this, or than so many of their intervals, do not follow
# each other: Sonar was away.
AWAY, AWAY_INTERVALS = timedelta(minutes=15), 3
# For so long after something has kept its tests back an endpoint is remembered for it.
REMEMBERED = timedelta(days=28)
# Megabytes at 1,000 endpoints; one for each size class.
_rules: Kept[LinkRules] = Kept(LRUCache(8))


@dataclass(frozen=True)
class Testing:
    """Since when nothing known has kept Sonar from testing: anything of a size class
    (``awake_since``, by id), and at endpoints (``free_since``, by id, Unix ms). ``held`` are the
    endpoints that something keeps from it now; what may be over at any time ``is_passing``.
    ``due`` is when links would be silent next.
    """

    now: datetime
    registry: Registry
    awake_since: dict[int, datetime]
    free_since: Mapping[int, int]
    held: Set[int]
    intervals: Mapping[int, Sequence[MeshInterval]]
    is_passing: bool
    due: list[datetime]
    version: DataVersion

    @classmethod
    def read(cls, now: datetime, registry: Registry) -> Self:
        """Read it as of now, from what the assessment before this one noted; six SQL queries."""
        longest = max(AWAY, AWAY_INTERVALS * timedelta(seconds=settings.SONAR_INCIDENTS_SECONDS))
        if AllTests.read().is_paused(now):
            longest = timedelta(-1)
        rows = list(Assessment.objects.all())
        awake_since = {
            row.size_class_id: row.awake_since or row.assessed_at
            for row in rows
            if timedelta() <= now - row.assessed_at <= longest
        }
        intervals: dict[int, list[MeshInterval]] = {}
        for each in MeshInterval.objects.select_related("mesh").order_by("mesh_id", "id"):
            intervals.setdefault(each.size_class_id, []).append(each)
        for row in rows:
            # Links that are to be tested more often than before have their time again.
            before = row.intervals
            if any(
                each.every_seconds < before.get(str(each.mesh_id), math.inf)
                for each in intervals.get(row.size_class_id, ())
            ):
                awake_since.pop(row.size_class_id, None)
        kept_back = Restrictions.at(now)
        held = {*kept_back.down, *kept_back.paused, *kept_back.quiet}
        held |= {each.endpoint_id for each in circuits.open_circuits()}
        is_passing = bool(held)
        held |= kept_back.disabled
        oldest = unix_ms(now - REMEMBERED)
        free_since = {
            int(end): until
            for row in rows
            for end, until in row.free_since.items()
            if until >= oldest
        }
        free_since |= dict.fromkeys(sorted(held), unix_ms(now))
        version = places.read_versions()
        return cls(now, registry, awake_since, free_since, held, intervals, is_passing, [], version)

    def noted(self, size_class: SizeClass) -> Assessment:
        """Return what the next assessment has to know."""
        return Assessment(
            size_class=size_class,
            assessed_at=self.now,
            awake_since=self.awake_since.get(size_class.id, self.now),
            free_since=self.free_since,
            intervals={
                each.mesh_id: each.every_seconds for each in self.intervals.get(size_class.id, ())
            },
        )


def read_rules(size_class: SizeClass, version: DataVersion) -> LinkRules:
    """Return the rule of each link in a size class, for links of this version."""
    links = places.read_links(version)
    key = (version.registry, version.schedule, version.incidents, size_class.id)
    return _rules.get(key, lambda: targets.rules_of(size_class, targets.read(), links))


def silent_parts(
    size_class: SizeClass, newest: LastTests, days: Sequence[DayTests], testing: Testing
) -> Iterator[FoundPart]:
    """Yield what is silent in a size class now, and what was and is tested again.

    ``newest`` are the newest tests of links; ``days`` have the tests of today and yesterday.
    """
    limit = limits(size_class, newest.link.astype(np.int64), testing)
    chosen = np.flatnonzero(np.isfinite(limit))
    keys, last, limit = newest.link[chosen].astype(np.int64), newest.started[chosen], limit[chosen]
    numbered = Numbered.of_links(keys, testing.registry)
    ids, links = numbered.ids, numbered.links
    awake_since = unix_ms(testing.awake_since.setdefault(size_class.id, testing.now))
    free = np.array(
        [max(testing.free_since.get(each, 0), awake_since) for each in ids.tolist()], np.int64
    )
    # When no link at all was tested for long, each one has its time again.
    started = np.unique(np.concatenate([last, *(day.started for day in days)]))
    gaps = np.flatnonzero(np.diff(started) >= limit.min(initial=math.inf) / 2)
    if gaps.size:
        free = np.maximum(free, started[gaps[-1] + 1])
    held = np.isin(ids, [*testing.held])
    promise = Promise(
        last=last,
        limit=limit,
        free_since=np.maximum(free[links.source], free[links.destination]),
        is_held=held[links.source] | held[links.destination],
    )
    due = promise.due[promise.is_tested & (promise.due > unix_ms(testing.now))]
    if due.size:
        testing.due.append(moment(int(due.min())))
    silent = list(silent_conditions(links, promise, unix_ms(testing.now)))
    if any(each.scope == GRID for each in silent):
        testing.awake_since[size_class.id] = testing.now
    for each in silent:
        own = links.of(each.subject) & promise.is_tested
        yield part_of(size_class, each, int(own.sum()), numbered)
    subjects = {subject_of(each.subject, numbered) for each in silent}
    for part in conditions.open_silent(size_class):
        subject = Subject(*part.subject[:4])
        if subjects.isdisjoint(covering(subject, testing.registry.site_of)):
            yield (carried := carried_on(part, keys, days, testing.now))
            if subject.scope == GRID and carried.ended_at is None:
                # Once Sonar tests again, each link has its time again.
                testing.awake_since[size_class.id] = testing.now


def limits(size_class: SizeClass, keys: Integers, testing: Testing) -> Floats:
    """Return after how many ms without a test each link (key) is silent; infinity for never."""
    version = testing.version
    links = places.read_links(version)
    every = places.read_promises(MatrixQuery(size=size_class.name), links, version)
    ids = links.numbering.ids
    source, destination = ids.searchsorted(keys >> 16), ids.searchsorted(keys & 0xFFFF)
    number = source * len(ids) + destination
    after = read_rules(size_class, version).each("silent_after").ravel()[number]
    # A mesh may rest for some hours of each day.
    quiet = max(map(quiet_seconds, testing.intervals.get(size_class.id, ())), default=0)
    return np.asarray((after * every[number] + quiet) * 1000)


def quiet_seconds(interval: MeshInterval) -> int:
    start, end = interval.mesh.quiet_from, interval.mesh.quiet_until
    if start is None or end is None:
        return 0
    minutes = (end.hour - start.hour) * 60 + end.minute - start.minute
    return minutes % (24 * 60) * 60


def subject_of(subject: Subject, numbered: Numbered) -> Subject:
    """Return a subject by places as one by ids."""
    source, destination = (
        None if end is None else int(numbered.ids[end])
        for end in (subject.source, subject.destination)
    )
    site = None if subject.site is None else int(numbered.sites[subject.site])
    return Subject(subject.scope, source, destination, site)


def part_of(
    size_class: SizeClass,
    condition: ClassCondition,
    of_links: int,
    numbered: Numbered,
) -> FoundPart:
    members = [MemberLink(*numbered.pair(link), None) for link in condition.links]
    since, seen = moment(condition.since), moment(condition.seen_at)
    return FoundPart(
        size_class_id=size_class.id,
        subject=ConditionSubject(*subject_of(condition.subject, numbered), condition.type),
        since=since,
        since_low=since,
        since_high=since,
        confirmed_at=seen,
        ended_at=None,
        factor=None,
        factor_low=None,
        factor_high=None,
        links=len(members),
        of_links=of_links,
        shown_at=seen,
        tests=0,
        failed=0,
        members=[] if condition.scope == GRID else members,
    )


def carried_on(
    part: FoundPart, scheduled: Integers, days: Sequence[DayTests], now: datetime
) -> FoundPart:
    """Return what was silent as it is now: over, if enough of its links were tested again.

    What is not tested because something keeps it back stays as it was; what no schedule tests any
    more is over.
    """
    scope = part.subject.scope
    own = np.array([source << 16 | end for source, end, _ in part.members], dtype=np.int64)
    if scope != GRID and not np.isin(own, scheduled).any():
        return replace(part, ended_at=max(now, part.since))
    firsts: dict[int, int] = {}
    for day in days:
        again = (day.started > unix_ms(part.since)) & (day.started <= unix_ms(now))
        if scope != GRID:
            again &= np.isin(day.link, own)
        for link, started in zip(
            day.link[again].tolist(), day.started[again].tolist(), strict=True
        ):
            firsts[link] = min(started, firsts.get(link, started))
    needed = 0 if scope in (GRID, LINK) else int((1 - SHARED) * len(own))
    if len(firsts) > needed:
        return replace(part, ended_at=moment(sorted(firsts.values())[needed]))
    members = [each for each in part.members if each[0] << 16 | each[1] not in firsts]
    return replace(part, members=members, links=len(members) if members else part.links)
