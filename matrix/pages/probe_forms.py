"""Tests that somebody orders on the page of operations, or cancels there or on its own page."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST

from matrix.answers import probe_request
from matrix.query.addresses import address
from matrix.query.forms import BadQueryError
from sonar import request_probes, roles

FIELDS = ("source", "destination")


@require_POST
@login_required
def order_probe(request: HttpRequest) -> HttpResponse:
    """Order one test and lead to its page; who may not is told so before anything else."""
    user = cast(User, request.user)
    if not roles.may(user, probe_request.ORDER, roles.sites_of(user)):
        raise PermissionDenied
    fields = {field: request.POST.get(field, "").strip() for field in FIELDS}
    try:
        probe_requests = probe_request.read({**fields, "sizes": request.POST.getlist("size")})
    except BadQueryError as error:
        return not_ordered(request, error.errors, 400)
    if not roles.may(user, probe_request.ORDER, probe_request.sites_of(probe_requests)):
        raise PermissionDenied
    try:
        first, *_ = request_probes.order(probe_requests, timezone.now())
    except request_probes.RefusedError as error:
        return not_ordered(request, error.errors, 409)
    except request_probes.PlannerBusyError as error:
        return not_ordered(request, {"": [str(error)]}, 503)
    return HttpResponseRedirect(address("transfer", first.id))


@require_POST
@login_required
def cancel_probe(request: HttpRequest, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
    """Cancel a test and lead to the operations; one that has begun is not cancelled any more."""
    test = probe_request.ordered_test(id)
    sites = probe_request.sites_of([test] if test else [])
    if not roles.may(cast(User, request.user), probe_request.ORDER, sites):
        raise PermissionDenied
    if test is None:
        raise Http404(f"No test has the id {id}.")
    try:
        request_probes.cancel(id, timezone.now())
    except request_probes.NotCancelledError as error:
        return not_ordered(request, {"": [str(error)]}, 409, "The test was not cancelled")
    messages.success(
        request,
        f"The {test.size_class.name} test from {test.source.name} to {test.destination.name} was "
        "cancelled: nothing was measured.",
    )
    return HttpResponseRedirect(address("operations"))


def not_ordered(
    request: HttpRequest,
    errors: dict[str, list[str]],
    status: int,
    heading: str = "No test was ordered",
) -> HttpResponse:
    context = {"errors": errors, "heading": heading}
    return render(request, "not_ordered.html", context, status=status)
