"""Health of Sonar itself: GET /api/v1/status/, and /metrics for Prometheus.

Neither has secrets or names of machines.
"""

from typing import Annotated, Literal

from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from django_prometheus.exports import ExportToDjangoView
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry
from prometheus_client import generate_latest as in_text
from rest_framework.request import Request

import sonar
from matrix.answers.status import figures
from matrix.answers.status.figures import PLANNER, REASONS, TASKS, Life, Status
from matrix.answers.status.metrics import Figures
from matrix.api.base import ApiView
from matrix.api.rendering import as_json
from matrix.api.schema.describe import described
from matrix.api.schema.records import At, Json, Moment, MomentOrNull, Name, NameOrNull, Text, record
from matrix.api.schema.schemas import Answer, word_of
from matrix.http.negotiation import asked_format
from matrix.http.permissions import sees
from matrix.query.forms import check_names
from sonar.models import CredentialState, SignOfLife
from sonar.registry.downtimes.state import SourceState


class LastSign(Answer):
    """When a process last reported that it is alive, or a task that it succeeded; null if never.

    `late` is true after three times the interval; for planner and scheduler, also if never.
    """

    last: Annotated[MomentOrNull, At("seen_at")]
    age_seconds: float | None
    every_seconds: int | None
    late: bool


class WorkersOfQueue(Answer):
    """Workers running for a queue; their names only for those who may see them."""

    count: int
    names: list[str] | None = None


class ProbesCounted(Answer):
    """Tests that have not finished; waiting ones were ordered and exceed a limit for now."""

    waiting: int
    queued: int
    running: int
    oldest_queued: MomentOrNull
    in_flight_limit: int


class Waiting(Answer):
    """Scheduled tests that are due and wait; the planner has not yet seen those with `next tick`.

    `link`: another test of their link has not ended. `circuit`: tests at an end keep failing.
    `stopped`: all tests are stopped.
    `credential`: one may not be sent where it would be needed, or does not work (`credentials`).
    `quiet hours` are those of their mesh, `quiet site` those of the site of an end. `paused`: the
    tests of an end, or of its whole site, are paused. `not enabled`: an end is registered and not
    enabled. Where people must act, `because` has sentences on what those that are due longest
    lack.
    """

    reason: Annotated[str, word_of(REASONS)]
    tests: int
    since: MomentOrNull
    because: list[str]


class ResultsCounted(Answer):
    done: int
    failed: int
    lost: int


class Compaction(Answer):
    """Hours and days that are over and not compacted; the first ended at `uncompacted_since`."""

    uncompacted: Annotated[int, At("work.uncompacted")]
    uncompacted_since: Annotated[MomentOrNull, At("work.uncompacted_since")]
    uncompacted_seconds: float


class OpenCircuit(Answer):
    """An endpoint that is tested less often after a number of consecutive failures.

    Its next scheduled test may run at `next_test_at`, if that is not null; a success closes the
    circuit breaker. `error` is that of the last test.
    """

    endpoint: Name
    site: Annotated[Name, At("endpoint.site")]
    failures: int
    since: Moment
    last_at: Moment
    next_test_at: MomentOrNull
    error: str


class CredentialInTrouble(Answer):
    """A credential that fails or expires soon.

    It is the `own` one or the `lent` one of an endpoint, or the one with which Sonar authenticates
    to the `service` of a mesh. Either `endpoint` and `site` or `mesh` are null. While `tests_wait`,
    tests that need it are not started. Its name, kind and `detail` only for those who may see them.
    """

    endpoint: NameOrNull
    site: Annotated[NameOrNull, At("endpoint.site")]
    mesh: NameOrNull
    role: Literal["own", "lent", "service"]
    since: Moment
    tests_wait: Annotated[bool, At("holds")]
    expires_at: MomentOrNull
    credential: str | None = None
    kind: str | None = None
    detail: str | None = None


class SizeCoverage(Answer):
    """Links of a size class by their state in the matrix of the last 24 hours."""

    size: str
    links: int
    measured: int
    failing: int
    failed: int
    stale: int
    untested: int
    down: int
    as_of: Moment


class SourceOfDowntimes(Answer):
    """A source of downtimes, and when it was last read successfully (`answered_at`).

    `stale` is true if that is more than an hour ago or never. `error` is the last failure, only for
    those who may see it. `of_endpoints` of its `downtimes` concern endpoints in use.
    """

    source: Literal["gocdb", "osg"]
    asked_regularly: Annotated[bool, At("is_set")]
    asked_at: MomentOrNull
    answered_at: MomentOrNull
    stale: bool
    downtimes: int
    of_endpoints: int
    failing: bool
    error: str | None = None


class AssessmentAnswer(Answer):
    """When results were last assessed (for the size class where that is longest ago).

    `is_late` is true if that is more than three intervals ago. While a confirmed condition of the
    whole grid is open, results are doubtful since `doubtful_since`, else that is null.
    """

    as_of: MomentOrNull
    is_late: bool
    doubtful_since: Annotated[MomentOrNull, At("doubtful.since")]


