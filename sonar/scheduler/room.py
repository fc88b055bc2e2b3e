"""How many more tests there is room for: caps, bytes of the day, Sonar's own limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Q

from sonar.models import Endpoint, Probe, SizeClass
from sonar.scheduler.spent import spent


@dataclass
class Room:
    """How many more tests each endpoint, and Sonar itself, bears at this moment."""

    in_flight: int
    outbound: Counter[int]
    inbound: Counter[int]
    budget_bytes: dict[int, int]
    open_schedules: list[int]
    """The schedules whose last test has not ended."""

    @classmethod
    def left(cls, now: datetime) -> Room:
        """Count what is queued and running against the caps, and today's bytes."""
        ends = Endpoint.objects.values_list("id", "outbound_cap", "inbound_cap").order_by()
        outbound = Counter({end: cap for end, cap, _ in ends})
        inbound = Counter({end: cap for end, _, cap in ends})
        probes = Probe.objects.values_list("source_id", "destination_id", "bytes", "schedule_id")
        budgets = _budgets_left(now)
        for source, destination, size, _ in probes:
            outbound[source] -= 1
            inbound[destination] -= 1
            for end in budgets.keys() & {source, destination}:
                budgets[end] -= size
        in_flight = settings.SONAR_IN_FLIGHT - len(probes)
        tested = [schedule for *_, schedule in probes if schedule]
        return cls(in_flight, outbound, inbound, budgets, tested)

    def take(self, source: int, destination: int, size: int) -> bool:
        """Reserve room for one test, if there is room for it everywhere."""
        free = self.in_flight > 0 and self.outbound[source] > 0 and self.inbound[destination] > 0
        budgets = [end for end in (source, destination) if end in self.budget_bytes]
        if not free or any(self.budget_bytes[end] < size for end in budgets):
            return False
        self.in_flight -= 1
        self.outbound[source] -= 1
        self.inbound[destination] -= 1
        for end in budgets:
            self.budget_bytes[end] -= size
        return True

    def capped(self) -> Q:
        """Match the schedules with an end that is at its cap."""
        return Q(source__in=_exhausted(self.outbound)) | Q(destination__in=_exhausted(self.inbound))

    def over_budget(self, classes: Iterable[SizeClass]) -> Q:
        """Match the schedules whose test is larger than what is left of an end's budget."""
        matched = Q(pk__in=[])
        for one in classes:
            spent = [end for end, left in self.budget_bytes.items() if left < one.test_bytes]
            matched |= Q(size_class=one) & either_end(spent)
        return matched


def _exhausted(left: Counter[int]) -> list[int]:
    return [endpoint for endpoint, count in left.items() if count <= 0]


def either_end(endpoints: Iterable[int]) -> Q:
    ids = list(endpoints)
    return Q(source__in=ids) | Q(destination__in=ids)


def _budgets_left(now: datetime) -> dict[int, int]:
    """Return what the results of today leave of the budgets, by endpoint that has one."""
    budgets = Endpoint.objects.filter(budget_bytes_per_day__isnull=False).order_by()
    left = dict(budgets.values_list("id", "budget_bytes_per_day"))
    used = spent.today(now) if left else {}
    return {end: (budget or 0) - used.get(end, 0) for end, budget in left.items()}
