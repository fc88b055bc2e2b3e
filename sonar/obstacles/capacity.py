"""How many more tests there is room for: caps, bytes of the day, Sonar's own limit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings

from sonar.models import Endpoint, Probe
from sonar.obstacles.budget import bytes_of_today
from sonar.results.circuits import open_circuits

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
    def left(cls, now: datetime) -> Capacity:
        """Count what is queued and running against the caps, and today's bytes.

        The bytes of tests that wait are taken: who ordered them was told that they will run.
        """
        ends = Endpoint.objects.values_list("id", "outbound_cap", "inbound_cap").order_by()
        outbound = Counter({end: cap for end, cap, _ in ends})
        inbound = Counter({end: cap for end, _, cap in ends})
        capacity = cls(settings.SONAR_IN_FLIGHT, outbound, inbound, _budgets_left(now), set())
        probes = Probe.objects.values_list("source_id", "destination_id", "bytes", "state")
        for source, destination, size, state in probes:
            capacity._spend(source, destination, size)
            if state == Probe.State.WAITING:
                capacity.waiting += 1
            else:
                capacity.start(source, destination)
        capacity._look_at_circuits(now)
        return capacity

    def _look_at_circuits(self, now: datetime) -> None:
        """Find who is tested thinly. One SQL query."""
        tested = {end for link in self.busy for end in link}
        for end, next_test_at in open_circuits().values_list("endpoint_id", "next_test_at"):
            rests = end in tested or (next_test_at is not None and next_test_at > now)
            (self.resting if rests else self.thin).add(end)

    def take(self, source: int, destination: int, size: int) -> bool:
        """Reserve room for one test, if there is room for it everywhere."""
        ends = {source, destination}
        free = self.in_flight > 0 and self.outbound[source] > 0 and self.inbound[destination] > 0
        held = (source, destination) in self.busy or ends & self.resting
        budgets = self.budget_bytes.keys() & ends
        if not free or held or any(self.budget_bytes[end] < size for end in budgets):
            return False
        self._spend(source, destination, size)
        self.start(source, destination)
        self.resting |= self.thin & ends
        self.thin -= ends
        return True

    def start(self, source: int, destination: int) -> None:
        """Count a test that is queued or running now."""
        self.in_flight -= 1
        self.outbound[source] -= 1
        self.inbound[destination] -= 1
        self.busy.add((source, destination))

    def _spend(self, source: int, destination: int, size: int) -> None:
        for end in self.budget_bytes.keys() & {source, destination}:
            self.budget_bytes[end] -= size


def exhausted(left: Counter[int]) -> list[int]:
    return [endpoint for endpoint, count in left.items() if count <= 0]


def _budgets_left(now: datetime) -> dict[int, int]:
    """Return what the results of today leave of the budgets, by endpoint that has one."""
    budgets = Endpoint.objects.filter(budget_bytes_per_day__isnull=False).order_by()
    left = dict(budgets.values_list("id", "budget_bytes_per_day"))
    used = bytes_of_today.by_endpoint(now) if left else {}
    return {end: (budget or 0) - used.get(end, 0) for end, budget in left.items()}
