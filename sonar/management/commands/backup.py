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
    "The database {name} holds no Sonar: let DATABASE_URL name the right one. "
    "A database that was never migrated has nothing to back up."
)
PG_BIN = (
    "Directory of pg_dump, pg_restore and psql. Without it, those that fit are looked for on the "
    "PATH, then where packages have them."
)


def take_pg_bin(parser: CommandParser) -> None:
    parser.add_argument("--pg-bin", metavar="DIR", type=Path, help=PG_BIN)


STREAMED = "It went to standard output: nobody has read it back. manage.py restore checks its sum."


class Command(QuickCommand):
    help = (
        "Write a backup of the database into FILE while Sonar runs, read it back, and say what it "
        "holds. The file is in pg_dump's custom format, with mode 0600. Sessions are left out, and "
        "files of credentials and settings are not in it. docs/deployment.md has a backup each "
        "night, and the way back: manage.py restore."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", type=Path, help="file to write, or - for standard output"
        )
        parser.add_argument("--force", action="store_true", help="overwrite FILE if it is there")
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
            raise CommandError(f"The database does not answer: {one_line(error)}") from error
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
        self.stderr.write("\n".join(described(path, label)))

    def stream(self, chosen: Programs) -> Label:
        if sys.stdout.isatty():
            raise CommandError("A backup is no text for a terminal: name a FILE, or use a pipe.")
        label = dump.stream(sys.stdout.buffer, chosen)
        sys.stdout.flush()
        self.stderr.write(STREAMED)
        return label


def refuse_to_overwrite(path: Path, *, force: bool) -> None:
    if str(path) == "-":
        return
    if path.is_dir():
        raise CommandError(f"{path} is a directory: name a file in it.")
    if path.exists() and not force:
        raise CommandError(f"{path} is there already: name another file, or add --force.")
    if not os.access(path.absolute().parent, os.W_OK):
        raise CommandError(f"{path} cannot be written: {path.absolute().parent} is not writable.")


def described(path: Path, label: Label) -> list[str]:
    span = ""
    if label.first is not None and label.last is not None:
        span = f", from {moment(label.first)} to {moment(label.last)}"
    return [
        f"{path}: {format_bytes(label.archive_bytes)}, begun {moment(label.begun_at)}",
        f"  of Sonar {label.sonar} (migration {label.migration}) on PostgreSQL {label.postgres}",
        f"  {label.results:,} results{span}",
        f"  {label.count('sonar_endpoint'):,} endpoints at {label.count('sonar_site'):,} sites",
        "Not in it:",
        *(f"  {thing}" for thing in (*label.left_out, *dump.FILES)),
    ]


def moment(text: str) -> str:
    return format_time(datetime.fromisoformat(text))
