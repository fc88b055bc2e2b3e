"""The project as Django sees it."""

from __future__ import annotations

import pytest
from django.core.management import call_command


@pytest.mark.django_db
def test_the_migrations_are_those_of_the_models():
    call_command("makemigrations", check=True, dry_run=True, verbosity=3)


@pytest.mark.long
@pytest.mark.django_db
def test_the_migrations_can_be_undone_and_done_again():
    call_command("migrate", "sonar", "zero", verbosity=0)
    call_command("migrate", "sonar", verbosity=0)


def test_django_finds_nothing_wrong():
    call_command("check", fail_level="WARNING")
