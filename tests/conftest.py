"""What every test may use."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module

import pytest
from django.apps import apps
from django.db import transaction
from pytest_django import DjangoDbBlocker, Settings

# The worlds of the tests stand still in these months, whenever they run.
MONTHS = [datetime(2026, month, 1, tzinfo=UTC) for month in (10, 11, 12)]


@pytest.fixture(autouse=True)
def plain_static_files(settings: Settings) -> None:
    """Serve static files as they are: hashed names need a collectstatic first."""
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = settings.STORAGES | {"staticfiles": plain}


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Make the partitions for tests that write transfers past the door."""
    from sonar import partitions

    with django_db_blocker.unblock():
        partitions.ensure(MONTHS)


@pytest.fixture
def real_commits(transactional_db: None) -> None:
    """A database that other threads and processes see, with the default size classes.

    The flush after such a test takes the classes away that a migration had brought.
    """
    from sonar.models import SizeClass

    default = import_module("sonar.migrations.0002_triggers_and_size_classes")
    if not SizeClass.objects.exists():
        with transaction.atomic():
            default.add_default_classes(apps, None)
