"""The descriptions of transfers/ and of one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from matrix.api import pagination
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import paging, several, text
from matrix.api.schema.queries import LINKS_FILTERED, METHOD_FILTERED, SIZE_CLASS, WINDOW
from matrix.api.schema.schemas import Answer, Body, Listed, Many
from matrix.api.transfers.lines import columns_of, head
from sonar.models import Transfer
from sonar.notation.result_columns import BY_NAME, COLUMNS, RECORD, Column, listed

Empty = Literal[""] | None


def answered(column: Column) -> tuple[Any, Any]:
    """Return the type of a column in answers; what names machines is there for some alone."""
    kind = Literal[*column.choices, *column.besides] if column.choices else column.kind
    nullable = kind | None if column.null else kind
    return (nullable, column.default if column.internal else ...)


def sent(column: Column) -> tuple[Any, Any]:
    """Return the type of a column in a record: null and "" are the same as left out."""
    kind = Literal[*column.choices] if column.choices else column.kind
    if column.limits and not column.choices:
        kind = Annotated[kind, Field(**column.limits)]
    return (kind, ...) if column.required else (kind | Empty, column.default)


def fields(
    columns: Iterable[Column], type_of: Callable[[Column], tuple[Any, Any]]
) -> dict[str, Any]:
    return {column.name: type_of(column) for column in columns}


Result = create_model(
    "Result",
    __base__=Answer,
    __doc__="""A record of a result, with its size class and rate.

    `streams` and `tcp_buffer_bytes` are what was requested, `..._used` is null if not known;
    `beside_...` is how many other Sonar tests ran at an end at the same time: the mean, and the
    most at one moment. `clock` says who timed `seconds`: Sonar from its request (`request`) or
    the run of a program (`tool`), or the service that moved it (`service`). Queueing and the
    verification are not part of `seconds`. `scitag` is the flow label sent along. `purpose` is why
    the test was made: scheduled by a mesh, ordered, or an experiment, which counts in no mean and
    no state unless it is asked for; null where an import does not say. `data_server` is the host
    and port of the server that moved the bytes, only for who may see names of machines.
    """,
    **fields(listed(internal=True), answered),
)


class Connection(Answer):
    """A connection that a server reported by a firefly; null where it did not say.

    `bytes` went from source to destination. `held_by_receiver` and `held_by_sender` are shares of
    its busy time. `other_tests` is how many other tests it may belong to. Addresses are null
    unless the reader may see names of machines.
    """

    started_at: datetime
    ended_at: datetime | None
    bytes: int | None
    rtt_ms: float | None
    retransmits: int | None
    window_bytes: int | None
    held_by_receiver: float | None
    held_by_sender: float | None
    application: str
    source_address: str | None
    destination_address: str | None
    reporter: str | None
    other_tests: int


class Upload(Answer):
    """How Sonar's worker sent the source file to the source before the test.

    It is about the connection from the worker to the source, not about the link. `bytes` arrived;
    `loss` is the share of bytes that were sent again. Null where the worker's kernel did not say.
    """

    seconds: float
    bytes: int | None
    rtt_ms: float | None
    rtt_min_ms: float | None
    rtt_variation_ms: float | None
    retransmits: int | None
    loss: float | None
    window_bytes: int | None
    delivery_rate_mb_s: float | None
    held_by_receiver: float | None
    held_by_sender: float | None


WholeResult = create_model(
    "WholeResult",
    __base__=Result,
    __doc__="""All that is kept of a result; names of machines only for who may see them.

    `upload` is null if the source file was there already.
    """,
    error_is_permanent=(bool, ...),
    verified_note=(str | None, ...),
    mesh=(str | None, ...),
    activity=(str | None, ...),
    samples=(list[list[float]], ...),
    connections=(list[Connection], ...),
    upload=(Upload | None, ...),
    **fields((column for column in COLUMNS if column.internal and not column.listed), answered),
)
SentResult = create_model(
    "SentResult",
    __base__=Body,
    __doc__="""A record as sonar.records.record.Record reads it; null and "" are the same as left \
