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
    """The last heartbeat of a process, or the last successful run of a task."""

    last: Annotated[MomentOrNull, At("seen_at")]
    age_seconds: float | None
    every_seconds: int | None
    late: bool


class WorkersOfQueue(Answer):
    """The running workers of a queue."""

    count: int
    names: list[str] | None = None


class ProbesCounted(Answer):
    """The number of tests that have not ended."""

    waiting: int
    queued: int
    running: int
    oldest_queued: MomentOrNull
    in_flight_limit: int


class Waiting(Answer):
    """Scheduled tests that are due but have not started, all for the same reason.

    - `next tick`: the planner has not yet considered the tests.
    - `link`: another test of the link has not ended.
    - `circuit`: tests at an endpoint keep failing.
    - `credential`: a credential does not work, or must not be sent to a server that needs it.
    - `quiet hours`: the mesh has quiet hours. `quiet site`: a site has quiet hours.
    - `paused`: an endpoint or its site is paused. `stopped`: all tests are stopped.
    - `not enabled`: an endpoint is registered but not enabled.
    """

    reason: Annotated[str, word_of(REASONS)]
    tests: int
    since: MomentOrNull
    because: list[str]


class ResultsCounted(Answer):
    """The number of results by outcome."""

    done: int
    failed: int
    lost: int


class Compaction(Answer):
    """The hours and days of results that still have to be compacted."""

    uncompacted: Annotated[int, At("work.uncompacted")]
    uncompacted_since: Annotated[MomentOrNull, At("work.uncompacted_since")]
    uncompacted_seconds: float


class OpenCircuit(Answer):
    """An endpoint that is tested less often because of consecutive failures.

    The next successful test closes the circuit breaker of the endpoint.
    """

    endpoint: Name
    site: Annotated[Name, At("endpoint.site")]
    failures: int
    since: Moment
    last_at: Moment
    next_test_at: MomentOrNull
    error: str


class CredentialInTrouble(Answer):
    """A credential that does not work or will expire soon."""

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
    """The links of a size class by their state in the last 24 hours."""

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
    """A service that downtimes are imported from, and the state of the import."""

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
    """The last assessment of results.

    If size classes were assessed at different times, the oldest of these assessments applies.
    """

    as_of: MomentOrNull
    is_late: bool
    doubtful_since: Annotated[MomentOrNull, At("doubtful.since")]


class ReplicaAnswer(Answer):
    """The read replica of the database, and the age of its data."""

    as_of: MomentOrNull
    age_seconds: Annotated[float | None, At("age")]
    problem: Text


class AllTestsStopped(Answer):
    """A stop that applies to all tests, including on-demand tests."""

    since: Annotated[Moment, At("paused_since")]
    until: Annotated[MomentOrNull, At("paused_until")]
    reason: Annotated[str, At("pause_reason")]


class StatusAnswer(Answer):
    """The health of Sonar itself: processes, open tests, coverage and problems."""

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


STATUS = described("Get the health of Sonar", answer=StatusAnswer, tag="operation")


class StatusView(ApiView, of_primary=True):
    @STATUS
    def get(self, request: Request) -> HttpResponse:
        """Returns the health of Sonar itself: processes, open tests, coverage and problems.

        Figures on tests and results are up to 10 seconds old, and the coverage up to 30 seconds.
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
