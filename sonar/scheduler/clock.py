"""A clock that was ahead for a while has left moments far in the future: they are put right."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.db.models import F, Value

from sonar.models import Circuit, Leftover, Probe, Schedule
from sonar.processes.heartbeats import CLOCK_SKEW as SKEW

log = logging.getLogger(__name__)

# The last tick, and what is due last of all by the far end of its index: cheap in every tick.
# Rows that are due too late but not last of all are found only by the tick that has gone back.
LOOK = """
    WITH last AS (SELECT value FROM sonar_version WHERE name = 'tick')
    INSERT INTO sonar_version (name, value) VALUES ('tick', %(now)s)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
    RETURNING (SELECT value FROM last), (SELECT max(next_due) FROM sonar_schedule),
              (SELECT max(every_seconds) FROM sonar_meshinterval)
"""
# Reads the whole schedule: seconds at three million rows, once after such a day.
DUE_NOW = """
    UPDATE sonar_schedule SET next_due = %(now)s
    WHERE next_due > %(latest)s + every_seconds * interval '1 second'
"""


def put_right(now: datetime) -> None:
    """Let what is due later than one interval from now be due now, if the clock was ahead.

    Under the planner's lock, after the schedule has followed the registry.
    """
    with connection.cursor() as cursor:
        cursor.execute(LOOK, {"now": int(now.timestamp())})
        last, latest_due, longest = cursor.fetchone()
        went_back = last is not None and now + SKEW < datetime.fromtimestamp(last, UTC)
        too_late = latest_due and latest_due > now + timedelta(seconds=longest or 0) + SKEW
        if not went_back and not too_late:
            return
        cursor.execute(DUE_NOW, {"now": now, "latest": now + SKEW})
        log.warning("the clock was ahead: %d tests are due now instead of later", cursor.rowcount)
    _put_right_the_rest(now)


def _put_right_the_rest(now: datetime) -> None:
    """Bring back what else waits for a moment; few rows, and to try earlier once is no harm."""
    Schedule.objects.filter(skipped_since__gt=now).update(skipped_since=now)
    Circuit.objects.filter(next_test_at__gt=now).update(next_test_at=now)
    Leftover.objects.filter(next_try__gt=now).update(next_try=now)
    Probe.objects.filter(requested_at__gt=now).update(requested_at=now)
    Probe.objects.filter(sent_at__gt=now).update(sent_at=now)
    # started_at stays: it tells the worker that its run is still the one that counts.
    Probe.objects.filter(started_at__gt=now + SKEW).update(
        deadline=Value(now) + (F("deadline") - F("started_at"))
    )
