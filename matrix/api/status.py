"""Whether Sonar itself is well: GET /api/v1/status/, and /metrics for Prometheus.

No secrets, and no names of machines.
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
from matrix.answers.status.figures import PLAN, REASONS, TASKS, Life, Status
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

    `late` is true after three times the interval; for planner and beat, also if never.
    """

    last: Annotated[MomentOrNull, At("seen_at")]
    age_seconds: float | None
    every_seconds: int | None
    late: bool


class WorkersOfQueue(Answer):
    """Workers that take tests from a queue; their names only for those who may see them."""

    count: int
    names: list[str] | None = None


class ProbesCounted(Answer):
    """Tests that have not ended; waiting ones were ordered, and there is no room for them yet."""

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


class Sealing(Answer):
    """Past hours and days that are not sealed yet; the first ended at `dirty_since`."""

    unsealed: Annotated[int, At("work.unsealed")]
    dirty_since: Annotated[MomentOrNull, At("work.dirty_since")]
    dirty_seconds: float


class OpenCircuit(Answer):
    """An endpoint that is tested less often, as so many tests in a row failed because of it.

    Its next scheduled test may run at `next_test_at`, if that is not null; a success closes the
    circuit. `error` is that of the last test.
    """

    endpoint: Name
    site: Annotated[Name, At("endpoint.site")]
    failures: int
    since: Moment
    last_at: Moment
    next_test_at: MomentOrNull
    error: str


class CredentialInTrouble(Answer):
    """A credential that fails or expires soon: of an endpoint its `own` one or the `lent` one, or
    what the `service` of a mesh knows Sonar by. Either `endpoint` and `site` or `mesh` are null.

    While `tests_wait`, tests that need it are not started. Its name, its kind and what is wrong
    only for those who may see them.
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
    """Where downtimes are read, and when that was asked for its last good answer.

    `stale` is true if that is more than an hour ago or never was; `error` is why there is no newer
    one, only for those who may see it. `of_endpoints` of its `downtimes` concern endpoints in use.
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
    """When the results were last assessed (of the size class for which that is longest ago).

    `is_late` is true if that is more than three intervals ago. While a confirmed condition of the
    whole grid is open, results are doubtful since `doubtful_since`, else that is null.
    """

    as_of: MomentOrNull
    is_late: bool
    doubtful_since: Annotated[MomentOrNull, At("doubtful.since")]


class ReplicaAnswer(Answer):
    """The replica that answers readers, and how old its data is; null if that is not known.

    `problem` is why the primary answers them, null if the replica does.
    """

    as_of: MomentOrNull
    age_seconds: Annotated[float | None, At("age")]
    problem: Text


class AllTestsStopped(Answer):
    """All tests are stopped: none starts, ordered ones neither. `until` null: until resumed."""

    since: Annotated[Moment, At("paused_since")]
    until: Annotated[MomentOrNull, At("paused_until")]
    reason: Annotated[str, At("pause_reason")]


class StatusAnswer(Answer):
    """Whether Sonar itself is healthy: live processes, tests under way and waiting, coverage."""

    sonar_version: str
    data_version: Annotated[str, At("data_version.text")]
    time: Annotated[Moment, At("moment")]
    planner: LastSign
    beat: LastSign
    tasks: dict[str, LastSign]
    workers: dict[str, WorkersOfQueue]
    probes: ProbesCounted
    waiting: Annotated[list[Waiting], At("work.waiting")]
    results_last_hour: Annotated[ResultsCounted, At("work.results")]
    sealing: Sealing
    assessment: Annotated[AssessmentAnswer, At("judgement")]
    circuits: Annotated[list[OpenCircuit], At("work.circuits")]
    coverage: list[SizeCoverage]
    credentials: list[CredentialInTrouble]
    downtime_sources: list[SourceOfDowntimes]
    replica: ReplicaAnswer | None
    stopped: AllTestsStopped | None


STATUS = described("Whether Sonar itself is well", answer=StatusAnswer, tag="operation")


class StatusView(ApiView, of_primary=True):
    @STATUS
    def get(self, request: Request) -> HttpResponse:
        """What waits, fails and is sealed, and the results of the hour, are up to 10 seconds old,
        coverage 30, unless a condition has changed.

        `data_version` changes with every change of the registry, the schedule and the results.
        """
        check_names(request.query_params, ["format"])
        asked_format(request, ["json"])
        status = figures.read(timezone.now())
        return as_json(of_status(status, request))


def of_status(status: Status, request: Request) -> Json:
    life, with_names = status.life, sees(request, "sonar.view_probe")
    others = [name for name in TASKS if name != PLAN]
    workers = {queue: [sign.name for sign in life.workers(queue)] for queue in life.queues}
    return record(
        StatusAnswer,
        status,
        sonar_version=sonar.__version__,
        planner=of_sign(life, life.task(PLAN), life.is_late(life.task(PLAN))),
        beat=of_sign(life, life.beat, life.is_late(life.beat)),
        tasks={name: of_sign(life, life.task(name), life.is_stuck(name)) for name in others},
        workers={
            queue: {"count": len(names)} | ({"names": names} if with_names else {})
            for queue, names in workers.items()
        },
        probes=record(ProbesCounted, status.probes, in_flight_limit=settings.SONAR_IN_FLIGHT),
        sealing=status,
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
        """Answer in the text format of Prometheus, whatever is away.

        Requests, as django-prometheus counts them, are of all web processes if
        PROMETHEUS_MULTIPROC_DIR names a directory that they share, else of the one that answers.
        The rest is read anew for each scrape.
        """
        check_names(request.query_params, [])
        own = CollectorRegistry(auto_describe=False)
        own.register(Figures())
        requests: bytes = ExportToDjangoView(request).content
        return HttpResponse(requests + in_text(own), content_type=CONTENT_TYPE_LATEST)
