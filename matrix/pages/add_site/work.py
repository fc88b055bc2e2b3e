"""What the steps of *Add site* keep: each at once, in the log of the admin too."""

from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters

from matrix.answers.site.overview import registered
from matrix.http.page_rights import for_whom, holders
from matrix.pages.add_site import mesh_step, pages
from matrix.pages.add_site.credential_forms import FileNameForm, KnownForm, UploadForm
from matrix.pages.add_site.site_forms import EndpointForm, SiteForm
from matrix.pages.add_site.steps import ADD_ENDPOINT, ADD_SITE, sites_of
from matrix.pages.base import Page
from matrix.pages.endpoint import OF_CHECK, endpoint_of
from matrix.pages.parts.admin_log import keep_in_the_log
from matrix.pages.views import rendered, show
from matrix.query.addresses import address
from sonar.models import Credential, Endpoint, Version
from sonar.models.member_filters import ENDS
from sonar.notation.windows import format_minute
from sonar.obstacles.catalogue import advice_on
from sonar.ordering import request_checks
from sonar.registry import uploads
from sonar.registry.uploads import Uploader

of_site = holders(ADD_ENDPOINT, lambda name, **_: [registered(name).id])


def again(request: HttpRequest, page: Page, **forms: Any) -> HttpResponse:  # noqa: ANN401 - as the context has it
    """Show a page with a form that was refused: what was typed stays, secrets do not."""
    return rendered(request, page, timezone.now(), None, status=400, **forms)


@for_whom(GET=holders(ADD_SITE), POST=holders(ADD_SITE))
def add_site(request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, pages.AddSitePage, {})
    form = SiteForm(data=request.POST)
    with transaction.atomic():
        Version.lock_registry()
        if not form.is_valid():
            return again(request, pages.AddSitePage(), form=form)
        form.site.save()
        keep_in_the_log(request, form.site, ADDITION, f"Added site {form.site.name}.")
    return HttpResponseRedirect(address("add-endpoint", form.site.name))


@for_whom(GET=of_site, POST=holders(ADD_SITE))
def set_up_site(request: HttpRequest, name: str) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, pages.SetUpSitePage, {"name": name})
    with transaction.atomic():
        page = pages.SetUpSitePage(registered(name, lock=True))
        form = SiteForm(page.site, request.POST)
        if not form.is_valid():
            return again(request, page, form=form)
        form.site.save(update_fields=list(form.fields))
        keep_in_the_log(request, form.site, CHANGE, f"Changed site {form.site.name}.")
    # It goes on at its only endpoint that waits, or at a new one.
    waiting = form.site.endpoints.filter(retired_at=None, enabled=False).first()
    if waiting is None:
        return HttpResponseRedirect(address("add-endpoint", name))
    return HttpResponseRedirect(address("set-up", name, waiting.name))


@for_whom(GET=of_site, POST=of_site)
def add_endpoint(request: HttpRequest, name: str) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, pages.AddEndpointPage, {"name": name})
    page = pages.AddEndpointPage(registered(name))
    row = Endpoint(site=page.site, enabled=False)
    form = EndpointForm(row, request.POST, is_operator=pages.may_operate(request.user))
    with transaction.atomic():
        Version.lock_registry()
        if not form.is_valid():
            return again(request, page, form=form)
        row.save()
        keep_in_the_log(request, page.site, CHANGE, f"Added endpoint {row.name} (not enabled).")
    return HttpResponseRedirect(address("set-up", name, row.name))


@for_whom(GET=of_site, POST=of_site)
def set_up_endpoint(request: HttpRequest, name: str, endpoint: str) -> HttpResponseBase:
    if request.method != "POST":
        return show(request, pages.SetUpEndpointPage, {"name": name, "endpoint": endpoint})
    with transaction.atomic():
        Version.lock_registry()
        page = pages.SetUpEndpointPage(locked(name, endpoint))
        row, before = page.endpoint, page.endpoint.credential
        if row.enabled or row.retired_at:
            messages.error(
                request,
                f"The base URL of {row.name} cannot be changed here, because the "
                "endpoint is enabled or retired.",
            )
            return HttpResponseRedirect(page.path())
        form = EndpointForm(row, request.POST, is_operator=pages.may_operate(request.user))
        if not form.is_valid():
            return again(request, page, form=form)
        row.save()
        sentence = f"Changed endpoint {row.name}."
        if before and form.is_moved:
            uploads.forget_unused(before)
            gone = f"The credential {before} was for the previous server. Add a new credential."
            messages.warning(request, gone)
            sentence = f"{sentence} {gone}"
        keep_in_the_log(request, row.site, CHANGE, sentence)
    return HttpResponseRedirect(pages.SetUpPage(row).path())


