"""A grid in trouble: the small world with all six states, errors, notes and free text in it."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from sonar.models import Annotation, Downtime, Endpoint, Schedule
from tests.conditions import TYPES, stored_condition
from tests.matrix import sent, world
from tests.matrix.sent import MARKUP

HOURS = [timedelta(hours=number, minutes=10) for number in range(6)]
SAMPLES = [[1.0, 90e6], [2.0, 210e6], [4.0, 500e6], [8.0, 1400e6], [10.0, 2000e6]]


@dataclass(frozen=True)
class Scene:
    """``failing`` is the newest failed transfer from RAL to DESY, ``sampled`` one with samples."""

    world: world.World
    failing: UUID
    sampled: UUID


def make() -> Scene:
    """Make it; world.NOW must be the time at which the pages are asked for."""
    made = world.make()
    measured(made)
    stale_and_down(made)
    failing = failures(made)
    sampled = send(made.ral, made.glasgow, HOURS[0], seconds=10.0, samples=SAMPLES)
    return Scene(made, failing, sampled)


def measured(made: world.World) -> None:
    for number, ago in enumerate(HOURS):
        world.transfer(made.ral, made.glasgow, 100.0 + 7 * number, ago=ago)
        world.transfer(made.ral, made.glasgow, 40.0 + number, ago=ago, size="small")
    world.transfer(made.ral, made.glasgow, 80.0, size="medium")
    world.transfer(made.glasgow, made.ral, 1.23, ago=HOURS[0])
    world.transfer(made.glasgow, made.ral, 2.34, ago=HOURS[1])
    world.transfer(made.desy, made.glasgow, 25.0, ago=HOURS[1])


def stale_and_down(made: world.World) -> None:
    """Leave one link stale and take one endpoint down; the rest waits for its first test."""
    world.transfer(made.desy, made.ral, 5.0, ago=timedelta(hours=5))
    begun, over = world.NOW - timedelta(hours=2), world.NOW + timedelta(hours=20)
    Downtime.objects.create(
        endpoint=made.scratch, starts_at=begun, ends_at=over, reason=f"Disks {MARKUP}"
    )
    Annotation.objects.create(
        site=made.glasgow.site, text=f"New switch {MARKUP}", starts_at=begun, public=True
    )
    Schedule.objects.filter(source=made.scratch).update(
        skipped_because="downtime", skipped_since=begun
    )


def failures(made: world.World) -> UUID:
    for number, ago in enumerate(HOURS[1:]):
        error = f"503 Service Unavailable: node{number:02d}.example.org {MARKUP}"
        send(made.ral, made.desy, ago, error=error, error_where="destination")
    stored_condition(
        TYPES.FAILING, source=made.ral, destination=made.desy, since=HOURS[-1], baseline=None
    )
    return send(made.ral, made.desy, HOURS[0], error="checksum differs", error_where="transfer")


def send(source: Endpoint, destination: Endpoint, ago: timedelta, **fields: Any) -> UUID:
    """Record one transfer of a large file as a worker would, and return its id."""
    made = {"profile_id": world.profile().id, "worker": f"worker-1 {MARKUP}"} | fields
    return sent.send(source, destination, world.NOW - ago, **made)
