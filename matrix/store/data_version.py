"""How new the data of an answer is, and how it is read as of one moment.

A version is a value, and a text only where it leaves as an ETag.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import local
from typing import Self

from django.db import connection, transaction
from django.utils.http import quote_etag
from psycopg import IsolationLevel

from matrix.store import read_plan
from matrix.store.read_plan import DAY_MS, HOUR_MS, Span
from sonar.database import reader
from sonar.database.cursors import planned_cursor
from sonar.models.version import RAISED
from sonar.notation.windows import Window

_of_thread = local()
PLANNED = f"""
    SELECT coalesce(({RAISED.format("registry")}), '0'),
           coalesce(({RAISED.format("schedule")}), '0'),
           coalesce(({RAISED.format("incidents")}), '0')
"""
# A change leaves a new mark, and sealing a segment with a new id in place of the mark. Sealing a
# day that is over makes its day anew, and one that is not leaves a mark on it: so the segments of
# hours, which are many, count in the days that carry a mark alone.
OVERLAPPING = """
    size_class_id = ANY (ARRAY(
        SELECT id FROM sonar_sizeclass WHERE name = %(size)s OR %(size)s IS NULL))
    AND (level = 'day' AND start >= {day} AND start < {end}
         OR level = 'hour' AND start >= {hour} AND start < {end})
"""
WITHIN = f"""
    WITH marks AS MATERIALIZED (
        SELECT size_class_id, seq, date_trunc('day', start, 'UTC') AS day
        FROM sonar_dirtymark WHERE {OVERLAPPING}),
    segments AS (
        SELECT id FROM sonar_segment WHERE {OVERLAPPING} AND level = 'day'
        UNION ALL
        SELECT id FROM sonar_segment
        JOIN (SELECT DISTINCT size_class_id, day FROM marks) AS days USING (size_class_id)
        WHERE level = 'hour' AND start >= greatest(day, {{hour}})
          AND start < least(day + interval '1 day', {{end}}))
    {{select}}
        (SELECT concat_ws('.', count(*), max(seq), sum(seq)) FROM marks),
        (SELECT concat_ws('.', count(*), max(id), sum(id)) FROM segments)
"""  # noqa: S608 - constants
OF_A_WINDOW = WITHIN.format(select=f"{PLANNED},", day="%(day)s", hour="%(hour)s", end="%(end)s")
OF_WINDOWS = f"""
    SELECT concat_ws('-', version.marks, version.segments)
    FROM unnest(%(days)s::timestamptz[], %(hours)s::timestamptz[], %(ends)s::timestamptz[])
        WITH ORDINALITY AS bounds(day, hour, past, number),
    LATERAL (
        {WITHIN.format(select="SELECT", day="bounds.day", hour="bounds.hour", end="bounds.past")}
    ) AS version(marks, segments)
    ORDER BY bounds.number
"""  # noqa: S608 - constants
# Every change leaves a mark with a higher number, and sealing it a segment with a higher one.
OF_ALL = f"""
    {PLANNED}, coalesce((SELECT max(seq) FROM sonar_dirtymark)::text, ''),
        coalesce((SELECT max(id) FROM sonar_segment)::text, '')
"""  # noqa: S608 - constants


@contextmanager
def snapshot(*, of_primary: bool = False) -> Iterator[None]:
    """Show what stands in the database as of the first statement within; writing is an error.

    Inside a transaction that has begun already, it is that one's view that counts. It costs two
    round trips, BEGIN and COMMIT, and none if nothing is read. Readers may be answered by a replica
    (sonar.database.reader) unless it is to be ``of_primary``. Also a decorator.
    """
    if of_primary:
        reader.stay()
    if connection.in_atomic_block:
        yield
        return
    with ExitStack() as stack:
        stack.enter_context(reader.chosen())
        stack.enter_context(_reading())
        _of_thread.open = stack
        yield


@contextmanager
def of_one_server() -> Iterator[None]:
    """Let a version be read where the data is, by the replica in one snapshot. Also a decorator."""
    if not reader.is_preferred():
        yield
        return
    with snapshot():
        yield


def end_snapshot() -> None:
    """End this thread's snapshot before its block does, for what goes on reading after that."""
    getattr(_of_thread, "open", ExitStack()).close()


