"""The door by which people and scripts order tests, all of them or none, and cancel them."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction

from sonar.models import Probe
from sonar.scheduler import PlannerBusyError, ProbeRequest, RefusedError, order_all, start_waiting
from sonar.scheduler.dispatch import send_quickly as send

__all__ = [
    "NotCancelledError",
    "PlannerBusyError",
    "ProbeRequest",
    "RefusedError",
    "cancel",
    "order",
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
