"""Declared downtimes, for pages and pictures."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from sonar.models import Downtime, Site
from sonar.notation.windows import Window

# Downtimes that begin within this time are said.
SOON = timedelta(days=7)


def of_site(site: Site, window: Window, now: datetime) -> list[Downtime]:
    """Return those of a site or its endpoints in the window, now or soon."""
    concerned = Q(site=site) | Q(endpoint__site=site)
    within = Q(starts_at__lt=window.end, ends_at__gt=window.start)
    ahead = Q(starts_at__lt=now + SOON, ends_at__gt=now)
    declared = Downtime.objects.filter(concerned, within | ahead)
    return list(declared.select_related("site", "endpoint").order_by("starts_at"))


def is_soon(downtime: Downtime, now: datetime) -> bool:
    """Say whether a downtime lasts, or begins soon."""
    return now < downtime.ends_at and downtime.starts_at < now + SOON
