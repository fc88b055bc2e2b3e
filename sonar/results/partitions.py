"""The monthly partitions of results: made before they are needed, dropped when too old."""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from django.db import OperationalError, connection, transaction
from psycopg import sql

from sonar.models import DirtyMark, Segment

log = logging.getLogger(__name__)

MADE_AHEAD = timedelta(days=45)
# Dropping waits for every reader of the table and lets no new one in meanwhile.
LONGEST_WAIT_SECONDS = 5
EXISTING = """
    SELECT child.relname FROM pg_inherits
    JOIN pg_class child ON child.oid = inhrelid
    WHERE inhparent = 'sonar_transfer'::regclass ORDER BY child.relname
"""


def ensure(moments: Iterable[datetime]) -> None:
    """Make the partitions of these moments where they are missing."""
    months = {(utc.year, utc.month) for utc in (moment.astimezone(UTC) for moment in moments)}
    starts = [datetime(*month, 1, tzinfo=UTC) for month in sorted(months)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT sonar_make_month(unnest(%s::timestamptz[]))", [starts])


def make_ahead(now: datetime) -> None:
    ensure([now, now + MADE_AHEAD])


def drop_expired(now: datetime, keep_days: int) -> list[str]:
    """Drop the months that ended more than so many days ago, with their segments and marks.

    Returns the names of the partitions. One that is being read for long is left for the
    next time.
    """
    oldest = now - timedelta(days=keep_days)
    return [name for name in existing() if _end(name) <= oldest and _drop(name)]


def existing() -> list[str]:
    """Return the names of the partitions, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(EXISTING)
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
            "%s is too old but could not be dropped; next try at the next sweep: %s", name, error
        )
        return False
    log.info("%s is older than SONAR_KEEP_DAYS: dropped with its segments", name)
    return True
