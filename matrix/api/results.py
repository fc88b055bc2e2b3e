"""GET /api/v1/transfers/ and one of them: single results as records, newest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Self, TypeVar
from uuid import UUID

from django.conf import settings
from django.core.exceptions import EmptyResultSet
from django.db.models import F, Func, Model, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import NullIf
from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.views import APIView

from matrix import attempts, records
from matrix.api.asked import WINDOW_AND_METHOD, check_names, some_of, text, wrong
from matrix.api.cell_text import dumps
from matrix.api.formats import ErrorsInJson, asked_format
from matrix.attempts import Cursor, Wanted, rate_of
from matrix.filters import LINK_FILTERS
from matrix.query import MatrixQuery
from sonar import binary
from sonar.models import Endpoint, Probe, Profile, SizeClass, Transfer
from sonar.records.record import FIELDS
from sonar.windows import Window, format_time

Answer = TypeVar("Answer", bound=HttpResponseBase)

PAGE_SIZE, MOST_ROWS = 100, 1000
LONGEST_SEARCH = 200
OWN = ("state", "error", "cursor", "page_size", "format")
ALLOWED = (*WINDOW_AND_METHOD, *LINK_FILTERS, *OWN)
# The last fields of a record.
METHOD = ("mover", "streams", "ip_version", "origin")
# What an answer has of CSV in memory at once.
PIECE_BYTES = 64_000


@dataclass(frozen=True)
class Asked:
    """What a call asks for. An answer in CSV has all that matches, whatever the page size."""

    query: MatrixQuery
    window: Window
    wanted: Wanted
    after: Cursor | None
    page_size: int

    @classmethod
    def read(cls, params: QueryDict, now: datetime) -> Self:
        check_names(params, ALLOWED)
        query = MatrixQuery.from_params(params, also=OWN)
        window = query.window_at(now)
        states = some_of(params, "state", Transfer.State.values)
        size = size_class(query.size) if params.get("size") else None
        chosen = {"states": states} if states else {}
        wanted = Wanted(window, size, query.filters, error=searched(params), **chosen)
        return cls(query, window, wanted, cursor(params), page_size(params))


def size_class(name: str) -> int:
    return SizeClass.objects.values_list("id", flat=True).get(name=name)


def searched(params: QueryDict) -> str:
    given = text(params, "error")
    if len(given) > LONGEST_SEARCH or not given.isprintable():
        sentence = f"error must be at most {LONGEST_SEARCH} printable characters of an error."
        raise wrong("error", sentence)
    return given


def cursor(params: QueryDict) -> Cursor | None:
    given = text(params, "cursor")
    try:
        return Cursor.parse(given) if given else None
    except ValueError:
        sentence = f"cursor “{given}” is not one that an answer had in its `next`."
        raise wrong("cursor", sentence) from None


def page_size(params: QueryDict) -> int:
    given = text(params, "page_size") or str(PAGE_SIZE)
    if not (given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= MOST_ROWS):
        raise wrong(
            "page_size", f"page_size “{given}” is not a whole number from 1 to {MOST_ROWS}."
        )
    return int(given)


def answer(request: Request) -> HttpResponseBase:
    """Answer GET transfers/."""
    asked = Asked.read(request.query_params, timezone.now())
    places = records.read_places(records.read_versions())
    rows = asked.wanted.rows(places)
    if asked_format(request) == "csv":
        return as_csv(rows)
    names = {place.id: place.name for place in places}
    return as_json(request, asked, attempts.listing(rows, asked.page_size, asked.after), names)


def as_json(
    request: Request, asked: Asked, listing: attempts.Listing, names: dict[int, str]
) -> HttpResponse:
    found = {
        "query": echo(asked, request.query_params),
        "transfers": [record(one, names) for one in listing.results],
        "next": following(request, asked, listing.next) if listing.next else None,
    }
    return fresh(HttpResponse(dumps(found), content_type="application/json"))


def echo(asked: Asked, params: QueryDict) -> dict[str, Any]:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    filters: dict[str, list[str]] = {}
    for one in asked.query.filters:
        filters.setdefault(one.parameter, []).append(one.text)
    return {
        "size": asked.query.size if params.get("size") else None,
        "window": asked.query.window or None,
        "start": format_time(asked.window.start),
        "end": format_time(asked.window.end),
        "state": asked.wanted.states,
        "error": asked.wanted.error or None,
        **filters,
    }


def following(request: Request, asked: Asked, after: Cursor) -> str:
    """Return the address of the next page, in the same window: a preset would move on."""
    params = request.query_params.copy()
    params.pop("window", None)
    params["from"], params["to"] = map(format_time, (asked.window.start, asked.window.end))
    params["cursor"] = str(after)
    return request.build_absolute_uri(f"{request.path}?{params.urlencode(safe=':!')}")


def record(one: Transfer, names: dict[int, str]) -> dict[str, Any]:
    """Return a result as a record (sonar.records), with its size class and its rate."""
    return {
        "id": str(one.id),
        "source": names[one.source_id],
        "destination": names[one.destination_id],
        "started_at": exact(one.started_at),
        "seconds": one.seconds,
        "bytes": one.bytes,
        "state": one.state,
        "error": one.error or None,
        "error_where": one.error_where or None,
        "mover": one.profile.mover,
        "streams": one.profile.streams,
        "ip_version": one.profile.ip_version,
        "origin": one.profile.origin,
        "size": one.size_class.name,
        "rate_mb_s": rate_of(one) if one.state == Transfer.State.DONE else None,
    }


def exact(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def whole(one: Transfer) -> dict[str, Any]:
    """Return all that is kept of a result."""
    names = {one.source_id: one.source.name, one.destination_id: one.destination.name}
    return record(one, names) | {
        "error_is_permanent": one.error_is_permanent,
        "first_byte_seconds": one.first_byte_seconds,
        "mode": one.profile.mode or None,
        "tcp_buffer_bytes": one.profile.tcp_buffer_bytes,
        "mesh": one.profile.mesh.name if one.profile.mesh else None,
        "activity": one.profile.activity or None,
        "worker": one.worker or None,
        # Their addresses may be internal ones: only accounts of staff see them, on the page.
        "remote_connections": len(one.remote_connections),
        "samples": one.samples,
    }


class TransferView(APIView):
    """GET /api/v1/transfers/<id>/."""

    content_negotiation_class = ErrorsInJson

    def get(self, request: Request, id: UUID) -> HttpResponseBase:  # noqa: A002 - of the route
        check_names(request.query_params, ["format"])
        wanted = asked_format(request)
        found = attempts.known(id)
        if found is None:
            raise NotFound(why_not(id))
        if wanted == "csv":
            return as_csv(Transfer.objects.filter(id=id))
        return fresh(HttpResponse(dumps(whole(found)), content_type="application/json"))


def why_not(sought: UUID) -> str:
    if probe := Probe.objects.filter(id=sought).first():
        return f"The test {sought} is {probe.state}: it becomes a transfer when it ends."
    return f"No transfer has the id {sought}: results are kept for {settings.SONAR_KEEP_DAYS} days."


def as_csv(rows: QuerySet[Transfer]) -> StreamingHttpResponse:
    """Answer with records that can be imported again, newest first; none is kept in memory."""
    pieces = csv_pieces(rows)
    # The first before the answer begins: an error of the database is then still a status.
    first = next(pieces)
    response = StreamingHttpResponse(chain([first], pieces), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'inline; filename="sonar-transfers.csv"'
    return fresh(response)


def csv_pieces(rows: QuerySet[Transfer]) -> Iterator[bytes]:
    """Yield the header, and then lines as PostgreSQL writes them."""
    piece = bytearray(",".join(FIELDS).encode() + b"\n")
    try:
        statement = binary.copy_of(of_records(rows), "CSV")
    except EmptyResultSet:
        yield bytes(piece)
        return
    with binary.copying(statement) as copy:
        for line in copy:
            piece += line
            if len(piece) >= PIECE_BYTES:
                yield bytes(piece)
                piece.clear()
    yield bytes(piece)


def of_records(rows: QuerySet[Transfer]) -> QuerySet[Transfer, tuple[Any, ...]]:
    """Return the fields of records, newest first.

    Names by subqueries, not joins: so rows leave in the order of the index on the time, the
    first at once, and PostgreSQL sorts none.
    """
    return (
        rows.annotate(
            from_name=of(Endpoint, "source_id", "name"),
            to_name=of(Endpoint, "destination_id", "name"),
            started=as_text("started_at"),
            why=NullIf("error", Value(""), output_field=TextField()),
            where=NullIf("error_where", Value(""), output_field=TextField()),
            **{f"made_{field}": of(Profile, "profile_id", field) for field in METHOD},
        )
        .order_by("-started_at", "-id")
        .values_list(
            *("id", "from_name", "to_name", "started", "seconds", "bytes", "state", "why", "where"),
            *(f"made_{field}" for field in METHOD),
        )
    )


def of(model: type[Model], key: str, field: str) -> Subquery:
    """Return a field of the row that a key refers to, as an expression."""
    return Subquery(model._default_manager.filter(id=OuterRef(key)).values(field))


def as_text(field: str) -> Func:
    """Write a time to the microsecond, as an expression."""
    template = """to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
    return Func(F(field), template=template, output_field=TextField())


def fresh(response: Answer) -> Answer:
    response["Cache-Control"] = "no-cache"
    response["Vary"] = "Accept, Cookie"
    return response
