"""The sweep: ends what died, cleans up behind it, and finds what nobody has taken."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from sonar import leftovers, results
from sonar.models import Probe
from sonar.movers.base import part_of
from sonar.orders import incoming_path, source_path

log = logging.getLogger(__name__)


def sweep(now: datetime) -> list[UUID]:
    """End what died, clean up what stayed behind; return the queued probes to send again."""
    for probe in Probe.objects.select_related("destination", "source", "size_class").filter(
        state=Probe.State.RUNNING, deadline__lt=now
    ):
        clean_up_after(probe)
        results.lose_probe(probe, now)
        log.warning("probe %s is lost: nothing heard of it since %s", probe.id, probe.started_at)
    leftovers.try_again(now)
    return _stale_queued(now)


def clean_up_after(probe: Probe) -> None:
    """Delete what the worker of a probe may have left: at the destination, and half uploaded."""
    incoming = incoming_path(probe)
    part = part_of(source_path(probe), incoming)
    for endpoint, path in ((probe.destination, incoming), (probe.source, part)):
        if why := leftovers.delete(endpoint, path, probe.mover):
            leftovers.keep(endpoint, path, probe.mover, why)


def _stale_queued(now: datetime) -> list[UUID]:
    """Claim for sending again the probes whose message nobody has taken for a while."""
    stale = Probe.objects.filter(
        state=Probe.State.QUEUED, sent_at__lt=now - timedelta(seconds=settings.SONAR_RESEND_SECONDS)
    )
    return [
        probe_id
        for probe_id in stale.values_list("id", flat=True)
        if stale.filter(id=probe_id).update(sent_at=now)
    ]
