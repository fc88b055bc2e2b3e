"""The part of a site's page for who looks after it: its forms, and who changed what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q, QuerySet

from matrix.pages.site_work.forms import (
    DowntimeEndForm,
    DowntimeForm,
    EndpointLimitsForm,
    SiteNoteForm,
)
from matrix.pages.site_work.testing_forms import PauseForm, QuietHoursForm
from matrix.store.notes import WRITE
from sonar.models import Downtime, Endpoint, Site
from sonar.people import roles
from sonar.people.roles import Anyone

DECLARE, CHANGE, WITHDRAW = (f"sonar.{verb}_downtime" for verb in ("add", "change", "delete"))
LIMITS, TIMES = "sonar.change_endpoint", "sonar.change_site"
MOST_DOWNTIMES, MOST_ENTRIES = 20, 8


@dataclass(frozen=True)
class DowntimeLine:
    """A downtime that has not ended, with the form to end it another time."""

    downtime: Downtime
    current: bool
    form: DowntimeEndForm


def site_work(
    site: Site, reader: Anyone, now: datetime, refusal: forms.BaseForm | None = None
) -> dict[str, Any]:
    """Return what somebody may do for a site; nothing for others.

    ``refusal`` is the form that was sent and could not be kept: it stands in its place.
    """

    def may(permission: str) -> bool:
        return roles.may(reader, permission, [site.id])

    if not reader.is_authenticated or not any(map(may, (DECLARE, LIMITS, TIMES, WRITE))):
        return {}
    return {
        "declare": sent(refusal, DowntimeForm(site, now)) if may(DECLARE) else None,
        "downtimes": downtime_lines(site, now, refusal) if may(CHANGE) else [],
        "endpoints": endpoint_forms(site, refusal) if may(LIMITS) else [],
        "quiet": sent(refusal, QuietHoursForm(site)) if may(TIMES) else None,
        "pause": sent(refusal, PauseForm(site, now)) if may(TIMES) else None,
        "note": sent(refusal, SiteNoteForm(site)) if may(WRITE) else None,
        "entries": list(entries_of(site)[:MOST_ENTRIES]),
        "refused": refusal is not None,
    }


def sent(refusal: forms.BaseForm | None, form: forms.BaseForm) -> forms.BaseForm:
    """Return the form that was sent, if it is the same as this one."""
    return refusal if refusal and refusal.auto_id == form.auto_id else form


def downtimes_of(site: Site) -> QuerySet[Downtime]:
    """Return the downtimes of a site and of its endpoints."""
    rows = Downtime.objects.filter(Q(site=site) | Q(endpoint__site=site))
    return rows.select_related("site", "endpoint")


def downtime_lines(site: Site, now: datetime, refusal: forms.BaseForm | None) -> list[DowntimeLine]:
    rows = downtimes_of(site).filter(ends_at__gt=now).order_by("starts_at", "id")
    return [
        DowntimeLine(row, row.starts_at <= now, sent(refusal, DowntimeEndForm(row)))  # type: ignore[arg-type]
        for row in rows[:MOST_DOWNTIMES]
    ]


def endpoint_forms(
    site: Site, refusal: forms.BaseForm | None
) -> list[tuple[Endpoint, forms.BaseForm]]:
    rows = Endpoint.objects.filter(site=site, retired_at=None)
    return [(row, sent(refusal, EndpointLimitsForm(row))) for row in rows]


def entries_of(site: Site) -> QuerySet[LogEntry]:
    """Return what was changed for a site, newest first, as the admin has it in its history."""
    kind = ContentType.objects.get_for_model(Site)
    entries = LogEntry.objects.filter(content_type=kind, object_id=str(site.pk))
    return entries.select_related("user").order_by("-action_time", "-id")
