"""Which links are due for a test and may run: claims them, and says why the others wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Case, F, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce

from sonar.models import (
    Downtime,
    Endpoint,
    Mesh,
    Probe,
    Schedule,
    SizeClass,
    Transfer,
    Version,
)
from sonar.models.mesh import SkipReason

# Any number, the same for every planner: one plans at a time, or caps would be counted twice.
PLANNER_LOCK = 0x50_4C_41_4E
BATCH = 500

WANTED = """
    SELECT mesh.id AS mesh_id, source.id AS source_id, destination.id AS destination_id,
           every.size_class_id, every.every_seconds
    FROM sonar_mesh mesh
    JOIN sonar_meshinterval every ON every.mesh_id = mesh.id
    JOIN sonar_endpoint source ON source.retired_at IS NULL
        AND (NOT EXISTS (SELECT FROM sonar_mesh_sources WHERE mesh_id = mesh.id)
             OR EXISTS (SELECT FROM sonar_mesh_sources
                        WHERE mesh_id = mesh.id AND endpoint_id = source.id))
    JOIN sonar_endpoint destination ON destination.retired_at IS NULL
        AND (NOT EXISTS (SELECT FROM sonar_mesh_destinations WHERE mesh_id = mesh.id)
             OR EXISTS (SELECT FROM sonar_mesh_destinations
                        WHERE mesh_id = mesh.id AND endpoint_id = destination.id))
    WHERE mesh.enabled AND source.id <> destination.id
"""
REMOVE = f"""
    DELETE FROM sonar_schedule old WHERE NOT EXISTS (
        SELECT FROM ({WANTED}) wanted
        WHERE (wanted.mesh_id, wanted.source_id, wanted.destination_id, wanted.size_class_id)
            = (old.mesh_id, old.source_id, old.destination_id, old.size_class_id))
"""  # noqa: S608 - constants of this module
ADD = f"""
    INSERT INTO sonar_schedule AS old (mesh_id, source_id, destination_id, size_class_id,
                                       every_seconds, next_due, skipped_because)
    SELECT wanted.*, %(now)s, '' FROM ({WANTED}) wanted
    ON CONFLICT (mesh_id, source_id, destination_id, size_class_id) DO UPDATE
    SET every_seconds = excluded.every_seconds,
        next_due = least(old.next_due, %(now)s + excluded.every_seconds * interval '1 second')
    WHERE old.every_seconds <> excluded.every_seconds
"""  # noqa: S608 - constants of this module


def follow_registry(now: datetime) -> None:
    """Make the schedules those of the meshes, if the registry has changed since last time."""
    versions = dict(Version.objects.values_list("name", "value"))
    registry = versions.get("registry", 0)
    if versions.get("schedule") == registry:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(REMOVE)
        cursor.execute(ADD, {"now": now})
        Version.objects.update_or_create(name="schedule", defaults={"value": registry})


@dataclass
class Room:
    """How many more tests each endpoint, and Sonar itself, bears at this moment."""

    in_flight: int
    outbound: Counter[int]
    inbound: Counter[int]
    budget_bytes: dict[int, int]

    @classmethod
    def left(cls, now: datetime) -> Room:
        """Count what is queued and running against the caps, and today's bytes."""
        endpoints = Endpoint.objects.all()
        open_links = list(Probe.objects.values_list("source_id", "destination_id"))
        outbound = Counter({one.id: one.outbound_cap for one in endpoints})
        inbound = Counter({one.id: one.inbound_cap for one in endpoints})
        outbound.subtract(source for source, _ in open_links)
        inbound.subtract(destination for _, destination in open_links)
        in_flight = settings.SONAR_IN_FLIGHT - len(open_links)
        return cls(in_flight, outbound, inbound, _budgets_left(endpoints, now))

    def take(self, source: int, destination: int, size: int) -> bool:
        """Reserve room for one test, if there is room for it everywhere."""
        free = self.in_flight > 0 and self.outbound[source] > 0 and self.inbound[destination] > 0
        budgets = [end for end in (source, destination) if end in self.budget_bytes]
        if not free or any(self.budget_bytes[end] < size for end in budgets):
            return False
        self.in_flight -= 1
        self.outbound[source] -= 1
        self.inbound[destination] -= 1
        for end in budgets:
            self.budget_bytes[end] -= size
        return True

    def capped(self) -> Q:
        """Match the schedules with an end that is at its cap."""
        return Q(source__in=_exhausted(self.outbound)) | Q(destination__in=_exhausted(self.inbound))

    def over_budget(self, classes: Iterable[SizeClass]) -> Q:
        """Match the schedules whose test is larger than what is left of an end's budget."""
        matched = Q(pk__in=[])
        for one in classes:
            spent = [end for end, left in self.budget_bytes.items() if left < one.test_bytes]
            matched |= Q(size_class=one) & _either_end(spent)
        return matched


def _exhausted(left: Counter[int]) -> list[int]:
    return [endpoint for endpoint, count in left.items() if count <= 0]


def _either_end(endpoints: Iterable[int]) -> Q:
    ids = list(endpoints)
    return Q(source__in=ids) | Q(destination__in=ids)


def _budgets_left(endpoints: Iterable[Endpoint], now: datetime) -> dict[int, int]:
    """Return the bytes left today by endpoint, for those that have a budget."""
    left = {one.id: one.budget_bytes_per_day for one in endpoints if one.budget_bytes_per_day}
    if not left:
        return {}
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = Transfer.objects.filter(started_at__gte=midnight, profile__origin="test")
    for rows in (today, Probe.objects.all()):
        for end in ("source", "destination"):
            used = rows.filter(**{f"{end}__in": list(left)}).values_list(end).annotate(Sum("bytes"))
            for endpoint, size in used:
                left[endpoint] -= size
    return left


