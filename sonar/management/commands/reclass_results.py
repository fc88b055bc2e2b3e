"""Move results to the size class that their bytes belong to."""

import time
from typing import Any

from django.core.management.base import CommandError, CommandParser
from rich.console import Console
from rich.progress import Progress

from sonar.management.base import QuickCommand
from sonar.models import SizeClass
from sonar.notation.units import format_counted, three_digits
from sonar.results import reclass
from sonar.results.reclass import Moves


class Command(QuickCommand):
    help = (
        "Move results to the size class that matches their size, newest first. Use this "
        "command after changing the bounds of size classes. Pages and the API keep working and "
        "show correct numbers; the affected hours are compacted again automatically. Each hour is "
        "one transaction, so it is safe to stop or kill the command and run it again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="count results without moving them"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        console, only_count = Console(highlight=False, soft_wrap=True), options["dry_run"]
        began, total, done = time.monotonic(), Moves(), 0
        days = reclass.days()
        try:
            with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
                task = bar.add_task("checking days", total=len(days))
                for day in days:
                    bar.update(task, description=f"{day:%Y-%m-%d}")
                    wrong = reclass.wrong_of_day(day).values() if only_count else None
                    for moves in reclass.move_day(day) if wrong is None else wrong:
                        total.update(moves)
                    done += 1
                    bar.update(task, completed=done)
        except KeyboardInterrupt as error:
            tell(console, total, only_count)
            raise CommandError(
                f"Stopped after {done} of {len(days)} days. The days processed so far are "
                "complete; run the command again for the rest.",
                returncode=130,
            ) from error
        tell(console, total, only_count)
        console.print(
            f"{format_counted(len(days), 'day')} checked in "
            f"{three_digits(time.monotonic() - began)} s."
        )
        # A test that was ordered before comes in under the class that it was ordered in.
        if count := reclass.probes_outside():
            results, sizes, ended = (
                ("result", "its size", "this test has ended")
                if count == 1
                else ("results", "their sizes", "these tests have ended")
            )
            console.print(
                f"The {results} of {format_counted(count, 'test')} in progress will be stored in a "
                f"size class that does not match {sizes}. Run this command again when {ended}."
            )


def tell(console: Console, total: Moves, only_count: bool) -> None:
    """Say in a line for each pair of classes how many results went, or would go."""
    names = dict(SizeClass.objects.values_list("id", "name"))
    verb = "would move" if only_count else "moved"
    for (old, new), count in sorted(total.items()):
        console.print(
            f"{format_counted(count, 'result')} {verb} from {names[old]} to {names[new]}."
        )
    if not total:
        console.print("All results are in the right size class.")
