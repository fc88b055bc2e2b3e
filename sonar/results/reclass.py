"""Results whose class is no longer that of their bytes: found, counted, and moved hour by hour.

Who changes where a size class begins leaves results in the class that they came in with. Bytes
have no index: to find those that lie outside takes a look at each result, a second for a
million, so that `outside` looks back only as far as its time lets it, and says how far it came.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

from django.db import OperationalError, connection, transaction
from django.db.models import Max, Min
from psycopg.errors import QueryCanceled

from sonar.models import Probe, SizeClass, Transfer
from sonar.notation.units import format_count
from sonar.notation.windows import format_day

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
COMMAND = "manage.py reclass_results"
# Whoever changes a size class waits for it.
LONGEST_LOOK_SECONDS = 1.0

# Of each result that started in a span: its class, and the one that its bytes belong to.
CLASSES = """
    SELECT array_agg(id ORDER BY from_bytes) AS ids,
           array_agg(from_bytes ORDER BY from_bytes) AS bounds
    FROM sonar_sizeclass
"""
WRONG = f"""
    SELECT one.id, one.started_at, one.size_class_id AS old,
           ids[width_bucket(one.bytes, bounds)] AS new
    FROM sonar_transfer one, ({CLASSES}) AS classes
    WHERE one.started_at >= %(start)s AND one.started_at < %(end)s
      AND one.size_class_id <> ids[width_bucket(one.bytes, bounds)]
"""  # noqa: S608 - constants of this module
COUNT = f"""
    SELECT date_trunc('hour', started_at, 'UTC') AS hour, old, new, count(*)
    FROM ({WRONG}) AS wrong GROUP BY hour, old, new ORDER BY hour DESC
"""  # noqa: S608 - constants of this module
MOVE = f"""
    WITH wrong AS ({WRONG}), moved AS (
        UPDATE sonar_transfer kept SET size_class_id = wrong.new FROM wrong
        WHERE kept.id = wrong.id AND kept.started_at = wrong.started_at
          AND kept.started_at >= %(start)s AND kept.started_at < %(end)s
        RETURNING wrong.old, wrong.new)
    SELECT old, new, count(*) FROM moved GROUP BY old, new
"""  # noqa: S608 - constants of this module

# How many results go from one size class to another, by their ids.
Moves = Counter[tuple[int, int]]


@dataclass(frozen=True)
class Outside:
    """How many results lie outside the bounds of their class.

    Of all if ``is_complete``, else of those ``since`` a time: of none if that is None.
    """

    results: int
    since: datetime | None
    is_complete: bool


def days() -> list[datetime]:
    """Return the UTC days from the newest result to the oldest. One SQL query."""
    ends = Transfer.objects.aggregate(first=Min("started_at"), last=Max("started_at"))
    if ends["first"] is None:
        return []
    first, last = (ends[end].astimezone(UTC).date() for end in ("first", "last"))
    newest = datetime(last.year, last.month, last.day, tzinfo=UTC)
    return [newest - number * DAY for number in range((last - first).days + 1)]


def wrong_of_day(day: datetime) -> dict[datetime, Moves]:
    """Count what is to move in each hour of a day, newest first; only hours that have some."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT, {"start": day, "end": day + DAY})
        rows = cast("list[tuple[datetime, int, int, int]]", cursor.fetchall())
    by_hour: dict[datetime, Moves] = {}
    for hour, old, new, count in rows:
        by_hour.setdefault(hour, Counter())[old, new] += count
    return by_hour


def move_hour(hour: datetime) -> Moves:
    """Give the results of an hour the class of their bytes, in one statement of its own.

    Triggers mark the hour in both classes, so that both are sealed again.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(MOVE, {"start": hour, "end": hour + HOUR})
        return Counter({(old, new): count for old, new, count in cursor.fetchall()})


def move_day(day: datetime) -> Iterator[Moves]:
    """Move what is wrong in a day, an hour in each step."""
    for hour in wrong_of_day(day):
        yield move_hour(hour)


def probes_outside() -> int:
    """Count tests under way that will come in under a class that is not that of their bytes."""
    bounds = [(row.from_bytes, row.id) for row in SizeClass.objects.order_by("-from_bytes")]
    return sum(
        size_class_id != next(class_id for begins, class_id in bounds if begins <= size)
        for size, size_class_id in Probe.objects.values_list("bytes", "size_class_id")
    )


def outside(seconds: float = LONGEST_LOOK_SECONDS) -> Outside:
    """Count the results outside of their class, newest first, for about so many seconds."""
    until = time.monotonic() + seconds
    results, looked_since = 0, None
    for day in days():
        count = _count_until(day, until)
        if count is None:
            return Outside(results, looked_since, is_complete=False)
        results, looked_since = results + count, day
    return Outside(results, looked_since, is_complete=True)


def _count_until(day: datetime, until: float) -> int | None:
    """Count those of a day; None if there is no time for it."""
    left_ms = int(1000 * (until - time.monotonic()))
    if left_ms <= 0:
        return None
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('statement_timeout')")
            (before,) = cursor.fetchone() or ("0",)
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(left_ms)])
            count = sum(sum(moves.values()) for moves in wrong_of_day(day).values())
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [before])
            return count
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            return None
        raise


def notice(outside: Outside) -> str:
    """Say in sentences what changed bounds mean for the results there are; empty if nothing."""
    if outside.is_complete and not outside.results:
        return ""
    return (
        f"{_lie(outside)}. {COMMAND} moves these results to the right class (--dry-run only counts "
        "the results)."
    )


def _lie(outside: Outside) -> str:
    if outside.since is None:
        return (
            "Results may be outside the bounds of their size class; they could not be checked in "
            "time"
        )
    lie = (
        "1 result is outside the bounds of its size class but stays in that class"
        if outside.results == 1
        else f"{format_count(outside.results)} results are outside the bounds of their size class "
        "but stay in that class"
    )
    if outside.is_complete:
        return lie
    since = format_day(outside.since)
    return f"{lie}, counted from {since}: older results could not be checked in time"