def _is_quiet(mesh: Mesh, moment: time) -> bool:
    start, end = mesh.quiet_from, mesh.quiet_until
    if start is None or end is None:
        return False
    return start <= moment < end if start < end else moment >= start or moment < end


def claim_due(now: datetime) -> list[UUID]:
    """Queue a probe for every test that is due and may run, by priority, oldest first.

    Returns the ids of the new probes, to be sent to workers after the commit. What is due
    but may not run gets its reason on its Schedule row.
    """
    with transaction.atomic():
        if not _is_only_planner():
            return []
        follow_registry(now)
        room = Room.left(now)
        classes = list(SizeClass.objects.all())
        down = _either_end(Downtime.endpoints_down(now))
        quiet = Q(mesh__in=[mesh for mesh in Mesh.objects.all() if _is_quiet(mesh, now.time())])
        due = Schedule.objects.filter(next_due__lte=now, probe=None)
        probes = _claim_batches(due.exclude(down).exclude(quiet), room, classes, now)
        _note_reasons(due, down, quiet, room.over_budget(classes), now)
    return [probe.id for probe in probes]


def _is_only_planner() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [PLANNER_LOCK])
        (locked,) = cursor.fetchone() or (False,)
    return bool(locked)


def _claim_batches(
    allowed: QuerySet[Schedule], room: Room, classes: list[SizeClass], now: datetime
) -> list[Probe]:
    """Take the due tests batch by batch; every batch takes some or fills an endpoint."""
    probes: list[Probe] = []
    while room.in_flight > 0:
        rows = allowed.exclude(room.capped()).exclude(room.over_budget(classes))
        batch = list(
            rows.select_related("mesh", "size_class").order_by("-mesh__priority", "next_due", "id")[
                :BATCH
            ]
        )
        taken = [
            one
            for one in batch
            if room.take(one.source_id, one.destination_id, one.size_class.test_bytes)
        ]
        if not batch:
            break
        probes += _queue(taken, now)
    return probes


def _queue(schedules: list[Schedule], now: datetime) -> list[Probe]:
    ids = [one.id for one in schedules]
    Schedule.objects.filter(id__in=ids, next_due__lte=now).update(
        next_due=Value(now) + F("every_seconds") * Value(timedelta(seconds=1)),
        skipped_because="",
        skipped_since=None,
    )
    return Probe.objects.bulk_create([_probe_of(one, now) for one in schedules])


def _probe_of(schedule: Schedule, now: datetime) -> Probe:
    mesh = schedule.mesh
    return Probe(
        schedule=schedule,
        mesh=mesh,
        source_id=schedule.source_id,
        destination_id=schedule.destination_id,
        size_class=schedule.size_class,
        bytes=schedule.size_class.test_bytes,
        mover=mesh.mover,
        mode=mesh.mode,
        streams=mesh.streams,
        tcp_buffer_bytes=mesh.tcp_buffer_bytes,
        requested_at=now,
        sent_at=now,
    )


def _note_reasons(
    due: QuerySet[Schedule], down: Q, quiet: Q, over_budget: Q, now: datetime
) -> None:
    """Write why each test that is still due had to wait; only rows whose reason changed."""
    reason = Case(
        When(down, then=Value(SkipReason.DOWNTIME)),
        When(quiet, then=Value(SkipReason.QUIET_HOURS)),
        When(over_budget, then=Value(SkipReason.BUDGET)),
        default=Value(SkipReason.CAP),
    )
    waiting = due.annotate(reason=reason).exclude(skipped_because=F("reason"))
    Schedule.objects.filter(id__in=waiting.values("id")).update(
        skipped_because=reason, skipped_since=Coalesce(F("skipped_since"), Value(now))
    )


class RefusedError(Exception):
    """A test that was asked for may not run now; the message says why in a sentence."""


@dataclass(frozen=True)
class Wish:
    """A test that somebody asks for, outside every mesh."""

    source: Endpoint
    destination: Endpoint
    size_class: SizeClass
    mover: str = "http-tpc"
    mode: str = "pull"
    streams: int = 1


def order_now(wish: Wish, now: datetime) -> Probe:
    """Queue one test at once if its endpoints bear it; raise RefusedError with the reason."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [PLANNER_LOCK])
        if why_not := refusal(wish.source, wish.destination, wish.size_class.test_bytes, now):
            raise RefusedError(why_not)
        return Probe.objects.create(
            source=wish.source,
            destination=wish.destination,
            size_class=wish.size_class,
            bytes=wish.size_class.test_bytes,
            mover=wish.mover,
            mode=wish.mode,
            streams=wish.streams,
            requested_at=now,
            sent_at=now,
        )


def refusal(source: Endpoint, destination: Endpoint, size: int, now: datetime) -> str:
    """Say in a sentence why a test between these may not start now; empty if it may."""
    return next(_refusals(source, destination, size, now), "")


def _refusals(source: Endpoint, destination: Endpoint, size: int, now: datetime) -> Iterator[str]:
    if source == destination:
        yield "a test needs two different endpoints."
    room, down = Room.left(now), Downtime.endpoints_down(now)
    if room.outbound[source.id] <= 0:
        yield f"{source.name} already sends its cap of {source.outbound_cap} tests at once."
    if room.inbound[destination.id] <= 0:
        yield f"{destination.name} already receives its cap of {destination.inbound_cap} tests."
    for end in (source, destination):
        if end.retired_at:
            yield f"{end.name} is retired."
        if end.id in down:
            yield f"{end.name} is in a declared downtime."
        if room.budget_bytes.get(end.id, size) < size:
            yield f"{end.name} has used up its test bytes of today."
