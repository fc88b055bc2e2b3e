"""The description of status/."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from matrix.api.schema.describe import described
from matrix.api.schema.schemas import Answer


class LastSign(Answer):
    """When somebody last said that they live or have ended well; null if never.

    `late` after three times the interval; planner and beat also if never.
    """

    last: datetime | None
    age_seconds: float | None
    every_seconds: int | None
    late: bool


class WorkersOfQueue(Answer):
    """Workers that take tests from a queue; their names only for who may see them."""

    count: int
    names: list[str] | None = None


class ProbesCounted(Answer):
    """Tests that have not ended; those that are waiting were ordered and have no room yet."""

    waiting: int
    queued: int
    running: int
    oldest_queued: datetime | None
    in_flight_limit: int


class Waiting(Answer):
    """Scheduled tests that are due and wait; `next tick` are those not looked at yet.

    `link`: another test of their link has not ended. `circuit`: tests of an end keep failing.
    `credential`: one would go where it may not, and they wait until somebody changes that.
    """

    reason: Literal[
        "downtime", "cap", "quiet hours", "budget", "link", "circuit", "credential", "next tick"
    ]
    tests: int
    since: datetime | None


class ResultsCounted(Answer):
    done: int
    failed: int
    lost: int


class Sealing(Answer):
    """Hours and days that are over and not sealed yet, the first over since `dirty_since`."""

    unsealed: int
    dirty_since: datetime | None
    dirty_seconds: float


class OpenCircuit(Answer):
    """An end by which so many tests in a row have failed that they are spread thin.

    Its next scheduled test may run at `next_test_at`, if it is not null; one that succeeds closes
    the circuit. `error` is that of the last.
    """

    endpoint: str
    site: str
    failures: int
    since: datetime
    last_at: datetime
    next_test_at: datetime | None
    error: str


class SizeCoverage(Answer):
    """Links of a size class by their state in the matrix of the last 24 hours."""

    size: str
    links: int
    measured: int
    failed: int
    stale: int
    untested: int
    down: int
    as_of: datetime


class StatusAnswer(Answer):
    """Whether Sonar itself is well: who lives, what is under way, waits and is covered."""

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
    "coverage": [
        {
            "size": "small",
            "links": 342,
            "measured": 330,
            "failed": 6,
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
