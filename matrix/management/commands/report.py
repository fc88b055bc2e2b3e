"""Write a report to a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from matrix.answers.report import build
from matrix.answers.report.parts import PeriodReport
from matrix.answers.report.question import KINDS, ReportPeriod, ReportQuestion
from matrix.plots.report import document
from matrix.plots.report.pdf import PdfError, pdf_of
from matrix.query.forms import BadQueryError
from sonar.management.base import QuickCommand
from sonar.notation.enumeration import either
from sonar.notation.units import format_bytes
from sonar.notation.whole_files import written

READABLE = 0o644
WRITERS: dict[str, Callable[[PeriodReport, str], bytes]] = {
    ".pdf": pdf_of,
    ".html": lambda report, base: document.html(report, base).encode(),
    ".md": lambda report, base: document.markdown(report, base).encode(),
}


class Command(QuickCommand):
    help = (
        "Write the report for a week or a month to a PDF, HTML or Markdown file. The file name "
        "extension selects the format. Example for a cron job: "
        "manage.py report week /srv/reports/newest.pdf --url https://sonar.example.org"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "period",
            metavar="PERIOD",
            help="week or month (the last complete one), or a period, for example 2026-W47 or "
            "2026-10",
        )
        parser.add_argument(
            "file", metavar="FILE", type=Path, help="output file: *.pdf, *.html or *.md"
        )
        parser.add_argument("--cloud", metavar="NAME", help="only links from or to this cloud")
        parser.add_argument("--site", metavar="NAME", help="only links from or to this site")
        parser.add_argument(
            "--url", default="", help="URL of Sonar, for links in the report (default: no links)"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        path: Path = options["file"]
        if path.suffix not in WRITERS:
            raise CommandError(f"{path}: the file name must end in {either([*WRITERS])}.")
        try:
            content = WRITERS[path.suffix](report_of(options), options["url"])
        except PdfError as error:
            raise CommandError(str(error)) from None
        try:
            with written(path, READABLE) as file:
                file.write(content)
        except OSError as error:
            raise CommandError(f"Cannot write {path}: {error.strerror}.") from None
        self.stdout.write(f"{path}: {format_bytes(len(content))}")


def report_of(options: dict[str, Any]) -> PeriodReport:
    now, period = timezone.now(), options["period"]
    if period in KINDS:
        period = ReportPeriod.newest(period, now).name
    scope = {name: [options[name]] for name in ("cloud", "site") if options[name]}
    try:
        question = ReportQuestion.read(period, scope, now)
    except BadQueryError as error:
        sentences = [sentence for each in error.errors.values() for sentence in each]
        raise CommandError("\n".join(dict.fromkeys(sentences))) from None
    return build.build(question)
