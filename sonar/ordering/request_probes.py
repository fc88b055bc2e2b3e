"""The door by which people and scripts order tests and sweeps, cancel them, and stop all tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import QuerySet

from sonar.models import AllTests, Probe, SizeClass, Sweep, SweepStep
from sonar.scheduler.dispatch import send_quickly as send
from sonar.scheduler.on_demand import SAME_ENDS, ProbeRequest, RefusedError, order_all
from sonar.scheduler.waiting import PlannerBusyError, start_waiting

# What callers need of the planner, too.
__all__ = ["SAME_ENDS", "PlannerBusyError", "ProbeRequest", "RefusedError", "send"]

AN_OPERATOR = "an operator"
# The actor of the history comes with a statement that writes (sonar.database.actor): these
# follow one, in its transaction.
NOTE_CANCELLED = """
    SELECT sonar_history_add(
        'test', 0, concat_ws(' ', source.name, 'to', destination.name, size.name, probe.id),
        source.site_id, 'changed',
        jsonb_build_object('cancelled', jsonb_build_array(NULL, %s::text))
    )
    FROM sonar_probe probe
    JOIN sonar_endpoint source ON source.id = source_id
    JOIN sonar_endpoint destination ON destination.id = destination_id
    JOIN sonar_sizeclass size ON size.id = size_class_id
    WHERE probe.id = ANY(%s)
"""


class NotCancelledError(Exception):
    """A test that cannot be cancelled any more; the sentence says why."""


def order(probe_requests: Sequence[ProbeRequest], now: datetime) -> list[Probe]:
    """Queue these tests, or let them wait; send what is queued to the workers after the commit.

    Raises RefusedError (nothing is ordered then) or PlannerBusyError.
    """
    ordered = order_all(probe_requests, now)
    transaction.on_commit(partial(send, ordered.started))
    return ordered.probes


def cancel(probe_id: UUID, now: datetime, by: str = AN_OPERATOR) -> bool:
    """Forget a test that has not begun, or let its worker end one that runs.

    A test that has not begun leaves no result. One that runs ends within seconds, its file is
    deleted, and its result says that it was cancelled, and ``by`` which role. Returns whether it
    ran. A scheduled test is due again after its interval. Tests that have room now are sent
    after the commit. Raises NotCancelledError for a test that is not there.
    """
    test = Probe.objects.filter(id=probe_id)
    deleted, _ = test.exclude(state=Probe.State.RUNNING).delete()
    if deleted:
        transaction.on_commit(partial(send, start_waiting(now)))
    elif not cancel_running(test, by) and not test.exists():
        raise NotCancelledError(f"The test {probe_id} has already ended and cannot be cancelled.")
    return not deleted


@transaction.atomic
def cancel_running(tests: QuerySet[Probe], by: str) -> int:
    """Let the workers of these tests end them, as far as they run; return how many there are."""
    running = tests.filter(state=Probe.State.RUNNING, cancelled_by="")
    ids = list(running.values_list("id", flat=True))
    count = running.filter(id__in=ids).update(cancelled_by=by)
    with connection.cursor() as cursor:
        cursor.execute(NOTE_CANCELLED, [by, ids])
    return count


@transaction.atomic
def stop_all(
    reason: str, until: datetime | None, who: User | None, now: datetime, *, running: bool
) -> int:
    """Let no test start, scheduled or ordered; with ``running`` cancel those that run.

    Returns how many were cancelled. Raises ValidationError for a reason or an end that cannot be.
    """
    AllTests.objects.get_or_create(id=1)
    row = AllTests.objects.select_for_update().get()
    row.pause(now, reason, until, who)
    row.full_clean()
    row.save()
    return cancel_running(Probe.objects.all(), AN_OPERATOR) if running else 0


@transaction.atomic
def resume_all(now: datetime) -> bool:
    """Let tests start again; return whether they were stopped."""
    row = AllTests.objects.select_for_update().first()
    if row is None or not row.is_paused(now):
        return False
    row.resume()
    row.save()
    transaction.on_commit(partial(send, start_waiting(now)))
    return True


@dataclass(frozen=True)
class SweepRequest:
    """Tests of one link in the order in which they run, each with its value of the variable.

    ``size_class``, ``mode`` and ``streams`` are those of all tests; None or empty where it is the
    variable.
    """

    variable: Sweep.Variable
    probe_requests: Sequence[ProbeRequest]
    values: Sequence[str]
    size_class: SizeClass | None
    mode: str
    streams: int | None


def order_sweep(sweep_request: SweepRequest, user: User | None, now: datetime) -> Sweep:
    """Order the tests of a sweep and keep which they are, in one transaction.

    Raises RefusedError (nothing is ordered then) or PlannerBusyError.
    """
    first = sweep_request.probe_requests[0]
    with transaction.atomic():
        probes = order(sweep_request.probe_requests, now)
        sweep = Sweep.objects.create(
            source=first.source,
            destination=first.destination,
            variable=sweep_request.variable,
            size_class=sweep_request.size_class,
            mover=first.mover,
            mode=sweep_request.mode,
            streams=sweep_request.streams,
            requested_at=now,
            requested_by=user,
        )
        # The ids of tests that are ordered together ascend in the order of their requests.
        SweepStep.objects.bulk_create(
            SweepStep(sweep=sweep, position=position, value=value, test_id=probe.id)
            for position, (value, probe) in enumerate(
                zip(sweep_request.values, probes, strict=True)
            )
        )
    return sweep


def cancel_sweep(sweep: Sweep, now: datetime) -> int:
    """Forget the tests of a sweep that have not begun; return how many there were.

    What runs goes on, and what has ended stays. What has room by this is sent after the commit.
    """
    with transaction.atomic():
        open_tests = Probe.objects.filter(id__in=sweep.steps.values("test_id"))
        dropped, _ = open_tests.exclude(state=Probe.State.RUNNING).delete()
        if dropped:
            transaction.on_commit(partial(send, start_waiting(now)))
    return dropped
