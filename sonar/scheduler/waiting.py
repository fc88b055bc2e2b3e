"""Tests that people ordered and that wait for room: begun oldest first, and told why not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from sonar.credentials import rules
from sonar.models import Probe
from sonar.movers import catalogue
from sonar.obstacles import credential_states, offers
from sonar.obstacles.credential_states import Use
from sonar.results import endings
from sonar.scheduler.capacity import Capacity, exhausted
from sonar.scheduler.lock import is_only_planner
from sonar.scheduler.restrictions import Restrictions


def start_waiting(now: datetime) -> list[UUID]:
    """Queue the tests that wait and have room now; return the ids to send after the commit.

    Cheap while nothing waits. If somebody plans at this moment, that one does it.
    """
    if not Probe.objects.filter(state=Probe.State.WAITING).exists():
        return []
    with transaction.atomic():
        return start(Capacity.left(now), now) if is_only_planner() else []


def start(capacity: Capacity, now: datetime) -> list[UUID]:
    """Do so under the planner's lock, and take their room from what others may have.

    SONAR_IN_FLIGHT and circuits hold nothing back that people ordered. A test with a ``worker``
    was ordered in the foreground: who ordered it takes it, and its id is not returned.
    """
    if not capacity.waiting:
        return []
    waiting = Probe.objects.filter(state=Probe.State.WAITING)
    probes = waiting.select_related("mesh", *rules.WITH_CREDENTIALS)
    probes = probes.order_by("requested_at", "id")
    today = Today(Restrictions.at(now), offers.by_living(now), credential_states.failing())
    begun: list[Probe] = []
    held: dict[Probe, str] = {}
    for probe in _in_use(probes, now):
        if why := _why_not(probe, capacity, today):
            held[probe] = why
        else:
            capacity.start(probe.source_id, probe.destination_id)
            begun.append(probe)
    waiting.filter(id__in=[probe.id for probe in begun]).update(
        state=Probe.State.QUEUED, queued_at=now, sent_at=now, waits_because=""
    )
    _note(held)
    some_day = [probe for probe in held if not _not_today(probe, today)]
    _keep_capacity(capacity, some_day)
    return [probe.id for probe in begun if not probe.worker]


def _in_use(probes: Iterable[Probe], now: datetime) -> Iterator[Probe]:
    """Yield those that can still run; end the others as failed."""
    for probe in probes:
        if retired := [end for end in (probe.source, probe.destination) if end.retired_at]:
            why = f"{retired[0].name} was retired while the test waited"
            endings.end_waiting(probe, why, now)
        else:
            yield probe


@dataclass(frozen=True)
class Today:
    """What keeps tests waiting even if there is room."""

    restrictions: Restrictions
    offered: Collection[str] | None
    failing: Collection[Use]


def _not_today(probe: Probe, today: Today) -> str:
    """Say in a sentence why a test cannot run even if there is room; empty if it can."""
    source, destination, mode = probe.source, probe.destination, probe.mode
    for end in (source, destination):
        if sentence := today.restrictions.why_not(end):
            return sentence
    # Who ordered it in the foreground runs it.
    if not probe.worker and (sentence := offers.hindrance_of(probe, today.offered)):
        return sentence
    by_service = catalogue.asks_service(probe.mover)
    if sentence := rules.hindrance(source, destination, mode, probe.mover):
        return sentence
    if by_service and (sentence := credential_states.service_hindrance(probe, today.failing)):
        return sentence
    return credential_states.hindrance(
        source, destination, mode, today.failing, by_service=by_service
    )


def _why_not(probe: Probe, capacity: Capacity, today: Today) -> str:
    """Say in a sentence why a test has to wait; empty if it may run now."""
    source, destination = probe.source, probe.destination
    if why := _not_today(probe, today):
        return why
    if (source.id, destination.id) in capacity.busy:
        return "Another test of this link is running."
    if capacity.outbound[source.id] <= 0:
        return f"{source.name} is already sending its cap of {_tests(source.outbound_cap)}."
    if capacity.inbound[destination.id] <= 0:
        return (
            f"{destination.name} is already receiving its cap of {_tests(destination.inbound_cap)}."
        )
    return ""


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count} tests"


def _note(held: Mapping[Probe, str]) -> None:
    """Write why they wait on those whose reason has changed."""
    changed = [probe for probe, why in held.items() if probe.waits_because != why]
    for probe in changed:
        probe.waits_because = held[probe]
    Probe.objects.bulk_update(changed, ["waits_because"])


def _keep_capacity(capacity: Capacity, held: Iterable[Probe]) -> None:
    """Keep a place at the other end for the oldest that waits for an end at its cap.

    Else scheduled tests, of which there are always some, would fill now one end and now the
    other for ever.
    """
    full = {("out", end) for end in exhausted(capacity.outbound)}
    full |= {("in", end) for end in exhausted(capacity.inbound)}
    for probe in held:
        link = source, destination = probe.source_id, probe.destination_id
        waits_for = full & {("out", source), ("in", destination)}
        if waits_for and link not in capacity.busy:
            full -= waits_for  # those that come later keep nothing for this end
            capacity.outbound[source] -= 1
            capacity.inbound[destination] -= 1
