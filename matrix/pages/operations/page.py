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
from matrix.pages import failing_credentials, failing_endpoints
from matrix.pages.base import Page
from matrix.pages.matrix.address import MatrixAddress
from matrix.pages.operations.problems import problems, unsealed
from matrix.pages.probes.form import ProbeForm
from matrix.pages.progress import TransferLine, progress_words
from matrix.pages.share import Share
from matrix.plots.display import Display
from matrix.query.addresses import address
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo, pauses_of
from matrix.store import probes, registry, transfers
from matrix.store.data_version import DataVersion
from matrix.store.probes import NEXT_TICK, ProbeProgress
from matrix.store.transfers import TransferSelection
from sonar.models import Downtime, Endpoint, Probe, SignOfLife, Transfer
from sonar.models.testing_times import end_words
from sonar.movers.catalogue import carries_files
from sonar.notation.units import format_span
from sonar.notation.windows import preset
from sonar.obstacles.catalogue import BY_NAME
from sonar.people import roles
from sonar.people.roles import Anyone

MOST_RUNNING, MOST_ORDERED, MOST_RESULTS, MOST_DOWNTIMES = 30, 30, 10, 20
AHEAD = timedelta(days=7)
# What the beat sends, by what it is for; the second word is what logs and settings call it.
TASK_WORDS = {
    PLAN: ("planner", "starts the tests that are due"),
    "sweep": ("sweep", "ends lost tests and sends stuck ones again"),
    CLEAN: ("cleaning", "deletes test files left behind at endpoints"),
    "check_credentials": ("credentials", "rechecks credentials and warns before they expire"),
    "seal": ("sealing", "packs the results of finished hours, which keeps pages fast"),
    "keep_months": ("months", "prepares the database for next month, drops expired results"),
    "find_changes": ("changes", "searches new results for events"),
}
QUEUE_WORDS = {
    "transfers": "run the tests",
    "control": "plan tests and keep results",
    "cleaning": "clean up, check credentials and search for changes",
}
REASON_WORDS = {name: obstacle.words for name, obstacle in BY_NAME.items()} | {
    NEXT_TICK: "became due since tests were last planned",
}


@dataclass(frozen=True)
class OperationsLine:
    """A process or task in the list of what must live; ``sign`` is its last sign of life.

    ``every`` says how often a task runs.
    """

    name: str
    does: str
    sign: SignOfLife | None
    late: bool
    every: str = ""


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
            "failing_ends": failing_endpoints.notices(status.work.circuits, now),
            "credentials": failing_credentials.notices(status.work.credentials, now, reader),
            "lines": lines(status.life),
            "workers": [
                (queue, QUEUE_WORDS[queue], status.life.workers(queue)) for queue in QUEUES
            ],
            "running": running(now),
            "ordered": ordered(now, reader),
            "unsealed": unsealed(status.work.unsealed),
            "limit": settings.SONAR_IN_FLIGHT,
            "waiting": waiting_reasons(status, endpoints),
            "coverage": [(line, state_urls(line)) for line in status.coverage],
            "planned": any(line.links for line in status.coverage),
            "results": results(now, endpoints),
            "downtimes": downtimes(now),
            "pauses": [
                (site, pause, end_words(pause.until))
                for site, pause in sorted(pauses_of(endpoints, now).items())
            ],
            "share": Share(address("api-status")),
            **probe_form(reader),
        }


def lines(life: Life) -> list[OperationsLine]:
    """List the beat and its tasks, with when they were last heard of."""
    beat = OperationsLine(
        "beat", "sends each task below when it is due", life.beat, life.is_late(life.beat)
    )
    tasks = (
        OperationsLine(*TASK_WORDS[name], life.task(name), life.is_stuck(name), every(name))
        for name in TASKS
    )
    return [beat, *tasks]


def every(task: str) -> str:
    """Say how often a task of the beat runs: `1 h`."""
    return format_span(
        timedelta(seconds=float(str(settings.CELERY_BEAT_SCHEDULE[task]["schedule"])))
    )


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
    examples = probes.longest_waiting(status.moment)
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


def probe_form(reader: Anyone) -> dict[str, Any]:
    """Return the form to order tests and what it suggests; nothing to who may order none."""
    if not roles.may(reader, ORDER, roles.sites_of(reader)):
        return {}
    return {
        "probe_form": ProbeForm(),
        "ends": ends(),
        "everywhere": reader.has_perm(ORDER),
    }


def ends() -> list[tuple[str, str]]:
    """Return the names that a test may have at an end, and what each is: sites, then endpoints."""
    rows = Endpoint.objects.filter(retired_at=None).values_list("name", "site__name", "base_url")
    by_site: dict[str, list[str]] = {}
    with_files: dict[str, list[str]] = {}
    for name, site, base_url in rows.order_by("site__name", "name"):
        by_site.setdefault(site, []).append(name)
        if carries_files(base_url):
            with_files.setdefault(site, []).append(name)
    sites = [
        (site, names[0] if len(names) == 1 else f"a site with {len(names)} endpoints")
        for site, names in (by_site | with_files).items()
    ]
    return sites + [(name, site) for site, names in by_site.items() for name in names]
