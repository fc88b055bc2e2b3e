"""Due tests become probes, by priority and oldest first, as far as there is room for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models import Case, F, Min, Q, QuerySet, Value, When
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from sonar.models import Mesh, MeshInterval, Schedule, SizeClass
from sonar.models.mesh import SkipReason
from sonar.obstacles import offers
from sonar.results import circuits
from sonar.scheduler.capacity import Capacity, either_end
from sonar.scheduler.clock import put_right
from sonar.scheduler.lending import forbidden
from sonar.scheduler.lock import is_only_planner
from sonar.scheduler.restrictions import Restrictions
from sonar.scheduler.sync import follow_registry
from sonar.scheduler.waiting import start

BATCH = 5000

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
        capacity = Capacity.left(now)
        probes = start(capacity, now)
        cursor.execute(READ_AS_QUEUE)
        classes = list(SizeClass.objects.all())
        restrictions = Restrictions.at(now)
        down, paused = either_end(restrictions.down), either_end(restrictions.paused)
        quiet_sites = either_end(restrictions.quiet)
        loud, quiet = _by_quiet_hours(Mesh.objects.order_by("-priority"), now)
        giving_away = forbidden([*loud, *quiet])
        offered = offers.by_living(now)
        unoffered = [mesh for mesh in [*loud, *quiet] if offers.hindrance(mesh.mover, offered)]
        alone = offers.nobody_there([*loud, *quiet], offered)
        # No joins: see READ_AS_QUEUE.
        due = Schedule.objects.filter(next_due__lte=now)
        for _, meshes in groupby(loud, attrgetter("priority")):
            runnable = [mesh for mesh in meshes if mesh not in unoffered]
            allowed = due.filter(mesh__in=runnable).exclude(down | paused | quiet_sites)
            probes += _claim_batches(allowed.exclude(giving_away | alone), capacity, classes, now)
        why: dict[SkipReason, Q | RawSQL] = {
            # First what does not pass by itself.
            SkipReason.CREDENTIAL: giving_away,
            SkipReason.MOVER: Q(mesh__in=unoffered) | alone,
            SkipReason.PAUSED: paused,
            SkipReason.DOWNTIME: down,
            SkipReason.QUIET_HOURS: Q(mesh__in=quiet),
            SkipReason.QUIET_SITE: quiet_sites,
            SkipReason.BUDGET: capacity.over_budget(classes),
            SkipReason.CIRCUIT: capacity.rests(),
            SkipReason.LINK: capacity.is_busy(),
        }
        _note_reasons(due, why, now)
    return probes


def _by_quiet_hours(meshes: Iterable[Mesh], now: datetime) -> tuple[list[Mesh], list[Mesh]]:
    """Divide the meshes into those that may test now and those in their quiet hours."""
    parts: tuple[list[Mesh], list[Mesh]] = ([], [])
    for mesh in meshes:
        parts[mesh.is_quiet(now)].append(mesh)
    return parts


def _claim_batches(
    allowed: QuerySet[Schedule], capacity: Capacity, classes: list[SizeClass], now: datetime
) -> list[UUID]:
    """Take the due tests batch by batch; every batch takes the first of its rows at least.

    What has no room before a batch is not in it. What is due of one link goes one by one, and so
    that which has been due for longest first.
    """
    probes: list[UUID] = []
    sizes = {size_class.id: size_class.test_bytes for size_class in classes}
    whole = True
    while capacity.in_flight > 0 and whole:
        rows = allowed.exclude(capacity.capped()).exclude(capacity.over_budget(classes))
        oldest = (
            rows.exclude(capacity.rests()).exclude(capacity.is_busy()).order_by("next_due", "id")
        )
        batch = oldest.values_list("id", "source_id", "destination_id", "size_class_id", "mesh_id")[
            :BATCH
        ]
        thin, taken = set(capacity.thin), []
        for schedule, source, destination, size_class, mesh in batch:
            if capacity.take(source, destination, sizes[size_class]):
                taken.append(schedule)
                if ends := thin & {source, destination}:
                    circuits.rest(ends, _shortest_interval(mesh), now)
        probes += _queue(taken, now)
        whole = len(batch) == BATCH
    return probes


def _shortest_interval(mesh: int) -> timedelta:
    """Return how often a mesh promises a test of a link, whichever size it has."""
    interval = MeshInterval.objects.filter(mesh=mesh).aggregate(seconds=Min("every_seconds"))
    return timedelta(seconds=interval["seconds"])


def _queue(schedules: list[int], now: datetime) -> list[UUID]:
    """Make their probes, in one statement: 2,000 of them through the ORM cost 0.3 s."""
    probes = [uuid4() for _ in schedules]
    if probes:
        with connection.cursor() as cursor:
            cursor.execute(CLAIM, {"schedules": schedules, "probes": probes, "now": now})
    return probes


def _note_reasons(
    due: QuerySet[Schedule], why: Mapping[SkipReason, Q | RawSQL], now: datetime
) -> None:
    """Write why each test that is still due had to wait, by the first reason that it has.

    Only rows whose reason has changed are written.
    """
    reason = Case(
        *(When(matched, then=Value(skip_reason)) for skip_reason, matched in why.items()),
        default=Value(SkipReason.CAP),
    )
    due.annotate(reason=reason).exclude(skipped_because=F("reason")).update(
        skipped_because=reason, skipped_since=Coalesce(F("skipped_since"), Value(now))
    )
