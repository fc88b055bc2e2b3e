"""Tests that somebody asks for now, outside every mesh."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID, uuid4

from django.db import transaction

from sonar.models import Endpoint, Probe, SizeClass
from sonar.movers import catalogue
from sonar.obstacles.catalogue import refusing
from sonar.obstacles.obstacle import Problem, RunConditions, ends_of
from sonar.registry import mesh_services
from sonar.scheduler.waiting import start, wait_for_planner

# Each tick looks at all that wait, and nobody waits for the thousandth.
MOST_WAITING = 1000
SAME_ENDS = "A test needs two different endpoints: the destination is also the source."


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
        conditions = RunConditions(now)
        # Ordered together, they run in the order in which they were given.
        ids = sorted(uuid4() for _ in probe_requests)
        probes = [
            Probe(
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
            for probe_request, number in zip(probe_requests, ids, strict=True)
        ]
        if problems := list(_problems(probes, conditions)):
            raise RefusedError(problems)
        Probe.objects.bulk_create(probes)
        conditions.capacity.waiting += len(probes)
        started = start(conditions)
        named = Probe.objects.select_related("source", "destination", "size_class", "mesh")
        return Ordered(list(named.filter(id__in=ids).order_by("id")), started)


def _problems(probes: Sequence[Probe], conditions: RunConditions) -> Iterator[Problem]:
    """Yield why these tests cannot run, all together; each with the field that it is about."""
    if any(probe.source == probe.destination for probe in probes):
        yield Problem("destination", SAME_ENDS)
    for name, mode in sorted({(probe.mover, probe.mode) for probe in probes}):
        mover = catalogue.describe(name)
        base_urls = {
            end.name: end.base_url
            for probe in probes
            if (probe.mover, probe.mode) == (name, mode)
            for _, end in ends_of(probe)
        }
        if sentence := mover.scheme_mismatch(mode, base_urls):
            yield Problem("mover", sentence)
        if sentence := mesh_services.no_service(mover):
            yield Problem("mover", sentence)
    if conditions.capacity.waiting + len(probes) > MOST_WAITING:
        yield Problem("count", f"At most {MOST_WAITING} on-demand tests may wait: try again later.")
    yield from dict.fromkeys(_problems_of_each(probes, conditions))


def _problems_of_each(probes: Sequence[Probe], conditions: RunConditions) -> Iterator[Problem]:
    for probe in probes:
        for _, end in ends_of(probe):
            conditions.ordered_bytes[end.id] += probe.bytes
    # Read the ends again with their credentials, if any has one: one SQL query at most.
    ends = {end.pk: end for probe in probes for _, end in ends_of(probe)}
    if any(end.credential_id or end.credential_lent_id for end in ends.values()):
        ends = Endpoint.objects.select_related("credential", "credential_lent").in_bulk(list(ends))
        for probe in probes:
            probe.source, probe.destination = ends[probe.source_id], ends[probe.destination_id]
    for probe in probes:
        refusals = probe.mover_description.refusals(probe.mode, streams=probe.streams)
        yield from (Problem(field, sentence) for field, sentence in refusals.items())
        for field, end in ends_of(probe):
            if end.retired_at:
                yield Problem(field, f"{end.name} is retired, so it is not tested.")
        # What is about the source first: people read from left to right.
        yield from sorted(refusing(conditions, probe), key=lambda each: each.field != "source")
