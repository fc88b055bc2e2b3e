"""What is done for a site: each change is checked, kept, written into the admin's log, and told."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE as LOG_CHANGE
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.utils import timezone

from matrix.answers.site.question import question, registered
from matrix.http.page_rights import Right, for_whom, holders
from matrix.pages.note_forms import back
from matrix.pages.site.page import SitePage
from matrix.pages.site_work.forms import (
    DowntimeEndForm,
    DowntimeForm,
    EndpointLimitsForm,
    SiteNoteForm,
)
from matrix.pages.site_work.part import (
    CHANGE,
    DECLARE,
    LIMITS,
    TIMES,
    WITHDRAW,
    downtimes_of,
    site_work,
)
from matrix.pages.site_work.testing_forms import PauseForm, QuietHoursForm
from matrix.pages.views import rendered
from matrix.query.addresses import address
from matrix.store.notes import WRITE
from sonar.models import Downtime, Endpoint, Site
from sonar.models.testing_times import PAUSE_COLUMNS
from sonar.notation.windows import format_minute, format_typed
from sonar.people import roles


def for_site(permission: str) -> Right:
    """Return the right of who has a permission for the site of a path."""
    return holders(permission, lambda name, **_: [registered(name).id])


@for_whom(POST=for_site(DECLARE))
def declare_downtime(request: HttpRequest, name: str) -> HttpResponse:
    site = registered(name)
    form = DowntimeForm(site, timezone.now(), request.POST)
    if not form.is_valid():
        return refused(request, site, form)
    with transaction.atomic():
        for row in form.rows:
            row.save()
        first = form.rows[0]
        subjects = ", ".join(subject(row) for row in form.rows)
        return done(
            request,
            site,
            f"Declared a downtime of {subjects} from {format_typed(first.starts_at)} to "
            f"{format_typed(first.ends_at)}: {ended(first.reason)}",
            "No tests of its links start in that time; running tests continue.",
        )


@for_whom(POST=for_site(CHANGE))
def change_downtime(request: HttpRequest, name: str, id: int) -> HttpResponse:  # noqa: A002
    """Let a downtime end at another time; with `end` it ends now, or never begins."""
    site = registered(name)
    with transaction.atomic():
        row = downtimes_of(site).select_for_update(of=("self",)).filter(id=id).first()
        if row is None:
            raise Http404(f"{site.name} has no downtime {id}: it may have been withdrawn.")
        if "end" in request.POST:
            return end_downtime(request, site, row)
        form = DowntimeEndForm(row, request.POST)
        if not form.is_valid():
            return refused(request, site, form)
        row.save(update_fields=["ends_at"])
        words = f"The downtime of {subject(row)} ({row.reason})"
        return done(request, site, f"{words} now ends at {format_typed(row.ends_at)}.")


def end_downtime(request: HttpRequest, site: Site, row: Downtime) -> HttpResponse:
    now, words = timezone.now(), f"The downtime of {subject(row)} ({row.reason})"
    if row.ends_at <= now:
        already = f"had already ended, at {format_typed(row.ends_at)}: nothing was changed."
        messages.error(request, f"{words} {already}")
        return to_site(request, site)
    if row.starts_at < now:
        row.ends_at = now
        row.save(update_fields=["ends_at"])
        return done(request, site, f"{words} has ended.", "Tests of its links start again.")
    if not roles.may(request.user, WITHDRAW, [site.id]):
        raise PermissionDenied
    row.delete()
    return done(request, site, f"{words} was withdrawn before it began.")


@for_whom(POST=for_site(LIMITS))
def change_limits(request: HttpRequest, name: str, endpoint: str) -> HttpResponse:
    """Change caps, budget, label and software of one endpoint of a site."""
    site = registered(name)
    with transaction.atomic():
        rows = Endpoint.objects.select_for_update(of=("self",)).filter(site=site, retired_at=None)
        row = rows.filter(name=endpoint).first()
        if row is None:
            raise Http404(f"{site.name} has no endpoint “{endpoint}” in use.")
        form = EndpointLimitsForm(row, request.POST)
        if not form.is_valid():
            return refused(request, site, form)
        if not form.changes:
            messages.info(request, f"{row.name} stays as it is: nothing was changed.")
            return to_site(request, site)
        row.save(update_fields=list(form.changes))
        sentence = f"Changed {row.name}: {', '.join(form.words())}."
        return done(request, site, sentence, "This applies from now on; running tests continue.")


@for_whom(POST=for_site(TIMES))
def change_quiet_hours(request: HttpRequest, name: str) -> HttpResponse:
    """Set the quiet hours of a site; both fields empty take them away."""
    site = registered(name)
    with transaction.atomic():
        row = Site.objects.select_for_update(of=("self",)).get(pk=site.pk)
        before = hours(row)
        form = QuietHoursForm(row, request.POST)
        if not form.is_valid():
            return refused(request, site, form)
        if hours(row) == before:
            messages.info(request, f"Quiet hours of {row.name} stay as they are: {before}.")
            return to_site(request, site)
        row.save(update_fields=["quiet_from", "quiet_until"])
        return done(
            request,
            site,
            f"Changed quiet hours of {row.name} from {before} to {hours(row)}.",
            "Scheduled tests of its links keep to them from now on; running tests continue.",
        )


def hours(site: Site) -> str:
    return f"{site.quiet_hours} UTC" if site.quiet_hours else "none"


@for_whom(POST=for_site(TIMES))
def change_pause(request: HttpRequest, name: str) -> HttpResponse:
    """Pause the tests of a site, or change the pause that lasts; with `resume` it is over."""
    site, now = registered(name), timezone.now()
    with transaction.atomic():
        row = Site.objects.select_for_update(of=("self",)).get(pk=site.pk)
        if "resume" in request.POST:
            return resume(request, row)
        form = PauseForm(row, now, request.POST)
        if not form.is_valid():
            return refused(request, site, form)
        reason, until = form.cleaned_data["pause_reason"], form.cleaned_data["paused_until"]
        row.pause(now, reason, until, cast(User, request.user))
        row.save(update_fields=PAUSE_COLUMNS)
        verb = "Changed the pause of" if form.lasts else "Paused the tests of"
        return done(
            request,
            site,
            f"{verb} {row.name}, {row.pause_end()}: {ended(reason)}",
            "No tests of its links start meanwhile, whoever orders them; running tests continue.",
        )


def resume(request: HttpRequest, site: Site) -> HttpResponse:
    if not site.is_paused(timezone.now()):
        messages.error(request, f"The tests of {site.name} are not paused: nothing was changed.")
        return to_site(request, site)
    reason, since = site.pause_reason, format_minute(cast(datetime, site.paused_since))
    site.resume()
    site.save(update_fields=PAUSE_COLUMNS)
    sentence = f"Resumed the tests of {site.name}, paused since {since} ({reason})."
    return done(request, site, sentence, "What is due is tested as soon as there is room.")


@for_whom(POST=for_site(WRITE))
def write_note(request: HttpRequest, name: str) -> HttpResponse:
    site = registered(name)
    form = SiteNoteForm(site, request.POST)
    if not form.is_valid():
        return refused(request, site, form)
    form.instance.author = cast(User, request.user)
    with transaction.atomic():
        note = form.save()
        whom = "all readers" if note.public else "operators and admins of the site"
        sentence = f"Added a note, valid from {format_typed(note.starts_at)}: {ended(note.text)}"
        return done(request, site, sentence, f"It is shown to {whom}.")


def refused(request: HttpRequest, site: Site, form: forms.BaseForm) -> HttpResponse:
    """Show the page again, with what was typed and what is wrong with it."""
    now, page = timezone.now(), SitePage(question(QueryDict()), site)
    work = site_work(site, request.user, now, form)
    return rendered(request, page, now, None, status=400, work=work)


def done(request: HttpRequest, site: Site, sentence: str, effect: str = "") -> HttpResponse:
    """Write a change into the log of the admin, say it, and lead back."""
    user = cast(User, request.user)
    LogEntry.objects.log_actions(user.pk, [site], LOG_CHANGE, sentence, single_object=True)
    messages.success(request, f"{sentence} {effect}".strip())
    return to_site(request, site)


def ended(text: str) -> str:
    """Return what somebody wrote as a sentence that another can follow."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def to_site(request: HttpRequest, site: Site) -> HttpResponse:
    return back(request, f"{address('site', site.name)}#site-work")


def subject(row: Downtime) -> str:
    return str(row.site or row.endpoint)
