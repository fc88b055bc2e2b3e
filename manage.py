#!/usr/bin/env python
"""Sonar's command line: `manage.py help` lists what it can do."""

from __future__ import annotations

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError

NO_DATABASE = (
    "Sonar cannot reach its PostgreSQL: {error}\n"
    "Start `make run` in another terminal, or set DATABASE_URL to a running server."
)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonar.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except OperationalError as error:
        sys.exit(NO_DATABASE.format(error=str(error).strip().splitlines()[0]))


if __name__ == "__main__":
    main()
