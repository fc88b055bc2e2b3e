"""Back up the database."""

import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError
from rich.progress import DownloadColumn, TextColumn

from sonar.database.backups import contents, dump, programs
from sonar.database.backups.label import Label
from sonar.database.backups.programs import BackupError, Programs
from sonar.database.retry import one_line
from sonar.management.base import QuickCommand
from sonar.management.terminal import counter
from sonar.notation.units import format_bytes
from sonar.notation.windows import format_time

NO_SONAR = (
    "The database {name} has no Sonar tables. Check DATABASE_URL. "
    "A database that was never migrated cannot be backed up."
)
PG_BIN = (
    "directory that contains pg_dump, pg_restore and psql (default: a matching version on the "
    "PATH, else in directories of distribution packages)"
)


def take_pg_bin(parser: CommandParser) -> None:
    parser.add_argument("--pg-bin", metavar="DIR", type=Path, help=PG_BIN)


STREAMED = (
    "The backup was written to standard output and has not been verified. "
    "Verify it with: manage.py restore --check FILE"
)


class Command(QuickCommand):
    help = (
        "Back up the database to FILE while Sonar runs, verify the file and print a summary. "
        "FILE is in pg_dump's custom format and has mode 0600. It does not contain sessions, "
        "credential files or settings. Restore it with: manage.py restore. docs/deployment.md "
        "shows how to schedule nightly backups."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", type=Path, help="output file, or - for standard output"
        )
        parser.add_argument("--force", action="store_true", help="overwrite FILE if it exists")
        take_pg_bin(parser)

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        path: Path = options["file"]
        try:
            refuse_to_overwrite(path, force=options["force"])
            database = contents.look()
            if database.results is None:
                raise CommandError(NO_SONAR.format(name=database.name))
            chosen = programs.choose(database.server, options["pg_bin"])
            if str(path) == "-":
                label = self.stream(chosen)
            else:
                with counter(DownloadColumn(), TextColumn("written")) as count:
                    label = dump.write(path, chosen, count)
        except KeyboardInterrupt:
            raise CommandError(f"Stopped; {path} was not written.", returncode=130) from None
        except BackupError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(f"The database is not responding: {one_line(error)}") from error
        except OSError as error:
            raise CommandError(f"Cannot write {path}: {error.strerror}.") from error
        self.stderr.write("\n".join(described(path, label)))

    def stream(self, chosen: Programs) -> Label:
        if sys.stdout.isatty():
            raise CommandError("A backup is binary: name a FILE or redirect the output.")
        label = dump.stream(sys.stdout.buffer, chosen)
        sys.stdout.flush()
        self.stderr.write(STREAMED)
        return label


def refuse_to_overwrite(path: Path, *, force: bool) -> None:
    if str(path) == "-":
        return
    if path.is_dir():
        raise CommandError(f"{path} is a directory. Name a file.")
    if path.exists() and not force:
        raise CommandError(f"{path} already exists. Name another file or add --force.")
    if not os.access(path.absolute().parent, os.W_OK):
        raise CommandError(f"Cannot write {path}: {path.absolute().parent} is not writable.")


def described(path: Path, label: Label) -> list[str]:
    span = ""
    if label.first is not None and label.last is not None:
        span = f", from {moment(label.first)} to {moment(label.last)}"
    return [
        f"{path}: {format_bytes(label.archive_bytes)}, started {moment(label.begun_at)}",
        f"  from Sonar {label.sonar} (migration {label.migration}) on PostgreSQL {label.postgres}",
        f"  {label.results:,} results{span}",
        f"  {label.count('sonar_endpoint'):,} endpoints at {label.count('sonar_site'):,} sites",
        "Not included:",
        *(f"  {thing}" for thing in (*label.left_out, *dump.FILES)),
    ]


def moment(text: str) -> str:
    return format_time(datetime.fromisoformat(text))
