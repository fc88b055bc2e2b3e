"""Tests that somebody asks for now, outside every mesh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg.errors import LockNotAvailable

from sonar.models import Downtime, Endpoint, Probe, SizeClass
from sonar.scheduler.claims import PLANNER_LOCK
from sonar.scheduler.room import Room

# A tick of the planner takes a fraction of this, unless the registry has changed a lot.
LONGEST_WAIT_SECONDS = 5
Problem = tuple[str, str]


class RefusedError(Exception):
    """Tests that were asked for may not run now; ``errors`` has the sentences why by field."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(sentence for _, sentence in problems))
        self.errors: dict[str, list[str]] = {}
        for field, sentence in problems:
            self.errors.setdefault(field, []).append(sentence)


class PlannerBusyError(Exception):
    """The planner holds its lock for longer than somebody should wait; later it goes."""


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
    """Queue one test at once, as `order_all`."""
    return order_all([wish], now)[0]


def order_all(wishes: Sequence[Wish], now: datetime) -> list[Probe]:
    """Queue all these tests at once if their endpoints bear them, else none.

    Raises RefusedError with the reasons, PlannerBusyError after some seconds. Sonar's own
    limit (SONAR_IN_FLIGHT) holds nothing back here: the planner keeps it full by itself, and
    counts these tests among the others.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        _wait_for_planner(cursor)
        if problems := list(_problems(wishes, now)):
            raise RefusedError(problems)
        return Probe.objects.bulk_create(_probe(wish, now) for wish in wishes)


def _wait_for_planner(cursor: CursorWrapper) -> None:
    cursor.execute(f"SET LOCAL lock_timeout = '{LONGEST_WAIT_SECONDS}s'")
    try:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [PLANNER_LOCK])
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise PlannerBusyError("The planner is at work: try again in some seconds.") from error
        raise


def _probe(wish: Wish, now: datetime) -> Probe:
    return Probe(
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
    wish = Wish(source, destination, SizeClass(test_bytes=size))
    return next((sentence for _, sentence in _problems([wish], now)), "")


def _problems(wishes: Sequence[Wish], now: datetime) -> Iterator[Problem]:
    """Yield why these tests may not run, all together; each with the field that it is about."""
    if any(wish.source == wish.destination for wish in wishes):
        yield "destination", "a test needs two different endpoints."
    room, down = Room.left(now), Downtime.endpoints_down(now)
    sources = Counter(wish.source for wish in wishes)
    destinations = Counter(wish.destination for wish in wishes)
    for source, count in sources.items():
        room_left = room.outbound[source.id]
        if count > room_left:
            yield "source", _full(source, "sends", source.outbound_cap, room_left)
    for destination, count in destinations.items():
        room_left = room.inbound[destination.id]
        if count > room_left:
            yield "destination", _full(destination, "receives", destination.inbound_cap, room_left)
    needed = _bytes_by_end(wishes)
    for field, ends in (("source", sources), ("destination", destinations)):
        for end in ends:
            yield from ((field, one) for one in _of_end(end, needed[end], room, down))


def _full(end: Endpoint, does: str, cap: int, left: int) -> str:
    if left > 0:
        return f"{end.name} {does} at most {cap} tests at once: there is room for {left} more."
    return f"{end.name} already {does} its cap of {cap} tests at once."


def _bytes_by_end(wishes: Sequence[Wish]) -> Counter[Endpoint]:
    needed: Counter[Endpoint] = Counter()
    for wish in wishes:
        for end in (wish.source, wish.destination):
            needed[end] += wish.size_class.test_bytes
    return needed


def _of_end(end: Endpoint, needed: int, room: Room, down: set[int]) -> Iterator[str]:
    if end.retired_at:
        yield f"{end.name} is retired."
    if end.id in down:
        yield f"{end.name} is in a declared downtime."
    left = room.budget_bytes.get(end.id, needed)
    if left < needed:
        yield (
            f"{end.name} has used up its test bytes of today: {max(left, 0)} are left, "
            f"{needed} are needed."
        )
