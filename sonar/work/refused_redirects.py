"""To which servers the storage of endpoints led tests in vain: operators may declare them."""

from datetime import datetime

from django.db.models import F

from sonar.models import Endpoint, RefusedRedirect

MOST_KEPT = 100
"""Of one endpoint; a large cluster has more, and a pattern for all is found in fewer."""


def note(endpoint: Endpoint, server: str, now: datetime) -> None:
    """Remember that an endpoint led there. Two to four SQL queries; the oldest are forgotten."""
    kept = RefusedRedirect.objects.filter(endpoint=endpoint)
    if kept.filter(server=server).update(times=F("times") + 1, last_at=now):
        return
    row = RefusedRedirect(endpoint=endpoint, server=server, first_at=now, last_at=now)
    RefusedRedirect.objects.bulk_create([row], ignore_conflicts=True)
    too_many = kept.order_by("-last_at", "-id").values_list("pk", flat=True)[MOST_KEPT:]
    kept.filter(pk__in=list(too_many)).delete()
