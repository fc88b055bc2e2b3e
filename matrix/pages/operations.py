"""The Health page: health of Sonar itself, running and waiting tests, and the stop of all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, cast
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone

from matrix.answers.aliases import count_unknown
from matrix.answers.conditions import words as condition_words
from matrix.answers.ordering import probe_requests
from matrix.answers.ordering.probe_requests import ORDER, sites_of
from matrix.answers.status import figures
from matrix.answers.status.health import NO_ROOM, clock_words, look_at_broker
from matrix.answers.words.names import short_names_of
from matrix.http.page_rights import for_whom, holders
from matrix.pages.base import Page
from matrix.pages.parts import meshes, notices
from matrix.pages.parts.incidents import IncidentsNow
from matrix.pages.parts.matrix_address import MatrixAddress
from matrix.pages.parts.notes import back
from matrix.pages.parts.notices import Notice, counted, failing_credentials, failing_endpoints
from matrix.pages.parts.order_forms import ProbeForm, ends, refused
from matrix.pages.parts.share import Share
from matrix.pages.parts.transfers import TransferLine, progress_words
from matrix.pages.site.work_forms import PauseForm
from matrix.pages.views import rendered
from matrix.plots.display import Display
from matrix.query.addresses import address
from matrix.query.filters import TESTS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo, pauses_of
from matrix.store import downtimes, probes, registry, transfers
from matrix.store.data_version import DataVersion
from matrix.store.probes import NEXT_TICK, ProbeProgress
from matrix.store.transfers import TransferSelection
from sonar.models import AllTests, Downtime, Probe, SignOfLife, Transfer
from sonar.models.fields import end_words
from sonar.notation.units import format_age, format_count, format_span
from sonar.notation.windows import preset
from sonar.obstacles.catalogue import BY_NAME, all_advice
from sonar.ordering import request_probes
from sonar.people import roles
from sonar.people.roles import STOP_ALL, Anyone
from sonar.processes import full_disk
from sonar.processes.heartbeats import has_wrong_clock

SEE_ALIASES = "sonar.view_unknownalias"
MOST_RUNNING, MOST_ORDERED, MOST_RESULTS, MOST_DOWNTIMES = 30, 30, 10, 20
# Of one downtime; those of more endpoints are listed with fewer.
MOST_ROWS = 10
AHEAD = timedelta(days=7)
# The tasks that the scheduler sends: their name on the page, and their purpose.
TASK_WORDS = {
    figures.PLANNER: ("planner", "starts tests that are due"),
    "recovery": ("recovery", "ends lost tests and sends queued tests to workers again"),
    "cleanup": ("clean-up", "deletes old test files at endpoints"),
    "check_credentials": ("credentials", "checks credentials again and warns before they expire"),
    "import_downtimes": ("downtimes", "imports downtimes from other services, if configured"),
    "propose_topology": ("topology", "reads sites and endpoints from catalogues, if configured"),
    "compaction": ("compaction", "compresses the results from past hours, so that pages load fast"),
    "retention": ("retention", "creates tables for next month and deletes expired results"),
    "assess": ("assessment", "detects incidents in the latest results"),
    "judge_links": ("commissioning", "checks which links meet the commissioning criteria"),
    "notify": ("notifications", "sends incident notifications"),
    "send_reports": ("reports", "sends reports by e-mail"),
}
QUEUE_WORDS = {
    "transfers": "run tests",
    "control": "schedule tests, maintain results, send notifications",
    "cleanup": "clean up files, check credentials, read downtimes, detect incidents",
}
WORDS_AT_VANTAGES = QUEUE_WORDS | {"cleanup": "clean up files and check credentials"}
REASON_WORDS = {name: obstacle.words for name, obstacle in BY_NAME.items()} | {
    NEXT_TICK: "became due after the last planner run"
}


@dataclass(frozen=True)
class OperationsPage(Page):
    template: ClassVar[str] = "operations.html"
    route: ClassVar[str] = "operations"
    of_primary: ClassVar[bool] = True

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        status = figures.read(now)
        endpoints = registry.read_places(registry.read_versions())
        doubtful = status.judgement.doubtful
        form: dict[str, Any] = {}
        if roles.may(reader, ORDER, roles.sites_of(reader)):
            everywhere = reader.has_perm(ORDER)
            form = {"probe_form": ProbeForm(), "ends": ends(), "everywhere": everywhere}
        # Each state of links, how many have it, and the matrix of only those.
        coverage = []
        for line in status.coverage:
            query = MatrixQuery(size=line.size, window=figures.WINDOW)
            states = [
                (state, links, MatrixAddress(query, Display(only=(state,))).url() if links else "")
                for state, links in line.states.items()
            ]
            coverage.append((line, states))
        # When each source of downtimes was last read.
        sources = []
        for source in status.sources:
            words = "no answer yet" if source.asked_at else "not read yet"
            if source.answered_at:
                regularly = "" if source.is_set else "; not read regularly"
                words = f"read {format_age(now - source.answered_at)}{regularly}"
            sources.append((source, words))
        # Declared downtimes that go on or begin soon.
        soon = Downtime.objects.filter(ends_at__gt=now, starts_at__lt=now + AHEAD)
        rows = soon.select_related("site", "endpoint").order_by("starts_at", "id")
        declared = downtimes.declared(rows[: MOST_DOWNTIMES * MOST_ROWS])[:MOST_DOWNTIMES]
        return {
            "status": status,
            # The page that orders the stop never shows an old notice of it.
            "stopped": status.stopped,
            "incidents_now": IncidentsNow.read(now, reader, short_names_of(endpoints)),
            "simulated": any(endpoint.simulated for endpoint in endpoints if not endpoint.retired),
            "problems": problems(status),
            "doubtful": doubtful and condition_words.doubtful(doubtful),
            "doubtful_since": doubtful and condition_words.since(doubtful),
            "failing_ends": failing_endpoints(status.judgement, status.work.circuits, now),
            "credentials": failing_credentials(status.work.credentials, now, reader),
            **life_part(status.life),
            **tests_part(status, now, reader, endpoints),
            "stop": StopForm(status.all_tests, now) if roles.may(reader, STOP_ALL) else None,
            "uncompacted": uncompacted(status.work.uncompacted),
            "limit": settings.SONAR_IN_FLIGHT,
            "coverage": coverage,
            "planned": any(line.links for line in status.coverage),
            "meshes": meshes.table(),
            "downtimes": [(downtime, downtime.starts_at <= now) for downtime in declared],
            "sources": sources,
            "pauses": [(pause, end_words(pause.until)) for pause in pauses_of(endpoints, now)],
            "unknown_aliases": count_unknown() if roles.may(reader, SEE_ALIASES) else 0,
            "share": Share(address("api-status")),
            **form,
        }


def life_part(life: figures.Life) -> dict[str, Any]:
    """Return when the scheduler and its tasks last ran, and the workers of each queue."""
    lines: list[dict[str, Any]] = [
        {
            "name": "scheduler (Celery beat)",
            "does": "sends the tasks below when they are due",
            "sign": life.scheduler,
            "late": life.is_late(life.scheduler),
        }
    ]
    for task in figures.TASKS:
        (name, does), schedule = TASK_WORDS[task], settings.CELERY_BEAT_SCHEDULE[task]["schedule"]
        every = format_span(timedelta(seconds=float(str(schedule))))
        line = {"name": name, "does": does, "sign": life.task(task), "late": life.is_stuck(task)}
        lines.append(line | {"every": every})
    workers = []
    for queue in life.queues:
        name, _, vantage = queue.partition("@")
        does = QUEUE_WORDS[name]
        if vantage:
            does = f"{WORDS_AT_VANTAGES[name]}, at the vantage point {vantage}"
        signs = []
        for sign in life.workers(queue):
            ahead = sign.clock_ahead_seconds
            side = "ahead" if ahead > 0 else "behind"
            wrong = f" (clock {abs(ahead):.0f} s {side})" if has_wrong_clock(sign) else ""
            signs.append((sign, f"{sign.name}{wrong}"))
        workers.append((queue, does, signs))
    return {"lines": lines, "workers": workers}


def tests_part(
    status: figures.Status, now: datetime, reader: Anyone, endpoints: Sequence[EndpointInfo]
) -> dict[str, Any]:
    """Return running, ordered and waiting tests, and the newest results of the last day."""
    running = probes.rows().filter(state=Probe.State.RUNNING).order_by("started_at", "id")
    ordered = probes.rows().filter(mesh=None).exclude(state=Probe.State.RUNNING)
    ordered = ordered.order_by(*probes.ORDER)[:MOST_ORDERED]
    examples = probes.longest_waiting(status.moment)
    names = {endpoint.id: endpoint.name for endpoint in endpoints}
    states = tuple(Transfer.State.values)
    newest = TransferSelection(preset(figures.WINDOW, now), None, TESTS, states).rows(endpoints)
    return {
        "running": [
            {
                "snapshot": (snapshot := ProbeProgress(probe, None, now)),
                "percent": round(100 * snapshot.share),
                "progress": progress_words(probe),
                "url": address("transfer", probe.id),
                "may_cancel": roles.may(reader, ORDER, sites_of([probe])),
            }
            for probe in running[:MOST_RUNNING]
        ],
        "ordered": [
            (snapshot, roles.may(reader, ORDER, sites_of([snapshot.probe])))
            for snapshot in probes.progress_of(list(ordered), now)
        ],
        # The reasons for which tests wait, with the links that wait the longest.
        "waiting": [
            {
                "waiting": reason,
                "words": " ".join(reason.because) or REASON_WORDS[reason.reason],
                "examples": [
                    (link, names[link.source], names[link.destination])
                    for link in examples.get(reason.reason, [])
                ],
            }
            for reason in status.work.waiting
            if reason.tests
        ],
        "results": [
            {
                "line": TransferLine.of(row),
                "ends": (names[row.source_id], names[row.destination_id]),
            }
            for row in transfers.listing(newest, MOST_RESULTS).results
        ],
    }


# Tests wait for a worker for some seconds; an hour is compacted within minutes of its end.
LONG_QUEUED, LONG_UNCOMPACTED = timedelta(minutes=5), timedelta(minutes=15)
LONG_FAILING = timedelta(minutes=15)


def problems(status: figures.Status) -> list[Notice]:
    """Return all problems, without those that follow from another one."""
    life = status.life
    silent = list(of_silence(life))
    if silent:  # asked only then: a broker that hangs costs the page two seconds
        # Without it the scheduler cannot send tasks, and workers stop reporting.
        broker = look_at_broker()
        if not broker.ok:
            silent = [Notice("no-broker", "The message broker has a problem:", broker.detail)]
    of_all_alive = [] if silent else [*of_delays(status)]
    full = [
        Notice("database-full", "The database cannot store data:", NO_ROOM)
    ] * full_disk.is_noted()
    others = [*full, *of_work(status), *notices.of_replica(status.replica)]
    return [*silent, *of_all_alive, *others]


def of_silence(life: figures.Life) -> Iterator[Notice]:
    """Report queues without a worker, and a scheduler that sends no tasks."""
    effects = {
        "transfers": "No tests are running",
        "control": "Tests are not being scheduled, lost tests are not being ended, and results are "
        "not being compacted",
        "cleanup": "Old test files at endpoints are not being deleted",
    }
    for queue in life.deserted:
        yield Notice(
            f"no-worker-{queue}",
            f"No worker is running for the queue “{queue}”.",
            f"{effects[queue]}. Start a worker, or check its log. If no process sends "
            f"heartbeats, check whether {settings.BROKER_NAME} responds.",
        )
    if life.is_late(life.scheduler):
        never, last = "no task has been sent yet", "the last task was sent"
        yield Notice(
            "no-scheduler",
            "The scheduler is not running:",
            f"{last_time(life, life.scheduler, never, last)}. Without the scheduler, no tests are "
            "scheduled. Start it (Celery beat), on one machine only.",
        )


def of_delays(status: figures.Status) -> Iterator[Notice]:
    """Report wrong clocks, late tasks and stale sources of downtimes while all processes run."""
    life = status.life
    if words := clock_words(life):
        yield Notice(
            "wrong-clock",
            f"{words}:",
            "tokens and certificates expire too early or too late on that machine, and its results "
            "have wrong times. Synchronise the clock of that machine with NTP.",
        )
    for task in figures.TASKS:
        sign = life.task(task)
        if life.is_stuck(task) or (task == figures.PLANNER and sign is None):
            schedule = settings.CELERY_BEAT_SCHEDULE[task]
            route = settings.CELERY_TASK_ROUTES.get(str(schedule["task"]), {})
            queue = route.get("queue", settings.CELERY_TASK_DEFAULT_QUEUE)
            yield Notice(
                f"late-{task}",
                f"The task “{TASK_WORDS[task][0]}” is late:",
                f"{last_time(life, sign, 'no run has finished yet', 'the last run finished')}. "
                f"Check the log of the worker for the queue “{queue}”.",
            )
    for source in status.sources:
        if source.is_set and source.stale and source.asked_at:
            answered_at = source.answered_at
            since = f"for {format_span(status.moment - answered_at)}" if answered_at else "yet"
            yield Notice(
                f"stale-{source.source}",
                f"{source.name} has not responded {since}.",
                "Sonar does not know the latest downtimes from this source. Endpoints in downtime "
                "may therefore appear as failing. See “Downtime sources” below.",
            )


def of_work(status: figures.Status) -> Iterator[Notice]:
    """Report what waits too long: for a credential, a worker, compaction or delivery."""
    for advice in all_advice(status.moment):
        title = f"Not all tests of {advice.subject} can run:"
        yield Notice(f"obstacle-{advice.obstacle}", title, advice.sentence)
    oldest = status.probes.oldest_queued
    if oldest and status.moment - oldest > LONG_QUEUED and not status.stopped:
        yield Notice(
            "long-queue",
            f"{counted(status.probes.queued, 'test', 'is', 'are')} queued.",
            f"The oldest test has been waiting for {format_span(status.moment - oldest)}. "
            "There are too few workers for the queue “transfers”, or they are busy with slow "
            "tests.",
        )
    if status.uncompacted_seconds > LONG_UNCOMPACTED.total_seconds():
        yield Notice(
            "late-compaction",
            "Compaction is late:",
            f"{uncompacted(status.work.uncompacted)}. Pages with these results load more slowly. "
            "Check whether the worker for the queue “control” is overloaded.",
        )
    calls = status.work.calls
    if calls.failing_since and status.moment - calls.failing_since > LONG_FAILING:
        yield Notice(
            "failing-notifications",
            f"{counted(calls.failing, 'subscription', 'cannot', 'cannot')} deliver notifications.",
            f"The first failure was {format_age(status.moment - calls.failing_since)}. The "
            "Notifications page shows the response from each channel.",
        )


def last_time(life: figures.Life, sign: SignOfLife | None, never: str, last: str) -> str:
    return never if sign is None else f"{last} {format_age(life.moment - sign.seen_at)}"


def uncompacted(count: int) -> str:
    if count == 1:
        return "1 completed hour or day has not been compacted"
    return f"{format_count(count)} completed hours and days have not been compacted"


def sites_of_test(id: UUID) -> set[int]:  # noqa: A002 - of the route
    test = probe_requests.ordered_test(id)
    return probe_requests.sites_of([test] if test else [])


@for_whom(POST=holders(probe_requests.ORDER))
def order_probes(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    form = ProbeForm(request.POST)
    if status := refused(request, form, user):
        page = OperationsPage()
        return rendered(request, page, timezone.now(), None, status=status, probe_form=form)
    first = form.probe_requests[0]
    return HttpResponseRedirect(address("link-probes", first.source.name, first.destination.name))


of_test = holders(probe_requests.ORDER, sites_of_test)


@for_whom(GET=of_test, POST=of_test)
def cancel_probe(request: HttpRequest, id: UUID) -> HttpResponse:  # noqa: A002 - of the route
    """Ask whether a test is to be cancelled; POST cancels it and leads back."""
    test = probe_requests.ordered_test(id)
    if test is None:
        raise Http404(f"No test has the id {id}.")
    if request.method != "POST" and isinstance(test, Transfer):
        return HttpResponseRedirect(address("transfer", id))
    if request.method != "POST":
        return render(request, "cancel_test.html", {"test": test, "back": request.GET.get("next")})
    try:
        ran = request_probes.cancel(id, timezone.now(), probe_requests.canceller(request.user))
    except request_probes.NotCancelledError as error:
        context = {"errors": {"": [str(error)]}, "heading": "The test was not cancelled"}
        return render(request, "not_ordered.html", context, status=409)
    named = f"The {test.size_class.name} test from {test.source.name} to {test.destination.name}"
    if ran:
        sentence = (
            "will end within seconds. Its file will be deleted, and its result will show who "
            "cancelled it."
        )
        messages.success(request, f"{named} {sentence}")
    else:
        messages.success(request, f"{named} was cancelled before it started.")
    return back(request, address("operations"))


class StopForm(PauseForm):
    """A stop of all tests, to begin now; or the one that lasts."""

    running = forms.BooleanField(label="also cancel running tests", required=False)


@for_whom(POST=holders(STOP_ALL))
def stop_tests(request: HttpRequest) -> HttpResponse:
    """Stop all tests, ordered ones too, or change the stop; `resume` ends it."""
    now = timezone.now()
    if "resume" in request.POST:
        resumed = request_probes.resume_all(now)
        sentence = "Tests start again: due tests run as soon as limits allow."
        messages.success(request, sentence if resumed else "Tests were not stopped.")
    else:
        with transaction.atomic():
            list(AllTests.objects.select_for_update())
            form = StopForm(AllTests.read(), now, request.POST)
            if not form.is_valid():
                return rendered(request, OperationsPage(), now, None, status=400, stop=form)
            data = form.cleaned_data
            cancelled = request_probes.stop_all(
                data["pause_reason"],
                data["paused_until"],
                cast(User, request.user),
                now,
                running=data["running"],
            )
        going_on = f"{counted(cancelled, 'running test', 'will end', 'will end')} within seconds."
        messages.success(
            request,
            f"All tests are stopped {end_words(data['paused_until'])}: scheduled and on-demand "
            "tests do not start. "
            f"{going_on if data['running'] else 'Running tests continue.'}",
        )
    registry.forget_stopped()
    return HttpResponseRedirect(address("operations"))
