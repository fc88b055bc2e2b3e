"""The door for finished results: own tests and imports enter here, each id once.

Their table has a partition for each month: made before it is needed, dropped when too old.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import make_dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import isfinite
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import orjson
from django.db import OperationalError, connection, transaction
from django.db.models import Q
from psycopg import sql

from sonar.database import pg_copy
from sonar.database.cursors import lock_until_commit, planned_cursor
from sonar.models import DirtyMark, Endpoint, Profile, Segment
from sonar.notation.result_columns import STORED, dataclass_fields
from sonar.notation.windows import format_time, parse_time

log = logging.getLogger(__name__)

T = TypeVar("T")

BATCH = 10_000
ID_BYTES = 16
# Any number, the same for every import.
IMPORT_LOCK = 0x49_4D_50_4F

# The columns in the order in which they are copied, with their types; jsonb is sent as the bytes
# that it has in binary, a version and the text: psycopg's own way costs four times.
TYPES = {
    column.name: "bytea" if column.postgres == "jsonb" else column.postgres for column in STORED
}
JSON = tuple(place for place, column in enumerate(STORED) if column.postgres == "jsonb")
# To look for an id in a month's index costs 0.6 us and more, to read one that is kept there and
# to find it among those looked for 0.25 us: beyond this ratio all indexes are read, once.
LOOKS_FOR_A_READING = 0.4
MANY = 50_000
KEPT = """
    SELECT coalesce(sum(greatest(reltuples, 0)), 0), count(*)
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = 'sonar_transfer'::regclass
"""
# OFFSET 0 keeps PostgreSQL from looking for each id after all; it makes a hash of the list.
READ_ALL = """
    SELECT id FROM (SELECT id FROM sonar_transfer OFFSET 0) AS kept WHERE id = ANY(%s::uuid[])
"""
MADE_AHEAD = timedelta(days=45)
# Dropping waits for every reader of the table and lets no new one in meanwhile.
LONGEST_WAIT_SECONDS = 5
MONTHS = """
    SELECT child.relname FROM pg_inherits
    JOIN pg_class child ON child.oid = inhrelid
    WHERE inhparent = 'sonar_transfer'::regclass ORDER BY child.relname
"""
# One by one a COPY takes three times as long. One value whatever is empty of it: one plan.
APPEND = f"""
    INSERT INTO sonar_transfer ({", ".join(TYPES)})
    SELECT {", ".join(TYPES)} FROM json_populate_record(NULL::sonar_transfer, %s::json)
