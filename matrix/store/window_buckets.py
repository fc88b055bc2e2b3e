"""What stands in the database for a window: marks and segments, read with one SQL statement."""

from datetime import datetime
from typing import NamedTuple, Self

from matrix.store import read_plan
from matrix.store.read_plan import DAY_MS, HOUR_MS, Dirty, Span, hour_of, moment
from matrix.store.segment_columns import HOURS, RawHour
from sonar.database.cursors import planned_cursor

# Profiles that query.filters.counted leaves out where no filter names them.
NOT_COUNTED = "SELECT id FROM sonar_profile WHERE purpose = 'sweep' OR origin <> 'test'"
MS = "(extract(epoch FROM start) * 1000)::bigint"
# Of the segments of hours, which are many, those that a plan may ask for: of the days at the edges
# of which it wants little, and of the days with a mark. No bound of these is plain to PostgreSQL:
# so it plans once for each connection, not for each window, which takes longer than to run it.
STATEMENT = f"""
    WITH class AS MATERIALIZED (SELECT id FROM sonar_sizeclass WHERE name = %(size)s),
    marks AS MATERIALIZED (
        SELECT level, start, count(*) AS count, max(seq) AS newest, sum(seq)::bigint AS sum
        FROM sonar_dirtymark
        WHERE size_class_id = (SELECT id FROM class) AND start >= %(first)s AND start < %(past)s
        GROUP BY level, start),
    days AS (
        SELECT date_trunc('day', start, 'UTC') AS day FROM marks
        UNION VALUES (%(short_first)s::timestamptz), (%(short_last)s::timestamptz)),
    hours AS (
        SELECT id, segment.start FROM days JOIN sonar_segment AS segment
            ON segment.start >= greatest(day, %(hour)s)
            AND segment.start < least(day + interval '1 day', %(end)s)
        WHERE size_class_id = (SELECT id FROM class) AND level = 'hour')
    SELECT id,
        ARRAY(SELECT {MS} FROM marks WHERE level = 'day'),
        ARRAY(SELECT ARRAY[{MS}, count, newest, sum] FROM marks WHERE level = 'hour'),
        ARRAY(SELECT ARRAY[id, {MS}] FROM sonar_segment
              WHERE size_class_id = class.id AND level = 'day'
                  AND start >= %(first)s AND start < %(past)s),
        ARRAY(SELECT ARRAY[id, {MS}] FROM hours),
        ARRAY({NOT_COUNTED})
    FROM class
"""  # noqa: S608 - constants


class WindowBuckets(NamedTuple):
    """Days and hours of a size class around a window. Starts in Unix ms.

    ``marks`` are those of dirty hours, counted; ``days`` and ``hours`` have the id and the start of
    each segment; ``not_counted`` are the ids of the profiles whose results no answer has unless it
    is asked for them (query.filters.counted), of whatever window: sweeps, and all but tests.
    """

    size_class: int
    dirty: Dirty
    marks: dict[int, tuple[int, int, int]]
    days: list[tuple[int, int]]
    hours: list[tuple[int, int]]
    not_counted: list[int]

    @classmethod
    def read(cls, size: str, window: Span) -> Self:
        """Read what stands there now; raise ValueError for an unknown size class."""
        days, short = read_plan.days_of(window), read_plan.short_edges(window)
        last = days.end - DAY_MS
        parameters: dict[str, str | datetime] = {
            "size": size,
            "first": moment(days.start),
            "past": moment(days.end),
            "hour": moment(read_plan.floor(window.start, HOUR_MS)),
            "end": moment(window.end),
            "short_first": moment(days.start if days.start in short else 0),
            "short_last": moment(last if last in short else 0),
        }
        with planned_cursor() as cursor:
            cursor.execute(STATEMENT, parameters)
            row = cursor.fetchone()
        if row is None:
            raise ValueError(f"there is no size class {size!r}")
        size_class, dirty_days, dirty_hours, *others = row
        marks = {start: (number, newest, total) for start, number, newest, total in dirty_hours}
        return cls(size_class, Dirty(frozenset(dirty_days), frozenset(marks)), marks, *others)

    def segments(self, plan: read_plan.ReadPlan) -> list[tuple[int, Span]]:
        """Return the id of each segment that a plan reads, and from when until when it is.

        Of dirty hours it is the number of what this process makes of them.
        """
        days, hours = range(*plan.days), frozenset(plan.hours)
        return [
            *(
                (HOURS.number(RawHour(self.size_class, start, self.marks[start])), hour_of(start))
                for span in plan.raw
                for start in range(read_plan.floor(span.start, HOUR_MS), span.end, HOUR_MS)
            ),
            *(
                (segment, Span(start, start + DAY_MS))
                for segment, start in self.days
                if start in days and start not in plan.split
            ),
            *((segment, hour_of(start)) for segment, start in self.hours if start in hours),
        ]
