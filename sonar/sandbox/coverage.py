"""How full the matrix is: what `make run` shows while it fills, and now and then later."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Exists, OuterRef, Q

from sonar.models import Probe, Schedule, Transfer
from sonar.units import format_count
from sonar.windows import format_time

WINDOW = timedelta(days=7)


@dataclass(frozen=True)
class Coverage:
    """Links of one size class: how many are scheduled, measured, and only ever failed."""

    size_class: str
    links: int
    measured: int
    failed: int

    @property
    def is_full(self) -> bool:
        return self.measured + self.failed >= self.links


def of_each_class(now: datetime) -> list[Coverage]:
    """Count the scheduled links by size class, with the results of the last seven days."""
    results = Transfer.objects.filter(
        source=OuterRef("source"),
        destination=OuterRef("destination"),
        size_class=OuterRef("size_class"),
        started_at__gte=now - WINDOW,
    )
    done, failed = (Exists(results.filter(state=state)) for state in ("done", "failed"))
    return [
        Coverage(name, links, measured, only_failed)
        for name, links, measured, only_failed in Schedule.objects.values_list("size_class__name")
        .order_by("size_class__from_bytes")
        .annotate(
            links=Count("id"),
            measured=Count("id", filter=Q(done)),
            only_failed=Count("id", filter=Q(failed) & ~Q(done)),
        )
    ]


def in_one_line(now: datetime, since: datetime) -> str:
    """Say calmly what has happened since a moment."""
    recent = Transfer.objects.filter(started_at__gte=since)
    counts = recent.aggregate(
        done=Count("id", Q(state="done")), failed=Count("id", Q(state="failed"))
    )
    return (
        f"{format_time(now)}  since {format_time(since)}: "
        f"{format_count(counts['done'])} transfers measured, "
        f"{format_count(counts['failed'])} failed; "
        f"{Probe.objects.count()} queued or running"
    )
