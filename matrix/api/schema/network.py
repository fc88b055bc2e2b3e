"""The description of network/."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from matrix.api import pagination
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import paging, several
from matrix.api.schema.queries import LINKS_FILTERED, WINDOW
from matrix.api.schema.schemas import Answer, Listed
from sonar.models import Transfer


class NetworkTest(Answer):
    """A test of the network alone, from memory to memory; null where nobody told.

    Rates are of what arrived, in MB/s. `push` means that the worker was at the source and sent,
    `pull` that it was at the destination and fetched. Round trips and windows are the sender's:
    known with `push`. `retransmits` are segments that were sent again, `loss` their share of all;
    windows are the largest of a connection. `samples` are seconds and bytes while it ran.
    """

    id: UUID
    source: str
    destination: str
    started_at: datetime
    seconds: float
    bytes: int
    state: Literal["done", "failed", "lost"]
    error: str | None
    error_where: Literal["source", "destination", "transfer", "control"] | None
    rate_mb_s: float | None
    rtt_min_ms: float | None
    rtt_mean_ms: float | None
    rtt_max_ms: float | None
    retransmits: int | None
    loss: float | None
    sent_bytes: int | None
    max_cwnd_bytes: int | None
    max_receive_window_bytes: int | None
    mss_bytes: int | None
    congestion_control: str | None
    mover: str
    mode: Literal["pull", "push"]
    streams: int
    tcp_buffer_bytes: int | None
    ip_version: Literal[4, 6] | None
    size: str | None
    mesh: str | None
    samples: list[list[float]]


COLUMNS = tuple(name for name in NetworkTest.model_fields if name != "samples")
ECHO: dict[str, Any] = {
    "type": "object",
    "description": "The query: window as two times, state; filters by their names.",
    "properties": {
        "window": {"type": ["string", "null"]},
        **{name: {"type": "string"} for name in ("start", "end")},
        "state": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["window", "start", "end", "state"],
    "additionalProperties": {"type": "array", "items": {"type": "string"}},
}
TEST = {
    "id": "3d0c4c1e-5b0c-4a7e-8f57-0f6a2f0a9a11",
    "source": "Glasgow_NET",
    "destination": "RAL_NET",
    "started_at": "2026-11-20T11:30:00.000000Z",
    "seconds": 5.092504,
    "bytes": 5549064,
    "state": "done",
    "error": None,
    "error_where": None,
    "rate_mb_s": 1.089653341,
    "rtt_min_ms": 92.233,
    "rtt_mean_ms": 92.261,
    "rtt_max_ms": 92.315,
    "retransmits": 0,
    "loss": 0.0,
    "sent_bytes": 5549664,
    "max_cwnd_bytes": 217200,
    "max_receive_window_bytes": 108000,
    "mss_bytes": 1448,
    "congestion_control": "cubic",
    "mover": "iperf3",
    "mode": "push",
    "streams": 1,
    "tcp_buffer_bytes": 87040,
    "ip_version": 4,
    "size": "small",
    "mesh": "network",
    "samples": [[1.0, 1011616], [2.0, 2120576], [5.0, 5549664]],
}
EXAMPLE = {
    "query": {
        "window": "24h",
        "start": "2026-11-19T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
        "state": ["done", "failed", "lost"],
        "source_site": ["Glasgow"],
    },
    "results": [TEST],
    "next": None,
}
CSV = (
    ",".join(COLUMNS)
    + "\n"
    + ",".join("" if TEST[name] is None else str(TEST[name]) for name in COLUMNS)
    + "\n"
)

NETWORK = described(
    "Tests of the network alone, newest first",
    answer=Listed("results", NetworkTest, also={"query": ECHO}),
    parameters=[
        *WINDOW,
        *LINKS_FILTERED,
        several("state", "By default all.", enum=Transfer.State.values),
        *paging(pagination.TRANSFERS),
    ],
    formats=("json", "csv", "ndjson"),
    example=EXAMPLE,
    csv_example=CSV,
    tag="results",
)
