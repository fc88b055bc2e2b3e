"""The tests that people ordered on a link: the form, how far they are, what they gave."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from matrix.answers import on_demand, ordered_streams
from matrix.answers.probe_request import ORDER
from matrix.pages.link.endpoints import OfLinkPage
from matrix.pages.probes.form import ProbeForm
from matrix.pages.transfer.facts import streams_words
from matrix.query.forms import DEFAULT_SIZE
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import notes
from matrix.store.data_version import DataVersion
from matrix.store.probes import ProbeProgress
from matrix.store.transfers import rate_of
from sonar.models import Endpoint, Probe, Transfer
from sonar.notation.units import three_digits
from sonar.people import roles
from sonar.people.roles import Anyone

# Of one size class they tell a chance from a change.
USUAL_COUNT = 3


@dataclass(frozen=True)
class LinkProbesPage(OfLinkPage):
    template: ClassVar[str] = "link_probes.html"
    route: ClassVar[str] = "link-probes"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        ends = self.source, self.destination
        return {
            **self.head("Ordered tests"),
            "test_now": {
                "url": self.path(),
                "may_order": may_order(*ends, reader),
                **progress(*ends, now),
            },
            "probe_form": probe_form(*ends, DEFAULT_SIZE, reader),
        }


def probes_part(page: LinkProbesPage, size: str, reader: Anyone, now: datetime) -> dict[str, Any]:
    """Return what the page of a link has for who may order its tests; nothing for others."""
    form = probe_form(page.source, page.destination, size, reader)
    if form is None:
        return {}
    live = {"url": page.path(), "may_order": True, **progress(page.source, page.destination, now)}
    return {"test_now": live, "probe_form": form}


def may_order(source: EndpointInfo, destination: EndpointInfo, reader: Anyone) -> bool:
    return roles.may(reader, ORDER, notes.sites_of(source.name, destination.name))


def probe_form(
    source: EndpointInfo, destination: EndpointInfo, size: str, reader: Anyone
) -> ProbeForm | None:
    if not reader.is_authenticated or not may_order(source, destination, reader):
        return None
    initial = {"size": size, "count": USUAL_COUNT}
    return ProbeForm(link=ends_of(source, destination), initial=initial)


def ends_of(source: EndpointInfo, destination: EndpointInfo) -> tuple[Endpoint, Endpoint]:
    rows = Endpoint.objects.select_related("site").in_bulk([source.id, destination.id])
    return rows[source.id], rows[destination.id]


@dataclass(frozen=True)
class ProgressLine:
    """A test that has not ended as the page shows it; ``percent`` of its bytes."""

    snapshot: ProbeProgress
    percent: int
    is_running: bool


def progress(source: EndpointInfo, destination: EndpointInfo, now: datetime) -> dict[str, Any]:
    """Return the tests that have not ended, and those of the last day beside earlier ones."""
    groups = on_demand.groups((source, destination), now)
    snapshots = sorted(
        (snapshot for group in groups for snapshot in group.open),
        key=lambda snapshot: (snapshot.probe.requested_at, snapshot.probe.id),
    )
    return {
        "open": [progress_line(snapshot) for snapshot in snapshots],
        "groups": [
            (
                group,
                streams_words(group.streams, group.used) if group.used else str(group.streams),
                [(transfer, words_of(transfer)) for transfer in group.shown],
            )
            for group in groups
            if group.results
        ],
        "streams": ordered_streams.statements(groups),
    }


def progress_line(snapshot: ProbeProgress) -> ProgressLine:
    is_running = snapshot.probe.state == Probe.State.RUNNING
    return ProgressLine(snapshot, round(100 * snapshot.share), is_running)


def words_of(transfer: Transfer) -> str:
    """Write its rate in MB/s; where there is none, what became of it."""
    done = transfer.state == Transfer.State.DONE
    return three_digits(rate_of(transfer)) if done else transfer.state
