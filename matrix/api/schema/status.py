"""The description of status/."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from matrix.answers.status.figures import REASONS
from matrix.api.schema.describe import described
from matrix.api.schema.schemas import Answer


class LastSign(Answer):
    """When a process last reported that it is alive, or a task that it succeeded; null if never.

    `late` is true after three times the interval; for planner and beat, also if never.
    """

    last: datetime | None
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
    oldest_queued: datetime | None
    in_flight_limit: int


class Waiting(Answer):
    """Scheduled tests that are due and wait; the planner has not yet seen those with `next tick`.

    `link`: another test of their link has not ended. `circuit`: tests at an end keep failing.
    `credential`: one may not be sent where it would be needed, or does not work (`credentials`).
    `quiet hours` are those of their mesh, `quiet site` those of the site of an end. `paused`: the
    site of an end has paused its tests.
    """

    reason: Annotated[str, Field(json_schema_extra={"enum": [*REASONS]})]
    tests: int
    since: datetime | None


class ResultsCounted(Answer):
    done: int
    failed: int
    lost: int


class Sealing(Answer):
    """Past hours and days that are not sealed yet; the first ended at `dirty_since`."""

    unsealed: int
    dirty_since: datetime | None
    dirty_seconds: float


class OpenCircuit(Answer):
    """An endpoint that is tested less often, as so many tests in a row failed because of it.

    Its next scheduled test may run at `next_test_at`, if that is not null; a success closes the
    circuit. `error` is that of the last test.
    """

    endpoint: str
    site: str
    failures: int
    since: datetime
    last_at: datetime
    next_test_at: datetime | None
    error: str


class CredentialInTrouble(Answer):
    """A credential that fails or expires soon: of an endpoint its `own` one or the `lent` one, or
    what the `service` of a mesh knows Sonar by. Either `endpoint` and `site` or `mesh` are null.

    While `tests_wait`, tests that need it are not started. Its name, its kind and what is wrong
    only for those who may see them.
    """

    endpoint: str | None
    site: str | None
    mesh: str | None
    role: Literal["own", "lent", "service"]
    since: datetime
    tests_wait: bool
    expires_at: datetime | None
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
    as_of: datetime


class StatusAnswer(Answer):
    """Whether Sonar itself is healthy: live processes, tests under way and waiting, coverage."""

    sonar_version: str
    data_version: str
    time: datetime
    planner: LastSign
    beat: LastSign
    tasks: dict[str, LastSign]
    workers: dict[str, WorkersOfQueue]
    probes: ProbesCounted
    waiting: list[Waiting]
    results_last_hour: ResultsCounted
    sealing: Sealing
    circuits: list[OpenCircuit]
    credentials: list[CredentialInTrouble]
    coverage: list[SizeCoverage]


SIGN = {
    "last": "2026-11-20T12:00:25.204180Z",
    "age_seconds": 4.8,
    "every_seconds": 10,
    "late": False,
}
EXAMPLE: dict[str, Any] = {
    "sonar_version": "0.5",
    "data_version": "41.7813-41.7820-5012-377",
    "time": "2026-11-20T12:00:30.004180Z",
    "planner": SIGN,
    "beat": SIGN,
    "tasks": {"sweep": SIGN | {"every_seconds": 30}, "seal": SIGN},
    "workers": {"transfers": {"count": 1}, "control": {"count": 1}, "cleaning": {"count": 1}},
    "probes": {
        "waiting": 1,
        "queued": 3,
        "running": 12,
        "oldest_queued": None,
        "in_flight_limit": 100,
    },
    "waiting": [{"reason": "cap", "tests": 5, "since": "2026-11-20T11:58:10Z"}],
    "results_last_hour": {"done": 812, "failed": 31, "lost": 0},
    "sealing": {"unsealed": 0, "dirty_since": None, "dirty_seconds": 0.0},
    "circuits": [
        {
            "endpoint": "Glasgow_DATADISK",
            "site": "Glasgow",
            "failures": 12,
            "since": "2026-11-20T10:02:11.391000Z",
            "last_at": "2026-11-20T11:40:05.120000Z",
            "next_test_at": "2026-11-20T12:40:00.030000Z",
            "error": "HEAD Glasgow_DATADISK: no answer within 15 s",
        }
    ],
    "credentials": [
        {
            "endpoint": "Glasgow_DATADISK",
            "site": "Glasgow",
            "mesh": None,
            "role": "own",
            "since": "2026-11-20T11:31:09.120000Z",
            "tests_wait": True,
            "expires_at": None,
        }
    ],
    "coverage": [
        {
            "size": "small",
            "links": 342,
            "measured": 330,
            "failing": 4,
            "failed": 2,
            "stale": 2,
            "untested": 0,
            "down": 4,
            "as_of": "2026-11-20T12:00:11.500000Z",
        }
    ],
}
STATUS = described(
    "Whether Sonar itself is well",
    answer=StatusAnswer,
    example=EXAMPLE,
    tag="operation",
)
