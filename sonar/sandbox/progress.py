"""What `make run` shows: bars until the matrix is full, then a calm line now and then."""

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TypeVar

from django.db import connection
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from sonar.database.retry import DATABASE_AWAY
from sonar.sandbox import coverage
from sonar.sandbox.coverage import Coverage

LOOK_EVERY_SECONDS = 2.0
# Without a terminal the bars become lines, in a log file say.
LINE_WHILE_FILLING = timedelta(seconds=10)
LINE_LATER = timedelta(minutes=10)
AWAY = "The database does not answer: what happens now is not known until it does."

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
            console.print(answer(partial(coverage.in_one_line, timezone.now(), since)) or AWAY)
            since = timezone.now()


def look(check: Callable[[], None], console: Console) -> list[Coverage] | None:
    """Count how full the matrix is; None, and a line, while the database does not answer."""
    check()
    classes = answer(partial(coverage.of_each_class, timezone.now()))
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
    if not classes:
        return False
    return all(class_coverage.is_full for class_coverage in classes)


def show_bars(check: Callable[[], None], console: Console) -> None:
    """Draw one bar for each size class until all are full."""
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=False) as bars:
        tasks: dict[str, TaskID] = {}
        while not is_full(classes := look(check, console)):
            _update(bars, tasks, classes)
            time.sleep(LOOK_EVERY_SECONDS)
        _update(bars, tasks, classes)


def _update(bars: Progress, tasks: dict[str, TaskID], classes: list[Coverage] | None) -> None:
    for class_coverage in classes or ():
        if class_coverage.size_class not in tasks:
            tasks[class_coverage.size_class] = bars.add_task("")
        bars.update(
            tasks[class_coverage.size_class],
            total=class_coverage.links,
            completed=class_coverage.measured + class_coverage.failed,
            description=in_words(class_coverage),
        )


def show_lines(check: Callable[[], None], console: Console) -> None:
    """Print a line now and then until all size classes are full."""
    printed = timezone.now() - LINE_WHILE_FILLING
    while True:
        classes = look(check, console)
        full = is_full(classes)
        if classes is not None and (full or timezone.now() - printed >= LINE_WHILE_FILLING):
            console.print(
                "; ".join(in_words(class_coverage) for class_coverage in classes)
                or "nothing is scheduled"
            )
            printed = timezone.now()
        if full:
            return
        time.sleep(LOOK_EVERY_SECONDS)
