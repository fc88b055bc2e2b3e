"""Results as lines of CSV or of JSON, newest first, as PostgreSQL writes them.

No row is kept, and none becomes an object of Python: ten million take no more memory than ten.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from sonar.notation import csv_text
from sonar.records.record import ACCOUNT, FIELDS, INTERNAL, TOLD_BESIDES

COLUMNS = (
    *("id", "started_at", "seconds", "bytes", "state", "error", "error_where"),
    *("source_id", "destination_id", "profile_id", "size_class_id"),
    *(name for name in ACCOUNT if name not in INTERNAL),
    *("moved_bytes", "verified"),
)
# The columns that CSV began with; what records have got since then stands behind them.
FIRST = (
    *("id", "source", "destination", "started_at", "seconds", "bytes", "state", "error"),
    *("error_where", "mover", "streams", "ip_version", "origin"),
)
CSV_FIELDS = (
    *FIRST,
    *(name for name in FIELDS if name not in (*FIRST, *INTERNAL)),
    *TOLD_BESIDES,
)
# The fields of results.record, in its order. The names are looked up row by row, in a few rows
# that PostgreSQL remembers: rows leave in the order of the index on the time, the first at
# once, and nothing is sorted. OFFSET 0 keeps it from joining the tables instead.
RECORDS = """
    SELECT {output} FROM ({chosen}) AS chosen,
        LATERAL (SELECT name FROM sonar_endpoint WHERE id = source_id OFFSET 0) AS source,
        LATERAL (SELECT name FROM sonar_endpoint WHERE id = destination_id OFFSET 0)
            AS destination,
        LATERAL (SELECT name FROM sonar_sizeclass WHERE id = size_class_id OFFSET 0) AS size,
        LATERAL (SELECT mover, mode, streams, streams_used, tcp_buffer_bytes, ip_version, origin,
                     clock, purpose
                 FROM sonar_profile WHERE id = profile_id OFFSET 0) AS made,
        LATERAL (SELECT chosen.id, source.name AS source, destination.name AS destination,
            to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS started_at,
            seconds, bytes, state, nullif(error, '') AS error,
            nullif(error_where, '') AS error_where,
            made.mover, nullif(made.mode, '') AS mode, made.streams, made.streams_used,
            made.ip_version, made.origin, size.name AS size,
            CASE WHEN state = 'done' THEN bytes / seconds / 1e6 END AS rate_mb_s,
            beside_source, beside_source_max, beside_destination, beside_destination_max,
            nullif(made.clock, '') AS clock, prepare_seconds, queue_seconds, first_byte_seconds,
            transfer_seconds, checksum_seconds, made.tcp_buffer_bytes, tcp_buffer_used_bytes,
            nullif(remote_id, '') AS remote_id, scitag,
            nullif(made.purpose, '') AS purpose, moved_bytes, verified) AS record
    ORDER BY chosen.started_at DESC, chosen.id DESC
"""
# PostgreSQL would write t and f.
AS_TEXT = {"verified": "::text"}
OUTPUTS = {
    # Of all of them, only errors are what others wrote.
    "csv": ", ".join(
        csv_text.sql(f"record.{name}")
        if name == "error"
        else f"record.{name}{AS_TEXT.get(name, '')}"
        for name in CSV_FIELDS
    ),
    "ndjson": "row_to_json(record)",
}
# JSON has no character below a space in it, so these leave it as it is: no quotes are doubled.
AS_IT_IS = "csv, QUOTE e'\\x01', DELIMITER e'\\x02'"
FORMS = {"csv": "csv", "ndjson": AS_IT_IS}
HEADS = {"csv": (",".join(CSV_FIELDS) + "\n").encode(), "ndjson": b""}
# Compiling or sharing out the query would only keep the first row waiting.
SETTINGS = """SELECT set_config('statement_timeout', %s, true), set_config('jit', 'off', true),
    set_config('max_parallel_workers_per_gather', '0', true),
    set_config('enable_sort', %s, true)"""


def pieces(rows: QuerySet[Transfer], form: str, *, most: bool = False) -> Pieces:
    """Yield all of these results in a form, `csv` (with a header) or `ndjson`.

    ``most`` says that nothing but a pass over the whole window finds them. It is then made in
    the order of time: sorting afterwards takes no less long, and room on disk. Where an index
    finds few, they are found in a fifth of the time and sorted.
    """
    return by_piece(lines(rows, form, most), HEADS[form])


def lines(rows: QuerySet[Transfer], form: str, most: bool) -> Iterator[Buffer]:
    try:
        statement = copy_of(rows, form)
    except EmptyResultSet:
        return
    with reading_for_long(most), pg_copy.copying(statement) as copy:
        yield from copy


def copy_of(rows: QuerySet[Transfer], form: str) -> str:
    """Return the COPY of results; raise EmptyResultSet where there can be none."""
    chosen = pg_copy.sql_of(rows.order_by("-started_at", "-id").values_list(*COLUMNS))
    records = RECORDS.format(output=OUTPUTS[form], chosen=chosen)
    return f"COPY ({records}) TO STDOUT (FORMAT {FORMS[form]})"


@contextmanager
def reading_for_long(most: bool) -> Iterator[None]:
    """Read as of one moment, for as long as a stream may take."""
    with snapshot():
        with connection.cursor() as cursor:
            seconds, sort = f"{settings.SONAR_STREAM_SECONDS}s", "off" if most else "on"
            cursor.execute(SETTINGS, [seconds, sort])
        yield
