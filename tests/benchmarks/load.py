"""Loads rows into the store as fast as PostgreSQL takes them: a month at a time, indexes last.

Results of a running Sonar enter by sonar.results.store, which goal 6 measures; this is not that.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import Any, cast

import numpy as np
from django.db import connection, transaction
from psycopg import Cursor

from sonar.database import pg_copy
from tests.benchmarks.copy_rows import COLUMNS, Ids, encode
from tests.benchmarks.data import Day
from tests.benchmarks.scale import SEED

CHUNK = 100_000
MAKE = "CREATE TABLE {name} (LIKE sonar_transfer INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
# The indexes of the store (migration 0003), made when the rows are there; attaching takes
# them for those of the parent.
FINISH = """
    DROP TABLE IF EXISTS sonar_transfer_{month};
    ALTER TABLE {name} RENAME TO sonar_transfer_{month};
    ALTER TABLE sonar_transfer_{month} ADD PRIMARY KEY (id, started_at);
    CREATE INDEX ON sonar_transfer_{month} (started_at, size_class_id);
    CREATE INDEX ON sonar_transfer_{month} (source_id, destination_id, started_at);
    ALTER TABLE sonar_transfer ATTACH PARTITION sonar_transfer_{month}
        FOR VALUES FROM ('{start:%Y-%m-%d} 00:00Z') TO ('{end:%Y-%m-%d} 00:00Z');
"""
# Rows that a partition gets before it is attached leave no marks by trigger.
MARK = """
    INSERT INTO sonar_dirtymark (size_class_id, level, start)
    SELECT DISTINCT size_class_id, 'hour', date_trunc('hour', started_at, 'UTC')
    FROM sonar_transfer_{month}
"""


def load(days: Iterable[Day], ids: Ids, progress: Callable[[int], None]) -> None:
    """Store the rows of these days, which are in order; calls ``progress`` with rows stored."""
    for start, month in groupby(days, lambda day: day.start.replace(day=1)):
        with transaction.atomic(), connection.cursor() as cursor:
            load_month(cast("Cursor[Any]", cursor), start, month, ids, progress)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sonar_transfer")
    vacuum("sonar_dirtymark", "sonar_schedule")


def load_month(
    cursor: Cursor[Any],
    start: datetime,
    month: Iterable[Day],
    ids: Ids,
    progress: Callable[[int], None],
) -> None:
    # Filled in the transaction that makes it, a table needs no write-ahead log (wal_level).
    names = {
        "name": "bench_month",
        "month": f"{start:%Y_%m}",
        "start": start,
        "end": next_month(start),
    }
    cursor.execute(MAKE.format(**names))
    copy_in(cursor, names["name"], chunks(month, ids, progress))
    cursor.execute(FINISH.format(**names))
    cursor.execute(MARK.format(**names))


def copy_in(cursor: Cursor[Any], table: object, pieces: Iterable[bytes]) -> None:
    # Frozen as by a vacuum: there is no need to read and write it all again.
    statement = f"COPY {table} ({', '.join(COLUMNS)}) FROM STDIN (FORMAT BINARY, FREEZE)"
    with cursor.copy(statement) as copy:
        copy.write(pg_copy.SIGNATURE)
        for piece in pieces:
            copy.write(piece)
        copy.write(pg_copy.TRAILER)


def chunks(days: Iterable[Day], ids: Ids, progress: Callable[[int], None]) -> Iterator[bytes]:
    for day in days:
        rng = np.random.default_rng([SEED, day.start.toordinal()])
        for first in range(0, len(day.rows), CHUNK):
            piece = day.rows[first : first + CHUNK]
            yield encode(piece, ids, rng)
            progress(len(piece))


def next_month(start: datetime) -> datetime:
    return start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)


def vacuum(*tables: str) -> None:
    """Leave tables as a running server's autovacuum does: frozen, with statistics."""
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
