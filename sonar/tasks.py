"""Celery entry points: ids in, nothing out."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from celery.signals import worker_shutting_down
from django.utils import timezone

from sonar import probes, scheduler
from sonar.celery import app


@app.task
def plan() -> None:
    """Queue what is due. A lost message is no harm: the row is the truth, sweep sends it again."""
    for probe_id in scheduler.claim_due(timezone.now()):
        transfer.delay(str(probe_id))


@app.task
def sweep() -> None:
    for probe_id in probes.sweep(timezone.now()):
        transfer.delay(str(probe_id))


@app.task
def transfer(probe_id: str) -> None:
    probes.run(UUID(probe_id))


@worker_shutting_down.connect
def stop_transfers(**_: Any) -> None:  # noqa: ANN401 - Celery's signal arguments
    probes.running.stop_all()
