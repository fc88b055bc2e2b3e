"""Sealing: dirty hours and days become segments, rebuilt from the raw rows as a whole.

Nothing is ever added to a segment: doing it again, being killed halfway, and late, changed or
deleted results need no care of their own.
"""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import cast

from django.db import connection, transaction

from sonar.database import pg_copy
from sonar.database.cursors import lock_until_commit
from sonar.models import DirtyMark, Segment
from sonar.models.version import Level
from sonar.notation.windows import unix_ms
from sonar.results import segments
from sonar.results.segments import Columns

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# A bucket is sealed this long after its end: results of short tests come within it.
GRACE = timedelta(seconds=60)

# A size class and the start of a UTC day.
ClassDay = tuple[int, datetime]

DIRTY_DAYS = """
    SELECT size_class_id, date_trunc('day', start, 'UTC') AS day FROM sonar_dirtymark
    WHERE (level = 'hour' AND start <= %(now)s - interval '1 hour')
       OR (level = 'day' AND start <= %(now)s - interval '1 day')
    GROUP BY size_class_id, day ORDER BY day DESC, size_class_id
"""
FILLED_DAYS = """
    SELECT size_class_id, date_trunc('day', started_at, 'UTC') AS day FROM sonar_transfer
    WHERE started_at >= %(start)s AND started_at < %(end)s GROUP BY size_class_id, day
    UNION SELECT size_class_id, date_trunc('day', start, 'UTC') FROM sonar_segment
    WHERE start >= %(start)s AND start < %(end)s
    ORDER BY day DESC, size_class_id
"""
# Each statement of a writer leaves marks; readers look at all of them.
MERGE_MARKS = """
    WITH merged AS (
        DELETE FROM sonar_dirtymark WHERE (size_class_id, level, start) IN (
            SELECT size_class_id, level, start FROM sonar_dirtymark
            GROUP BY size_class_id, level, start HAVING count(*) > 1)
        RETURNING size_class_id, level, start)
    INSERT INTO sonar_dirtymark (size_class_id, level, start)
    SELECT DISTINCT size_class_id, level, start FROM merged
"""
COPY_SEGMENTS = """
    COPY sonar_segment (size_class_id, level, start, rows, {}) FROM STDIN (FORMAT BINARY)
""".format(", ".join(segments.DTYPES))
SEGMENT_TYPES = ["int8", "varchar", "timestamptz", "int4", *["bytea"] * len(segments.DTYPES)]


def seal(now: datetime, seconds: float = float("inf")) -> int:
    """Seal what is dirty and over, newest day first, for about so many seconds.

    Returns how many segments were written.
    """
    began = time.monotonic()
    merge_marks()
    written = 0
    for size_class_id, day in dirty_days(now):
        written += seal_day(size_class_id, day, now)
        if time.monotonic() - began > seconds:
            break
    return written


def dirty_days(now: datetime) -> list[ClassDay]:
    """Return where there is something to seal, newest first."""
    return _class_days(DIRTY_DAYS, {"now": now - GRACE})


def filled_days(start: datetime, end: datetime) -> list[ClassDay]:
    """Return where there are results or segments, newest first."""
    return _class_days(FILLED_DAYS, {"start": start, "end": end})


def _class_days(statement: str, values: dict[str, datetime]) -> list[ClassDay]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cast("list[ClassDay]", cursor.fetchall())


def merge_marks() -> None:
    """Put the marks of a bucket together in one."""
    with connection.cursor() as cursor:
        cursor.execute(MERGE_MARKS)


@transaction.atomic
def seal_day(size_class_id: int, day: datetime, now: datetime, *, everything: bool = False) -> int:
    """Rebuild the dirty hours of a day that are over, and the day itself if it is.

    ``everything`` rebuilds the clean hours too. Returns how many segments were written: none
    if another process is at this day.
    """
    # Keep others from this day: an older state must not win.
    if not lock_until_commit(size_class_id, day.toordinal(), wait=False):
        return 0
    # Marks before rows: whoever left a mark seen here has committed its rows. What is
    # committed in between is in the segment and leaves its mark: the next time does no harm.
    in_day = DirtyMark.objects.filter(size_class=size_class_id, start__gte=day, start__lt=day + DAY)
    marks = list(in_day.values_list("seq", "level", "start"))
    every_hour = [day + number * HOUR for number in range(24)]
    over = [hour for hour in every_hour if hour + HOUR + GRACE <= now]
    dirty = {start for _, level, start in marks if level == Level.HOUR}
    hours = [hour for hour in over if everything or hour in dirty]
    is_over = day + DAY + GRACE <= now
    written = _write(size_class_id, list(_rebuilt(size_class_id, day, hours, whole=is_over)))
    had_day_mark = any(level == Level.DAY for _, level, _ in marks)
    if hours and not is_over and not had_day_mark:
        DirtyMark.objects.create(size_class_id=size_class_id, level=Level.DAY, start=day)
    done = [
        seq for seq, level, start in marks if is_over or (level == Level.HOUR and start in hours)
    ]
    DirtyMark.objects.filter(seq__in=done).delete()
    return written


def _rebuilt(
    size_class_id: int, day: datetime, hours: list[datetime], *, whole: bool
) -> Iterator[tuple[Level, datetime, Columns]]:
    """Read the raw rows once and encode the hours, and the day if it is whole."""
    spans = [(day, day + DAY)] if whole else [(hour, hour + HOUR) for hour in hours]
    rows = segments.read_rows(size_class_id, spans)
    if whole:
        yield Level.DAY, day, segments.encode(rows, day)
    in_ms = [(unix_ms(hour), unix_ms(hour + HOUR)) for hour in hours]
    for hour, part in zip(hours, segments.split(rows, in_ms), strict=True):
        yield Level.HOUR, hour, segments.encode(part, hour)


def _write(size_class_id: int, rebuilt: list[tuple[Level, datetime, Columns]]) -> int:
    """Put these segments in the place of what was there; an empty bucket gets none."""
    for level in Level:
        starts = [start for its_level, start, _ in rebuilt if its_level == level]
        Segment.objects.filter(size_class=size_class_id, level=level, start__in=starts).delete()
    filled = [segment for segment in rebuilt if segment[2].keys.size]
    with pg_copy.copying(COPY_SEGMENTS) as copy:
        copy.set_types(SEGMENT_TYPES)
        for level, start, columns in filled:
            payloads = [memoryview(column.data).cast("B") for column in columns]
            copy.write_row((size_class_id, level.value, start, columns.keys.size, *payloads))
    return len(filled)
