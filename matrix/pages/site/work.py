"""What is done for a site: each change is checked, kept, put into the admin's log, and told."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import TypeVar, cast

from django import forms
from django.contrib import messages
from django.contrib.admin.models import CHANGE as LOG_CHANGE
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.utils import timezone

from matrix.answers.site.overview import compared_question, registered
from matrix.http.page_rights import for_whom, holders, readers
from matrix.pages.endpoint import EndpointPage, costs_of, endpoint_of, show_endpoint
from matrix.pages.parts.admin_log import keep_in_the_log
from matrix.pages.parts.notes import back
from matrix.pages.site import work_forms
from matrix.pages.site.page import SitePage
from matrix.pages.views import rendered
from matrix.query.addresses import address
from matrix.store.notes import WRITE
from sonar.models import Endpoint, Site
from sonar.models.fields import PAUSE_COLUMNS
from sonar.notation.windows import format_minute, format_typed
from sonar.people import roles

Form = TypeVar("Form", bound=forms.BaseForm)
# What was done, and what that means.
Change = tuple[str, str]
Action = Callable[..., Change]


class FormRefusedError(Exception):
    """The form that was sent cannot be kept; it says why by its fields."""

    def __init__(self, form: forms.BaseForm) -> None:
        self.form = form


class UnchangedError(Exception):
    """There is nothing to change; the sentence says why, with a level of Django's messages."""

    def __init__(self, sentence: str, level: int = messages.INFO) -> None:
        super().__init__(sentence)
        self.level = level


def acting(
    permission: str, again: Callable[..., HttpResponse] | None = None
) -> Callable[[Action], Callable[..., HttpResponse]]:
    """Return the view of an action, for who has a permission for the site of a path.

    It keeps the change in one transaction with the log of the admin, says it, and leads back; or
    it shows the page ``again``, that of the site, with what was typed and what is wrong with it.
    """

    def decorate(action: Action) -> Callable[..., HttpResponse]:
        @for_whom(POST=holders(permission, lambda name, **_: [registered(name).id]))
        @wraps(action)
        def view(request: HttpRequest, name: str, **path: object) -> HttpResponse:
            site = registered(name)
            try:
                with transaction.atomic():
                    sentence, effect = action(request, site, **path)
                    keep_in_the_log(request, site, LOG_CHANGE, sentence)
                messages.success(request, f"{sentence} {effect}".strip())
            except UnchangedError as error:
                messages.add_message(request, error.level, str(error))
            except FormRefusedError as error:
                if again:
                    return again(request, site, error.form, **path)
                now, page = timezone.now(), SitePage(compared_question(QueryDict()), site)
                work = work_forms.site_work(site, request.user, now, error.form)
                return rendered(request, page, now, None, status=400, work=work)
            return back(request, f"{address('site', site.name)}#site-work")

        return view

    return decorate


def checked(form: Form) -> Form:
    if not form.is_valid():
        raise FormRefusedError(form)
    return form


