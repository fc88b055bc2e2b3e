"""Tests that somebody asks for now, outside every mesh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction

from sonar.models import Downtime, Endpoint, Probe, SizeClass
from sonar.scheduler.claims import PLANNER_LOCK
from sonar.scheduler.room import Room


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
