"""Exporting results as records: PostgreSQL writes the CSV, in one snapshot, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import sql

from sonar.database import pg_copy
from sonar.notation import csv_text

ROWS_PER_PIECE = 1000

# Nested lookups (OFFSET 0 keeps them so, PostgreSQL remembers their answers) and not joins by
# hash: rows leave in the order of the index on the time, the first one at once, and none is
# kept. Times to the microsecond and numbers in full: what is imported from it is the same. The rate
# is for who reads the file: an import leaves it aside.
COPY = """
COPY (
    SELECT id, source.name AS source, destination.name AS destination,
        to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS started_at,
        seconds, bytes, state, {error} AS error, nullif(error_where, '') AS error_where,
        mover, nullif(mode, '') AS mode, streams, streams_used, ip_version, origin,
        beside_source, beside_source_max, beside_destination, beside_destination_max,
        nullif(clock, '') AS clock, prepare_seconds, queue_seconds, first_byte_seconds,
        transfer_seconds, checksum_seconds, tcp_buffer_bytes, tcp_buffer_used_bytes,
        nullif(remote_id, '') AS remote_id, nullif(log_url, '') AS log_url, scitag,
        nullif(purpose, '') AS purpose,
        CASE WHEN state = 'done' THEN bytes / seconds / 1e6 END AS rate_mb_s
    FROM sonar_transfer,
        LATERAL (SELECT name FROM sonar_endpoint AS one WHERE one.id = source_id OFFSET 0)
            AS source,
        LATERAL (SELECT name FROM sonar_endpoint AS one WHERE one.id = destination_id OFFSET 0)
            AS destination,
        LATERAL (SELECT mover, mode, streams, streams_used, tcp_buffer_bytes, ip_version, origin,
                     clock, purpose
                 FROM sonar_profile AS one WHERE one.id = profile_id OFFSET 0) AS profile
    WHERE {conditions} ORDER BY sonar_transfer.started_at, sonar_transfer.id
) TO STDOUT (FORMAT csv, HEADER)
"""


@dataclass(frozen=True)
class Choice:
    """Which results to export; what is empty chooses all. Lost ones never are."""

    start: datetime | None = None
    end: datetime | None = None
    size_classes: Sequence[int] = ()
    sources: Sequence[int] = ()
    destinations: Sequence[int] = ()
    states: Sequence[str] = ("done", "failed")
    origins: Sequence[str] = ()

    def conditions(self) -> sql.Composable:
        """Return the choice as SQL."""
        chosen = [
            ("sonar_transfer.started_at >= {}", self.start),
            ("sonar_transfer.started_at < {}", self.end),
            ("size_class_id = ANY({})", list(self.size_classes)),
            ("source_id = ANY({})", list(self.sources)),
            ("destination_id = ANY({})", list(self.destinations)),
            ("state = ANY({})", list(self.states)),
            ("origin = ANY({})", list(self.origins)),
        ]
        return sql.SQL(" AND ").join(
            sql.SQL(text).format(sql.Literal(value)) for text, value in chosen if value
        )


def csv_pieces(choice: Choice) -> Iterator[tuple[bytes, int]]:
    """Give the file piece by piece, header first and oldest result first, with the rows so far.

    Keeps no rows: ten million cost no more memory than ten thousand.
    """
    statement = sql.SQL(COPY).format(
        error=sql.SQL(csv_text.sql("error")), conditions=choice.conditions()
    )
    piece: list[bytes] = []
    rows = -1  # the header is none
    with pg_copy.copying(statement) as copy:
        for row in copy:
            piece.append(bytes(row))
            rows += 1
            if len(piece) == ROWS_PER_PIECE:
                yield b"".join(piece), rows
                piece.clear()
        yield b"".join(piece), rows
