"""The descriptions of transfers/ and of one of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from matrix.answers.connections import ReportedConnection, SourceUpload
from matrix.api.parameters import OF_TRANSFERS
from matrix.api.schema import parameters as schema
from matrix.api.schema.describe import described
from matrix.api.schema.schemas import Answer, Body, Listed, Many, answer_of, echo_shape
from sonar.models import Transfer
from sonar.notation import scitags
from sonar.notation.csv_text import LOG_URL, MOVER, REMOTE_ID
from sonar.notation.units import LONGEST_SECONDS
from sonar.records.record import LARGEST_BUFFER

State = Literal["done", "failed", "lost"]
Where = Literal["source", "destination", "transfer", "control"]
Origin = Literal["test", "production", "external"]
Mode = Literal["pull", "push"]
Clock = Literal["request", "tool", "service"]
Purpose = Literal["scheduled", "ordered", "experiment"]
Empty = Literal[""] | None
Seconds = Annotated[float, Field(ge=0, le=LONGEST_SECONDS)]
Buffer = Annotated[int, Field(ge=1, le=LARGEST_BUFFER)]


class Result(Answer):
    """A record of a result, with its size class and rate.

    `streams` and `tcp_buffer_bytes` are what was requested, `..._used` is null if not known;
    `beside_...` is how many other Sonar tests ran at an end at the same time: the mean, and the
    most at one moment. `clock` says who timed `seconds`: Sonar from its request (`request`) or
    the run of a program (`tool`), or the service that moved it (`service`). Queueing and the
    verification are not part of `seconds`. `scitag` is the flow label sent along. `purpose` is why
    the test was made: scheduled by a mesh, ordered, or an experiment, which counts in no mean and
    no state unless it is asked for; null where an import does not say.
    """

    id: UUID
    source: str
    destination: str
    started_at: datetime
    seconds: float
    bytes: int
    state: State
    error: str | None
    error_where: Where | None
    mover: str
    mode: Mode | None
    streams: int
    streams_used: int | None
    ip_version: Literal[4, 6] | None
    origin: Origin
    size: str
    rate_mb_s: float | None
    beside_source: float | None
    beside_source_max: int | None
    beside_destination: float | None
    beside_destination_max: int | None
    clock: Clock | None
    prepare_seconds: float | None
    queue_seconds: float | None
    first_byte_seconds: float | None
    transfer_seconds: float | None
    checksum_seconds: float | None
    tcp_buffer_bytes: int | None
    tcp_buffer_used_bytes: int | None
    remote_id: str | None
    scitag: int | None
    purpose: Purpose | None
    moved_bytes: int | None
    verified: bool | None


Connection = answer_of(ReportedConnection, "Connection")
Upload = answer_of(SourceUpload, "Upload")


class WholeResult(Result):
    """All that is kept of a result; names of machines only for who may see them.

    `upload` is null if the source file was there already.
    """

    error_is_permanent: bool
    verified_note: str | None
    mesh: str | None
    activity: str | None
    samples: list[list[float]]
    connections: list[Connection]  # type: ignore[valid-type]
    upload: Upload | None  # type: ignore[valid-type]
    worker: str | None = None
    remote_connections: list[str] = []
    log_url: str | None = None


class SentResult(Body):
    """A record as sonar.records.record.Record reads it; null and "" are the same as left out."""

    id: UUID
    source: str
    destination: str
    started_at: datetime
    seconds: Annotated[float, Field(ge=0, le=LONGEST_SECONDS)]
    bytes: Annotated[int, Field(ge=1, lt=10**18)]
    state: Literal["done", "failed"]
    error: Annotated[str, Field(max_length=10_000)] | None = None
    error_where: Where | Empty = None
    mover: Annotated[str, Field(pattern=f"^{MOVER}$")]
    mode: Mode | Empty = None
    streams: Annotated[int, Field(ge=1, le=9999)] | Empty = 1
    streams_used: Annotated[int, Field(ge=1, le=9999)] | Empty = None
    ip_version: Literal[4, 6] | Empty = None
    origin: Origin | Empty = "external"
    clock: Clock | Empty = None
    prepare_seconds: Seconds | Empty = None
    queue_seconds: Seconds | Empty = None
    first_byte_seconds: Seconds | Empty = None
    transfer_seconds: Seconds | Empty = None
    checksum_seconds: Seconds | Empty = None
    tcp_buffer_bytes: Buffer | Empty = None
    tcp_buffer_used_bytes: Buffer | Empty = None
    remote_id: Annotated[str, Field(pattern=f"^{REMOTE_ID}$")] | Empty = None
    log_url: Annotated[str, Field(pattern=f"^{LOG_URL}$")] | Empty = None
    scitag: Annotated[int, Field(ge=1, le=scitags.MOST)] | Empty = None
    purpose: Purpose | Empty = None


class Stored(Answer):
    """How many results were new, and how many were already stored."""

    accepted: int
    duplicates: int


ECHO = echo_shape(", state, error;", ("size", "window", "error"), lists=("state",))
TRANSFERS = described(
    "Single results, newest first",
    answer=Listed("transfers", Result, also={"query": ECHO}),
    parameters=[
        schema.SIZE_CLASS,
        *schema.WINDOW,
        *schema.LINKS_FILTERED,
        *schema.METHOD_FILTERED,
        schema.several("state", "By default done and failed.", enum=Transfer.State.values),
        schema.text(
            "error", "Part of the error text, in upper or lower case.", "503", maxLength=200
        ),
        *schema.paging(OF_TRANSFERS),
    ],
    formats=("json", "csv", "ndjson"),
    tag="results",
)
TRANSFER = described(
    "A single result with its progress",
    answer=WholeResult,
    errors=(404,),
    formats=("json", "csv"),
    tag="results",
)
STORE = described(
    "Store results from elsewhere, all or none",
    answer=Stored,
    status=201,
    body=Many(SentResult, 1, 10_000),
    scope="ingest",
    tag="results",
)
