"""The door by which people and scripts order tests, all of them or none, and cancel them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction
from kombu.exceptions import OperationalError as QueueAway

from sonar.celery import app
from sonar.db_retry import one_line
from sonar.models import Probe
from sonar.scheduler import PlannerBusyError, ProbeRequest, RefusedError, order_all, start_waiting

__all__ = [
    "NotCancelledError",
    "PlannerBusyError",
    "ProbeRequest",
    "RefusedError",
    "cancel",
    "order",
]

log = logging.getLogger(__name__)

# The task by its name: who orders tests need not load what carries them out.
TRANSFER = "sonar.tasks.transfer"
# Whoever orders waits for the answer. Without `max_retries` Celery would try for ever.
QUICK = {"max_retries": 0, "socket_connect_timeout": 2, "socket_timeout": 2}


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


def send(probes: Sequence[UUID]) -> None:
    """Put ids on the queue; if it is away the rows are there, and the sweep sends them."""
    if not probes:
        return
    try:
        with app.connection_for_write(transport_options=QUICK, connect_timeout=2) as queue:
            for probe in probes:
                app.send_task(TRANSFER, (str(probe),), connection=queue, retry=False)
    except QueueAway as error:
        log.warning(
            "%d ordered tests wait for the sweep, as the queue is away: %s",
            len(probes),
            one_line(error),
        )
