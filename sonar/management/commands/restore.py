"""Restore a backup."""

import sys
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError, connection
from django.utils import timezone
from rich.progress import DownloadColumn, TextColumn

from sonar.database import tables
from sonar.database.backups import contents, label, programs, restore
from sonar.database.backups.contents import Contents
from sonar.database.backups.label import Label
from sonar.database.backups.programs import BackupError
from sonar.database.retry import one_line
from sonar.management.base import QuickCommand
from sonar.management.commands.backup import described, take_pg_bin
from sonar.management.terminal import counter
from sonar.processes import heartbeats

NOT_EMPTY = (
    "The database {name} is not empty: it holds {lost}. Restore into an empty database, or add "
    "--replace to delete the current content first."
)
ALIVE = (
    "Sonar is running on the database {name}: {names}. Stop its web server, workers and scheduler "
    "first (docs/deployment.md). A killed process counts as running for another 30 s."
)
IN_USE = (
    "The database {name} has {count} other open session{s}. Stop Sonar's web server, workers and "
    "scheduler, and close all other connections."
)
NOT_MIGRATED = (
    "The backup from Sonar {} was restored but not migrated: {} "
    "Fix the problem, then run manage.py migrate."
)
NEXT = (
    "Next steps:",
    "  Copy the credential files to SONAR_CREDENTIALS_DIR. manage.py credentials lists missing "
    "files.",
    "  If the original Sonar instance is still running elsewhere, stop it; otherwise both "
    "instances test the same endpoints.",
    "  Start the web server, workers and scheduler (Celery beat). /readyz shows whether all of "
    "these are running.",
)


class Command(QuickCommand):
    help = (
        "Restore a backup made with manage.py backup, completely or not at all. The database must "
        "be empty unless --replace is given. A backup from an older version of Sonar is migrated "
        "afterwards. A backup from a newer version of Sonar is refused. Backups do not contain "
        "credential files. Restore only files that you trust, because they can run any SQL. See "
        "docs/deployment.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", type=Path, help="backup made with manage.py backup"
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="verify the file and print a summary without restoring it",
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="delete the current content of the database first, after a confirmation",
        )
        parser.add_argument("--yes", action="store_true", help="skip the confirmation of --replace")
        take_pg_bin(parser)

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - Django's signature
        path: Path = options["file"]
        try:
            backup = label.read(path)
            restore.check_migrations(path, backup)
            self.stdout.write("\n".join(described(path, backup)))
            if not options["check"]:
                self.restore(path, backup, options)
        except KeyboardInterrupt:
            raise CommandError("Stopped; the database was not changed.", returncode=130) from None
        except BackupError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(f"The database is not responding: {one_line(error)}") from error

    def restore(self, path: Path, backup: Label, options: dict[str, Any]) -> None:
        database = contents.look()
        if sentence := tables.encoding_problem(tables.session_of()):
            raise CommandError(sentence)
        chosen = programs.choose(max(database.server, backup.programs), options["pg_bin"])
        if database.objects:
            self.permit(database, options)
        with counter(DownloadColumn(), TextColumn("restored")) as count:
            empty_first = database.objects > 0
            restore.run(path, backup, chosen, empty_first=empty_first, count=count)
        if tables.of_this_code() - frozenset(backup.migrations):  # of an older Sonar
            try:
                call_command("migrate", verbosity=0)
            except (CommandError, DatabaseError) as error:
                raise CommandError(NOT_MIGRATED.format(backup.sonar, one_line(error))) from error
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        self.stdout.write(
            f"{database.name}: restored, {backup.results:,} results; all row counts match the "
            "backup.\n" + "\n".join(NEXT)
        )

    def permit(self, database: Contents, options: dict[str, Any]) -> None:
        """Raise CommandError for a database that must not be emptied."""
        lost = f"{database.objects:,} tables and functions of another application"
        if database.results is not None:
            lost = f"a Sonar database with {database.results:,} results"
        if not options["replace"]:
            raise CommandError(NOT_EMPTY.format(name=database.name, lost=lost))
        if database.results is not None and (living := heartbeats.living(timezone.now())):
            raise CommandError(ALIVE.format(name=database.name, names=", ".join(living)))
        if count := database.sessions:
            plural = "s" * (count > 1)
            raise CommandError(IN_USE.format(name=database.name, count=count, s=plural))
        if not options["yes"] and not agreed(database.name, lost):
            raise CommandError("Nothing was changed. Confirm --replace or add --yes.")


def agreed(name: str, lost: str) -> bool:
    """Ask whoever sits at the terminal; nobody there is a no."""
    if not sys.stdin.isatty():
        return False
    answer = input(
        f"This deletes everything in the database {name}: {lost}. Type {name} to continue: "
    )
    return answer.strip() == name
