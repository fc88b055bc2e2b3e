"""Tests that somebody asks for now, outside every mesh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid4

from django.db import transaction

from sonar import credentials, mover_catalogue
from sonar.models import Downtime, Endpoint, Probe, SizeClass
from sonar.scheduler.capacity import Room
from sonar.scheduler.lock import wait_for_planner
from sonar.scheduler.waiting import start

# Each tick looks at all that wait, and nobody waits for the thousandth.
MOST_WAITING = 1000
Problem = tuple[str, str]


class RefusedError(Exception):
    """Tests that were asked for cannot run; ``errors`` has the sentences why by field."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(sentence for _, sentence in problems))
        self.errors: dict[str, list[str]] = {}
        for field, sentence in problems:
            self.errors.setdefault(field, []).append(sentence)


@dataclass(frozen=True)
class Wish:
    """A test that somebody asks for, outside every mesh."""

    source: Endpoint
    destination: Endpoint
    size_class: SizeClass
    mover: str = mover_catalogue.DEFAULT
    mode: str = "pull"
    streams: int = 1


class Ordered(NamedTuple):
    """Tests as they were ordered, and the ids of all that may run now, older ones among them."""

    probes: list[Probe]
    started: list[UUID]


def order_all(wishes: Sequence[Wish], now: datetime, worker: str = "") -> Ordered:
    """Order all these tests, or none: what has room now is queued, the others wait for it.

    With ``worker`` they are for that process, and nobody is to be sent their ids. Raises
    RefusedError with the reasons why they cannot run today, PlannerBusyError after some seconds.
    """
    with transaction.atomic():
        wait_for_planner()
        room = Room.left(now)
        if problems := list(_problems(wishes, room, now)):
            raise RefusedError(problems)
        # Ordered together, they run in the order in which they were given.
        ids = sorted(uuid4() for _ in wishes)
        Probe.objects.bulk_create(
            _probe(wish, number, now, worker) for wish, number in zip(wishes, ids, strict=True)
        )
        room.waiting += len(wishes)
        started = start(room, now)
        named = Probe.objects.select_related("source", "destination", "size_class", "mesh")
        return Ordered(list(named.filter(id__in=ids).order_by("id")), started)


def _probe(wish: Wish, number: UUID, now: datetime, worker: str) -> Probe:
    return Probe(
        id=number,
        source=wish.source,
        destination=wish.destination,
        size_class=wish.size_class,
        bytes=wish.size_class.test_bytes,
        mover=wish.mover,
        mode=wish.mode,
        streams=wish.streams,
        state=Probe.State.WAITING,
        requested_at=now,
        sent_at=now,
        worker=worker,
    )


def _problems(wishes: Sequence[Wish], room: Room, now: datetime) -> Iterator[Problem]:
    """Yield why these tests cannot run, all together; each with the field that it is about."""
    if any(wish.source == wish.destination for wish in wishes):
        yield "destination", "a test needs two different endpoints."
    for mover in sorted({wish.mover for wish in wishes}):
        base_urls = _base_urls(wish for wish in wishes if wish.mover == mover)
        if misfit := mover_catalogue.fitting(mover, base_urls):
            yield "mover", misfit
    yield from dict.fromkeys(_disobeyed(wishes))
    yield from dict.fromkeys(_given_away(wishes))
    if room.waiting + len(wishes) > MOST_WAITING:
        yield "count", f"{MOST_WAITING} ordered tests wait at most: try again when some have run."
    down, needed = Downtime.endpoints_down(now), _bytes_by_end(wishes)
    sources = dict.fromkeys(wish.source for wish in wishes)
    destinations = dict.fromkeys(wish.destination for wish in wishes)
    for field, ends in (("source", sources), ("destination", destinations)):
        for end in ends:
            yield from ((field, one) for one in _of_end(end, needed[end], room, down))


def _disobeyed(wishes: Iterable[Wish]) -> Iterator[Problem]:
    for wish in wishes:
        yield from mover_catalogue.refusals(wish.mover, wish.mode, streams=wish.streams).items()


def _given_away(wishes: Sequence[Wish]) -> Iterator[Problem]:
    """Yield for which tests a credential would go where it may not. One SQL query at most."""
    ends = {end for wish in wishes for end in (wish.source, wish.destination)}
    if not any(end.credential_id or end.credential_lent_id for end in ends):
        return
    rows = Endpoint.objects.select_related("credential", "credential_lent")
    now = rows.in_bulk([end.pk for end in ends])
    for wish in wishes:
        source, destination = now[wish.source.pk], now[wish.destination.pk]
        for field, end in (("source", source), ("destination", destination)):
            if sentence := credentials.problem(end):
                yield field, sentence
        if sentence := credentials.forbids(source, destination, wish.mode):
            yield credentials.PASSIVE_AND_ACTIVE[wish.mode][0], sentence


def _base_urls(wishes: Iterable[Wish]) -> dict[str, str]:
    ends = (end for wish in wishes for end in (wish.source, wish.destination))
    return {end.name: end.base_url for end in ends}


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