@contextmanager
def _reading() -> Iterator[None]:
    connection.ensure_connection()
    session = connection.connection
    before = session.isolation_level, session.read_only
    # Set on the session, as psycopg sends them with BEGIN: that spares a round trip.
    session.isolation_level, session.read_only = IsolationLevel.REPEATABLE_READ, True
    try:
        with transaction.atomic():
            yield
    finally:
        if not session.closed:
            session.isolation_level, session.read_only = before


@dataclass(frozen=True)
class DataVersion:
    """What an answer was made of: where two are equal, so are the answers.

    ``registry``, ``schedule`` and ``incidents`` change with every change of theirs, ``results``
    with those in the window and the size classes that were asked for. ``question`` is what was
    asked, and ``variant`` the form that it is shown in: a format, a display, a reader. ``as_of`` is
    of when the data is if a replica answers that is behind: pages say so, and ETags of all answers.
    """

    registry: str
    schedule: str
    results: tuple[str, ...] = ()
    question: str = ""
    variant: tuple[str, ...] = ()
    incidents: str = ""
    as_of: str = field(default="", compare=False)

    def of_question(self, question: object) -> Self:
        """Return the version of the answer to a question, told from others by its repr."""
        return replace(self, question=hashlib.sha256(repr(question).encode()).hexdigest()[:12])

    def shown(self, *variant: str) -> Self:
        return replace(self, variant=(*self.variant, *variant))

    @property
    def plan(self) -> Self:
        """Leave out all but registry and schedule."""
        return type(self)(self.registry, self.schedule)

    @property
    def text(self) -> str:
        planned = self.registry, self.schedule, self.incidents
        parts = (*planned, *self.results, self.question, *self.variant)
        return "-".join(filter(None, parts))

    @property
    def etag(self) -> str:
        return quote_etag("-".join(filter(None, (self.text, self.as_of))))


def read(size: str | None, window: Window) -> DataVersion:
    """Return what changes whenever an answer over this window may, for one SQL statement.

    Of results of a size class, or of all of them.
    """
    day, hour, end = bounds(window)
    return fetch(OF_A_WINDOW, {"size": size, "day": day, "hour": hour, "end": end})


def read_results(size: str, windows: Sequence[Window]) -> list[str]:
    """Return what changes with the results in each window, of a size class; one SQL statement."""
    days, hours, ends = zip(*map(bounds, windows), strict=True)
    with planned_cursor() as cursor:
        cursor.execute(
            OF_WINDOWS, {"size": size, "days": list(days), "hours": list(hours), "ends": list(ends)}
        )
        return [row[0] for row in cursor.fetchall()]


def bounds(window: Window) -> tuple[datetime, datetime, datetime]:
    """Return the beginnings of the first day and hour of a window, and its end."""
    span = Span.of(window)
    day, hour = (read_plan.floor(span.start, length) for length in (DAY_MS, HOUR_MS))
    return read_plan.moment(day), read_plan.moment(hour), window.end


def fetch(
    statement: str, parameters: Mapping[str, str | datetime | None] | None = None
) -> DataVersion:
    """Read registry, schedule, incidents and then the results, a column for each part.

    Outside of a snapshot it is that of the primary, which then has the data, too.
    """
    if not connection.in_atomic_block:
        reader.stay()
    as_of = reader.data_as_of()
    with planned_cursor() as cursor:
        cursor.execute(statement, parameters)
        registry, schedule, incidents, *results = cursor.fetchone()
        said = f"as-of-{as_of.astimezone(UTC):%Y%m%dT%H%M%SZ}" if as_of else ""
        return DataVersion(registry, schedule, tuple(results), incidents=incidents, as_of=said)
