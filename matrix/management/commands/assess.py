"""Judge the results of all links now, or those of the past again."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from rich.console import Console
from rich.progress import Progress

from matrix.answers.conditions.reading import read_open
from matrix.answers.conditions.words import sentence
from matrix.answers.words.phrases import counted
from matrix.assessment.assessing import Assessed, JudgedDay, assess
from matrix.store.read_plan import moment
from sonar.management.base import QuickCommand
from sonar.notation.units import three_digits


class Command(QuickCommand):
    help = (
        "Evaluate the results of all links, day by day, and store the conditions. A condition "
        "records which link, endpoint or site is failing, slow or unusually fast, and since when. "
        "Sonar does this automatically. Only days with changed results and the days after them "
        "are evaluated. It is safe to stop the command and run it again. Open conditions are "
        "listed at the end."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--from",
            dest="since",
            metavar="DATE",
            help="evaluate all days again, from this UTC date on, even without changed results; "
            "for example 2026-10-01",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        now = timezone.now()
        since = date_of(options["since"], now) if options["since"] else None
        console = Console(highlight=False, soft_wrap=True)
        began = time.monotonic()
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("evaluating", total=None)

            def report(judged: JudgedDay) -> None:
                day = moment(judged.day).strftime("%Y-%m-%d")
                bar.update(
                    task,
                    description=f"{judged.size_class} files on {day}",
                    total=judged.days,
                    completed=judged.number,
                )

            assessed = assess(now, since=since, report=report)
        console.print(words(assessed, time.monotonic() - began))
        for condition in read_open(now).conditions:
            console.print(f"- {sentence(condition)}")


def date_of(text: str, now: datetime) -> date:
    """Read a UTC date; raise CommandError for what is none, or lies ahead."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError as error:
        raise CommandError(
            f"--from must be a date, for example 2026-10-01, not {text!r}."
        ) from error
    if day > now.date():
        raise CommandError(f"--from must not be after today, {now:%Y-%m-%d} (UTC).")
    return day


def words(assessed: Assessed, seconds: float) -> str:
    days = f"{counted(assessed.days, 'day')} evaluated in {three_digits(seconds)} s"
    recorded = assessed.recorded
    if recorded is None or not any(recorded):
        return f"{days}. No conditions changed."
    counts = zip(recorded, ("new", "changed", "gone"), strict=True)
    rest = ", ".join(f"{number} {word}" for number, word in counts if number)
    return f"{days}. Conditions: {rest}."
