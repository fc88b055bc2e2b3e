"""The door by which people and scripts order tests and sweeps, all or none, and cancel them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from sonar.models import Experiment, ExperimentStep, Probe, SizeClass
from sonar.scheduler.dispatch import send_quickly as send
from sonar.scheduler.on_demand import ProbeRequest, RefusedError, order_all
from sonar.scheduler.waiting import PlannerBusyError, start_waiting

__all__ = [
    "NotCancelledError",
    "PlannerBusyError",
    "ProbeRequest",
    "RefusedError",
    "Sweep",
    "cancel",
    "cancel_experiment",
    "order",
    "order_sweep",
    "send",
]


class NotCancelledError(Exception):
    """A test that cannot be cancelled any more; the sentence says why."""


def order(probe_requests: Sequence[ProbeRequest], now: datetime) -> list[Probe]:
    """Queue these tests, or let them wait; send what is queued to the workers after the commit.

    Raises RefusedError (nothing is ordered then) or PlannerBusyError.
    """
    ordered = order_all(probe_requests, now)
    transaction.on_commit(partial(send, ordered.started))
    return ordered.probes


def cancel(probe_id: UUID, now: datetime) -> None:
    """Forget a test that waits or is queued: it was not measured, and nobody failed.

    A scheduled one is due again after its interval. What has room by this is sent after the
    commit. Raises NotCancelledError for a test that runs or is not there.
    """
    begun = Probe.State.RUNNING
    deleted, _ = Probe.objects.filter(id=probe_id).exclude(state=begun).delete()
    if not deleted:
        runs = Probe.objects.filter(id=probe_id).exists()
        why = "is already running: it cannot be cancelled" if runs else "has ended"
        raise NotCancelledError(f"The test {probe_id} {why}.")
    transaction.on_commit(partial(send, start_waiting(now)))


@dataclass(frozen=True)
class Sweep:
    """Tests of one link in the order in which they run, each with its value of the variable.

    ``size_class``, ``mode`` and ``streams`` are those of all tests; None or empty where it is the
    variable.
    """

    variable: Experiment.Variable
    probe_requests: Sequence[ProbeRequest]
    values: Sequence[str]
    size_class: SizeClass | None
    mode: str
    streams: int | None


def order_sweep(sweep: Sweep, user: User | None, now: datetime) -> Experiment:
    """Order the tests of a sweep and keep which they are, in one transaction.

    Raises RefusedError (nothing is ordered then) or PlannerBusyError.
    """
    first = sweep.probe_requests[0]
    with transaction.atomic():
        probes = order(sweep.probe_requests, now)
        experiment = Experiment.objects.create(
            source=first.source,
            destination=first.destination,
            variable=sweep.variable,
            size_class=sweep.size_class,
            mover=first.mover,
            mode=sweep.mode,
            streams=sweep.streams,
            requested_at=now,
            requested_by=user,
        )
        # The ids of tests that are ordered together ascend in the order of their requests.
        ExperimentStep.objects.bulk_create(
            ExperimentStep(experiment=experiment, position=position, value=value, test_id=probe.id)
            for position, (value, probe) in enumerate(zip(sweep.values, probes, strict=True))
        )
    return experiment


def cancel_experiment(experiment: Experiment, now: datetime) -> int:
    """Forget the tests of an experiment that have not begun; return how many there were.

    What runs goes on, and what has ended stays. What has room by this is sent after the commit.
    """
    with transaction.atomic():
        open_tests = Probe.objects.filter(id__in=experiment.steps.values("test_id"))
        dropped, _ = open_tests.exclude(state=Probe.State.RUNNING).delete()
        if dropped:
            transaction.on_commit(partial(send, start_waiting(now)))
    return dropped
