"""Figures on the health of Sonar itself, for status/, /metrics and the Health page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain

import numpy as np
from cachetools import TTLCache
from django.conf import settings
from django.db import connection
from django.db.models import Count, Min, Q
from django.db.models.functions import Coalesce

from matrix.answers.conditions import reading
from matrix.answers.matrix import grid
from matrix.query.filters import TESTS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.states import STATES_TO_SEE
from matrix.store import data_version, probes
from matrix.store.cache import Kept
from matrix.store.data_version import DataVersion, snapshot
from matrix.store.probes import NEXT_TICK
from matrix.store.profiles import made_so
from sonar.database import replica
from sonar.database.replica import ReplicaState
from sonar.models import (
    AllTests,
    Circuit,
    CredentialState,
    Incident,
    Notification,
    Probe,
    Schedule,
    SignOfLife,
    SizeClass,
    Subscription,
    Transfer,
)
from sonar.notation.vantages import at, vantage_of
from sonar.obstacles.catalogue import NAMED, NAMES, why_waiting
from sonar.obstacles.worker_movers import AT_VANTAGES, CLEANUP, TRANSFERS
from sonar.processes import heartbeats
from sonar.registry.downtimes import state
from sonar.registry.downtimes.state import SourceState
from sonar.results import circuits
from sonar.results.sealing import GRACE

# Queues that need a worker: without one nothing is measured.
QUEUES = (TRANSFERS, "control", CLEANUP)
# Tasks that the scheduler sends, by the names in CELERY_BEAT_SCHEDULE.
TASKS = tuple(settings.CELERY_BEAT_SCHEDULE)
PLANNER = "planner"
REASONS = (*NAMES, NEXT_TICK)
WINDOW = "24h"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# The waiting are one look into an index as long as little waits; at three million links that all
# wait it takes a second. Coverage costs as much as the matrix of each size class.
WORK_SECONDS, COVERAGE_SECONDS = 10, 30

# Marks of hours and days that are over and not compacted: few, unless compaction does not run.
UNCOMPACTED = """
    SELECT min(over), count(DISTINCT (size_class_id, level, over)) FROM (
        SELECT size_class_id, level, start + ('1 ' || level)::interval AS over
        FROM sonar_dirtymark) AS marks
    WHERE over <= %(now)s