def locked(name: str, endpoint: str) -> Endpoint:
    rows = Endpoint.objects.select_for_update(of=("self",), no_key=True)
    list(rows.filter(site__name=name, name=endpoint))
    return endpoint_of(name, endpoint)


@for_whom(GET=of_site)
def set_up(request: HttpRequest, name: str, endpoint: str) -> HttpResponseBase:
    return show(request, pages.SetUpPage, {"name": name, "endpoint": endpoint})


@sensitive_post_parameters()
@for_whom(POST=of_site)
def set_credential(request: HttpRequest, name: str, endpoint: str) -> HttpResponse:
    """Give an endpoint a credential by one of four ways, or none, and let it be checked."""
    with transaction.atomic():
        Version.lock_registry()
        page = pages.SetUpPage(locked(name, endpoint))
        act = WAYS.get(request.POST.get("how", ""), upload)
        refused = act(request, page)
    if refused is not None:
        return refused
    try:
        request_checks.order(page.endpoint, cast(User, request.user), timezone.now())
    except request_checks.CheckRefusedError as error:
        sentence = f"The check was not repeated. {error}"
        messages.warning(request, sentence, extra_tags=OF_CHECK)
    return HttpResponseRedirect(f"{page.path()}#check")


def upload(request: HttpRequest, page: pages.SetUpPage) -> HttpResponse | None:
    """Keep a secret that was uploaded; return the page with what is wrong with it."""
    now, endpoint = timezone.now(), page.endpoint
    is_operator = pages.may_operate(request.user)
    form = UploadForm(endpoint, now, request.POST, request.FILES, is_operator=is_operator)
    if not form.is_valid():
        return again(request, page, upload=form)
    by = Uploader(cast(User, request.user), sites_of(request.user))
    try:
        with transaction.atomic():
            credential = uploads.keep(endpoint, form.secret, by, now)
            lends = form.cleaned_data["lend_credential"]
            Endpoint.objects.filter(pk=endpoint.pk).update(lend_credential=lends)
            end = form.secret.upload.expires_at
            valid = f", valid until {format_minute(end)}" if end else ""
            sentence = f"Uploaded credential {credential.name} for {endpoint.name}{valid}."
            keep_in_the_log(request, endpoint.site, CHANGE, sentence)
    except ValidationError as error:
        for field, faults in error.error_dict.items():
            form.add_error(field if field in form.fields else "content", faults)
        return again(request, page, upload=form)
    messages.success(request, f"{sentence} The credential is stored encrypted and never shown.")
    return None


def choose(request: HttpRequest, page: pages.SetUpPage) -> HttpResponse | None:
    """Give the endpoint a credential that is registered, or one of a file on the workers."""
    endpoint, before = page.endpoint, page.endpoint.credential
    form: KnownForm | FileNameForm
    if request.POST["how"] == "file":
        if not pages.is_administrator(request.user):
            raise PermissionDenied
        name, form = "file_name", FileNameForm(request.POST)
    else:
        choosable = pages.known_credentials(endpoint, request.user)
        name, form = "registered_ones", KnownForm(endpoint, choosable, request.POST)
    if not form.is_valid():
        return again(request, page, **{name: form})
    credential = form.cleaned_data.get("credential")
    if credential is None:
        hosts = uploads.hosts_at([endpoint.base_url])
        credential = Credential(**form.cleaned_data, hosts=hosts)
    first = next(iter(form.fields))
    try:
        with transaction.atomic():
            credential.full_clean()
            credential.save()
            endpoint.credential = credential
            endpoint.lend_credential &= before == credential
            endpoint.full_clean()
            endpoint.save(update_fields=["credential", "lend_credential"])
            if before and before != credential:
                uploads.forget_unused(before)
            sentence = f"Credential {credential.name} is now used for {endpoint.name}."
            keep_in_the_log(request, endpoint.site, CHANGE, sentence)
    except ValidationError as error:
        for faults in error.error_dict.values():
            form.add_error(first, faults)
        return again(request, page, **{name: form})
    messages.success(request, sentence)
    return None


