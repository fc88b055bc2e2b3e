"""How full the matrix is: what `make run` shows while it fills, and now and then later."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from sonar.models import Probe, Schedule, Transfer
from sonar.notation.units import format_count
from sonar.notation.windows import format_time
from sonar.results import store

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
    """Count the scheduled links by size class, with the results of the last seven days.

    Costs one look into the index of each link, at its newest results; only a link without a
    success is looked at twice. Results that are made up do not count.
    """
    start = now - WINDOW
    newest = Transfer.objects.filter(
        source=OuterRef("source"),
        destination=OuterRef("destination"),
        size_class=OuterRef("size_class"),
        started_at__gte=max(start, store.until() or start),
    ).order_by("-started_at")
    done, failed = (
        Subquery(newest.filter(state=state).values("state")[:1]) for state in ("done", "failed")
    )
    counted: dict[str, Counter[str | None]] = {}
    for name, state in (
        Schedule.objects.annotate(state=Coalesce(done, failed))
        # Each link once, in however many meshes it is.
        .order_by("size_class__from_bytes", "source_id", "destination_id")
        .distinct("size_class__from_bytes", "source_id", "destination_id")
        .values_list("size_class__name", "state")
    ):
        counted.setdefault(name, Counter())[state] += 1
    return [
        Coverage(name, states.total(), states["done"], states["failed"])
        for name, states in counted.items()
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
        f"{Probe.objects.exclude(state=Probe.State.WAITING).count()} queued or running"
    )