"""


@dataclass(frozen=True)
class WaitingTests:
    """Tests that wait for one reason; ``because`` says what those that are due longest lack."""

    reason: str
    tests: int
    since: datetime | None
    because: Sequence[str] = ()


@dataclass(frozen=True)
class Coverage:
    """The links of a size class by their state over the last 24 hours, as the matrix has them.

    ``rates`` are the means of the cells that have one, in MB/s, by source, destination and whether
    an endpoint is simulated; there are none if the class has more than SONAR_METRICS_LINKS links,
    which ``omitted`` counts then. ``averages`` are those of rows and columns, by endpoint, end
    (``source`` or ``destination``) and whether it is simulated.
    """

    size: str
    states: Mapping[str, int]
    links: int
    as_of: datetime
    rates: Mapping[tuple[str, str, bool], float] = field(default_factory=dict)
    averages: Mapping[tuple[str, str, bool], float] = field(default_factory=dict)
    omitted: int = 0


@dataclass(frozen=True)
class Calls:
    """What waits for subscriptions and what failed lately; those whose channel does not answer.

    ``due_since`` is when the first of what waits should have been sent, None if nothing is due;
    what quiet hours hold back is not. ``incidents`` counts the open ones by type.
    """

    waiting: int
    failed: int
    due_since: datetime | None
    failing: int
    failing_since: datetime | None
    incidents: Mapping[str, int]


@dataclass(frozen=True)
class Work:
    """What is dear to read, as of some seconds ago.

    ``uncompacted`` hours and days are over and not compacted; the oldest ended at
    ``uncompacted_since``.
    ``circuits`` are those of ends by which tests keep failing, the oldest first; ``credentials``
    those that do not work or expire soon, the oldest first.
    """

    waiting: tuple[WaitingTests, ...]
    results: Mapping[str, int]
    uncompacted: int
    uncompacted_since: datetime | None
    circuits: tuple[Circuit, ...]
    credentials: tuple[CredentialState, ...]
    calls: Calls


@dataclass(frozen=True)
class Life:
    """Which processes have reported lately, and when each task last succeeded."""

    moment: datetime
    signs: tuple[SignOfLife, ...]
    stopped: str = ""
    """That all tests are stopped, until when and why; empty while they are not."""

    def task(self, name: str) -> SignOfLife | None:
        return self._newest(SignOfLife.Kind.TASK, name)

    @property
    def scheduler(self) -> SignOfLife | None:
        return self._newest(SignOfLife.Kind.BEAT)

    @property
    def queues(self) -> list[str]:
        """Return the queues that workers should take from, and those of vantages heard of."""
        vantages = sorted({vantage_of(queue) for queue in self.offered} - {""})
        return [*QUEUES, *(at(queue, each) for each in vantages for queue in AT_VANTAGES)]

    @property
    def deserted(self) -> list[str]:
        """Return the queues that nobody takes from; tests may have workers at vantages alone."""
        by_place = [each for each in self.queues if each.partition("@")[0] == TRANSFERS]
        is_moving = any(map(self.workers, by_place))
        others = [queue for queue in QUEUES[1:] if not self.workers(queue)]
        return others if is_moving else [TRANSFERS, *others]

    def workers(self, queue: str) -> list[SignOfLife]:
        return [
            sign
            for sign in self.signs
            if sign.kind == SignOfLife.Kind.WORKER
            and queue in sign.queues
            and not self.is_late(sign)
        ]

    @property
    def offered(self) -> set[str]:
        """Return the queues that workers have said to take from, lately or not."""
        return {queue for sign in self.signs for queue in sign.queues}

    @property
    def wrong_clocks(self) -> list[SignOfLife]:
        """Return who lives and has another time than the database, the worst first."""
        wrong = [
            sign
            for sign in self.signs
            if heartbeats.has_wrong_clock(sign)
            and sign.kind != SignOfLife.Kind.TASK
            and not self.is_late(sign)
        ]
        return sorted(wrong, key=lambda sign: -abs(sign.clock_ahead_seconds))

    def is_late(self, sign: SignOfLife | None) -> bool:
        """Say whether somebody has been silent for too long, or was never heard of."""
        return sign is None or heartbeats.is_silent(sign, self.moment)

    def is_stuck(self, task: str) -> bool:
        """Say whether a task has ended well before, which takes up to an hour, and does not now."""
        sign = self.task(task)
        return sign is not None and self.is_late(sign)

    def age(self, sign: SignOfLife | None) -> float | None:
        """Return how many seconds ago a sign was given; a clock that is ahead makes it 0."""
        return max((self.moment - sign.seen_at).total_seconds(), 0.0) if sign else None

    def _newest(self, kind: SignOfLife.Kind, name: str = "") -> SignOfLife | None:
        signs = [sign for sign in self.signs if sign.kind == kind and name in ("", sign.name)]
        return max(signs, key=lambda sign: sign.seen_at, default=None)


@dataclass(frozen=True)
class Probes:
    """How many tests are queued and running, and how many were ordered and wait for room."""

    waiting: int
    queued: int
    running: int
    oldest_queued: datetime | None


@dataclass(frozen=True)
class Status:
    moment: datetime
    life: Life
    probes: Probes
    work: Work
    judgement: reading.Judgement
    coverage: tuple[Coverage, ...]
    data_version: DataVersion
    sources: tuple[SourceState, ...]
    replica: ReplicaState | None
    all_tests: AllTests

    @property
    def stopped(self) -> AllTests | None:
        return self.all_tests if self.all_tests.is_paused(self.moment) else None

    @property
    def uncompacted_seconds(self) -> float:
        """Return how long ago the oldest uncompacted hour or day ended; 0 if there is none."""
        since = self.work.uncompacted_since
        return max((self.moment - since).total_seconds(), 0.0) if since else 0.0


_work: Kept[Work] = Kept(TTLCache(1, WORK_SECONDS))
_judgement: Kept[reading.Judgement] = Kept(TTLCache(1, WORK_SECONDS))
_coverage: Kept[tuple[Coverage, ...]] = Kept(TTLCache(1, COVERAGE_SECONDS))


def read(now: datetime) -> Status:
    """Read the status: five small SQL queries, and the expensive part if it is too old.

    Conditions, and how many links they make failing, are never older than a change of them.
    """
    queued = Q(state=Probe.State.QUEUED)
    with snapshot(of_primary=True):
        counts = Probe.objects.aggregate(
            waiting=Count("id", filter=Q(state=Probe.State.WAITING)),
            queued=Count("id", filter=queued),
            running=Count("id", filter=Q(state=Probe.State.RUNNING)),
            oldest_queued=Min(Coalesce("queued_at", "requested_at"), filter=queued),
        )
        version = data_version.fetch(data_version.OF_ALL)
        judged = replace(version.plan, incidents=version.incidents)
        return Status(
            moment=now,
            life=Life(now, tuple(SignOfLife.objects.all())),
            probes=Probes(**counts),
            work=_work.get(version.plan, lambda: read_work(now)),
            judgement=_judgement.get(judged, lambda: reading.read_open(now)),
            coverage=_coverage.get(judged, lambda: read_coverage(now)),
            data_version=version,
            sources=state.states(now),
            replica=replica.state(),
            all_tests=AllTests.read(),
        )


def forget() -> None:
    """Read everything anew the next time."""
    _work.forget()
    _judgement.forget()
    _coverage.forget()


def read_work(now: datetime) -> Work:
    """Count waiting tests, results of the last hour and uncompacted buckets. 9 SQL queries."""
    with connection.cursor() as cursor:
        cursor.execute(UNCOMPACTED, {"now": now - GRACE})
        uncompacted_since, uncompacted = cursor.fetchone()
    tests = made_so(Transfer.objects.filter(started_at__gte=now - HOUR), TESTS)
    recent = tests.values_list("state").order_by()
    by_state = dict.fromkeys(Transfer.State.values, 0) | dict(recent.annotate(Count("id")))
    failing_ends = tuple(circuits.open_circuits().select_related("endpoint__site"))
    states = CredentialState.objects.filter(endpoint__retired_at=None).exclude(mesh__enabled=False)
    troubled = tuple(states.select_related("endpoint__site", "mesh", "credential"))
    # What is to be told, and to whom it cannot be.
    is_waiting, has_failed = Q(state="waiting"), Q(state="failed")
    notifications = Notification.objects.filter(
        is_waiting | (has_failed & Q(ended_at__gt=now - DAY))
    )
    failing = Subscription.objects.filter(enabled=True, failing_since__isnull=False)
    incidents = Incident.objects.filter(closed_at=None).values_list("type", flat=True)
    calls = Calls(
        **notifications.aggregate(
            waiting=Count("id", filter=is_waiting),
            failed=Count("id", filter=has_failed),
            due_since=Min("due_at", filter=is_waiting & Q(due_at__lte=now)),
        ),
        **failing.aggregate(failing=Count("id"), failing_since=Min("failing_since")),
        incidents=Counter(incidents),
    )
    # The tests that are due by why they wait, in the order of REASONS.
    due = Schedule.objects.filter(next_due__lte=now).values_list("skipped_because").order_by()
    counts = list(due.annotate(Count("id"), Min("skipped_since")))
    because: dict[str, list[str]] = {}
    if not NAMED.isdisjoint(reason for reason, *_ in counts):  # people must act
        held = chain.from_iterable(probes.longest_waiting(now).values())
        because = why_waiting([test.schedule for test in held], now)
    by_reason = {reason or NEXT_TICK: (number, since) for reason, number, since in counts}
    waiting = tuple(
        WaitingTests(reason, *by_reason.get(reason, (0, None)), because.get(reason, ()))
        for reason in REASONS
    )
    return Work(waiting, by_state, uncompacted, uncompacted_since, failing_ends, troubled, calls)


def read_coverage(now: datetime) -> tuple[Coverage, ...]:
    """Judge every link in each size class, as the matrix does, and take its rates."""
    coverage = []
    for name in SizeClass.objects.values_list("name", flat=True):
        day = grid.build(MatrixQuery(size=name, window=WINDOW), now)
        states = day.states()
        covered = {state: states[state] for state in STATES_TO_SEE}
        links = sum(covered.values())
        averages = {
            (group.name, end, group.simulated): float(rate)
            for end, groups, means in (
                ("source", day.sources, day.averages.row),
                ("destination", day.destinations, day.averages.column),
            )
            for group, rate in zip(groups, means, strict=True)
            if np.isfinite(rate)
        }
        omitted = links if links > settings.SONAR_METRICS_LINKS else 0
        rates = {}
        if not omitted:
            for row, column in np.argwhere(np.isfinite(day.cells.value)).tolist():
                source, destination = day.sources[row], day.destinations[column]
                simulated = source.simulated or destination.simulated
                key = source.name, destination.name, simulated
                rates[key] = float(day.cells.value[row, column])
        coverage.append(Coverage(name, covered, links, now, rates, averages, omitted))
    return tuple(coverage)
