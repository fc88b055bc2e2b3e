"""Judge the results of all links now, or those of the past again."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from rich.console import Console
from rich.progress import Progress

from matrix.answers.words.phrases import counted
from matrix.assessment.assessing import Assessed, JudgedDay, assess
from matrix.store import conditions
from matrix.store.read_plan import moment
from sonar.management.base import QuickCommand
from sonar.models import Condition
from sonar.notation.units import three_digits
from sonar.notation.windows import format_minute


class Command(QuickCommand):
    help = (
        "Judge the results of all links, day by day, and store the conditions that they show. "
        "A condition is what is failing, slow or unusually fast: whose it is, and since when. Only "
        "days whose results have changed are judged, and the days after them. It is safe to stop "
        "it and to run it again: what was judged by then is kept. At the end it lists the "
        "conditions that are open."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--from",
            dest="since",
            metavar="DATE",
            help="judge all days from this UTC date on again, as in 2026-10-01, whether their "
            "results have changed or not",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        now = timezone.now()
        since = date_of(options["since"], now) if options["since"] else None
        console = Console(highlight=False, soft_wrap=True)
        began = time.monotonic()
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("judging", total=None)

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
        for row in conditions.open_at(now):
            console.print(f"- {sentence(row)}")


def date_of(text: str, now: datetime) -> date:
    """Read a UTC date; raise CommandError for what is none, or lies ahead."""
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError as error:
        raise CommandError(f"--from is a date like 2026-10-01, not {text!r}.") from error
    if day > now.date():
        raise CommandError(f"--from must not be after today, {now:%Y-%m-%d} (UTC).")
    return day


def words(assessed: Assessed, seconds: float) -> str:
    days = f"{counted(assessed.days, 'day')} judged in {three_digits(seconds)} s"
    recorded = assessed.recorded
    if recorded is None or not any(recorded):
        return f"{days}: nothing new."
    counts = zip(recorded, ("new", "changed", "gone"), strict=True)
    rest = ", ".join(f"{number} {word}" for number, word in counts if number)
    return f"{days}: conditions {rest}."


def sentence(row: Condition) -> str:
    """Say what a condition is of, what is the matter, since when, by how much and how certainly."""
    ends = [end.name for end in (row.source, row.destination) if end is not None]
    subject = {
        Condition.Scope.LINK: " → ".join(ends),
        Condition.Scope.SOURCE: f"{' '.join(ends)} as a source",
        Condition.Scope.DESTINATION: f"{' '.join(ends)} as a destination",
        Condition.Scope.ENDPOINT: ends[0] if ends else "",
        Condition.Scope.SITE: f"site {row.site}",
        Condition.Scope.GRID: "the whole grid, or Sonar itself",
    }[Condition.Scope(row.scope)]
    figures = f"{row.links} of {counted(row.of_links, 'link')}"
    if row.factor is not None:
        figures = f"{row.factor:g}x ({row.factor_low:g} to {row.factor_high:g}), {figures}"
    certainty = "" if row.confirmed_at else ", unconfirmed"
    since = format_minute(row.since)
    return (
        f"{subject}: {row.type} since {since}, {figures}, {', '.join(row.size_classes)}{certainty}"
    )
