"""Sends the ids of queued probes to workers, each to those that offer its mover and reach it."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from amqp.exceptions import AMQPError
from django.conf import settings
from django.utils import timezone
from kombu.exceptions import OperationalError as QueueAway

from sonar.celery import app
from sonar.credentials.rules import PASSIVE_AND_ACTIVE
from sonar.database.retry import one_line
from sonar.models import Probe
from sonar.movers.catalogue import kept
from sonar.notation.vantages import at, named
from sonar.obstacles import worker_movers
from sonar.obstacles.worker_movers import offer_for, queue_of

log = logging.getLogger(__name__)

# The task by its name: who orders tests need not load what carries them out.
TRANSFER = "sonar.tasks.transfer"
CHECK = "sonar.tasks.check_endpoint"
# Whoever orders waits for the answer. Without `max_retries` Celery would try for ever.
QUICK_SECONDS = 2
QUICK = {"max_retries": 0} | dict.fromkeys(
    ("socket_connect_timeout", "socket_timeout", "read_timeout", "write_timeout"), QUICK_SECONDS
)
QUICKLY: dict[str, Any] = {"transport_options": QUICK, "connect_timeout": QUICK_SECONDS}
AT_ONCE: dict[str, Any] = {"retry": False, "confirm_timeout": QUICK_SECONDS}
# What a broker that is away answers to one who does not try again.
REFUSALS = (QueueAway, AMQPError, OSError)


def send(probes: Sequence[UUID]) -> None:
    """Put ids on the queues of their movers; raise QueueAway. One SQL query.

    The rows are the truth: recovery sends a lost message again.
    """
    for probe, queue in queues_of(probes):
        app.send_task(
            TRANSFER, (str(probe),), queue=queue, confirm_timeout=settings.CONFIRM_SECONDS
        )


def send_quickly(probes: Sequence[UUID]) -> None:
    """Send while somebody waits for the answer: if the queue is away, recovery sends them later."""
    if not probes:
        return
    queues = queues_of(probes)
    try:
        with app.connection_for_write(**QUICKLY) as connection:
            for probe, queue in queues:
                app.send_task(
                    TRANSFER, (str(probe),), queue=queue, connection=connection, **AT_ONCE
                )
    except REFUSALS as error:
        log.warning(
            "%d on-demand tests wait for recovery, as the queue is unavailable: %s",
            len(probes),
            one_line(error),
        )


def queues_of(probes: Sequence[UUID]) -> list[tuple[UUID, str]]:
    """Return each with its queue, in their order; those that have ended meanwhile are left out."""
    if not probes:
        return []
    ends = "source__name", "destination__name"
    naming = "source__vantage", "destination__vantage", "mesh__vantage"
    rows = Probe.objects.filter(id__in=probes).values_list("id", "mover", "mode", *ends, *naming)
    queues = {}
    for probe, mover, mode, source, destination, *vantages in rows:
        active = source if PASSIVE_AND_ACTIVE[mode][1] == "source" else destination
        queue = queue_of(offer_for(kept(mover), active))
        queues[probe] = at(queue, next(iter(named(vantages)), ""))
    return [(probe, queues[probe]) for probe in probes if probe in queues]


def send_to_vantages(task: str, vantages: Iterable[str]) -> None:
    """Send what asks storage to the workers of other vantages, as far as some are alive there.

    One SQL query if any is given, none at a vantage: messages of the scheduler reach the default
    one.
    """
    others = set() if settings.SONAR_VANTAGE else {*vantages} - {""}
    taken = worker_movers.living_queues(timezone.now()) if others else set()
    entries: Iterable[dict[str, Any]] = settings.CELERY_BEAT_SCHEDULE.values()
    options = next(entry["options"] for entry in entries if entry["task"] == task)
    for queue in sorted({at(worker_movers.CLEANUP, vantage) for vantage in others} & taken):
        app.send_task(task, queue=queue, **options)


def send_check(run: UUID, vantage: str) -> None:
    """Let a worker begin the check of an endpoint while somebody waits; quietly in vain.

    Nobody sends it again: who looks at it sees that it waits, and orders another one.
    """
    try:
        with app.connection_for_write(**QUICKLY) as connection:
            queue = at(worker_movers.CLEANUP, vantage)
            app.send_task(CHECK, (str(run),), queue=queue, connection=connection, **AT_ONCE)
    except REFUSALS as error:
        log.warning(
            "endpoint check %s was not sent, as the queue is unavailable: %s", run, one_line(error)
        )
