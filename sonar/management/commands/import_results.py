"""Import results from CSV files."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError
from django.utils import timezone
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from sonar.management.base import QuickCommand
from sonar.records import importing
from sonar.records.importing import FaultyFileError


class Command(QuickCommand):
    help = (
        "Import results of transfers from CSV files, plain or gzip. Each file is stored as a "
        "whole or not at all, with every mistake listed by its line. A result whose id is already "
        "stored counts as a duplicate. Exit code 0 if every file was imported, otherwise 1. "
        "docs/results.md describes the columns."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "files", metavar="FILE", nargs="+", type=Path, help="CSV file to import, plain or gzip"
        )
        parser.add_argument(
            "--check", action="store_true", help="only check the files, store nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        files: list[Path] = options["files"]
        faulty = [path for path in files if not self.take(path, only_check=options["check"])]
        if faulty:
            verb = "Would not be imported" if options["check"] else "Not imported"
            raise CommandError(f"{verb}, see above: {', '.join(map(str, faulty))}")

    def take(self, path: Path, *, only_check: bool) -> bool:
        """Import or check one file and say what came of it; return whether it was sound."""
        try:
            with Bar(path) as progress:
                said = check(path, progress) if only_check else store(path, progress)
        except KeyboardInterrupt:
            raise CommandError(f"Stopped; nothing of {path} was stored.", returncode=130) from None
        except OSError as error:  # what was checked waits in a temporary file to be stored
            self.stderr.write(f"{path}: nothing was stored: {gettempdir()}: {error.strerror}")
            return False
        except FaultyFileError as error:
            self.stderr.write(f"{path}: nothing was stored.")
            for sentence in error.sentences:
                self.stderr.write(f"  {sentence}")
            if error.more:
                self.stderr.write(f"  ... and {error.more:,} more")
            return False
        self.stdout.write(f"{path}: {said}")
        return True


def check(path: Path, progress: Bar) -> str:
    progress.over("checking")
    with importing.checked(path, timezone.now(), progress.at) as sound:
        return f"{sound.count:,} results are valid; nothing was stored."


def store(path: Path, progress: Bar) -> str:
    """Check and store a file; say how many results were new, how many not, and how fast."""
    began = time.monotonic()
    progress.over("checking")
    with importing.checked(path, timezone.now(), progress.at) as sound:
        progress.over("storing")
        try:
            accepted, duplicates = importing.keep(sound, timezone.now(), progress.at)
        except DatabaseError as error:
            sentence = str(error).partition("\n")[0]
            raise FaultyFileError([f"the database refused it: {sentence}"]) from error
    seconds = time.monotonic() - began
    rate = (accepted + duplicates) / seconds
    return (
        f"{accepted:,} accepted, {duplicates:,} duplicates, {seconds:.1f} s, {rate:,.0f} results/s"
    )


class Bar:
    """A progress bar over the bytes of one file, for each time it is read; on a terminal only."""

    def __init__(self, path: Path) -> None:
        console = Console(stderr=True)
        columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
        self._bars = Progress(
            *columns,
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._name = path.name
        self._total = path.stat().st_size if path.is_file() else None
        self._task: TaskID | None = None

    def __enter__(self) -> Bar:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def over(self, verb: str) -> None:
        """Begin anew at the first byte."""
        if self._task is not None:
            self._bars.remove_task(self._task)
        self._task = self._bars.add_task(f"{verb} {self._name}", total=self._total)

    def at(self, position: int) -> None:
        if self._task is not None:
            self._bars.update(self._task, completed=position)
