"""/api/v1/transfers/: single results as records, all that is kept of one, those from elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from django.conf import settings
from django.core.exceptions import EmptyResultSet
from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from psycopg.abc import Buffer
from psycopg.errors import LockNotAvailable
from pydantic import Field, create_model
from rest_framework.exceptions import NotFound, ParseError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from matrix.answers import connections
from matrix.api import parameters
from matrix.api.base import ApiView, JsonList, body_of
from matrix.api.encoding import dumps
from matrix.api.rendering import file_name
from matrix.api.schema import parameters as schema
from matrix.api.schema.describe import described
from matrix.api.schema.schemas import Answer, Body, Listed, Many, answer_of, echo_shape
from matrix.api.streaming import Pieces, by_piece, stream
from matrix.http.exceptions import FaultyBody, NotNow, TooLarge
from matrix.http.negotiation import LIST, TYPES, asked_format
from matrix.http.permissions import MACHINES, MayIngest, MayRead, sees
from matrix.query.filters import LINK_FILTERS, on_links
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from matrix.store import registry, transfers
from matrix.store.data_version import snapshot
from matrix.store.keyset import Cursor
from matrix.store.transfers import TransferSelection, rate_of
from sonar.database import pg_copy
from sonar.models import Probe, SizeClass, Transfer
from sonar.notation.result_columns import BY_NAME, COLUMNS, RECORD, Column, Home, listed
from sonar.records.admission import Admission, WrongRecordsError
from sonar.records.end_names import note_unknown
from sonar.records.exporting import copy_of
from sonar.results import store

Empty = Literal[""] | None
# When columns are null that a result may not have, as opposed to those that are not known.
NULL_IF = {
    "error": "there is no error",
    "error_where": "there is no error",
    "tcp_buffer_bytes": "no buffer size was requested",
    "remote_id": "there is no such ID",
    "log_url": "there is no such log",
    "scitag": "there is no flow label",
}
IN_WORDS = {"s": "seconds", "bytes": "bytes", "MB/s": "MB/s"}


def answered(column: Column) -> Any:  # noqa: ANN401 - of pydantic
    """Return the type of a column in answers; what names machines is there for some alone."""
    kind = Literal[*column.choices, *column.besides] if column.choices else column.kind
    nullable = kind | None if column.null else kind
    words = column.sentence
    if column.unit:
        words += f" Unit: {IN_WORDS[column.unit]}."
    if column.null and "null" not in words:
        words += f" Null if {NULL_IF.get(column.name, 'not known')}."
    default = column.default if column.internal else ...
    return (Annotated[nullable, Field(description=words)], default)


def sent(column: Column) -> Any:  # noqa: ANN401 - of pydantic
    """Return the type of a column in a record: null and "" are the same as left out."""
    kind = Literal[*column.choices] if column.choices else column.kind
    if column.limits and not column.choices:
        kind = Annotated[kind, Field(**column.limits)]
    described = Field(description=f"{column.sentence} Allowed: {column.allowed}.")
    if column.required:
        return (Annotated[kind, described], ...)
    return (Annotated[kind | Empty, described], column.default)


Result = create_model(
    "Result",
    __base__=Answer,
    __doc__="""A result: the record of a transfer, with its size class and rate.

    `clock` shows how `seconds` was measured. If a transfer service measured it, the duration
    includes the set-up of the copy. For transfers under 30 s, the rate may then be more than 3 %
    too low. Results of parameter sweeps are included in means and states only if the query includes
    sweeps.
    """,
    **{column.name: answered(column) for column in listed(internal=True)},
)
Connection: Any = answer_of(connections.ReportedConnection, "Connection")
Upload: Any = answer_of(connections.SourceUpload, "Upload")
WholeResult = create_model(
    "WholeResult",
    __base__=Result,
    __doc__="A result with its progress samples, connections and upload.",
    error_is_permanent=(bool, ...),
    verified_note=(str | None, ...),
    mesh=(str | None, ...),
    activity=(str | None, ...),
    samples=(list[list[float]], ...),
    connections=(list[Connection], ...),
    upload=(Upload | None, ...),
    **{each.name: answered(each) for each in COLUMNS if each.internal and not each.listed},
)
SentResult = create_model(
    "SentResult",
    __base__=Body,
    __doc__="A result to import. `null` and an empty string have the same effect as omitting the "
    "field.",
    **{column.name: sent(column) for column in RECORD},
)


class Stored(Answer):
    """The number of imported results."""

    accepted: int
    duplicates: int


ECHO = echo_shape(", states, error", ("size", "window", "error"), lists=("state",))
LONGEST_SEARCH = 200
OWN = ("state", "error", "cursor", "page_size", "format")


# The columns that CSV began with; what records have got since then stands behind them.
FIRST = (
    *("id", "source", "destination", "started_at", "seconds", "bytes", "state", "error"),
    *("error_where", "mover", "streams", "ip_version", "origin"),
)


def columns_of(form: str, *, internal: bool) -> tuple[Column, ...]:
    """Return the columns of lines in their order, with those that name machines if ``internal``."""
    columns = listed(internal=internal)
    if form != "csv":
        return columns
    began = tuple(BY_NAME[name] for name in FIRST)
    added = [column for column in columns if column not in began]
    # What a record does not have comes last.
    public = sorted(added, key=lambda column: (column.internal, not column.allowed))
    return (*began, *public)


# Compiling or sharing out the query would only keep the first row waiting.
SETTINGS = """SELECT set_config('statement_timeout', %s, true), set_config('jit', 'off', true),
    set_config('max_parallel_workers_per_gather', '0', true),
    set_config('enable_sort', %s, true)"""


def pieces(rows: QuerySet[Transfer], form: str, *, internal: bool, most: bool = False) -> Pieces:
    """Yield all of these results in a form, `csv` (with a header) or `ndjson`.

    Columns that name machines are there if ``internal``. ``most`` says that nothing but a pass over
    the whole window finds them. It is then made in the order of time: sorting afterwards takes no
    less long, and room on disk. Where an index finds few, they are found in a fifth of the time and
    sorted.
    """
    columns = columns_of(form, internal=internal)

    def lines() -> Iterator[Buffer]:
        try:
            statement = copy_of(rows, columns, form)
        except EmptyResultSet:
            return
        with reading_for_long(most), pg_copy.copying(statement) as copy:
            yield from copy

    names = ",".join(column.name for column in columns)
    return by_piece(lines(), f"{names}\n".encode() if form == "csv" else b"")


@contextmanager
def reading_for_long(most: bool) -> Iterator[None]:
    """Read as of one moment, for as long as a stream may take."""
    with snapshot():
        with connection.cursor() as cursor:
            seconds, sort = f"{settings.SONAR_STREAM_SECONDS}s", "off" if most else "on"
            cursor.execute(SETTINGS, [seconds, sort])
        yield


@cache
def reading(*, internal: bool) -> tuple[Sequence[str], Sequence[str], Callable[[Transfer], Any]]:
    """Return the names of columns, those of them that are texts, and what reads their values."""
    columns = listed(internal=internal)
    # Where a row of Transfer has what it does not have under the name of the column.
    paths = {each.name: f"profile.{each.name}" for each in columns if each.home is Home.PROFILE}
    paths |= {"source": "source_id", "destination": "destination_id"}
    paths |= {"size": "size_class.name", "rate_mb_s": "state"}
    names = tuple(column.name for column in columns)
    texts = tuple(column.name for column in columns if column.empty == "")
    return names, texts, attrgetter(*(paths.get(name, name) for name in names))


def record(transfer: Transfer, names: dict[int, str], *, internal: bool) -> dict[str, Any]:
    """Return a result as a record, with its size class and rate, and machines if ``internal``."""
    columns, texts, values_of = reading(internal=internal)
    fields: dict[str, Any] = dict(zip(columns, values_of(transfer), strict=True))
    for name in texts:
        if fields[name] == "":
            fields[name] = None
    fields["id"] = str(transfer.id)
    fields["source"] = names[transfer.source_id]
    fields["destination"] = names[transfer.destination_id]
    fields["started_at"] = f"{transfer.started_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    fields["rate_mb_s"] = rate_of(transfer) if transfer.state == Transfer.State.DONE else None
    return fields


class TransferView(ApiView):
    @described(
        "Get a result",
        answer=WholeResult,
        errors=(404,),
        formats=("json", "csv"),
        tag="results",
    )
    def get(self, request: Request, id: UUID) -> HttpResponseBase:  # noqa: A002 - of the route
        """Returns a result with its progress samples, connections and upload."""
        check_names(request.query_params, ["format"])
        form = asked_format(request)
        transfer = transfers.by_id(id)
        if transfer is None:
            raise NotFound(why_not(id))
        if form == "csv":
            rows = Transfer.objects.filter(id=id)
            lines = pieces(rows, form, internal=sees(request, MACHINES))
            return stream(request, lines, form, file_name("transfer", str(id)))
        return HttpResponse(dumps(shown(transfer, request)), content_type=TYPES["json"])


def why_not(transfer_id: UUID) -> str:
    if probe := Probe.objects.filter(id=transfer_id).first():
        return (
            f"The test {transfer_id} is {probe.state}: its result is available after it has ended."
        )
    days = settings.SONAR_KEEP_DAYS
    return f"No result has the id {transfer_id}. Results are kept for {days} days."


def shown(transfer: Transfer, request: Request) -> dict[str, Any]:
    """Return what the reader may see of a result: names of machines are internal."""
    names = {
        transfer.source_id: transfer.source.name,
        transfer.destination_id: transfer.destination.name,
    }
    profile, internal = transfer.profile, sees(request, MACHINES)
    hidden = {} if internal else dict.fromkeys(connections.ADDRESSES)
    fields = record(transfer, names, internal=internal) | {
        "error_is_permanent": transfer.error_is_permanent,
        "verified_note": transfer.verified_note or None,
        "mesh": profile.mesh.name if profile.mesh else None,
        "activity": profile.activity or None,
        "samples": transfer.samples,
        "connections": [asdict(each) | hidden for each in connections.reported(transfer)],
        "upload": asdict(upload) if (upload := connections.uploaded(transfer)) else None,
    }
    if internal:
        alone = (column for column in COLUMNS if column.internal and not column.listed)
        values = {column.name: getattr(transfer, column.name) for column in alone}
        fields |= {name: None if value == "" else value for name, value in values.items()}
    return fields


MOST_RESULTS = 10_000
ROWS_NAMED = 20
# An import of a large file holds the lock for longer than a request should wait.
LONGEST_WAIT_SECONDS = 10


class TransfersView(ApiView):
    parser_classes = [JsonList]

    def get_permissions(self) -> list[BasePermission]:
        return [MayIngest() if self.request.method == "POST" else MayRead()]

    @described(
        "List results",
        answer=Listed("transfers", Result, also={"query": ECHO}),
        parameters=[
            schema.text("size", "Only results of this size class. Default: all.", schema.SIZE),
            *schema.WINDOW,
            *schema.LINKS_FILTERED,
            *schema.METHOD_FILTERED,
            schema.several(
                "state",
                "Only results in one of these states. Default: done and failed.",
                enum=Transfer.State.values,
            ),
            schema.text(
                "error",
                "Only results whose error contains this text (case-insensitive).",
                "503",
                maxLength=200,
            ),
            *schema.paging(parameters.OF_TRANSFERS),
        ],
        formats=("json", "csv", "ndjson"),
        tag="results",
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Returns results of individual transfers, newest first.

        CSV and NDJSON are not paged: they contain all selected results.
        """
        params = request.query_params
        check_names(params, (*parameters.WINDOW_AND_METHOD, *LINK_FILTERS, *OWN))
        form = asked_format(request, LIST)
        query = MatrixQuery.from_params(params, also=OWN)
        window = query.window_at(timezone.now())
        size = query.size if params.get("size") else None
        size_class = SizeClass.objects.get(name=size).id if size else None
        error = parameters.text_of(params, "error")
        if len(error) > LONGEST_SEARCH or not error.isprintable():
            sentence = f"“error” must be at most {LONGEST_SEARCH} printable characters."
            raise parameters.wrong("error", sentence)
        selection = TransferSelection(window, size_class, query.filters, error=error)
        if states := parameters.some_of(params, "state", Transfer.State.values):
            selection = replace(selection, states=states)
        paging = parameters.PageRequest.read(request, form, Cursor.parse, parameters.OF_TRANSFERS)
        endpoints = registry.read_places(registry.read_versions())
        rows, internal = selection.rows(endpoints), sees(request, MACHINES)
        if form != "json":
            most = not on_links(query.filters)
            lines = pieces(rows, form, internal=internal, most=most)
            name = file_name("transfers", query=query, window=window)
            return stream(request, lines, form, name)
        names = {endpoint.id: endpoint.name for endpoint in endpoints}
        listing = transfers.listing(rows, paging.size, paging.after)
        own = {"size": size, "state": selection.states, "error": selection.error or None}
        page = {
            "query": parameters.echo(query, window, **own),
            "transfers": [record(row, names, internal=internal) for row in listing.results],
            "next": parameters.following(request, listing.next, window),
        }
        return HttpResponse(dumps(page), content_type=TYPES["json"])

    @described(
        "Import results",
        answer=Stored,
        status=201,
        body=Many(SentResult, 1, 10_000),
        scope="ingest",
        tag="results",
    )
    def post(self, request: Request) -> Response:
        """Stores 1 to 10,000 results from other systems, and returns the number of new results.

        If any result is invalid, none of the results in the request are stored. Results whose id is
        already stored are ignored.
        """
        rows = cast("list[Any]", body_of(request))
        if not rows:
            raise ParseError(
                f"The list is empty: send a JSON list of 1 to {MOST_RESULTS:,} results."
            )
        if len(rows) > MOST_RESULTS:
            raise TooLarge(
                f"The request contains {len(rows):,} results: send at most {MOST_RESULTS:,} at "
                "once."
            )
        now = timezone.now()
        try:
            stored = store_all(rows, now)
        except WrongRecordsError as error:
            note_unknown(error.unknown, now)
            # Each field of the first wrong rows is named by `<index>.<field>`.
            errors: dict[str, list[str]] = {}
            for index in list(error.records)[:ROWS_NAMED]:
                for field, sentence in error.records[index].problems:
                    errors.setdefault(f"{index}.{field}".rstrip("."), []).append(f"{sentence}.")
            first, sentences = next(iter(errors.items()))
            raise FaultyBody(
                f"Nothing was stored: {error}. The first error is in {first}: {sentences[0]}",
                errors,
            ) from None
        return Response(stored._asdict(), status=201)


@transaction.atomic
def store_all(rows: list[Any], now: datetime) -> store.Stored:
    """Store every row or, if one is wrong, none; raise WrongRecordsError.

    Raises NotNow if an import holds the lock of imports for long.
    """
    admission = Admission.at(now)
    records = admission.admit(rows)
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LONGEST_WAIT_SECONDS}s'")
    try:
        store.lock_imports()
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise NotNow("Another import is running: retry later.", 30) from error
        raise
    return store.store(map(admission.result, records))
