"""Import results from CSV files."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from sonar.management.base import QuickCommand
from sonar.models import Profile
from sonar.records import end_names, importing
from sonar.records.importing import FaultyFileError

ASSIGNED = (
    "Unknown names are listed on /operations/aliases/, where operators can assign them to "
    "endpoints and sites."
)
# Begins a bar for what a file is read for.
Over = Callable[[str], Callable[[int], None]]


class Command(QuickCommand):
    help = (
        "Import results from CSV files, plain or gzip. A file is stored completely or not at all; "
        "all errors are listed with their line numbers. A result whose ID is already stored is "
        "counted as a duplicate. Exit code 0: all files were imported; 1: at least one was not. "
        "docs/results.md describes the columns."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "files", metavar="FILE", nargs="+", type=Path, help="CSV file to import, plain or gzip"
        )
        parser.add_argument(
            "--check", action="store_true", help="check the files without storing them"
        )
        parser.add_argument(
            "--origin",
            choices=Profile.Origin.values,
            default=Profile.Origin.EXTERNAL,
            help="origin for results without an origin (default: %(default)s); by default, pages "
            "show only results with the origin `test`",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        files: list[Path] = options["files"]
        faulty = [
            path
            for path in files
            if not self.take(path, options["origin"], only_check=options["check"])
        ]
        if faulty:
            verb = "Files with errors" if options["check"] else "Files not imported"
            raise CommandError(f"{verb} (see above): {', '.join(map(str, faulty))}")

    def take(self, path: Path, origin: str, *, only_check: bool) -> bool:
        """Import or check one file and say what came of it; return whether it was sound."""
        try:
            with bar(path) as over:
                if only_check:
                    with importing.checked(path, timezone.now(), over("checking")) as sound:
                        are = "1 result is" if sound.count == 1 else f"{sound.count:,} results are"
                    said = f"{are} valid; nothing was stored."
                else:
                    said = store(path, origin, over)
        except KeyboardInterrupt:
            raise CommandError(
                f"Stopped; no results from {path} were stored.", returncode=130
            ) from None
        except OSError as error:  # what was checked waits in a temporary file to be stored
            self.stderr.write(f"{path}: nothing was stored. {gettempdir()}: {error.strerror}.")
            return False
        except FaultyFileError as error:
            self.stderr.write(f"{path}: nothing was stored.")
            for sentence in error.sentences:
                self.stderr.write(f"  {sentence}")
            if error.more:
                self.stderr.write(f"  ... and {error.more:,} more")
            if error.unknown and not only_check:
                end_names.note_unknown(error.unknown, timezone.now())
                self.stderr.write(f"  {ASSIGNED}")
            return False
        self.stdout.write(f"{path}: {said}")
        return True


def store(path: Path, origin: str, over: Over) -> str:
    """Check and store a file; say how many results were new, how many not, and how fast."""
    began = time.monotonic()
    with importing.checked(path, timezone.now(), over("checking")) as sound:
        try:
            accepted, duplicates = importing.keep(sound, timezone.now(), over("storing"), origin)
        except DatabaseError as error:
            sentence = str(error).partition("\n")[0]
            raise FaultyFileError([f"the database rejected the results: {sentence}"]) from error
    seconds = time.monotonic() - began
    rate = (accepted + duplicates) / seconds
    again = f"{duplicates:,} duplicate{'s' * (duplicates != 1)}"
    return f"{accepted:,} accepted, {again}, {seconds:.1f} s, {rate:,.0f} results/s"


@contextmanager
def bar(path: Path) -> Iterator[Over]:
    """Show a progress bar over the bytes of one file; on a terminal only."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    total = path.stat().st_size if path.is_file() else None
    hidden = not console.is_terminal
    with Progress(*columns, console=console, disable=hidden, transient=True) as bars:

        def over(verb: str) -> Callable[[int], None]:
            """Begin anew at the first byte; return what is told the position."""
            for task in bars.task_ids:
                bars.remove_task(task)
            task = bars.add_task(f"{verb} {path.name}", total=total)
            return lambda position: bars.update(task, completed=position)

        yield over
