"""Engines of Debian's packages, which these tests start and end by themselves."""

import os
from collections.abc import Iterator

import pytest
from django.db import connection

from tests import template
from tests.engines.pgbouncer import Pooler


@pytest.fixture(scope="module")
def pooler(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Pooler]:
    """Return a PgBouncer in front of the database of the tests."""
    url = template.with_tables(os.environ["DATABASE_URL"])
    assert url.endswith(f"/{connection.settings_dict['NAME']}")
    place = tmp_path_factory.mktemp("pgbouncer")
    place.chmod(0o755)
    made = Pooler(place, url)
    made.start()
    yield made
    made.stop()
