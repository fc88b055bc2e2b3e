"""The door by which experiments are ordered: all tests of a sweep, or none of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.contrib.auth.models import User
from django.db import transaction

from sonar.models import Experiment, ExperimentStep, Probe, SizeClass
from sonar.ordering import request_probes
from sonar.ordering.request_probes import ProbeRequest
from sonar.scheduler import start_waiting

__all__ = ["Sweep", "cancel", "order"]


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


def order(sweep: Sweep, user: User | None, now: datetime) -> Experiment:
    """Order the tests of a sweep and keep which they are, in one transaction.

    Raises RefusedError (nothing is ordered then) or PlannerBusyError.
    """
    first = sweep.probe_requests[0]
    with transaction.atomic():
        probes = request_probes.order(sweep.probe_requests, now)
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


def cancel(experiment: Experiment, now: datetime) -> int:
    """Forget the tests of an experiment that have not begun; return how many there were.

    What runs goes on, and what has ended stays. What has room by this is sent after the commit.
    """
    with transaction.atomic():
        open_tests = Probe.objects.filter(id__in=experiment.steps.values("test_id"))
        dropped, _ = open_tests.exclude(state=Probe.State.RUNNING).delete()
        if dropped:
            transaction.on_commit(partial(request_probes.send, start_waiting(now)))
    return dropped
