"""The project as Django sees it."""

from __future__ import annotations

import pytest
from django.core.management import call_command, get_commands, load_command_class
from django.db import connection
from django.db.migrations.executor import MigrationExecutor


@pytest.mark.django_db
def test_the_migrations_are_those_of_the_models():
    call_command("makemigrations", check=True, dry_run=True, verbosity=3)


@pytest.mark.long
@pytest.mark.django_db
def test_the_migrations_can_be_undone_and_done_again():
    """As tests of upgrades do; `migrate` itself goes no way back (sonar.tables)."""
    MigrationExecutor(connection).migrate([("sonar", None)])
    call_command("migrate", "sonar", verbosity=0)


def test_django_finds_nothing_wrong():
    call_command("check", fail_level="WARNING")


def test_no_command_of_sonar_waits_for_the_checks():
    own = {name: app for name, app in get_commands().items() if app in ("sonar", "matrix")}
    assert {"load_registry", "find_changes"} <= set(own)
    waits = {
        name for name, app in own.items() if load_command_class(app, name).requires_system_checks
    }
    assert waits == set()
