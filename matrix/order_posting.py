"""A test that somebody orders on the page of operations."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST

from matrix import wishes
from matrix.forms import BadQueryError
from sonar import ordering, roles

FIELDS = ("source", "destination")


@require_POST
@login_required
def order_probe(request: HttpRequest) -> HttpResponse:
    """Order one test and lead to its page; who may not is told so before anything else."""
    user = cast(User, request.user)
    if not roles.may(user, wishes.ORDER, roles.sites_of(user)):
        raise PermissionDenied
    given = {field: request.POST.get(field, "").strip() for field in FIELDS}
    try:
        wished = wishes.read({**given, "sizes": request.POST.getlist("size")})
    except BadQueryError as error:
        return told(request, error.errors, 400)
    if not roles.may(user, wishes.ORDER, wishes.sites_of(wished)):
        raise PermissionDenied
    return ordered(request, wished)


def ordered(request: HttpRequest, wished: list[ordering.Wish]) -> HttpResponse:
    try:
        first, *_ = ordering.order(wished, timezone.now())
    except ordering.RefusedError as error:
        return told(request, error.errors, 409)
    except ordering.PlannerBusyError as error:
        return told(request, {"": [str(error)]}, 503)
    return HttpResponseRedirect(f"/transfers/{first.id}/")


def told(request: HttpRequest, errors: dict[str, list[str]], status: int) -> HttpResponse:
    return render(request, "not_ordered.html", {"errors": errors}, status=status)
