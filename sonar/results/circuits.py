"""Circuits: an end by which tests keep failing is tested thinly until a test succeeds there.

A row of Circuit counts the failures in a row of one endpoint. From SONAR_CIRCUIT_FAILURES on its
circuit is open, and the planner takes one test there now and then.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from sonar.database.cursors import planned_cursor
from sonar.models import Circuit, Probe, Transfer

# In one order, so that two tests that end between the same two do not wait for each other.
CLOSE = """
    DELETE FROM sonar_circuit WHERE id IN (
        SELECT id FROM sonar_circuit WHERE endpoint_id IN (%s, %s)
        ORDER BY endpoint_id FOR UPDATE)
"""
COUNT = """
    INSERT INTO sonar_circuit AS circuit (endpoint_id, failures, since, last_at, error)
    VALUES (%(endpoint)s, 1, %(since)s, %(now)s, %(error)s)
    ON CONFLICT (endpoint_id) DO UPDATE SET
        failures = circuit.failures + 1, last_at = excluded.last_at, error = excluded.error
"""


def note(probe: Probe, state: str, facts: Mapping[str, Any]) -> None:
    """Count a test that has ended by its ends: one statement, in the transaction of its result.

    A failure counts for the end where it happened, and a success closes the circuits of both.
    What happened between them, what Sonar did itself and what is lost says nothing of an end.
    ``facts`` has error_where and, as all may read it, error.
    """
    where = facts.get("error_where")
    ends = {"source": probe.source_id, "destination": probe.destination_id}
    if state == Transfer.State.DONE:
        _execute(CLOSE, list(ends.values()))
    elif state == Transfer.State.FAILED and where in ends:
        now = timezone.now()
        moments = {"since": probe.started_at or now, "now": now}
        _execute(COUNT, moments | {"endpoint": ends[where], "error": facts["error"]})


def _execute(statement: str, values: Any) -> None:  # noqa: ANN401 - as cursors take them
    with planned_cursor() as cursor:
        cursor.execute(statement, values)


def open_circuits() -> QuerySet[Circuit]:
    """Return those of endpoints in use whose tests are spread thin, the oldest first."""
    failures = settings.SONAR_CIRCUIT_FAILURES
    return Circuit.objects.filter(failures__gte=failures, endpoint__retired_at=None)


def rest(endpoints: Iterable[int], interval: timedelta, now: datetime) -> None:
    """Let these endpoints, of which a test is queued now, rest for an interval after it."""
    # Locked in the order of CLOSE.
    circuits = Circuit.objects.filter(endpoint__in=list(endpoints)).order_by("endpoint_id")
    locked = circuits.select_for_update().values_list("id", flat=True)
    Circuit.objects.filter(id__in=list(locked)).update(next_test_at=now + interval)
