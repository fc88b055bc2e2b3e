"""What people order on a link, tests and sweeps: forms, how far they are, what they gave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Self, cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    QueryDict,
)
from django.utils import timezone

from matrix.answers.ordering import ordered_tests
from matrix.answers.ordering import sweeps as report
from matrix.answers.ordering.probe_requests import ORDER, sites_of
from matrix.answers.ordering.sweeps import SweepReport, conclusion, title
from matrix.http.page_rights import for_whom, holders, readers
from matrix.pages.base import Page, Params
from matrix.pages.parts.links import OfLinkPage
from matrix.pages.parts.order_forms import ProbeForm, SweepForm, place, read_preset, refused
from matrix.pages.parts.share import Share
from matrix.pages.parts.transfers import streams_words
from matrix.pages.views import rendered, showing
from matrix.plots import sweep as sweep_plot
from matrix.query.addresses import address, link_url
from matrix.query.forms import DEFAULT_SIZE, check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import notes
from matrix.store.data_version import DataVersion
from matrix.store.transfers import rate_of
from sonar.models import Probe, Sweep, Transfer
from sonar.notation.units import three_digits
from sonar.ordering import request_probes
from sonar.people import roles
from sonar.people.roles import Anyone

# Of one size class they tell a chance from a change.
USUAL_COUNT = 3


@dataclass(frozen=True)
class LinkProbesPage(OfLinkPage):
    template: ClassVar[str] = "link_probes.html"
    route: ClassVar[str] = "link-probes"
    of_primary: ClassVar[bool] = True

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        return {
            **self.head("On-demand tests"),
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


@for_whom(GET=readers, POST=holders(ORDER, notes.sites_of))
def link_probes(request: HttpRequest, source: str, destination: str) -> HttpResponseBase:
    if request.method != "POST":
        return show_link_probes(request, source=source, destination=destination)
    user = cast(User, request.user)
    page = LinkProbesPage.of(source, destination)
    form = ProbeForm(request.POST, page.endpoints())
    if status := refused(request, form, user):
        return rendered(request, page, timezone.now(), None, status=status, probe_form=form)
    return HttpResponseRedirect(page.path())


# On the page of a link; all of the newest are on their own.
BESIDE_LINK = 5
MOST = 100


@dataclass(frozen=True)
class LinkSweepsPage(OfLinkPage):
    """With a ``preset``, by the names of fields, the form is open and has these values."""

    template: ClassVar[str] = "link_sweeps.html"
    route: ClassVar[str] = "link-sweeps"
    of_primary: ClassVar[bool] = True

    preset: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        preset = read_preset(params)
        return replace(cls.of(path["source"], path["destination"]), preset=preset)

    def params(self) -> Params:
        return {name: [value] for name, value in self.preset.items()}

    def newest(self, now: datetime, most: int = BESIDE_LINK) -> list[SweepReport]:
        """Return so many of the newest sweeps, and one more if there are more."""
        return report.newest_reports(self.source.id, self.destination.id, now, most + 1)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        return {
            **self.head("Parameter sweeps"),
            **self.part(self.preset, reader, self.newest(now, MOST), now, most=MOST),
            "is_preset": bool(self.preset),
        }

    def part(
        self,
        preset: Mapping[str, str],
        reader: Anyone,
        newest: Sequence[SweepReport],
        now: datetime,
        most: int = BESIDE_LINK,
    ) -> dict[str, Any]:
        """Return the newest sweeps of a link and, for who may order one, the form.

        `with_streams` is the address of the form that has streams as what is varied.
        """
        form = None
        if reader.is_authenticated and self.may_order(reader):
            form = SweepForm(self.endpoints(), preset=preset)
        streams = {"variable": Sweep.Variable.STREAMS.value} | dict(preset)
        return {
            "sweeps": {
                "lines": [(each, title(each), conclusion(each)) for each in newest[:most]],
                "more": len(newest) > most,
                "url": self.path(),
                "with_streams": replace(self, preset=streams).url(),
            },
            "sweep_form": form,
            "streams_ignored": report.streams_ignored(self.source.id, self.destination.id, now)
            if form
            else "",
        }


@dataclass(frozen=True)
class SweepPage(Page):
    template: ClassVar[str] = "sweep.html"
    route: ClassVar[str] = "sweep"
    of_primary: ClassVar[bool] = True

    id: UUID

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        check_names(params)
        return cls(UUID(str(path["id"])))

    def path(self) -> str:
        return address(self.route, self.id)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        current = report.report_of(self.id, now)
        if current is None:
            raise Http404(
                f"No parameter sweep has the id {self.id}: the address may be incomplete."
            )
        sweep = current.sweep
        source, destination = sweep.source, sweep.destination
        may_cancel = reader.is_authenticated and roles.may(reader, ORDER, sites_of([sweep]))
        return {
            "heading": f"Parameter sweep from {source.name} to {destination.name}",
            "title": title(current),
            "report": current,
            "sweep": sweep,
            "conclusion": conclusion(current),
            "figure": sweep_plot.figure(current),
            "percent": round(100 * current.share),
            "waiting": sum(step.state in ("waiting", "queued") for step in current.steps),
            "simulated": source.simulated or destination.simulated,
            "may_cancel": may_cancel,
            "link_url": link_url(source.name, destination.name, MatrixQuery()),
            "all_url": address("link-sweeps", source.name, destination.name),
            "share": Share.of(address("api-sweep", sweep.id)),
            "missing": None,
        }


show_link_sweeps = showing(LinkSweepsPage)


def sites_of_sweep(id: UUID) -> set[int]:  # noqa: A002 - of the route
    return sites_of(report.rows().filter(id=id))


@for_whom(GET=readers, POST=holders(ORDER, notes.sites_of))
def link_sweeps(request: HttpRequest, source: str, destination: str) -> HttpResponseBase:
    if request.method != "POST":
        return show_link_sweeps(request, source=source, destination=destination)
    user = cast(User, request.user)
    page = LinkSweepsPage.of(source, destination)
    form, sweep, status = SweepForm(page.endpoints(), request.POST), None, 400
    if form.is_valid() and (sweep_request := form.sweep_request):
        tests = sweep_request.probe_requests
        sweep, status = place(
            form, tests, user, lambda now: request_probes.order_sweep(sweep_request, user, now)
        )
    if sweep is None:
        now = timezone.now()
        return rendered(request, page, now, None, status=status, sweep_form=form)
    return HttpResponseRedirect(address("sweep", sweep.id))


@for_whom(POST=holders(ORDER, sites_of_sweep))
def cancel_sweep(request: HttpRequest, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
    """Cancel the tests that have not begun, and lead back to the sweep."""
    sweep = report.rows().filter(id=id).first()
    if sweep is None:
        raise Http404(f"No parameter sweep has the id {id}.")
    count = request_probes.cancel_sweep(sweep, timezone.now())
    tests = "1 test was" if count == 1 else f"{count or 'No'} tests were"
    messages.success(request, f"{tests} cancelled. Tests that had started continue.")
    return HttpResponseRedirect(address("sweep", id))
