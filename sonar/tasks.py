"""Celery entry points: ids in, nothing out."""

from __future__ import annotations

import socket
from typing import Any, cast
from uuid import UUID

from celery.signals import (
    after_task_publish,
    beat_init,
    heartbeat_sent,
    task_success,
    worker_ready,
    worker_shutting_down,
)
from django.conf import settings
from django.utils import timezone
from kombu.exceptions import OperationalError as QueueAway

from sonar import company, partitions, patience, probes, scheduler, sealing, signs, sweeping
from sonar.celery import app
from sonar.models import SignOfLife

# While the database or the queue restarts a task is a line in the log: the next one does its work.
task = app.task(throws=(*patience.DATABASE_AWAY, QueueAway))


@task
def plan() -> None:
    """Queue what is due. A lost message is no harm: the row is the truth, sweep sends it again."""
    for probe_id in scheduler.claim_due(timezone.now()):
        transfer.delay(str(probe_id))


@task
def sweep() -> None:
    now = timezone.now()
    signs.forget(now)
    company.forget(now)
    for probe_id in sweeping.sweep(now):
        transfer.delay(str(probe_id))


@task
def seal() -> None:
    """Seal for less than the time until the next message, so that it never runs twice at once."""
    sealing.seal(timezone.now(), seconds=settings.SONAR_SEAL_SECONDS / 2)


@task
def keep_months() -> None:
    """Make the partitions of the months to come, and drop those that are too old."""
    now = timezone.now()
    partitions.make_ahead(now)
    partitions.drop_expired(now, settings.SONAR_KEEP_DAYS)


@task
def transfer(probe_id: str) -> None:
    probes.run(UUID(probe_id))


# Celery's signals: who this process is, and that it lives (sonar.signs). Their arguments are
# Celery's; those that are not used are in ``_``.

pulse = signs.Pulse()
EVERY: dict[str, tuple[str, int]] = {
    str(entry["task"]): (name, cast(int, entry["schedule"]))
    for name, entry in settings.CELERY_BEAT_SCHEDULE.items()
}


@worker_ready.connect
def worker_lives(sender: Any, **_: Any) -> None:  # noqa: ANN401
    """A worker may take messages from now on, of the queues that it was started for."""
    queues = sender.app.amqp.queues.consume_from
    pulse.start(SignOfLife.Kind.WORKER, sender.hostname, settings.SONAR_SIGN_SECONDS, queues)


@heartbeat_sent.connect
def heart_beats(**_: Any) -> None:  # noqa: ANN401
    """The main loop of a worker goes round: every two seconds, while its queue answers."""
    pulse.beat()


@beat_init.connect
def beat_lives(**_: Any) -> None:  # noqa: ANN401
    """The beat lives as long as it sends; it can do so no more often than its messages fall due."""
    after_task_publish.connect(heart_beats)
    every = max(settings.SONAR_SIGN_SECONDS, min(seconds for _, seconds in EVERY.values()))
    pulse.start(SignOfLife.Kind.BEAT, f"beat@{socket.gethostname()}", every)


@task_success.connect
def task_ended_well(sender: Any, **_: Any) -> None:  # noqa: ANN401
    if sender.name in EVERY:
        signs.ended_well(*EVERY[sender.name])


@worker_shutting_down.connect
def stop_transfers(**_: Any) -> None:  # noqa: ANN401
    pulse.stop()
    probes.running.stop_all()
