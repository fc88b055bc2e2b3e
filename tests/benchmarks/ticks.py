"""Goal 9: one planning tick over three million scheduled rows, of which 2,000 are due.

The same number is due in each.
"""

import gc
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.models import Count, Min

from sonar import scheduler
from sonar.models import Endpoint, MeshInterval, Probe, Schedule
from tests.benchmarks import registry
from tests.benchmarks.measured import Goal, Spread, one_time
from tests.benchmarks.scale import END, SCALES

LIMIT_MS = 60
TEXT = "one planning tick, all that is due gets a probe"
ENDPOINTS = {"small": 20}
DUE = {"small": 50}
NO_CAP = 1_000
TICK = timedelta(minutes=1)
WARM_UP = 3
# The due times are spread evenly, and rows that are due together lie anywhere in the table:
# the prime steps through all of them.
PRIME = 1_000_003
SPREAD = """
    UPDATE sonar_schedule SET every_seconds = %(every)s, next_due = %(start)s +
        interval '1 minute' * ((id - %(first)s) * %(prime)s %% %(rows)s / %(due)s + 1)
"""
# Nothing is due later than an interval from now: the planner would take a clock to be wrong.
EVERY, NOT_SOON = timedelta(days=30), timedelta(days=29)


def measure(scale: str, _home: Path) -> list[Goal]:
    due = DUE.get(scale, 2_000)
    rows = schedule(ENDPOINTS.get(scale, 1_000), due)
    rounds = SCALES[scale].rounds
    gc.freeze()  # as workers do
    ticks = iter(range(1, 3 * (WARM_UP + rounds)))
    all_run = milliseconds(ticks, rounds, in_flight=2 * due, expected=due)
    some_run = milliseconds(ticks, rounds, in_flight=due // 4, expected=due // 4)
    note = (
        f"{due:,} of {rows:,} due; {some_run.median:.0f} ms where {due // 4} may run and the "
        f"others get their reason; the fastest tick took {all_run.minimum:.0f} ms"
    )
    return [Goal.from_spread(9, TEXT, LIMIT_MS, all_run, "ms", at_least=False, note=note)]


def schedule(endpoints: int, due: int) -> int:
    """Schedule every link in every class so that as many as ``due`` are due each minute."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no look at each reference
        registry.register(endpoints)
        cursor.execute("SET session_replication_role = origin")
        Endpoint.objects.update(inbound_cap=NO_CAP, outbound_cap=NO_CAP)
        counted = Schedule.objects.aggregate(rows=Count("id"), first=Min("id"))
        every = int(EVERY.total_seconds())
        MeshInterval.objects.update(every_seconds=every)
        figures = counted | {"start": END, "due": due, "every": every}
        cursor.execute(SPREAD, figures | {"prime": PRIME})
        cursor.execute("VACUUM ANALYZE")
    scheduler.follow_registry(END)
    return int(counted["rows"])


def milliseconds(ticks: Iterator[int], rounds: int, in_flight: int, expected: int) -> Spread:
    """Time ticks one after the other, each with its commit; they claim different rows."""
    settings.SONAR_IN_FLIGHT = in_flight
    times = [tick(next(ticks), expected) for _ in range(WARM_UP + rounds)]
    return Spread.of(times[WARM_UP:])


def tick(number: int, expected: int) -> float:
    """Plan once, in milliseconds; then forget the probes and what had to wait."""
    now = END + number * TICK
    seconds = one_time(lambda: scheduler.claim_due(now))
    if (claimed := Probe.objects.count()) != expected:
        raise RuntimeError(f"{claimed} probes were queued, not {expected}")
    Probe.objects.all().delete()
    left = Schedule.objects.filter(next_due__lte=now)
    left.update(next_due=now + NOT_SOON, skipped_because="", skipped_since=None)
    return 1000 * seconds
