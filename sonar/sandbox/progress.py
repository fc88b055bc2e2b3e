"""What `make run` shows: bars until the matrix is full, then a calm line now and then."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from django.db import connection
from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from sonar.database.retry import DATABASE_AWAY
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
    start, made_up_until = now - WINDOW, store.until()
    newest = Transfer.objects.filter(
        source=OuterRef("source"),
        destination=OuterRef("destination"),
        size_class=OuterRef("size_class"),
        started_at__gte=max(start, made_up_until or start),
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
    # What is made up may have been stored between the two queries.
    if store.until() != made_up_until:
        return of_each_class(now)
    return [
        Coverage(name, states.total(), states["done"], states["failed"])
        for name, states in counted.items()
    ]


def in_one_line(now: datetime, since: datetime) -> str:
    recent = Transfer.objects.filter(started_at__gte=since)
    counts = recent.aggregate(
        done=Count("id", Q(state="done")), failed=Count("id", Q(state="failed"))
    )
    return (
        f"{format_time(now)}  since {format_time(since)}: "
        f"{format_count(counts['done'])} tests succeeded, "
        f"{format_count(counts['failed'])} failed; "
        f"{Probe.objects.exclude(state=Probe.State.WAITING).count()} queued or running"
    )


LOOK_EVERY_SECONDS = 2.0
# Without a terminal the bars become lines, in a log file say.
LINE_WHILE_FILLING = timedelta(seconds=10)
LINE_LATER = timedelta(minutes=10)
AWAY = "The database is not responding. The progress is unknown until it responds."

T = TypeVar("T")


def watch(check: Callable[[], None], console: Console) -> None:
    """Show how the matrix fills and then what goes on, until ``check`` or a signal ends it."""
    (show_bars if console.is_terminal else show_lines)(check, console)
    console.print("The matrix is full: every scheduled link has a result in every size class.")
    since = timezone.now()
    while True:
        check()
        time.sleep(LOOK_EVERY_SECONDS)
        if timezone.now() - since >= LINE_LATER:
            console.print(answer(partial(in_one_line, timezone.now(), since)) or AWAY)
            since = timezone.now()


def look(check: Callable[[], None], console: Console) -> list[Coverage] | None:
    """Count how full the matrix is; None, and a line, while the database does not answer."""
    check()
    classes = answer(partial(of_each_class, timezone.now()))
    if classes is None:
        console.print(AWAY)
    return classes


def answer(question: Callable[[], T]) -> T | None:
    """Return what the database says, or None: if it was our own that ended, `check` says so."""
    try:
        return question()
    except DATABASE_AWAY:
        connection.close()
        return None


def in_words(class_coverage: Coverage) -> str:
    failed = f", {class_coverage.failed} failed" if class_coverage.failed else ""
    measured = f"{class_coverage.measured} of {class_coverage.links} links measured"
    return f"{class_coverage.size_class}: {measured}{failed}"


def is_full(classes: list[Coverage] | None) -> bool:
    """Tell whether every scheduled link has a result; nothing scheduled is not full."""
    return bool(classes) and all(each.is_full for each in classes or ())


def show_bars(check: Callable[[], None], console: Console) -> None:
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=False) as bars:
        tasks: dict[str, TaskID] = {}
        while True:
            classes = look(check, console)
            for class_coverage in classes or ():
                if class_coverage.size_class not in tasks:
                    tasks[class_coverage.size_class] = bars.add_task("")
                bars.update(
                    tasks[class_coverage.size_class],
                    total=class_coverage.links,
                    completed=class_coverage.measured + class_coverage.failed,
                    description=in_words(class_coverage),
                )
            if is_full(classes):
                return
            time.sleep(LOOK_EVERY_SECONDS)


def show_lines(check: Callable[[], None], console: Console) -> None:
    """Print a line now and then until all size classes are full."""
    printed = timezone.now() - LINE_WHILE_FILLING
    while True:
        classes = look(check, console)
        full = is_full(classes)
        if classes is not None and (full or timezone.now() - printed >= LINE_WHILE_FILLING):
            console.print(
                "; ".join(in_words(class_coverage) for class_coverage in classes)
                or "no tests are scheduled yet"
            )
            printed = timezone.now()
        if full:
            return
        time.sleep(LOOK_EVERY_SECONDS)
