"""Export results as CSV."""

import argparse
import gzip
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import CommandError, CommandParser
from django.db import OperationalError
from psycopg.errors import SerializationFailure
from rich.progress import TextColumn

from sonar.database import reader
from sonar.management.base import QuickCommand
from sonar.management.commands.probe import named
from sonar.management.terminal import counter
from sonar.models import Endpoint, Profile, SizeClass
from sonar.notation import whole_files
from sonar.notation.windows import parse_time
from sonar.records import exporting
from sonar.records.exporting import Choice

# As a hot standby does where rows were removed that are still read.
ENDED = (
    "The replica cancelled this query. Set hot_standby_feedback=on for the replica "
    "(docs/engines.md), or unset DATABASE_READ_URL for this command. No file was written."
)
READABLE = 0o666
"""The mode of a file, less what the user's umask takes."""


class Command(QuickCommand):
    help = (
        "Export results as CSV, oldest first, in the format of import_results. Filter options "
        "can be repeated. Lost results are not exported: their worker died, so they carry no "
        "information about a link. docs/results.md describes the columns."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file",
            metavar="FILE",
            nargs="?",
            type=Path,
            help="output file, compressed if its name ends in .gz (default: standard output)",
        )
        for name, dest, meaning in (
            ("--from", "start", "only results from this time on"),
            ("--to", "end", "only results before this time"),
        ):
            parser.add_argument(
                name, dest=dest, metavar="TIME", type=moment, help=f"{meaning}, ISO 8601 in UTC"
            )
        for name, meaning in (
            ("size", "only results of this size class, such as large"),
            ("source", "only results with this source endpoint"),
            ("destination", "only results with this destination endpoint"),
        ):
            parser.add_argument(
                f"--{name}", action="append", default=[], metavar="NAME", help=meaning
            )
        parser.add_argument(
            "--state",
            action="append",
            choices=["done", "failed"],
            default=[],
            help="only results in this state",
        )
        parser.add_argument(
            "--origin",
            action="append",
            choices=Profile.Origin.values,
            default=[],
            help="only results of this origin",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        try:
            with reader.preferred(), reader.chosen():
                self.export(options)
        except OperationalError as error:
            if isinstance(error.__cause__, SerializationFailure):
                raise CommandError(ENDED) from error
            raise

    def export(self, options: dict[str, Any]) -> None:
        start, end = options["start"], options["end"]
        if start and end and start >= end:
            raise CommandError("--from must be before --to.")
        choice = Choice(
            start=start,
            end=end,
            size_classes=[named(SizeClass, name).pk for name in options["size"]],
            sources=[named(Endpoint, name).pk for name in options["source"]],
            destinations=[named(Endpoint, name).pk for name in options["destination"]],
            states=options["state"] or Choice.states,
            origins=options["origin"],
        )
        path: Path | None = options["file"]
        try:
            with counter(TextColumn("{task.completed:,} results")) as count:
                if path is None:
                    print_all(choice, count)
                    return
                with written_whole(path) as file:
                    rows = pour(choice, file, count)
        except OSError as error:
            raise CommandError(f"Cannot write {path}: {error.strerror}.") from error
        self.stdout.write(f"{path}: {rows:,} result{'s' * (rows != 1)}")


def moment(text: str) -> datetime:
    try:
        return parse_time(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def print_all(choice: Choice, count: Callable[[int], None]) -> None:
    try:
        pour(choice, sys.stdout.buffer, count)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def pour(choice: Choice, file: IO[bytes], count: Callable[[int], None]) -> int:
    """Write all that was chosen; return how many results that is."""
    rows = 0
    for piece, rows in exporting.csv_pieces(choice):
        file.write(piece)
        count(rows)
    return rows


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name when it is whole, and not before."""
    with whole_files.written(path, READABLE) as file:
        if path.suffix == ".gz":
            # No name and no time in it: the same results give the same file.
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                yield cast("IO[bytes]", packed)
        else:
            yield file
