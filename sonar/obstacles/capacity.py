"""How many more tests there is room for: caps, bytes of the day, Sonar's own limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import connection

from sonar.database.cursors import planned_rows
from sonar.models import Probe
from sonar.results.circuits import open_circuits
from sonar.results.store import REAL_TESTS

HOUR = timedelta(hours=1)

# Every change of an hour leaves a mark with a higher number, and sealing it a new segment. Tests
# of the network leave neither: they are few, and their ids are a version.
VERSIONS = """
    SELECT start, max(seq), array_agg(segment ORDER BY segment)
    FROM (SELECT start, seq, NULL::bigint AS segment FROM sonar_dirtymark
          WHERE start >= %(midnight)s
          UNION ALL
          SELECT start, NULL, id FROM sonar_segment
          WHERE level = 'hour' AND start >= %(midnight)s
          UNION ALL
          SELECT date_trunc('hour', started_at, 'UTC'), NULL,
                 hashtextextended(string_agg(id::text, '' ORDER BY id), 0)
          FROM sonar_networkresult
          WHERE started_at >= %(midnight)s GROUP BY 1) AS parts
    GROUP BY start
"""
USED = f"""
    SELECT one.id, sum(bytes)::bigint
    FROM (SELECT source_id, destination_id, bytes FROM sonar_transfer
          WHERE started_at >= %(start)s AND started_at < %(end)s
            AND profile_id IN (SELECT id FROM sonar_profile WHERE {REAL_TESTS})
          UNION ALL
          SELECT source_id, destination_id, greatest(bytes, sent_bytes)
          FROM sonar_networkresult
          WHERE started_at >= %(start)s AND started_at < %(end)s) AS tests
    CROSS JOIN LATERAL (VALUES (source_id), (destination_id)) AS one (id)
    GROUP BY one.id
"""  # noqa: S608 - constants
CAPS = "SELECT id, outbound_cap, inbound_cap, budget_bytes_per_day FROM sonar_endpoint"
UNDER_WAY = "SELECT source_id, destination_id, bytes, state FROM sonar_probe"
Version = tuple[object, ...]


class Caps(NamedTuple):
    """What an endpoint, by its id, bears at once, and in a day; None: any number of bytes."""

    end: int
    outbound_cap: int
    inbound_cap: int
    budget: int | None


class BytesOfToday:
    """What the hours of one day came to when they were last read, and their versions then.

    Read anew is the hour that goes on, and one that a late result, an edit or a deletion has
    changed: with half a million results of a day that is some 20 ms instead of 300.
    """

    def __init__(self) -> None:
        self._hours: dict[datetime, tuple[Version, Counter[int]]] = {}

    def by_endpoint(self, now: datetime) -> Counter[int]:
        """Return the bytes that each endpoint has sent and received in tests since midnight."""
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        hours: dict[datetime, tuple[Version, Counter[int]]] = {}
        with connection.cursor() as cursor:
            cursor.execute(VERSIONS, {"midnight": midnight})
            versions: dict[datetime, Version] = {start: tuple(v) for start, *v in cursor.fetchall()}
            for start in (midnight + number * HOUR for number in range(24)):
                version, hour = versions.get(start, ()), self._hours.get(start)
                if hour is None or hour[0] != version:
                    cursor.execute(USED, {"start": start, "end": start + HOUR})
                    hour = (version, Counter(dict(cursor.fetchall())))
                hours[start] = hour
        self._hours = hours
        total: Counter[int] = Counter()
        for _, used in hours.values():
            total.update(used)
        return total


bytes_of_today = BytesOfToday()


Link = tuple[int, int]


@dataclass
class Capacity:
    """How many more tests each endpoint, each link and Sonar itself bear at this moment."""

    in_flight: int
    outbound: Counter[int]
    inbound: Counter[int]
    budget_bytes: dict[int, int]
    busy: set[Link]
    """The links, source and destination, whose last test has not ended."""
    waiting: int = 0
    """How many tests wait that people ordered."""
    thin: set[int] = field(default_factory=set)
    """The endpoints with an open circuit that are to have one test now."""
    resting: set[int] = field(default_factory=set)
    """The endpoints with an open circuit that are to have none now."""

    @classmethod
    def left(cls, now: datetime, caps: Sequence[Caps] | None = None) -> Capacity:
        """Count what is queued and running against the caps, and today's bytes.

        The bytes of tests that wait are taken: who ordered them was told that they will run.
        ``caps`` are those of all endpoints, if they are read already.
        """
        caps = read_caps() if caps is None else caps
        outbound = Counter({each.end: each.outbound_cap for each in caps})
        inbound = Counter({each.end: each.inbound_cap for each in caps})
        budgets = {each.end: each.budget for each in caps if each.budget is not None}
        used = bytes_of_today.by_endpoint(now) if budgets else Counter[int]()
        budgets = {end: budget - used[end] for end, budget in budgets.items()}
        capacity = cls(settings.SONAR_IN_FLIGHT, outbound, inbound, budgets, set())
        for source, destination, size, state in planned_rows(UNDER_WAY):
            capacity._spend(source, destination, size)
            if state == Probe.State.WAITING:
                capacity.waiting += 1
            else:
                capacity.start(source, destination)
        tested = {end for link in capacity.busy for end in link}
        for end, next_test_at in open_circuits().values_list("endpoint_id", "next_test_at"):
            rests = end in tested or (next_test_at is not None and next_test_at > now)
            (capacity.resting if rests else capacity.thin).add(end)
        return capacity

    def take(self, source: int, destination: int, size: int) -> bool:
        """Reserve room for one test, if there is room for it everywhere."""
        link = source, destination
        full = self.in_flight <= 0 or self.outbound[source] <= 0 or self.inbound[destination] <= 0
        if full or link in self.busy or not self.resting.isdisjoint(link):
            return False
        budgets = self.budget_bytes
        if budgets and any(budgets.get(end, size) < size for end in link):
            return False
        self._spend(source, destination, size)
        self.start(source, destination)
        if self.thin:
            self.resting |= self.thin.intersection(link)
            self.thin.difference_update(link)
        return True

    def start(self, source: int, destination: int) -> None:
        self.in_flight -= 1
        self.outbound[source] -= 1
        self.inbound[destination] -= 1
        self.busy.add((source, destination))

    def _spend(self, source: int, destination: int, size: int) -> None:
        for end in {source, destination} if self.budget_bytes else ():
            if end in self.budget_bytes:
                self.budget_bytes[end] -= size


def exhausted(left: Counter[int]) -> list[int]:
    return [endpoint for endpoint, count in left.items() if count <= 0]


def read_caps() -> list[Caps]:
    """Read the caps and the budgets of all endpoints. One SQL query."""
    return [Caps(*row) for row in planned_rows(CAPS)]
