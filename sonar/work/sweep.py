"""The sweep: ends what died, and finds what nobody has taken. It asks no server."""

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction

from sonar.models import Probe
from sonar.results import endings
from sonar.work import cleanup

log = logging.getLogger(__name__)

WHY_LEFT = "its worker did not report an end"


def sweep(now: datetime) -> list[UUID]:
    """End what died; return the queued probes to send again. Several may sweep at once."""
    for probe in Probe.objects.select_related("destination", "source", "size_class").filter(
        state=Probe.State.RUNNING, deadline__lt=now
    ):
        if lose(probe, now):
            log.warning("test %s is lost: nothing heard of it since %s", probe.id, probe.started_at)
    return _stale_queued(now)


@transaction.atomic
def lose(probe: Probe, now: datetime) -> bool:
    """End a probe as lost and remember what it may have left; False if it ended meanwhile."""
    # A worker that hangs while it records holds the row: that must not hold up the sweep.
    free = Probe.objects.select_for_update(skip_locked=True).filter(id=probe.id)
    if not list(free) or not endings.lose_probe(probe, now):
        return False
    cleanup.keep(cleanup.places_of(probe), probe.mover, WHY_LEFT, now)
    return True


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
