"""The page of operations: is Sonar itself well, what goes on now, and what waits and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings

from matrix.answers.probe_request import ORDER, sites_of
from matrix.answers.status import figures
from matrix.answers.status.figures import CLEAN, PLAN, QUEUES, TASKS, WINDOW, Coverage, Life, Status
from matrix.pages.base import Page
from matrix.pages.matrix.address import MatrixAddress
from matrix.pages.operations.problems import problems, unsealed
from matrix.pages.progress import TransferLine, progress_words
from matrix.plots.display import Display
from matrix.query.addresses import address
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.axes import EndpointInfo
from matrix.store import probes, registry, transfers, waiting
from matrix.store.data_version import DataVersion
from matrix.store.probes import ProbeProgress
from matrix.store.transfers import TransferSelection
from matrix.store.waiting import NEXT_TICK
from sonar import roles
from sonar.models import Downtime, Endpoint, Probe, SignOfLife, SizeClass, Transfer
from sonar.roles import Anyone
from sonar.windows import preset

MOST_RUNNING, MOST_ORDERED, MOST_RESULTS, MOST_DOWNTIMES = 30, 30, 10, 20
AHEAD = timedelta(days=7)
TASK_WORDS = {
    PLAN: ("planner", "queues what is due"),
    "sweep": ("sweep", "ends lost tests, sends idle ones again"),
    CLEAN: ("cleaning", "deletes files left behind at endpoints"),
    "seal": ("sealing", "makes segments of hours that are over"),
    "keep_months": ("months", "makes partitions ahead, drops what is too old"),
}
REASON_WORDS = {
    "downtime": "an end is in a declared downtime",
    "cap": "an end, or Sonar itself, has as many tests at once as it bears",
    "quiet hours": "their mesh does not test at this time of the day",
    "budget": "an end has used up its test bytes of today",
    "link": "another test of their link has not ended: a link has one at a time",
    "circuit": "tests of an end keep failing, so that it is tested now and then only",
    "credential": "an end lends no credential, or has one for another host: manage.py credentials",
    NEXT_TICK: "due since the last tick of the planner",
}


@dataclass(frozen=True)
class OperationsLine:
    """A process or task in the list of what must live; ``sign`` is its last sign of life."""

    name: str
    does: str
    sign: SignOfLife | None
    late: bool


@dataclass(frozen=True)
class RunningProbe:
    """A running test as the page shows it."""

    snapshot: ProbeProgress
    percent: int
    progress: str
    url: str


@dataclass(frozen=True)
class OperationsPage(Page):
    template: ClassVar[str] = "operations.html"
    route: ClassVar[str] = "operations"
    nav: ClassVar[str] = "operations"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        status = figures.read(now)
        endpoints = registry.read_places(registry.read_versions())
        return {
            "status": status,
            "simulated": any(endpoint.simulated for endpoint in endpoints if not endpoint.retired),
            "problems": problems(status),
            "lines": lines(status.life),
            "workers": [(queue, status.life.workers(queue)) for queue in QUEUES],
            "running": running(now),
            "ordered": ordered(now, reader),
            "unsealed": unsealed(status.work.unsealed),
            "limit": settings.SONAR_IN_FLIGHT,
            "waiting": waiting_reasons(status, endpoints),
            "coverage": [(line, state_urls(line)) for line in status.coverage],
            "planned": any(line.links for line in status.coverage),
            "results": results(now, endpoints),
            "downtimes": downtimes(now),
            "probe_form": probe_form(reader),
        }


def lines(life: Life) -> list[OperationsLine]:
    """List the beat and its tasks, with when they were last heard of."""
    beat = OperationsLine(
        "beat", "sends the tasks below in time", life.beat, life.is_late(life.beat)
    )
    tasks = (
        OperationsLine(*TASK_WORDS[name], life.task(name), life.is_stuck(name)) for name in TASKS
    )
    return [beat, *tasks]


def running(now: datetime) -> list[RunningProbe]:
    """Return the tests that run, the longest first."""
    rows = probes.rows().filter(state=Probe.State.RUNNING).order_by("started_at", "id")
    lines = []
    for probe in rows[:MOST_RUNNING]:
        snapshot = ProbeProgress(probe, None, now)
        percent = round(100 * snapshot.share)
        url = address("transfer", probe.id)
        lines.append(RunningProbe(snapshot, percent, progress_words(probe), url))
    return lines


def ordered(now: datetime, reader: Anyone) -> list[tuple[ProbeProgress, bool]]:
    """Return the ordered tests that have not begun, oldest first, and if the reader may cancel."""
    rows = probes.rows().filter(mesh=None).exclude(state=Probe.State.RUNNING)
    rows = rows.order_by(*probes.ORDER)[:MOST_ORDERED]
    return [
        (snapshot, roles.may(reader, ORDER, sites_of([snapshot.probe])))
        for snapshot in probes.progress_of(list(rows), now)
    ]


def waiting_reasons(status: Status, endpoints: Sequence[EndpointInfo]) -> list[dict[str, Any]]:
    """Return the reasons for which tests wait, with the links that wait the longest."""
    examples = waiting.examples(status.moment)
    names = {endpoint.id: endpoint.name for endpoint in endpoints}
    return [
        {
            "waiting": reason,
            "words": REASON_WORDS[reason.reason],
            "examples": [
                (link, names[link.source], names[link.destination])
                for link in examples.get(reason.reason, [])
            ],
        }
        for reason in status.work.waiting
        if reason.tests
    ]


def state_urls(line: Coverage) -> list[tuple[str, int, str]]:
    """Return each state, how many links have it, and the matrix of only those."""
    query = MatrixQuery(size=line.size, window=WINDOW)
    return [
        (state, links, MatrixAddress(query, Display(only=(state,))).url() if links else "")
        for state, links in line.states.items()
    ]


def results(now: datetime, endpoints: Sequence[EndpointInfo]) -> list[dict[str, Any]]:
    """Return the newest results of the last day, of all sizes and states."""
    names = {endpoint.id: endpoint.name for endpoint in endpoints}
    rows = TransferSelection(preset(WINDOW, now), states=tuple(Transfer.State.values)).rows(
        endpoints
    )
    return [
        {
            "line": TransferLine.of(transfer),
            "ends": (names[transfer.source_id], names[transfer.destination_id]),
        }
        for transfer in transfers.listing(rows, MOST_RESULTS).results
    ]


def downtimes(now: datetime) -> list[tuple[Downtime, bool]]:
    """Return the declared downtimes that go on or begin soon, and whether each goes on."""
    soon = Downtime.objects.filter(ends_at__gt=now, starts_at__lt=now + AHEAD)
    rows = soon.select_related("site", "endpoint").order_by("starts_at", "id")[:MOST_DOWNTIMES]
    return [(downtime, downtime.starts_at <= now) for downtime in rows]


def probe_form(reader: Anyone) -> dict[str, Any] | None:
    """Return what the form to order a test offers; nothing to who may order none."""
    own = roles.sites_of(reader)
    if not roles.may(reader, ORDER, own):
        return None
    endpoints = Endpoint.objects.filter(retired_at=None)
    return {
        "endpoints": list(endpoints.values_list("name", flat=True)),
        "sizes": list(SizeClass.objects.values_list("name", flat=True)),
        "everywhere": reader.has_perm(ORDER),
    }
