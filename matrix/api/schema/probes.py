"""The descriptions of probes/ and of one of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import RootModel

from matrix.answers.probe_request import OrderedTests
from matrix.api.schema.describe import described
from matrix.api.schema.names import SIZE
from matrix.api.schema.network import NetworkTest
from matrix.api.schema.parameters import choice, paging, text
from matrix.api.schema.schemas import Answer, Listed
from matrix.api.schema.transfers import WholeResult
from sonar.models import Probe


class ProbeUnderWay(Answer):
    """A test that is waiting, queued or running; its worker only for those who may see it.

    `share` is the part of its bytes that has arrived, from 0 to 1. `running_seconds` count from
    when a worker took it, so `rate_mb_s` so far is less than the rate that will be recorded.
    `place_in_queue` is 1 for the next one: of those that are queued or, while it waits, of those
    that wait to leave its source or to reach its destination. `waits_because` says for what.
    """

    id: UUID
    url: str
    source: str
    destination: str
    size: str
    bytes: int
    state: Literal["waiting", "queued", "running"]
    mover: str
    mode: Literal["pull", "push"]
    streams: int
    mesh: str | None
    requested_at: datetime
    started_at: datetime | None
    deadline: datetime | None
    progress_bytes: int
    share: float
    running_seconds: float | None
    rate_mb_s: float | None
    place_in_queue: int | None
    waits_because: str | None
    worker: str | None = None


class OpenProbe(ProbeUnderWay):
    """A test that has not ended."""

    ended: Literal[False]


class EndedProbe(WholeResult):  # type: ignore[misc, valid-type]  # made of the columns
    """A test that has ended, as the transfer that it has become: see transfers/<id>/."""

    ended: Literal[True]


class EndedNetworkProbe(NetworkTest):
    """A test of the network that has ended, as network/ has it."""

    ended: Literal[True]


class ProbeAnswer(RootModel[OpenProbe | EndedProbe | EndedNetworkProbe]):
    """A test before or after its end: `ended` says which."""


class ProbesOrdered(Answer):
    probes: list[ProbeUnderWay]


COLUMNS = tuple(name for name in ProbeUnderWay.model_fields if name != "worker")
QUEUED: dict[str, Any] = {
    "id": "6f1c9a52-8f0e-4a4e-9d0c-2b7f3c1d5e60",
    "url": "https://sonar.example.org/api/v1/probes/6f1c9a52-8f0e-4a4e-9d0c-2b7f3c1d5e60/",
    "source": "Glasgow_DATADISK",
    "destination": "RAL_DATADISK",
    "size": "small",
    "bytes": 20_000_000,
    "state": "queued",
    "mover": "http-tpc",
    "mode": "pull",
    "streams": 1,
    "mesh": None,
    "requested_at": "2026-11-20T12:00:30.000000Z",
    "started_at": None,
    "deadline": None,
    "progress_bytes": 0,
    "share": 0.0,
    "running_seconds": None,
    "rate_mb_s": None,
    "place_in_queue": 1,
    "waits_because": None,
}
WAITING = QUEUED | {
    "id": "0c1b7a80-6d3e-4b0e-8d55-a4f4b3a7e0c1",
    "url": "https://sonar.example.org/api/v1/probes/0c1b7a80-6d3e-4b0e-8d55-a4f4b3a7e0c1/",
    "state": "waiting",
    "waits_because": "Another test of this link is running.",
}
RUNNING = QUEUED | {
    "state": "running",
    "started_at": "2026-11-20T12:00:31.000000Z",
    "deadline": "2026-11-20T14:01:31.000000Z",
    "progress_bytes": 9_000_000,
    "share": 0.45,
    "running_seconds": 2.5,
    "rate_mb_s": 3.6,
    "place_in_queue": None,
}
CSV = (
    ",".join(COLUMNS)
    + "\n"
    + ",".join("" if QUEUED[name] is None else str(QUEUED[name]) for name in COLUMNS)
    + "\n"
)
PROBES = described(
    "Tests that are waiting, queued or running, oldest first",
    answer=Listed("probes", ProbeUnderWay),
    parameters=[
        text("source", "The name of an endpoint.", "Glasgow_DATADISK"),
        text("destination", "The name of an endpoint.", "RAL_DATADISK"),
        text("site", "The name of a site at either end.", "Glasgow"),
        text("size", "Only tests of this size class.", SIZE),
        choice("state", Probe.State.values, "All if left out."),
        *paging(),
    ],
    formats=("json", "csv", "ndjson"),
    example={"probes": [RUNNING, WAITING], "next": None},
    csv_example=CSV,
    tag="operation",
)
ORDER = described(
    "Order tests of one link, all or none",
    answer=ProbesOrdered,
    status=202,
    body=OrderedTests,
    body_example={
        "source": "Glasgow_DATADISK",
        "destination": "RAL_DATADISK",
        "sizes": ["small"],
        "count": 2,
    },
    errors=(409,),
    example={"probes": [QUEUED, WAITING]},
    tag="operation",
)
PROBE = described(
    "A test: its progress, or how it ended",
    answer=ProbeAnswer,
    errors=(404,),
    example=RUNNING | {"ended": False},
    tag="operation",
)
CANCEL = described(
    "Cancel a test that is waiting or queued",
    answer=None,
    status=204,
    errors=(404, 409),
    tag="operation",
)