def ended(text: str) -> str:
    """Return what somebody wrote as a sentence that another can follow."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


@acting(work_forms.DECLARE)
def declare_downtime(request: HttpRequest, site: Site) -> Change:
    form = checked(work_forms.DowntimeForm(site, timezone.now(), request.POST))
    for row in form.rows:
        row.save()
    first = form.rows[0]
    subjects = ", ".join(str(row.site or row.endpoint) for row in form.rows)
    declaration, effect = {
        True: (
            f"a downtime of {subjects}",
            "No tests start on the affected links during the downtime. Running tests continue.",
        ),
        False: (
            f"{subjects} to be at risk",
            "Tests on the affected links still run during the downtime, but their results are "
            "marked.",
        ),
    }[first.stops_tests]
    return f"Declared {declaration} {first.times_words}: {ended(first.reason)}", effect


@acting(work_forms.CHANGE)
def change_downtime(request: HttpRequest, site: Site, id: int) -> Change:  # noqa: A002
    """Let a downtime end at another time; with `end` it ends now, or never begins."""
    row = work_forms.downtimes_of(site).select_for_update(of=("self",)).filter(id=id).first()
    if row is None:
        raise Http404(f"{site.name} has no downtime {id}. It may have been withdrawn.")
    if not row.is_by_hand:
        sentence = f"This downtime was declared in {row.get_origin_display()}. Change it there."
        raise UnchangedError(f"{sentence} Sonar imports the change within minutes.", messages.ERROR)
    subject = row.site or row.endpoint
    now, words = timezone.now(), f"The downtime of {subject} ({row.reason})"
    if "end" not in request.POST:
        checked(work_forms.DowntimeEndForm(row, request.POST))
        row.save(update_fields=["ends_at"])
        return f"{words} now lasts {row.until_words}.", ""
    if row.ends_at <= now:
        already = f"already ended at {format_typed(row.ends_at)}. Nothing was changed."
        raise UnchangedError(f"{words} {already}", messages.ERROR)
    if row.starts_at < now:
        row.ends_at = now
        row.save(update_fields=["ends_at"])
        return (
            f"{words} has ended.",
            "Tests on the affected links can start again." if row.stops_tests else "",
        )
    if not roles.may(request.user, work_forms.WITHDRAW, [site.id]):
        raise PermissionDenied
    row.delete()
    return f"{words} was withdrawn before it started.", ""


def in_use(site: Site, endpoint: str) -> Endpoint:
    """Return an endpoint that is not retired, locked; raise Http404 with a sentence."""
    rows = Endpoint.objects.select_for_update(of=("self",)).select_related("site")
    row = rows.filter(site=site, retired_at=None, name=endpoint).first()
    if row is None:
        raise Http404(f"{site.name} has no endpoint “{endpoint}” in use.")
    return row


@acting(work_forms.LIMITS)
def change_limits(request: HttpRequest, site: Site, endpoint: str) -> Change:
    row = in_use(site, endpoint)
    form = checked(work_forms.EndpointLimitsForm(row, request.POST))
    if not form.changes:
        raise UnchangedError(f"{row.name} already has these values. Nothing was changed.")
    row.save(update_fields=list(form.changes))
    sentence = f"Changed {row.name}: {', '.join(form.words())}."
    return sentence, "The changes apply to new tests. Running tests continue."


@acting(work_forms.LIMITS)
def enable_endpoint(request: HttpRequest, site: Site, endpoint: str) -> Change:
    """Let tests with one endpoint of a site start; with `disable` no more of them do."""
    row, enabled = in_use(site, endpoint), "disable" not in request.POST
    if row.enabled == enabled:
        state = "already enabled" if enabled else "not enabled"
        raise UnchangedError(f"{row.name} is {state}. Nothing was changed.")
    row.enabled = enabled
    row.save(update_fields=["enabled"])
    if enabled:
        return f"Enabled {row.name}.", f"This starts {costs_of(row, timezone.now())}."
    effect = "No new tests start on links of this endpoint. Running tests continue."
    return f"Disabled {row.name}.", effect


@for_whom(GET=readers, POST=holders(work_forms.LIMITS, lambda name, **_: [registered(name).id]))
def endpoint(request: HttpRequest, name: str, endpoint: str) -> HttpResponseBase:
    if request.method == "POST":
        return change_limits(request, name=name, endpoint=endpoint)
    return show_endpoint(request, name=name, endpoint=endpoint)


@acting(work_forms.TIMES)
def change_quiet_hours(request: HttpRequest, site: Site) -> Change:
    """Set the quiet hours of a site; both fields empty take them away."""

    def hours(row: Site) -> str:
        return f"{row.quiet_hours} UTC" if row.quiet_hours else "none"

    row = Site.objects.select_for_update(of=("self",)).get(pk=site.pk)
    before = hours(row)
    checked(work_forms.QuietHoursForm(row, request.POST))
    if hours(row) == before:
        raise UnchangedError(
            f"{row.name} already has these quiet hours ({before}). Nothing was changed."
        )
    row.save(update_fields=["quiet_from", "quiet_until"])
    return (
        f"Changed the quiet hours of {row.name} from {before} to {hours(row)}.",
        "The new hours apply to scheduled tests on links of the site. Running tests continue.",
    )


@acting(work_forms.TIMES)
def change_pause(request: HttpRequest, site: Site) -> Change:
    """Pause the tests of a site, or change the pause that lasts; with `resume` it is over."""
    return keep_pause(request, Site.objects.select_for_update(of=("self",)).get(pk=site.pk))


def endpoint_again(
    request: HttpRequest, site: Site, form: forms.BaseForm, endpoint: str
) -> HttpResponse:
    page = EndpointPage(endpoint_of(site.name, endpoint))
    return rendered(request, page, timezone.now(), None, status=400, pause=form)


@acting(work_forms.LIMITS, endpoint_again)
def pause_endpoint(request: HttpRequest, site: Site, endpoint: str) -> Change:
    return keep_pause(request, in_use(site, endpoint))


def keep_pause(request: HttpRequest, row: Site | Endpoint) -> Change:
    now = timezone.now()
    if "resume" in request.POST:
        if not row.is_paused(now):
            sentence = f"The tests of {row.name} are not paused. Nothing was changed."
            raise UnchangedError(sentence, messages.ERROR)
        reason, since = row.pause_reason, format_minute(cast(datetime, row.paused_since))
        row.resume()
        row.save(update_fields=PAUSE_COLUMNS)
        return (
            f"Resumed the tests of {row.name}, paused since {since} ({reason}).",
            "Due tests start as soon as limits allow.",
        )
    form = checked(work_forms.PauseForm(row, now, request.POST))
    reason, until = form.cleaned_data["pause_reason"], form.cleaned_data["paused_until"]
    row.pause(now, reason, until, cast(User, request.user))
    row.save(update_fields=PAUSE_COLUMNS)
    verb = "Changed the pause of" if form.lasts else "Paused the tests of"
    return (
        f"{verb} {row.name}, {row.pause_end()}: {ended(reason)}",
        "During the pause, no tests start on the affected links, not even on-demand tests. "
        "Running tests continue.",
    )


@acting(WRITE)
def write_note(request: HttpRequest, site: Site) -> Change:
    form = checked(work_forms.SiteNoteForm(site, request.POST))
    form.instance.author = cast(User, request.user)
    note = form.save()
    whom = "all readers" if note.public else "operators and admins of the site"
    sentence = f"Added a note, valid from {format_typed(note.starts_at)}: {ended(note.text)}"
    return sentence, f"The note is visible to {whom}."
