"""The tests that people ordered: the form, how far they are, what they gave, and cancelling one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, TypeVar, cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone

from matrix.answers.ordering import ordered_tests, probe_requests
from matrix.http.page_rights import for_whom, holders, readers
from matrix.pages.operations import OperationsPage
from matrix.pages.parts.links import OfLinkPage
from matrix.pages.parts.notes import back
from matrix.pages.parts.order_forms import OrderForm, ProbeForm
from matrix.pages.parts.transfers import streams_words
from matrix.pages.views import rendered, showing
from matrix.query.addresses import address
from matrix.query.forms import DEFAULT_SIZE
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import notes
from matrix.store.data_version import DataVersion
from matrix.store.transfers import rate_of
from sonar.models import Probe, Transfer
from sonar.notation.units import three_digits
from sonar.ordering import request_probes
from sonar.ordering.request_probes import ProbeRequest
from sonar.people.roles import Anyone

# Of one size class they tell a chance from a change.
USUAL_COUNT = 3


@dataclass(frozen=True)
class LinkProbesPage(OfLinkPage):
    template: ClassVar[str] = "link_probes.html"
    route: ClassVar[str] = "link-probes"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        return {
            **self.head("Ordered tests"),
            "test_now": self.test_now(reader, now),
            "probe_form": self.probe_form(DEFAULT_SIZE, reader),
        }

    def test_now(self, reader: Anyone, now: datetime) -> dict[str, Any]:
        live = progress(self.source, self.destination, now)
        return {"url": self.path(), "may_order": self.may_order(reader), **live}

    def probe_form(self, size: str, reader: Anyone) -> ProbeForm | None:
        if not (reader.is_authenticated and self.may_order(reader)):
            return None
        return ProbeForm(link=self.endpoints(), initial={"size": size, "count": USUAL_COUNT})

    def part(self, size: str, reader: Anyone, now: datetime) -> dict[str, Any]:
        """Return what the page of a link has for who may order its tests; nothing for others."""
        form = self.probe_form(size, reader)
        return {"test_now": self.test_now(reader, now), "probe_form": form} if form else {}


def progress(source: EndpointInfo, destination: EndpointInfo, now: datetime) -> dict[str, Any]:
    """Return the tests that have not ended, and those of the last day beside earlier ones."""
    groups = ordered_tests.groups((source, destination), now)
    snapshots = sorted(
        (snapshot for group in groups for snapshot in group.open),
        key=lambda snapshot: (snapshot.probe.requested_at, snapshot.probe.id),
    )
    return {
        "open": [
            (each, round(100 * each.share), each.probe.state == Probe.State.RUNNING)
            for each in snapshots
        ],
        "groups": [
            (
                group,
                streams_words(group.streams, group.used) if group.used else str(group.streams),
                # Its rate in MB/s; where there is none, what became of it.
                [
                    (
                        transfer,
                        three_digits(rate_of(transfer))
                        if transfer.state == Transfer.State.DONE
                        else transfer.state,
                    )
                    for transfer in group.shown
                ],
            )
            for group in groups
            if group.results
        ],
        "streams": ordered_tests.statements(groups),
    }


Placed = TypeVar("Placed")


show_link_probes = showing(LinkProbesPage)


def sites_of_test(id: UUID) -> set[int]:  # noqa: A002 - of the route
    test = probe_requests.ordered_test(id)
    return probe_requests.sites_of([test] if test else [])


@for_whom(GET=readers, POST=holders(probe_requests.ORDER, notes.sites_of))
def link_probes(request: HttpRequest, source: str, destination: str) -> HttpResponseBase:
    """Show the tests that were ordered on a link, or order some."""
    if request.method == "POST":
        return order_on_link(request, source, destination)
    return show_link_probes(request, source=source, destination=destination)


def order_on_link(request: HttpRequest, source: str, destination: str) -> HttpResponse:
    user = cast(User, request.user)
    page = LinkProbesPage.of(source, destination)
    form = ProbeForm(request.POST, page.endpoints())
    if status := refused(request, form, user):
        return rendered(request, page, timezone.now(), None, status=status, probe_form=form)
    return HttpResponseRedirect(page.path())


@for_whom(POST=holders(probe_requests.ORDER))
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
    if sentence := probe_requests.refusal_for(user, tests):
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


@for_whom(POST=holders(probe_requests.ORDER, sites_of_test))
def cancel_probe(request: HttpRequest, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
    """Cancel a test and lead back; one that has begun is not cancelled any more."""
    test = probe_requests.ordered_test(id)
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
