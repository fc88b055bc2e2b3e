"""/api/v1/transfers/: POST takes results from elsewhere, a list of records, all or nothing."""

from typing import Any, cast

from django.db import OperationalError, connection, transaction
from django.http.response import HttpResponseBase
from django.utils import timezone
from psycopg.errors import LockNotAvailable
from rest_framework.exceptions import ParseError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from matrix.api.base import ApiView, JsonList, body_of
from matrix.api.schema.transfers import STORE, TRANSFERS
from matrix.api.transfers import list as results_api
from matrix.http.exceptions import FaultyBody, NotNow, TooLarge
from matrix.http.permissions import MayIngest, MayRead
from sonar.records.admission import Admission, WrongRecordsError
from sonar.results import store

MOST_RESULTS = 10_000
ROWS_NAMED = 20
# An import of a large file holds the lock for longer than a request should wait.
LONGEST_WAIT_SECONDS = 10


class TransfersView(ApiView):
    parser_classes = [JsonList]

    def get_permissions(self) -> list[BasePermission]:
        return [MayIngest() if self.request.method == "POST" else MayRead()]

    @TRANSFERS
    def get(self, request: Request) -> HttpResponseBase:
        return results_api.answer(request)

    @STORE
    def post(self, request: Request) -> Response:
        rows = cast("list[Any]", body_of(request))
        if not rows:
            raise ParseError(f"There are no results: send a JSON list of 1 to {MOST_RESULTS:,}.")
        if len(rows) > MOST_RESULTS:
            raise TooLarge(f"{len(rows):,} results are too many at once: send {MOST_RESULTS:,}.")
        # All or, with FaultyBody, none.
        with transaction.atomic():
            admission = Admission.at(timezone.now())
            try:
                records = admission.admit(rows)
            except WrongRecordsError as error:
                raise faulty(error) from None
            wait_for_imports()
            stored = store.store(map(admission.result, records))
        return Response(stored._asdict(), status=201)


def faulty(error: WrongRecordsError) -> FaultyBody:
    """Name the first wrong rows, each field of them by `<index>.<field>`."""
    errors: dict[str, list[str]] = {}
    for index in list(error.records)[:ROWS_NAMED]:
        for field, sentence in error.records[index].problems:
            errors.setdefault(f"{index}.{field}".rstrip("."), []).append(f"{sentence}.")
    first, sentences = next(iter(errors.items()))
    return FaultyBody(f"Nothing was stored: {error}. The first, {first}: {sentences[0]}", errors)


def wait_for_imports() -> None:
    """Take the lock of imports; raise NotNow if one holds it for long."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LONGEST_WAIT_SECONDS}s'")
    try:
        store.lock_imports()
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise NotNow("A file is being imported: send this again later.", 30) from error
        raise
