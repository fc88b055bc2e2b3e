"""Due tests become probes, by priority and oldest first, as far as there is room for them."""

import logging
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Case, F, Min, QuerySet, Value, When
from django.db.models.functions import Coalesce

from sonar.database.cursors import pipelined, planned_cursor
from sonar.models import Circuit, Leftover, MeshInterval, Probe, Schedule
from sonar.obstacles.catalogue import COUNTING, OBSTACLES, AtCap
from sonar.obstacles.obstacle import RunConditions, Start, conditions_at
from sonar.processes.clock_steps import ClockSteps
from sonar.processes.heartbeats import CLOCK_SKEW as SKEW
from sonar.results import circuits, endings
from sonar.scheduler.sync import follow_registry
from sonar.scheduler.waiting import is_only_planner, start

log = logging.getLogger(__name__)

# The last tick, and what is due last of all by the far end of its index: cheap in every tick.
# Rows that are due too late but not last of all are found only by the tick that has gone back.
LOOK = """
    WITH last AS (SELECT value FROM sonar_version WHERE name = 'tick')
    INSERT INTO sonar_version (name, value) VALUES ('tick', %(now)s)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
    RETURNING (SELECT value FROM last), (SELECT max(next_due) FROM sonar_schedule),
              (SELECT max(every_seconds) FROM sonar_meshinterval)
"""
# Reads the whole schedule: seconds at three million rows, once after such a day.
DUE_NOW = """
    UPDATE sonar_schedule SET next_due = %(now)s
    WHERE next_due > %(latest)s + every_seconds * interval '1 second'
"""
steps = ClockSteps()


def put_right(now: datetime) -> None:
    """Let what is due later than one interval from now be due now, if the clock was ahead.

    Under the planner's lock, after the schedule has followed the registry. Clocks of several
    machines may differ by SKEW; a clock that was seen to jump back was ahead, however little.
    """
    with steps.followed() as (step, _), connection.cursor() as cursor:
        slack = timedelta() if step < timedelta() else SKEW
        cursor.execute(LOOK, {"now": int(now.timestamp())})
        last, latest_due, longest = cursor.fetchone()
        went_back = last is not None and now + SKEW < datetime.fromtimestamp(last, UTC)
        too_late = latest_due and latest_due > now + timedelta(seconds=longest or 0) + SKEW
        if slack and not went_back and not too_late:
            return
        cursor.execute(DUE_NOW, {"now": now, "latest": now + slack})
        log.warning(
            "the clock was ahead and was set back: %d tests are due now instead of later",
            cursor.rowcount,
        )
        # What else waits for a moment: few rows, and to try earlier once is no harm.
        Schedule.objects.filter(skipped_since__gt=now).update(skipped_since=now)
        Circuit.objects.filter(next_test_at__gt=now).update(next_test_at=now)
        Leftover.objects.filter(next_try__gt=now).update(next_try=now)
        Probe.objects.filter(requested_at__gt=now).update(requested_at=now)
        Probe.objects.filter(sent_at__gt=now).update(sent_at=now)
        endings.give_time_again(Probe.objects.filter(started_at__gt=now + slack), now)


BATCH, PIECE = 5000, 500
Due = tuple[int, int, int, int, int]
"""A schedule that is due, its source, destination, size class and mesh, by their ids."""

# The rows that are due are a queue: the front of one index, from where they move to its end.
# Statistics lag behind, and PostgreSQL, expecting many, reads the whole table, or visits in a
# bitmap what was due in all ticks since the last vacuum. A plain scan passes by what has gone.
# A tick that a crash undoes has not happened: nobody waits for the disk.
READ_AS_QUEUE = """
    SELECT set_config(name, 'off', true)
    FROM unnest(array['enable_seqscan', 'enable_bitmapscan', 'synchronous_commit']) AS name
"""
CLAIM = """
    WITH claimed AS (
        UPDATE sonar_schedule SET skipped_because = '', skipped_since = NULL,
               next_due = %(now)s + every_seconds * interval '1 second'
        FROM unnest(%(schedules)s::bigint[], %(probes)s::uuid[]) AS wanted (schedule_id, probe_id)
        WHERE id = wanted.schedule_id
        RETURNING wanted.*, mesh_id, source_id, destination_id, size_class_id
    )
    INSERT INTO sonar_probe (
        id, schedule_id, mesh_id, source_id, destination_id, size_class_id, bytes, mover, mode,
        streams, tcp_buffer_bytes, scitag, state, requested_at, sent_at, worker, progress_bytes,
        waits_because, runs)
    SELECT probe_id, schedule_id, mesh_id, source_id, destination_id, size_class_id, test_bytes,
           mover, mode, streams, tcp_buffer_bytes, scitag, 'queued', %(now)s, %(now)s, '', 0,
           '', 0
    FROM claimed
    JOIN sonar_mesh mesh ON mesh.id = mesh_id
    JOIN sonar_sizeclass size_class ON size_class.id = size_class_id
"""