out.""",
    **fields(RECORD, sent),
)


class Stored(Answer):
    """How many results were new, and how many were already stored."""

    accepted: int
    duplicates: int


ECHO: dict[str, Any] = {
    "type": "object",
    "description": "The query: window as two times, state, error; filters by their names.",
    "properties": {
        **{name: {"type": ["string", "null"]} for name in ("size", "window", "error")},
        **{name: {"type": "string"} for name in ("start", "end")},
        "state": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["size", "window", "start", "end", "state", "error"],
    "additionalProperties": {"type": "array", "items": {"type": "string"}},
}
SAID = (
    *("id", "source", "destination", "started_at", "seconds", "bytes", "state", "mover", "mode"),
    *("streams", "streams_used", "ip_version", "origin"),
)
SENT = {name: BY_NAME[name].example for name in SAID}
RESULT = SENT | {column.name: column.example for column in listed(internal=False)}
EXAMPLE = {
    "query": {
        "size": None,
        "window": "7d",
        "start": "2026-11-13T12:01:00Z",
        "end": "2026-11-20T12:01:00Z",
        "state": ["done", "failed"],
        "error": None,
        "source_cloud": ["UK"],
    },
    "transfers": [RESULT],
    "next": None,
}
WHOLE = RESULT | {
    "error_is_permanent": False,
    "verified_note": None,
    "mesh": "everything",
    "activity": None,
    "samples": [[5.0, 20000000], [10.0, 45000000]],
    "connections": [
        {
            "started_at": "2026-11-20T11:30:00.513166Z",
            "ended_at": "2026-11-20T11:37:04.642044Z",
            "bytes": 2000013977,
            "rtt_ms": 14.2,
            "retransmits": None,
            "window_bytes": None,
            "held_by_receiver": None,
            "held_by_sender": None,
            "application": "xrdcp",
            "source_address": None,
            "destination_address": None,
            "reporter": None,
            "other_tests": 0,
        }
    ],
    "upload": {
        "seconds": 41.25,
        "bytes": 2000000318,
        "rtt_ms": 9.5,
        "rtt_min_ms": 9.1,
        "rtt_variation_ms": 0.2,
        "retransmits": 12,
        "loss": 0.0000087,
        "window_bytes": 1520400,
        "delivery_rate_mb_s": 49.2,
        "held_by_receiver": 0.0,
        "held_by_sender": 0.12,
    },
}


def csv_cell(value: Any) -> str:  # noqa: ANN401 - an example of any column
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)


CELLS = [csv_cell(column.example) for column in columns_of("csv", internal=False)]
CSV = head("csv", internal=False).decode() + ",".join(CELLS) + "\n"
TRANSFERS = described(
    "Single results, newest first",
    answer=Listed("transfers", Result, also={"query": ECHO}),
    parameters=[
        SIZE_CLASS,
        *WINDOW,
        *LINKS_FILTERED,
        *METHOD_FILTERED,
        several("state", "By default done and failed.", enum=Transfer.State.values),
        text("error", "Part of the error text, in upper or lower case.", "503", maxLength=200),
        *paging(pagination.TRANSFERS),
    ],
    formats=("json", "csv", "ndjson"),
    example=EXAMPLE,
    csv_example=CSV,
    tag="results",
)
TRANSFER = described(
    "A single result with its progress",
    answer=WholeResult,
    errors=(404,),
    formats=("json", "csv"),
    example=WHOLE,
    csv_example=CSV,
    tag="results",
)
STORE = described(
    "Store results from elsewhere, all or none",
    answer=Stored,
    status=201,
    body=Many(SentResult, 1, 10_000),
    body_example=[SENT],
    example={"accepted": 1, "duplicates": 0},
    scope="ingest",
    tag="results",
)
