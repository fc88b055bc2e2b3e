"""Import the downtimes that sites announce in GOCDB or OSG Topology."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from sonar.management.base import QuickCommand, in_columns
from sonar.models.downtimes import ELSEWHERE, Origin
from sonar.notation.units import format_counted
from sonar.registry.downtimes import importing, matching, pages, state
from sonar.registry.downtimes.importing import NotImported, Outcome, Overtaken

MOST_LISTED = 50
SETTINGS = {Origin.GOCDB: "SONAR_GOCDB_URL", Origin.OSG: "SONAR_OSG_DOWNTIMES_URL"}


class Command(QuickCommand):
    help = (
        "Import the downtimes that GOCDB or OSG Topology announces. New downtimes are added; "
        "extended, shortened and withdrawn ones are updated. If the source cannot be read, "
        "nothing is changed. docs/downtimes.md describes which endpoints a downtime affects."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "address",
            metavar="FILE-OR-URL",
            help="XML file from the source, or its URL, for example "
            "https://goc.egi.eu/gocdbpi/public/",
        )
        parser.add_argument(
            "--from",
            dest="origin",
            choices=[origin.value for origin in ELSEWHERE],
            required=True,
            help="source type",
        )
        parser.add_argument("--ca-file", default="", help="CA certificates to trust, in PEM")
        parser.add_argument(
            "--dry-run", action="store_true", help="show the changes without applying them"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        address, dry_run = options["address"], options["dry_run"]
        if sentence := pages.problem(address):
            # It may have a password in it: it is not repeated.
            raise CommandError(f"This source of downtimes cannot be used: {sentence}.")
        try:
            outcome = importing.import_from(
                options["origin"], address, timezone.now(), options["ca_file"], dry_run=dry_run
            )
        except (NotImported, Overtaken) as error:
            raise CommandError(f"Nothing was changed: {error}.") from error
        self.stdout.write(described(outcome, Origin(options["origin"]).label, dry_run=dry_run))
        if not dry_run and options["origin"] not in state.addresses():
            setting = SETTINGS[options["origin"]]
            self.stdout.write(
                f"{setting} is not set, so workers do not fetch new downtimes automatically."
            )


def described(outcome: Outcome, name: str, *, dry_run: bool) -> str:
    announced = format_counted(len(outcome.announcements), "downtime")
    affected = f"{outcome.concerned} affect{'s' * (outcome.concerned == 1)}"
    lines = [
        f"{name} announces {announced}; {affected} registered endpoints.",
        f"{outcome.changes.words}{' (dry run: nothing was changed)' if dry_run else ''}.",
    ]
    rows = [
        (
            *(sign, row.subject, row.severity, minute(row.starts_at)),
            row.until_words if row.is_open_ended else minute(row.ends_at),
        )
        for sign, group in (
            ("new", outcome.changes.new),
            ("changed", outcome.changes.changed),
            ("withdrawn", outcome.changes.gone),
        )
        for row in group
    ]
    if rows:
        lines.append(in_columns(rows[:MOST_LISTED]))
    if len(rows) > MOST_LISTED:
        lines.append(f"and {len(rows) - MOST_LISTED} more")
    if outcome.left_out:
        lines.append("Skipped downtimes that cannot be read (earlier data is kept):")
        lines += [f"- {each.sentence}" for each in outcome.left_out[:MOST_LISTED]]
        if (more := len(outcome.left_out) - MOST_LISTED) > 0:
            lines.append(f"and {more} more")
    if count := outcome.of_tape:
        does = "affects" if count == 1 else "affect"
        lines.append(
            f"{format_counted(count, 'downtime')} {does} only tape services, which are not tested."
        )
    services = [service for service, _ in outcome.unmatched]
    for noun, is_network in (("storage host", False), ("perfSONAR host", True)):
        hosts = [each.host for each in services if matching.is_of_network(each) == is_network]
        if hosts:
            more = len(hosts) - MOST_LISTED
            rest = f" and {more} more" if more > 0 else ""
            named = ", ".join(hosts[:MOST_LISTED])
            lines.append(
                f"No endpoint is registered for {format_counted(len(hosts), noun)}: {named}{rest}"
            )
    return "\n".join(lines)


def minute(moment: datetime) -> str:
    """Write a time in UTC with its year: a source may tell of any."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"