def claim_due(now: datetime) -> list[UUID]:
    """Queue a probe for every test that is due and may run, by priority, oldest first.

    What people ordered and waits for room goes before. Returns the ids of the probes, to be sent
    to workers after the commit. What is due but may not run gets its reason on its Schedule row.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        if not is_only_planner():
            return []
        follow_registry(now)
        put_right(now)
        conditions = conditions_at(now)
        probes = start(conditions)
        cursor.execute(READ_AS_QUEUE)
        # No joins: see READ_AS_QUEUE.
        due = Schedule.objects.filter(next_due__lte=now)
        allowed = due
        for obstacle in OBSTACLES:
            if not obstacle.is_of_room:
                allowed = allowed.exclude(obstacle.filter(conditions))
        for _, meshes in groupby(conditions.meshes, attrgetter("priority")):
            probes += _claim_batches(allowed.filter(mesh__in=list(meshes)), conditions)
        _note_reasons(due, conditions)
    return probes


def _claim_batches(allowed: QuerySet[Schedule], conditions: RunConditions) -> list[UUID]:
    """Take the due tests batch by batch; every batch takes the first of its rows at least.

    What has no room before a batch is not in it. What is due of one link goes one by one, and so
    that which has been due for longest first.
    """
    probes: list[UUID] = []
    whole = True
    while conditions.capacity.in_flight > 0 and whole:
        rows = allowed
        for obstacle in OBSTACLES:
            if obstacle.is_of_room:
                rows = rows.exclude(obstacle.filter(conditions))
        batch: list[Due] = list(
            rows.order_by("next_due", "id").values_list(
                "id", "source_id", "destination_id", "size_class_id", "mesh_id"
            )[:BATCH]
        )
        rested: dict[int, int] = {}
        with pipelined():  # PostgreSQL queues some while the next are looked at
            for first in range(0, len(batch), PIECE):
                taken = _take(batch[first : first + PIECE], conditions, rested)
                probes += _queue(taken, conditions.now)
        for end, mesh in sorted(rested.items()):
            # How often the mesh promises a test of a link, whichever size it has.
            every = MeshInterval.objects.filter(mesh=mesh).aggregate(seconds=Min("every_seconds"))
            circuits.rest([end], timedelta(seconds=every["seconds"]), conditions.now)
        whole = len(batch) == BATCH
    return probes


def _take(rows: Iterable[Due], conditions: RunConditions, rested: dict[int, int]) -> list[int]:
    """Return the schedules that have room, which is theirs from now on.

    Ends that are tested thinly, and have their test now, are put into ``rested`` with its mesh.
    """
    capacity, taken = conditions.capacity, list[int]()
    sizes = {size_class.id: size_class.test_bytes for size_class in conditions.size_classes}
    counting = [obstacle for obstacle in COUNTING if obstacle.counts(conditions)]
    for schedule, source, destination, size_class, mesh in rows:
        new = Start(source, destination, mesh, sizes[size_class])
        thin = capacity.thin & {source, destination} if capacity.thin else ()
        has_room = all(obstacle.has_room(conditions, new) for obstacle in counting)
        if has_room and capacity.take(source, destination, new.bytes):
            taken.append(schedule)
            for obstacle in counting:
                obstacle.take(conditions, new)
            rested.update(dict.fromkeys(thin, mesh))
    return taken


def _queue(schedules: list[int], now: datetime) -> list[UUID]:
    """Make their probes, in one statement: 2,000 of them through the ORM cost 0.3 s."""
    chance = os.urandom(16 * len(schedules))  # of the system at once: each call costs a microsecond
    probes = [UUID(bytes=chance[at : at + 16], version=4) for at in range(0, len(chance), 16)]
    if probes:
        # As text: a list of parameters costs ten times as much to write.
        texts = {"schedules": map(str, schedules), "probes": (probe.hex for probe in probes)}
        arrays = {name: f"{{{','.join(each)}}}" for name, each in texts.items()}
        with planned_cursor() as cursor:
            cursor.execute(CLAIM, {**arrays, "now": now})
    return probes


def _note_reasons(due: QuerySet[Schedule], conditions: RunConditions) -> None:
    """Write why each test that is still due had to wait, by the first reason that it has.

    Only rows whose reason has changed are written. What a batch had no room for after all waits
    for a cap. Where all that was due has begun, nothing but that is looked for.
    """
    if not due.exists():
        return
    reason = Case(
        *(
            When(obstacle.filter(conditions), then=Value(obstacle.name))
            for obstacle in OBSTACLES
            if obstacle.name != AtCap.name
        ),
        default=Value(AtCap.name),
    )
    due.annotate(reason=reason).exclude(skipped_because=F("reason")).update(
        skipped_because=reason, skipped_since=Coalesce(F("skipped_since"), Value(conditions.now))
    )
