"""Build the segments anew from the raw results."""

import time
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from rich.console import Console
from rich.progress import Progress

from sonar.management.base import QuickCommand
from sonar.models import SizeClass
from sonar.notation import windows
from sonar.notation.units import format_count, format_counted, three_digits
from sonar.results import sealing


class Command(QuickCommand):
    help = (
        "Rebuild the hour and day segments from the raw results, day by day, newest first. Sonar "
        "normally builds segments itself; use this command after a restore or a manual change. "
        "Pages and the API keep working meanwhile. Each day is replaced in one step: it is safe "
        "to stop or kill the command and to repeat it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--from", dest="start", metavar="TIME", help="first day to rebuild, in ISO 8601"
        )
        parser.add_argument(
            "--to", dest="end", metavar="TIME", help="rebuild only days before this one"
        )
        parser.add_argument("--size", metavar="NAME", help="rebuild only this size class")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        now = timezone.now()
        start = day_of("--from", options["start"]) or windows.EARLIEST
        end = day_of("--to", options["end"]) or now
        if start >= end:
            raise CommandError("--from must be before --to.")
        days = sealing.filled_days(start, end)
        if options["size"]:
            ids = dict(SizeClass.objects.values_list("name", "id"))
            if options["size"] not in ids:
                raise CommandError(
                    f"There is no size class {options['size']!r}. Choose from {', '.join(ids)}."
                )
            days = [day for day in days if day[0] == ids[options["size"]]]
        console = Console(highlight=False, soft_wrap=True)
        began, written, done = time.monotonic(), 0, 0
        try:
            with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
                task = bar.add_task("rebuilding days", total=len(days))
                for size_class_id, day in days:
                    written += sealing.seal_day(size_class_id, day, now, everything=True)
                    done += 1
                    bar.update(task, completed=done, description=f"{day:%Y-%m-%d}")
        except KeyboardInterrupt as error:
            raise CommandError(
                f"Stopped after {done} of {len(days)} days (counted separately for each size "
                "class). The days processed so far are complete; run the command again for the "
                "rest.",
                returncode=130,
            ) from error
        seconds = three_digits(time.monotonic() - began)
        console.print(
            f"{format_count(written)} segments written from {format_counted(len(days), 'day')} "
            f"(counted separately for each size class) in {seconds} s."
        )


def day_of(option: str, text: str | None) -> datetime | None:
    """Read a time and return the start of its UTC day."""
    if text is None:
        return None
    try:
        moment = windows.parse_time(text)
    except ValueError as error:
        raise CommandError(f"{option}: {error}") from error
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