def need_none(request: HttpRequest, page: pages.SetUpPage) -> HttpResponse | None:
    """Let an endpoint go on without a credential; one that it has is taken from it."""
    endpoint, before = page.endpoint, page.endpoint.credential
    if before is None:
        return None
    endpoint.credential, endpoint.lend_credential = None, False
    endpoint.save(update_fields=["credential", "lend_credential"])
    uploads.forget_unused(before)
    sentence = f"Stopped using credential {before} for {endpoint.name}."
    keep_in_the_log(request, endpoint.site, CHANGE, sentence)
    messages.success(request, sentence)
    return None


def remove(request: HttpRequest, page: pages.SetUpPage) -> HttpResponse | None:
    own = page.endpoint.credential
    if own is None or not pages.may_remove(page.endpoint, request.user):
        raise PermissionDenied
    uploads.remove(own)
    sentence = f"Removed the secret of credential {own}."
    keep_in_the_log(request, page.endpoint.site, CHANGE, sentence)
    waiting = "Tests that need this credential will wait for a new secret."
    messages.success(request, f"{sentence} {waiting}")
    return HttpResponseRedirect(page.path())


WAYS = {"known": choose, "file": choose, "none": need_none, "remove": remove}


@for_whom(POST=of_site)
def start(request: HttpRequest, name: str, endpoint: str) -> HttpResponse:
    """Keep the limits and the mesh of an endpoint; with `start` it is enabled.

    Without `start` and `later` nothing is kept: the page shows what it would cost.
    """
    if not {"start", "later"} & request.POST.keys():
        sent = [(field, request.POST.get(field, "")) for field in mesh_step.FIELDS]
        sent += [("shown", request.POST["shown"])] if "shown" in request.POST else []
        path = pages.SetUpPage(endpoint_of(name, endpoint)).path()
        return HttpResponseRedirect(f"{path}?{urlencode(sent)}#mesh")
    with transaction.atomic():
        registered(name, lock=True)
        page = pages.SetUpPage(locked(name, endpoint))
        form = pages.mesh_form(page.endpoint, request.user, request.POST)
        if not form.is_valid():
            return again(request, page, **page.cost(timezone.now(), request.user, form))
        sentences = list(kept(page.endpoint, form, starts="start" in request.POST))
        keep_in_the_log(request, page.endpoint.site, CHANGE, " ".join(sentences))
    if "start" in request.POST:
        soon = f"The first tests are scheduled within {settings.SONAR_PLAN_SECONDS} s."
        how = "To stop tests, choose “Pause tests…”, or “Disable endpoint” in “Caps and budgets…”."
        messages.success(request, f"{' '.join(sentences)} {soon} {how}")
        choice = form.chosen()
        for sentence in advice_on(choice.mesh, timezone.now()) if choice else ():
            if page.endpoint.name in sentence:
                messages.warning(request, sentence)
    else:
        messages.success(request, f"{' '.join(sentences)} No tests are running yet.")
    return HttpResponseRedirect(f"{address('site', name)}#site-work")


def kept(endpoint: Endpoint, form: mesh_step.MeshForm, *, starts: bool) -> Iterable[str]:
    """Keep what the form of the mesh says; yield a sentence on each thing that was done."""
    form.fill()
    endpoint.full_clean()
    endpoint.site.full_clean()
    endpoint.enabled = endpoint.enabled or starts
    endpoint.save(update_fields=["budget_bytes_per_day", "enabled"])
    endpoint.site.save(update_fields=["quiet_from", "quiet_until"])
    choice = form.chosen()
    if choice and not choice.is_meant:
        # To the ends at which it names its endpoints.
        for named in (getattr(choice.mesh, end) for end in ENDS):
            if named.all():
                named.add(endpoint)
        yield f"Added {endpoint.name} to mesh {choice.mesh.name}."
    if not starts:
        yield f"Saved the limits of {endpoint.name}."
        return
    price = mesh_step.cost_of(form, timezone.now())
    yield f"Started testing {endpoint.name}: {price.words if price else ''}."