"""  # noqa: S608 - of the table of columns
COPY = f"COPY sonar_transfer ({', '.join(TYPES)}) FROM STDIN (FORMAT BINARY)"


_VALUES = attrgetter(*TYPES)
_Columns: Any = make_dataclass(
    "_Columns", dataclass_fields(STORED), frozen=True, slots=True, kw_only=True
)


class Result(_Columns):  # type: ignore[misc]  # of the table
    """A transfer that has ended, before it is a row of Transfer: a value for each stored column.

    What is not given is empty.
    """

    __slots__ = ()

    def row(self) -> list[Any]:
        """Return the values in the order of TYPES."""
        values = list(_VALUES(self))
        for place in JSON:
            values[place] = _jsonb(values[place])
        return values


def _jsonb(value: Any) -> bytes | None:  # noqa: ANN401 - a list, a mapping or None
    return None if value is None else b"\x01" + orjson.dumps(value)


class Stored(NamedTuple):
    """How many results were new, and how many were there already."""

    accepted: int
    duplicates: int


@transaction.atomic
def store(results: Iterable[Result], *, ids_are_new: bool = False) -> Stored:
    """Store results whose id is not stored yet; all of them or, on an error, none.

    Triggers mark the hours they lie in as dirty in the same transaction. Imports hold
    ``lock_imports`` meanwhile. To look for an id costs 4 us for each month that is kept: a
    caller that knows that its ids are new, as a probe's row does, spares that.
    """
    accepted = offered = 0
    for batch in _batches(results, BATCH):
        new = batch if ids_are_new else _new(batch)
        offered += len(batch)
        accepted += len(new)
        copy_results(new)
        if not ids_are_new:
            end_drafts({end for result in new for end in (result.source_id, result.destination_id)})
    return Stored(accepted, offered - accepted)


def end_drafts(endpoints: Collection[int]) -> None:
    """Show endpoints (ids) to readers that were never enabled and now have results. One SQL query.

    An UPDATE of the table, even of no row, makes readers read the registry again.
    """
    drafts = Endpoint.objects.drafts().filter(pk__in=endpoints)
    if drafts.exists():
        drafts.update(is_draft=False)


def lock_imports() -> None:
    """Let one import at a time store results, until the transaction ends.

    A primary key of a partitioned table holds the time too, so that it alone would let one
    id in twice with different times.
    """
    lock_until_commit(IMPORT_LOCK)


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _new(batch: list[Result]) -> list[Result]:
    """Return the results whose id is not stored, each id once."""
    first: dict[UUID, Result] = {}
    for result in batch:
        first.setdefault(result.id, result)
    for stored in known_ids(b"".join(sorted(uuid.bytes for uuid in first))):
        del first[stored]
    return list(first.values())


def known_ids(ids: bytes) -> list[UUID]:
    """Return those ids, given as sixteen bytes each, that are stored in whatever month.

    One statement. In order they cost half: neighbours in a month's index are looked for one after
    the other. As hex with commas: a list of parameters costs ten times as much to write.
    """
    parameters = [f"{{{ids.hex(',', ID_BYTES)}}}"]
    with connection.cursor() as cursor:
        if _reading_all_is_cheaper(len(ids) // ID_BYTES):
            cursor.execute("SET LOCAL random_page_cost = 1")
            cursor.execute(READ_ALL, parameters)
        else:
            cursor.execute("SELECT sonar_known_ids(%s::uuid[])", parameters)
        return [stored for (stored,) in cursor.fetchall()]


def _reading_all_is_cheaper(ids: int) -> bool:
    if ids < MANY:  # what is to be asked here costs as much as some hundred ids
        return False
    with connection.cursor() as cursor:
        cursor.execute(KEPT)
        kept, months = cursor.fetchone()
    return bool(ids * months > LOOKS_FOR_A_READING * kept)


def append(rows: Iterable[bytes], moments: Iterable[datetime]) -> None:
    """Append rows that are new and that COPY takes as they are, for these months."""
    make_months(moments)
    _copy(COPY, rows)


def append_marked(rows: Iterable[bytes], month: datetime) -> None:
    """Append rows of one month straight to its partition, which costs a quarter less.

    No trigger sees them: for each of their hours and classes, and each endpoint and profile, a row
    must have been appended by `append`, which leaves the mark and is checked for all of them.
    """
    _copy(COPY.replace("sonar_transfer", f"sonar_transfer_{month:%Y_%m}", 1), rows)


def _copy(statement: str, rows: Iterable[bytes]) -> None:
    with pg_copy.copying(statement) as copy:
        copy.write(pg_copy.SIGNATURE)
        for block in rows:
            copy.write(block)
        copy.write(pg_copy.TRAILER)


def copy_results(results: list[Result]) -> None:
    """Append results that are new."""
    if not results:
        return
    make_months(result.started_at for result in results)
    with pg_copy.copying(COPY) as copy:
        copy.set_types(list(TYPES.values()))
        for result in results:
            copy.write_row(result.row())


def append_one(result: Result) -> None:
    """Append a result that is new, as one statement; ValueError for a number without end."""
    values = dict(zip(TYPES, _VALUES(result), strict=True))
    if endless := [n for n, v in values.items() if isinstance(v, float) and not isfinite(v)]:
        raise ValueError(f"these numbers are not finite: {endless}")
    make_months([result.started_at])
    with planned_cursor() as cursor:
        cursor.execute(APPEND, [orjson.dumps(values).decode()])


def make_months(moments: Iterable[datetime]) -> None:
    """Make the partitions of these moments where they are missing."""
    numbers = {(utc.year, utc.month) for utc in (moment.astimezone(UTC) for moment in moments)}
    starts = [datetime(*month, 1, tzinfo=UTC) for month in sorted(numbers)]
    with planned_cursor() as cursor:
        cursor.execute("SELECT sonar_make_month(unnest(%s::timestamptz[]))", [starts])


def make_months_ahead(now: datetime) -> None:
    make_months([now, now + MADE_AHEAD])


def drop_expired(now: datetime, keep_days: int) -> list[str]:
    """Drop the months that ended more than so many days ago, with their segments and marks.

    Returns the names of the partitions. One that is being read for long is left for the
    next time.
    """
    oldest = now - timedelta(days=keep_days)
    return [name for name in months() if _end(name) <= oldest and _drop(name)]


def months() -> list[str]:
    """Return the names of the partitions, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(MONTHS)
        return [name for (name,) in cursor.fetchall()]


