#!/usr/bin/env python
"""Sonar's command line: `manage.py help` lists what it can do."""

from __future__ import annotations

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import ManagementUtility, get_commands
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from sonar.database import actor

NO_DATABASE = (
    "Sonar cannot connect to PostgreSQL: {error}\n"
    "Start `make run` in another terminal, or set DATABASE_URL to a running server."
)

# Django's own that read or write rows; those that make the tables, or look at them, do not ask.
OF_ROWS = {
    "changepassword",
    "clearsessions",
    "createsuperuser",
    "dumpdata",
    "loaddata",
    "remove_stale_contenttypes",
    "runserver",
}
# Of Sonar's own those that work with a database of any time: before it is migrated, or to go back.
OF_ANY_TIME = {"backup", "restore"}


class Commands(ManagementUtility):
    """The commands: those that need the tables end where they are not those of this code."""

    def execute(self) -> None:
        with actor.acting("command", " ".join(["manage.py", *self.argv[1:2]])):
            super().execute()

    def fetch_command(self, subcommand: str) -> BaseCommand:
        command = super().fetch_command(subcommand)
        own = get_commands()[subcommand] in ("sonar", "matrix")
        if subcommand in OF_ROWS or (own and subcommand not in OF_ANY_TIME):
            command.requires_migrations_checks = True
            command.check_migrations = check_tables
        return command


def check_tables() -> None:
    from sonar.database import tables

    if sentence := tables.problem(tables.session_of()):
        raise CommandError(sentence)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonar.settings")
    try:
        Commands(sys.argv).execute()
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except OperationalError as error:
        sys.exit(NO_DATABASE.format(error=str(error).strip().splitlines()[0]))


if __name__ == "__main__":
    main()
