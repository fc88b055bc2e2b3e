"""The tests that people ordered: the form, how far they are, what they gave, and cancelling one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, cast

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone

from matrix.answers.ordering import ordered_tests, probe_requests
from matrix.http.page_rights import for_whom, holders, readers
from matrix.pages.parts.links import OfLinkPage
from matrix.pages.parts.order_forms import ProbeForm, refused
from matrix.pages.parts.transfers import streams_words
from matrix.pages.views import rendered, showing
from matrix.query.forms import DEFAULT_SIZE
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import notes
from matrix.store.data_version import DataVersion
from matrix.store.transfers import rate_of
from sonar.models import Probe, Transfer
from sonar.notation.units import three_digits
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


show_link_probes = showing(LinkProbesPage)


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
