"""Results as records: PostgreSQL writes the lines, in one snapshot, row by row.

No row is kept, and none becomes an object of Python: ten million take no more memory than ten.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from sonar.database import pg_copy
from sonar.models import Profile, Transfer
from sonar.notation import csv_text
from sonar.notation.result_columns import BY_NAME, RECORD, Column, Home

ROWS_PER_PIECE = 1000
# The names are looked up row by row, in a few rows that PostgreSQL remembers: rows leave in the
# order of the index on the time, the first at once, and nothing is sorted. OFFSET 0 keeps it from
# joining the tables instead. Times to the microsecond and numbers in full: what is imported from
# it is the same.
RECORDS = """
    SELECT {output} FROM ({chosen}) AS chosen, {names},
        LATERAL (SELECT {of_profile} FROM sonar_profile WHERE id = profile_id OFFSET 0) AS made,
        LATERAL (SELECT {fields}) AS record
    ORDER BY chosen.started_at {direction}, chosen.id {direction}
"""
NAMED = "LATERAL (SELECT name FROM {table} OFFSET 0) AS {name}"
NAMES = {
    "source": "sonar_endpoint WHERE id = source_id",
    "destination": "sonar_endpoint WHERE id = destination_id",
    "size": "sonar_sizeclass WHERE id = size_class_id",
}
# What of its own row says of a result how it is looked up and in which order it comes.
KEYS = ("id", "started_at", "source_id", "destination_id", "size_class_id", "profile_id")
# JSON has no character below a space in it, so these leave it as it is: no quotes are doubled.
FORMS = {
    "csv": "csv",
    "csv with header": "csv, HEADER",
    "ndjson": "csv, QUOTE e'\\x01', DELIMITER e'\\x02'",
}


def copy_of(
    rows: QuerySet[Transfer], columns: Sequence[Column], form: str, *, newest_first: bool = True
) -> str:
    """Return the COPY of results in one of FORMS; raise EmptyResultSet where there can be none."""
    order = ("-started_at", "-id") if newest_first else ("started_at", "id")
    stored = [column.name for column in columns if column.postgres]
    chosen = rows.order_by(*order).values_list(*dict.fromkeys((*KEYS, "bytes", "seconds", *stored)))
    named = [column.name for column in columns if column.home is Home.NAME]
    output = ", ".join(f"{_cell(column)} AS {column.name}" for column in columns)
    records = RECORDS.format(
        output="row_to_json(record)" if form == "ndjson" else output,
        chosen=pg_copy.sql_of(chosen),
        names=", ".join(NAMED.format(table=NAMES[name], name=name) for name in named),
        of_profile=", ".join(column.name for column in columns if column.home is Home.PROFILE),
        fields=", ".join(f"{column.sql} AS {column.name}" for column in columns),
        direction="DESC" if newest_first else "ASC",
    )
    return f"COPY ({records}) TO STDOUT (FORMAT {FORMS[form]})"


def _cell(column: Column) -> str:
    """Return a column as CSV has it: of all of them, only errors are what others wrote."""
    if column.name == "error":
        return csv_text.sql("record.error")
    # PostgreSQL would write t and f.
    return f"record.{column.name}{'::text' if column.kind is bool else ''}"


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

    def rows(self) -> QuerySet[Transfer]:
        """Return the results; one SQL query for the profiles of origins, if any are chosen."""
        chosen = {
            "started_at__gte": self.start,
            "started_at__lt": self.end,
            "size_class__in": self.size_classes,
            "source__in": self.sources,
            "destination__in": self.destinations,
            "state__in": self.states,
        }
        rows = Transfer.objects.filter(**{name: value for name, value in chosen.items() if value})
        if not self.origins:
            return rows
        profiles = Profile.objects.filter(origin__in=self.origins).values_list("id", flat=True)
        return rows.filter(profile__in=list(profiles))


def csv_pieces(choice: Choice) -> Iterator[tuple[bytes, int]]:
    """Give the file piece by piece, header first and oldest result first, with the rows so far.

    The rate is for who reads the file: an import leaves it aside.
    """
    columns = (*RECORD, BY_NAME["rate_mb_s"])
    statement = copy_of(choice.rows(), columns, "csv with header", newest_first=False)
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
