"""Celery entry points: ids in, nothing out."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from celery.signals import worker_shutting_down
from django.conf import settings
from django.utils import timezone
from kombu.exceptions import OperationalError as QueueAway

from sonar import partitions, patience, probes, scheduler, sealing, sweeping
from sonar.celery import app

# While the database or the queue restarts a task is a line in the log: the next one does its work.
task = app.task(throws=(*patience.DATABASE_AWAY, QueueAway))


@task
def plan() -> None:
    """Queue what is due. A lost message is no harm: the row is the truth, sweep sends it again."""
    for probe_id in scheduler.claim_due(timezone.now()):
        transfer.delay(str(probe_id))


@task
def sweep() -> None:
    for probe_id in sweeping.sweep(timezone.now()):
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


@worker_shutting_down.connect
def stop_transfers(**_: Any) -> None:  # noqa: ANN401 - Celery's signal arguments
    probes.running.stop_all()
