"""Search the results for changes of level and outages now."""

import time
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from rich.console import Console
from rich.progress import Progress

from matrix.answers.changes.search import Outcome, search
from sonar.management.base import QuickCommand
from sonar.models import SizeClass
from sonar.notation.units import format_count, three_digits
from sonar.results.changes import Stored


class Command(QuickCommand):
    help = (
        "Search the results of the last 90 days for lasting changes in rate, and for outages. "
        "Links, endpoints and the whole grid are searched, and what is found is kept. "
        "Sonar does so by itself every SONAR_CHANGES_SECONDS; this does it now. Size classes "
        "without new results since their last search are passed over. It is safe to stop it and "
        "to run it again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--size", metavar="NAME", help="only this size class")
        parser.add_argument(
            "--again", action="store_true", help="search size classes without new results, too"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        classes = list(SizeClass.objects.all())
        if name := options["size"]:
            names = [size_class.name for size_class in classes]
            if name not in names:
                raise CommandError(
                    f"There is no size class {name!r}: use one of {', '.join(names)}."
                )
            classes = [size_class for size_class in classes if size_class.name == name]
        find(classes, Console(highlight=False, soft_wrap=True), again=options["again"])


def find(classes: list[SizeClass], console: Console, *, again: bool) -> None:
    """Search these classes under a progress bar, and say of each in a line what was found."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("searching", total=len(classes))
        for size_class in classes:
            bar.update(task, description=f"searching results of {size_class.name} files")
            began = time.monotonic()
            outcome = search(size_class, timezone.now(), again=again)
            console.print(words(outcome, time.monotonic() - began))
            bar.advance(task)


def words(outcome: Outcome, seconds: float) -> str:
    if outcome.stored is None or outcome.outages is None:
        return f"{outcome.size}: no new results since the last search"
    return (
        f"{outcome.size}: {format_count(outcome.sequences)} sequences searched in "
        f"{three_digits(seconds)} s: {counts('changes', outcome.stored)}; "
        f"{counts('outages', outcome.outages)}"
    )


def counts(noun: str, stored: Stored) -> str:
    return (
        f"{format_count(stored.new)} new {noun}, {format_count(stored.renewed)} renewed, "
        f"{format_count(stored.gone)} gone"
    )
