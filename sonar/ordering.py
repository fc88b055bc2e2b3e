"""The door by which people and scripts order tests: all of them are queued, or none."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction
from kombu.exceptions import OperationalError as QueueAway

from sonar import tasks
from sonar.celery import app
from sonar.models import Probe
from sonar.patience import one_line
from sonar.scheduler import PlannerBusyError, RefusedError, Wish, order_all

__all__ = ["PlannerBusyError", "RefusedError", "Wish", "order"]

log = logging.getLogger(__name__)

# Whoever orders waits for the answer. Without `max_retries` Celery would try for ever.
QUICK = {"max_retries": 0, "socket_connect_timeout": 2, "socket_timeout": 2}


def order(wishes: Sequence[Wish], now: datetime) -> list[Probe]:
    """Queue these tests and send them to the workers after the commit.

    Raises RefusedError (nothing is queued then) or PlannerBusyError.
    """
    ordered = order_all(wishes, now)
    transaction.on_commit(partial(send, ordered.started))
    return ordered.probes


def send(probes: Sequence[UUID]) -> None:
    """Put ids on the queue; if it is away the rows are there, and the sweep sends them."""
    try:
        with app.connection_for_write(transport_options=QUICK, connect_timeout=2) as queue:
            for probe in probes:
                args = (str(probe),)
                tasks.transfer.apply_async(args, connection=queue, retry=False)  # type: ignore[call-arg]  # the stubs lack it
    except QueueAway as error:
        log.warning(
            "%d ordered tests wait for the sweep, the queue is away: %s",
            len(probes),
            one_line(error),
        )
