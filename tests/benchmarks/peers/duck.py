"""The fast peer: DuckDB in memory on the same rows, two threads, columns typed small."""

from collections.abc import Iterator
from typing import Any, cast

import duckdb
import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray
from psycopg import Cursor

from sonar.database import pg_copy
from sonar.notation.windows import Window
from tests.benchmarks.answer import Answer
from tests.benchmarks.copy_rows import EPOCH_2000_US, row_of

THREADS = 2
# Rows of peer_transfer in PostgreSQL's binary format; the rate of a failed one is NaN.
FIELDS = {
    "started_at": ">i8",
    "source_id": ">i2",
    "destination_id": ">i2",
    "size_class_id": ">i2",
    "rate": ">f4",
}
READ = """
    COPY (SELECT started_at, source_id, destination_id, size_class_id, coalesce(rate, 'NaN')
          FROM peer_transfer) TO STDOUT (FORMAT BINARY)
"""
PIECE_BYTES = 64 * 2**20
ADD = """
    INSERT INTO transfer
    SELECT source, destination, size_class, CASE WHEN isnan(rate) THEN NULL ELSE rate END, started
    FROM piece
"""
# One list of quantiles takes half the time of two of them.
QUERY = """
    SELECT source, destination, count, ok, mean, std,
           quantiles[1] AS median, quantiles[2] AS p95, last
    FROM (SELECT source, destination, count(*) AS count, count(rate) AS ok, avg(rate) AS mean,
                 stddev_samp(rate) AS std, quantile_cont(rate, [0.5, 0.95]) AS quantiles,
                 max(started) AS last
          FROM transfer WHERE size_class = ? AND started >= ? AND started < ?
          GROUP BY source, destination)
"""


class Duck:
    """A database in memory."""

    def __init__(self) -> None:
        self.database = duckdb.connect()
        self.database.execute(f"SET threads = {THREADS}")
        self.database.execute(
            "CREATE TABLE transfer (source USMALLINT, destination USMALLINT, "
            "size_class UTINYINT, rate FLOAT, started TIMESTAMP)"
        )

    def fill(self) -> None:
        """Take over the rows of peer_transfer in their order, which is that of time."""
        for rows in pieces():
            piece = {
                "source": rows["source_id"].astype(np.uint16),
                "destination": rows["destination_id"].astype(np.uint16),
                "size_class": rows["size_class_id"].astype(np.uint8),
                "rate": rows["rate"].astype(np.float32),
                "started": (rows["started_at"] + EPOCH_2000_US).astype("datetime64[us]"),
            }
            self.database.register("piece", piece)
            self.database.execute(ADD)
            self.database.unregister("piece")

    def columns(self, size: int, window: Window) -> dict[str, NDArray[Any]]:
        bounds = [moment.replace(tzinfo=None) for moment in (window.start, window.end)]
        found = self.database.execute(QUERY, [size, *bounds])
        return cast("dict[str, NDArray[Any]]", found.fetchnumpy())

    def answer(self, size: int, window: Window) -> Answer:
        """Answer as columns in the order of links, to compare; not timed."""
        found = self.columns(size, window)
        link = found["source"].astype(np.int64) << 16 | found["destination"]
        order = np.argsort(link)
        return Answer(
            link=link[order],
            count=found["count"][order],
            ok=found["ok"][order],
            **{name: floats(found[name])[order] for name in ("mean", "std", "median", "p95")},
            last=found["last"][order].astype("datetime64[us]").astype(np.int64) // 1000,
        )


def floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return NULL, which DuckDB masks, as NaN."""
    return np.ma.filled(values.astype(np.float64), np.nan)


def pieces() -> Iterator[NDArray[np.void]]:
    """Read peer_transfer, a good million rows at a time."""
    row = row_of(FIELDS)
    pending = bytearray()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL max_parallel_workers_per_gather = 0")  # keeps the order
        with cast("Cursor[Any]", cursor).copy(READ) as copy:
            pending += next(iter(copy))[len(pg_copy.SIGNATURE) :]
            for data in copy:
                pending += data
                if len(pending) >= PIECE_BYTES:
                    yield whole_rows(pending, row)
    yield whole_rows(pending, row)  # the trailer stays behind: it is shorter than a row


def whole_rows(pending: bytearray, row: np.dtype[np.void]) -> NDArray[np.void]:
    """Take the whole rows off the front of what was read."""
    length = len(pending) // row.itemsize * row.itemsize
    rows = np.frombuffer(bytes(pending[:length]), dtype=row)
    del pending[:length]
    return rows
