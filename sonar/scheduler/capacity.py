"""How many more tests there is room for: caps, bytes of the day, Sonar's own limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

from sonar.models import Endpoint, Probe, SizeClass
from sonar.results.circuits import open_circuits
from sonar.scheduler.budget import bytes_of_today

Link = tuple[int, int]
LINK_IN = """
    (sonar_schedule.source_id << 16 | sonar_schedule.destination_id) = ANY(%s::bigint[])
"""


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

    def capped(self) -> Q:
        """Match the schedules with an end that is at its cap."""
        return Q(source__in=exhausted(self.outbound)) | Q(destination__in=exhausted(self.inbound))

    def is_busy(self) -> RawSQL:
        """Match the schedules whose link has a test already.

        Links are looked up by their hash, as one number: the ids of endpoints have 16 bits. A
        join with the probes would depend on statistics, which lag behind (see READ_AS_QUEUE).
        """
        links = [source << 16 | destination for source, destination in self.busy]
        return RawSQL(LINK_IN, [links], output_field=BooleanField())  # noqa: S611 - numbers

    def rests(self) -> Q:
        """Match the schedules with an end that is tested thinly, and not now."""
        return either_end(self.resting)

    def over_budget(self, classes: Iterable[SizeClass]) -> Q:
        """Match the schedules whose test is larger than what is left of an end's budget."""
        matched = Q(pk__in=[])
        for size_class in classes:
            needed = size_class.test_bytes
            short = [end for end, left in self.budget_bytes.items() if left < needed]
            matched |= Q(size_class=size_class) & either_end(short)
        return matched


def exhausted(left: Counter[int]) -> list[int]:
    return [endpoint for endpoint, count in left.items() if count <= 0]


def either_end(endpoints: Iterable[int]) -> Q:
    ids = list(endpoints)
    return Q(source__in=ids) | Q(destination__in=ids)


def _budgets_left(now: datetime) -> dict[int, int]:
    """Return what the results of today leave of the budgets, by endpoint that has one."""
    budgets = Endpoint.objects.filter(budget_bytes_per_day__isnull=False).order_by()
    left = dict(budgets.values_list("id", "budget_bytes_per_day"))
    used = bytes_of_today.by_endpoint(now) if left else {}
    return {end: (budget or 0) - used.get(end, 0) for end, budget in left.items()}
