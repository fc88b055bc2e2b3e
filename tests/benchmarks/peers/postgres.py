"""The peer that everybody has: raw rows in PostgreSQL behind a covering index."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray
from psycopg import Cursor

from sonar.notation.windows import Window
from tests.benchmarks.answer import Answer

# The rate of a failed one is NULL: no aggregate needs a FILTER then.
MAKE = """
    SET LOCAL max_parallel_workers_per_gather = 0;  -- keeps the rows in order of time
    CREATE TABLE peer_transfer AS
    SELECT started_at, source_id::smallint, destination_id::smallint, size_class_id::smallint,
           CASE WHEN state = 'done' THEN (bytes / seconds)::real END AS rate
    FROM sonar_transfer WHERE started_at >= %s AND state <> 'lost';
    CREATE INDEX peer_covering ON peer_transfer (size_class_id, started_at)
        INCLUDE (source_id, destination_id, rate);
"""
QUERY = """
    SELECT source_id, destination_id, count(*), count(rate), avg(rate), stddev_samp(rate),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY rate),
           percentile_cont(0.95) WITHIN GROUP (ORDER BY rate), max(started_at)
    FROM peer_transfer
    WHERE size_class_id = {size} AND started_at >= '{start}' AND started_at < '{end}'
    GROUP BY source_id, destination_id
"""


def make(start: datetime) -> None:
    """Copy the rows since a moment into a slim table, indexed and vacuumed."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS peer_transfer")
        cursor.execute(MAKE, [start])
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (FREEZE, ANALYZE) peer_transfer")


def statement(size: int, window: Window) -> str:
    return QUERY.format(size=size, start=window.start.isoformat(), end=window.end.isoformat())


def rows(size: int, window: Window) -> list[tuple[Any, ...]]:
    """Answer as Python rows, as most programs read them."""
    with connection.cursor() as cursor:
        cursor.execute(statement(size, window))
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def drained(size: int, window: Window) -> int:
    """Answer as PostgreSQL's binary COPY, read and not decoded; return its bytes."""
    with connection.cursor() as cursor:
        text = f"COPY ({statement(size, window)}) TO STDOUT (FORMAT BINARY)"
        with cast("Cursor[Any]", cursor).copy(text) as copy:
            return sum(len(piece) for piece in copy)


def answer(size: int, window: Window) -> Answer:
    """Answer as columns, to compare; not timed."""
    found = sorted(rows(size, window), key=lambda row: (row[0], row[1]))
    source, destination, count, ok, *moments, last = zip(*found, strict=True)
    mean, std, median, p95 = map(floats, moments)
    return Answer(
        link=np.array(source, dtype=np.int64) << 16 | np.array(destination, dtype=np.int64),
        count=np.array(count),
        ok=np.array(ok),
        mean=mean,
        std=std,
        median=median,
        p95=p95,
        last=np.array([unix_ms(moment) for moment in last]),
    )


def floats(values: Iterable[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values])


def unix_ms(moment: Any) -> int:
    return int(np.datetime64(moment.replace(tzinfo=None), "us").astype(np.int64)) // 1000
