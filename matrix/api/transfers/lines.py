"""Results as lines of CSV or of JSON, newest first, as PostgreSQL writes them.

No row is kept, and none becomes an object of Python: ten million take no more memory than ten.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.conf import settings
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet
from psycopg.abc import Buffer

from matrix.api.streaming import Pieces, by_piece
from matrix.store.data_version import snapshot
from sonar.database import pg_copy
from sonar.models import Transfer
from sonar.notation.result_columns import BY_NAME, Column, listed
from sonar.records.exporting import copy_of

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


def head(form: str, *, internal: bool) -> bytes:
    """Return the line above all others: the names of the columns in CSV."""
    names = [column.name for column in columns_of(form, internal=internal)]
    return (",".join(names) + "\n").encode() if form == "csv" else b""


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
    return by_piece(lines(rows, form, columns, most), head(form, internal=internal))


def lines(
    rows: QuerySet[Transfer], form: str, columns: Sequence[Column], most: bool
) -> Iterator[Buffer]:
    try:
        statement = copy_of(rows, columns, form)
    except EmptyResultSet:
        return
    with reading_for_long(most), pg_copy.copying(statement) as copy:
        yield from copy


@contextmanager
def reading_for_long(most: bool) -> Iterator[None]:
    """Read as of one moment, for as long as a stream may take."""
    with snapshot():
        with connection.cursor() as cursor:
            seconds, sort = f"{settings.SONAR_STREAM_SECONDS}s", "off" if most else "on"
            cursor.execute(SETTINGS, [seconds, sort])
        yield