def _start(name: str) -> datetime:
    year, month = name.split("_")[-2:]
    return datetime(int(year), int(month), 1, tzinfo=UTC)


def _end(name: str) -> datetime:
    return (_start(name) + timedelta(days=31)).replace(day=1)


def _drop(name: str) -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{LONGEST_WAIT_SECONDS}s'")
            cursor.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))
            for derived in (Segment, DirtyMark):
                derived._default_manager.filter(
                    start__gte=_start(name), start__lt=_end(name)
                ).delete()
    except OperationalError as error:
        log.warning(
            "%s is too old but could not be dropped; retention tries again: %s", name, error
        )
        return False
    log.info("%s is older than SONAR_KEEP_DAYS: dropped with its segments", name)
    return True


class Profiles:
    """The ids of profiles, each looked up or made once."""

    def __init__(self) -> None:
        self._ids: dict[tuple[tuple[str, Any], ...], int] = {}

    def id_of(self, **kind: Any) -> int:  # noqa: ANN401 - the fields of Profile
        """Find or make the one profile with these fields; what is not given has its default."""
        key = tuple(sorted(kind.items()))
        if key not in self._ids:
            self._ids[key] = _kept_profile(kind) or Profile.objects.get_or_create(**kind)[0].id
        return self._ids[key]


def _kept_profile(kind: dict[str, Any]) -> int | None:
    """Return the id of the profile with these fields, None unless there is one alone.

    The ORM takes ten times as long to write this statement as PostgreSQL to answer it.
    """
    fields: Any = Profile._meta  # the stubs know of fields without a column
    columns = {fields.get_field(name).column: value for name, value in kind.items()}
    conditions = (
        f"{name} IS NULL" if value is None else f"{name} = %s" for name, value in columns.items()
    )
    with planned_cursor() as cursor:
        cursor.execute(
            f"SELECT id FROM sonar_profile WHERE {' AND '.join(conditions)}",  # noqa: S608 - fields
            [value for value in columns.values() if value is not None],
        )
        ids = cursor.fetchall()
    return int(ids[0][0]) if len(ids) == 1 else None


ACTIVITY = "made up, until "
# Of profiles, in SQL: those of tests that moved bytes, without made-up ones.
REAL_TESTS = f"origin = 'test' AND NOT starts_with(activity, '{ACTIVITY}')"
MADE_UP = Q(activity__startswith=ACTIVITY)


def profile_fields(end: datetime) -> dict[str, Any]:
    """Return the fields of the profile of results that are made up until ``end``."""
    return {
        "mover": "fake",
        "mode": "pull",
        "streams_used": 1,
        "ip_version": 4,
        "origin": Profile.Origin.TEST,
        "activity": f"{ACTIVITY}{format_time(end)}",
    }


def is_made_up(profile: Profile) -> bool:
    return profile.activity.startswith(ACTIVITY)


def until() -> datetime | None:
    """Return the end of the results that are made up, None if there are none. One SQL query."""
    activity = Profile.objects.filter(MADE_UP).values_list("activity", flat=True).first()
    return parse_time(activity.removeprefix(ACTIVITY)) if activity else None
