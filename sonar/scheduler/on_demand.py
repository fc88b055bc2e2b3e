"""Tests that somebody asks for now, outside every mesh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid4

from django.db import transaction

from sonar.credentials import rules
from sonar.models import Endpoint, Probe, SizeClass
from sonar.movers import catalogue
from sonar.notation.units import format_bytes
from sonar.registry import mesh_services
from sonar.scheduler.capacity import Capacity
from sonar.scheduler.lock import wait_for_planner
from sonar.scheduler.restrictions import Restrictions
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
class ProbeRequest:
    """A test that somebody asks for, outside every mesh."""

    source: Endpoint
    destination: Endpoint
    size_class: SizeClass
    mover: str = catalogue.DEFAULT
    mode: str = "pull"
    streams: int = 1


class Ordered(NamedTuple):
    """Tests as they were ordered, and the ids of all that may run now, older ones among them."""

    probes: list[Probe]
    started: list[UUID]


def order_all(probe_requests: Sequence[ProbeRequest], now: datetime, worker: str = "") -> Ordered:
    """Order all these tests, or none: what has room now is queued, the others wait for it.

    With ``worker`` they are for that process, and nobody is to be sent their ids. Raises
    RefusedError with the reasons why they cannot run today, PlannerBusyError after some seconds.
    """
    with transaction.atomic():
        wait_for_planner()
        capacity = Capacity.left(now)
        if problems := list(_problems(probe_requests, capacity, now)):
            raise RefusedError(problems)
        # Ordered together, they run in the order in which they were given.
        ids = sorted(uuid4() for _ in probe_requests)
        Probe.objects.bulk_create(
            _probe(probe_request, number, now, worker)
            for probe_request, number in zip(probe_requests, ids, strict=True)
        )
        capacity.waiting += len(probe_requests)
        started = start(capacity, now)
        named = Probe.objects.select_related("source", "destination", "size_class", "mesh")
        return Ordered(list(named.filter(id__in=ids).order_by("id")), started)


def _probe(probe_request: ProbeRequest, number: UUID, now: datetime, worker: str) -> Probe:
    return Probe(
        id=number,
        source=probe_request.source,
        destination=probe_request.destination,
        size_class=probe_request.size_class,
        bytes=probe_request.size_class.test_bytes,
        mover=probe_request.mover,
        mode=probe_request.mode,
        streams=probe_request.streams,
        state=Probe.State.WAITING,
        requested_at=now,
        sent_at=now,
        worker=worker,
    )


def _problems(
    probe_requests: Sequence[ProbeRequest], capacity: Capacity, now: datetime
) -> Iterator[Problem]:
    """Yield why these tests cannot run, all together; each with the field that it is about."""
    if any(probe_request.source == probe_request.destination for probe_request in probe_requests):
        yield "destination", "a test needs two different endpoints."
    for mover, mode in sorted({(request.mover, request.mode) for request in probe_requests}):
        base_urls = _base_urls(
            request for request in probe_requests if (request.mover, request.mode) == (mover, mode)
        )
        if misfit := catalogue.fitting(mover, mode, base_urls):
            yield "mover", misfit
        if sentence := mesh_services.hindrance(mover):
            yield "mover", sentence
    yield from dict.fromkeys(_disobeyed(probe_requests))
    yield from dict.fromkeys(_given_away(probe_requests))
    if capacity.waiting + len(probe_requests) > MOST_WAITING:
        yield (
            "count",
            f"At most {MOST_WAITING} ordered tests may wait: try again when some have run.",
        )
    restrictions, needed = Restrictions.at(now), _bytes_by_end(probe_requests)
    sources = dict.fromkeys(probe_request.source for probe_request in probe_requests)
    destinations = dict.fromkeys(probe_request.destination for probe_request in probe_requests)
    for field, ends in (("source", sources), ("destination", destinations)):
        for end in ends:
            problems = _of_end(end, needed[end], capacity, restrictions)
            yield from ((field, sentence) for sentence in problems)


def _disobeyed(probe_requests: Iterable[ProbeRequest]) -> Iterator[Problem]:
    for probe_request in probe_requests:
        yield from catalogue.refusals(
            probe_request.mover, probe_request.mode, streams=probe_request.streams
        ).items()


def _given_away(probe_requests: Sequence[ProbeRequest]) -> Iterator[Problem]:
    """Yield for which tests a credential would go where it may not. One SQL query at most.

    X.509 proxies too, where a mover has the same one for both ends.
    """
    ends = {
        end
        for probe_request in probe_requests
        for end in (probe_request.source, probe_request.destination)
    }
    if not any(end.credential_id or end.credential_lent_id for end in ends):
        return
    rows = Endpoint.objects.select_related("credential", "credential_lent")
    now = rows.in_bulk([end.pk for end in ends])
    for probe_request in probe_requests:
        source, destination = now[probe_request.source.pk], now[probe_request.destination.pk]
        for field, end in (("source", source), ("destination", destination)):
            if sentence := rules.problem(end):
                yield field, sentence
        sentence = rules.forbids(
            source,
            destination,
            probe_request.mode,
            by_service=catalogue.asks_service(probe_request.mover),
        )
        if sentence:
            yield rules.PASSIVE_AND_ACTIVE[probe_request.mode][0], sentence
        if sentence := rules.two_proxies(source, destination, probe_request.mover):
            yield "mover", sentence


def _base_urls(probe_requests: Iterable[ProbeRequest]) -> dict[str, str]:
    ends = (
        end
        for probe_request in probe_requests
        for end in (probe_request.source, probe_request.destination)
    )
    return {end.name: end.base_url for end in ends}


def _bytes_by_end(probe_requests: Sequence[ProbeRequest]) -> Counter[Endpoint]:
    needed: Counter[Endpoint] = Counter()
    for probe_request in probe_requests:
        for end in (probe_request.source, probe_request.destination):
            needed[end] += probe_request.size_class.test_bytes
    return needed


def _of_end(
    end: Endpoint, needed: int, capacity: Capacity, restrictions: Restrictions
) -> Iterator[str]:
    if end.retired_at:
        yield f"{end.name} is retired."
    if sentence := restrictions.why_not(end):
        yield sentence
    left = capacity.budget_bytes.get(end.id, needed)
    if left < needed:
        yield (
            f"{end.name} has {format_bytes(max(left, 0))} left of its budget of test bytes for "
            f"today, {format_bytes(needed)} are needed."
        )