class ReplicaAnswer(Answer):
    """The replica that serves read requests, and the age of its data; null if unknown.

    `problem` says why the primary serves them, null if the replica does.
    """

    as_of: MomentOrNull
    age_seconds: Annotated[float | None, At("age")]
    problem: Text


class AllTestsStopped(Answer):
    """All tests are stopped, ordered ones too; null `until`: until somebody starts them again."""

    since: Annotated[Moment, At("paused_since")]
    until: Annotated[MomentOrNull, At("paused_until")]
    reason: Annotated[str, At("pause_reason")]


class StatusAnswer(Answer):
    """Health of Sonar itself: running processes, tests in progress and waiting, coverage."""

    sonar_version: str
    data_version: Annotated[str, At("data_version.text")]
    time: Annotated[Moment, At("moment")]
    planner: LastSign
    scheduler: LastSign
    tasks: dict[str, LastSign]
    workers: dict[str, WorkersOfQueue]
    probes: ProbesCounted
    waiting: Annotated[list[Waiting], At("work.waiting")]
    results_last_hour: Annotated[ResultsCounted, At("work.results")]
    compaction: Compaction
    assessment: Annotated[AssessmentAnswer, At("judgement")]
    circuits: Annotated[list[OpenCircuit], At("work.circuits")]
    coverage: list[SizeCoverage]
    credentials: list[CredentialInTrouble]
    downtime_sources: list[SourceOfDowntimes]
    replica: ReplicaAnswer | None
    stopped: AllTestsStopped | None


STATUS = described("Health of Sonar itself", answer=StatusAnswer, tag="operation")


class StatusView(ApiView, of_primary=True):
    @STATUS
    def get(self, request: Request) -> HttpResponse:
        """Waiting tests, failures, compaction and the results of the hour are up to 10 seconds old.

        Coverage is up to 30 seconds old, unless a condition has changed.

        `data_version` changes with every change of the registry, the schedule and the results.
        """
        check_names(request.query_params, ["format"])
        asked_format(request, ["json"])
        status = figures.read(timezone.now())
        return as_json(of_status(status, request))


def of_status(status: Status, request: Request) -> Json:
    life, with_names = status.life, sees(request, "sonar.view_probe")
    others = [name for name in TASKS if name != PLANNER]
    workers = {queue: [sign.name for sign in life.workers(queue)] for queue in life.queues}
    return record(
        StatusAnswer,
        status,
        sonar_version=sonar.__version__,
        planner=of_sign(life, life.task(PLANNER), life.is_late(life.task(PLANNER))),
        scheduler=of_sign(life, life.scheduler, life.is_late(life.scheduler)),
        tasks={name: of_sign(life, life.task(name), life.is_stuck(name)) for name in others},
        workers={
            queue: {"count": len(names)} | ({"names": names} if with_names else {})
            for queue, names in workers.items()
        },
        probes=record(ProbesCounted, status.probes, in_flight_limit=settings.SONAR_IN_FLIGHT),
        compaction=status,
        coverage=[record(SizeCoverage, row, **row.states) for row in status.coverage],
        credentials=[of_credential(row, request) for row in status.work.credentials],
        downtime_sources=[of_source(source, with_names) for source in status.sources],
        replica=status.replica and record(ReplicaAnswer, status.replica),
        stopped=status.stopped and record(AllTestsStopped, status.stopped),
    )


def of_sign(life: Life, sign: SignOfLife | None, late: bool) -> Json:
    every = sign and sign.every_seconds
    return record(LastSign, sign, age_seconds=life.age(sign), every_seconds=every, late=late)


def of_source(source: SourceState, with_error: bool) -> Json:
    """Tell how old it is; its error names files and hosts, which are not for all."""
    more = {"error": source.error} if with_error else {}
    return record(SourceOfDowntimes, source, failing=bool(source.error), **more)


def of_credential(row: CredentialState, request: Request) -> Json:
    """Tell since when one is in trouble; its name and why to who may see what uses it."""
    if row.endpoint:
        seen = sees(request, "sonar.view_endpoint", [row.endpoint.site_id])
    else:
        seen = sees(request, "sonar.view_mesh", [])
    credential = row.credential
    named = {"credential": credential.name, "kind": credential.kind, "detail": row.sentence}
    return record(CredentialInTrouble, row, **(named if seen else {}))


class MetricsView(ApiView, one_snapshot=False, of_primary=True):
    def get(self, request: Request) -> HttpResponse:
        """Return metrics in the text format of Prometheus, also while other servers are down.

        Request counts of django-prometheus cover all web processes if PROMETHEUS_MULTIPROC_DIR
        names a directory that they share, else only the one that responds. All other figures are
        read for each scrape.
        """
        check_names(request.query_params, [])
        own = CollectorRegistry(auto_describe=False)
        own.register(Figures())
        requests: bytes = ExportToDjangoView(request).content
        return HttpResponse(requests + in_text(own), content_type=CONTENT_TYPE_LATEST)
