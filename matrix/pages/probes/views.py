"""What people do with tests on pages: order some, of any link or of one, and cancel one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar, cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone

from matrix.answers import probe_request
from matrix.http.page_rights import for_whom, holders, readers
from matrix.pages.note_forms import back
from matrix.pages.operations.page import OperationsPage
from matrix.pages.probes.form import ProbeForm
from matrix.pages.probes.page import LinkProbesPage, ends_of
from matrix.pages.views import rendered, showing
from matrix.query.addresses import address
from matrix.store import notes
from sonar.ordering import request_probes
from sonar.ordering.request_probes import ProbeRequest

Placed = TypeVar("Placed")


class OrderForm(Protocol):
    """A form that says what is wrong by its fields."""

    def refuse(self, errors: Mapping[str, Sequence[str]]) -> None: ...


show_link_probes = showing(LinkProbesPage)


def sites_of_test(id: UUID) -> set[int]:  # noqa: A002 - of the route
    test = probe_request.ordered_test(id)
    return probe_request.sites_of([test] if test else [])


@for_whom(GET=readers, POST=holders(probe_request.ORDER, notes.sites_of))
def link_probes(request: HttpRequest, source: str, destination: str) -> HttpResponseBase:
    """Show the tests that were ordered on a link, or order some."""
    if request.method == "POST":
        return order_on_link(request, source, destination)
    return show_link_probes(request, source=source, destination=destination)


def order_on_link(request: HttpRequest, source: str, destination: str) -> HttpResponse:
    user = cast(User, request.user)
    page = LinkProbesPage.of(source, destination)
    form = ProbeForm(request.POST, ends_of(page.source, page.destination))
    if status := refused(request, form, user):
        return rendered(request, page, timezone.now(), None, status=status, probe_form=form)
    return HttpResponseRedirect(page.path())


@for_whom(POST=holders(probe_request.ORDER))
def order_probes(request: HttpRequest) -> HttpResponse:
    """Order tests of any link, and lead to the page that follows them."""
    user = cast(User, request.user)
    form = ProbeForm(request.POST)
    if status := refused(request, form, user):
        page = OperationsPage()
        return rendered(request, page, timezone.now(), None, status=status, probe_form=form)
    first = form.probe_requests[0]
    return HttpResponseRedirect(address("link-probes", first.source.name, first.destination.name))


def refused(request: HttpRequest, form: ProbeForm, user: User) -> int:
    """Order what a form asks for and return 0, or the status with which it was refused and why."""
    if not form.is_valid():
        return 400
    tests = form.probe_requests
    ordered, status = place(form, tests, user, lambda now: request_probes.order(tests, now))
    if ordered is None:
        return status
    words = "1 test was ordered." if len(ordered) == 1 else f"{len(ordered)} tests were ordered."
    messages.success(request, " ".join([words, *form.stands_for()]))
    return 0


def place(
    form: OrderForm,
    tests: Sequence[ProbeRequest],
    user: User,
    order: Callable[[datetime], Placed],
) -> tuple[Placed | None, int]:
    """Order the tests of a valid form, or say in it why not; return what was ordered, and a status.

    ``order`` does it, at a moment, and raises what request_probes.order() does.
    """
    if sentence := probe_request.refusal_for(user, tests):
        form.refuse({"source": [sentence]})
        return None, 403
    try:
        return order(timezone.now()), 302
    except request_probes.RefusedError as error:
        form.refuse(error.errors)
        return None, 409
    except request_probes.PlannerBusyError as error:
        form.refuse({"": [str(error)]})
        return None, 503


@for_whom(POST=holders(probe_request.ORDER, sites_of_test))
def cancel_probe(request: HttpRequest, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
    """Cancel a test and lead back; one that has begun is not cancelled any more."""
    test = probe_request.ordered_test(id)
    if test is None:
        raise Http404(f"No test has the id {id}.")
    try:
        request_probes.cancel(id, timezone.now())
    except request_probes.NotCancelledError as error:
        context = {"errors": {"": [str(error)]}, "heading": "The test was not cancelled"}
        return render(request, "not_ordered.html", context, status=409)
    messages.success(
        request,
        f"The {test.size_class.name} test from {test.source.name} to {test.destination.name} was "
        "cancelled: nothing was measured.",
    )
    return back(request, address("operations"))
