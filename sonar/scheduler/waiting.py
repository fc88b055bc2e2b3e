"""Tests that people ordered and that wait for room: begun oldest first, and told why not.

And the lock that every planner takes.
"""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from sonar.credentials import rules
from sonar.database.cursors import lock_until_commit, planned_cursor
from sonar.models import Probe
from sonar.obstacles.capacity import Capacity, exhausted
from sonar.obstacles.catalogue import COUNTING, delaying
from sonar.obstacles.obstacle import RunConditions, Start, conditions_at
from sonar.results import endings

# One plans at a time, or caps would be counted twice. Any number, the same for every planner.
PLANNER_LOCK = 0x50_4C_41_4E
# A tick of the planner takes a fraction of this, unless the registry has changed a lot.
LONGEST_WAIT_SECONDS = 5

# By an index that has those alone; asked after each test.
DO_SOME_WAIT = "SELECT 1 FROM sonar_probe WHERE state = 'waiting' LIMIT 1"


class PlannerBusyError(Exception):
    """The planner holds its lock for longer than somebody should wait; later it goes."""


def is_only_planner() -> bool:
    """Take the lock until the transaction ends, if nobody holds it."""
    return lock_until_commit(PLANNER_LOCK, wait=False)


def wait_for_planner() -> None:
    """Take the lock until the transaction ends; raise PlannerBusyError after some seconds."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LONGEST_WAIT_SECONDS}s'")
    try:
        lock_until_commit(PLANNER_LOCK)
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            message = "The planner is busy: try again in a few seconds."
            raise PlannerBusyError(message) from error
        raise


def start_waiting(now: datetime) -> list[UUID]:
    """Queue the tests that wait and have room now; return the ids to send after the commit.

    Cheap while nothing waits. If somebody plans at this moment, that one does it.
    """
    with planned_cursor() as cursor:
        cursor.execute(DO_SOME_WAIT)
        if cursor.fetchone() is None:
            return []
    with transaction.atomic():
        return start(conditions_at(now)) if is_only_planner() else []


def start(conditions: RunConditions) -> list[UUID]:
    """Do so under the planner's lock, and take their room from what others may have.

    A test with a ``worker`` was ordered in the foreground: who ordered it takes it, and its id is
    not returned.
    """
    capacity, now = conditions.capacity, conditions.now
    if not capacity.waiting:
        return []
    waiting = Probe.objects.filter(state=Probe.State.WAITING)
    probes = waiting.select_related("mesh", *rules.WITH_CREDENTIALS)
    begun: list[Probe] = []
    held: dict[Probe, str] = {}
    waiting_for_room: list[Probe] = []
    for probe in probes.order_by("requested_at", "id"):
        if retired := [end for end in (probe.source, probe.destination) if end.retired_at]:
            why = f"{retired[0].name} was retired while the test waited"
            endings.end_waiting(probe, why, now)
        elif delay := delaying(conditions, probe):
            obstacle, held[probe] = delay
            if obstacle.is_of_room:
                waiting_for_room.append(probe)
        else:
            capacity.start(probe.source_id, probe.destination_id)
            new = Start(probe.source_id, probe.destination_id, probe.mesh_id, probe.bytes)
            for counting in COUNTING:
                counting.take(conditions, new)
            begun.append(probe)
    waiting.filter(id__in=[probe.id for probe in begun]).update(
        state=Probe.State.QUEUED, queued_at=now, sent_at=now, waits_because=""
    )
    changed = [probe for probe, why in held.items() if probe.waits_because != why]
    for probe in changed:
        probe.waits_because = held[probe]
    Probe.objects.bulk_update(changed, ["waits_because"])
    _keep_capacity(capacity, waiting_for_room)
    return [probe.id for probe in begun if not probe.worker]


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
