"""The descriptions of transfers/ and of one of them."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from matrix.answers.connections import ReportedConnection, SourceUpload
from matrix.api.parameters import OF_TRANSFERS
from matrix.api.schema import parameters as schema
from matrix.api.schema.describe import described
from matrix.api.schema.schemas import Answer, Body, Listed, Many, answer_of, echo_shape
from sonar.models import Transfer
from sonar.notation.result_columns import COLUMNS, RECORD, Column, listed

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


Connection: Any = answer_of(ReportedConnection, "Connection")
Upload: Any = answer_of(SourceUpload, "Upload")


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
