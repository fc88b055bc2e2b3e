"""What a test has committed is gone before the next, and nothing else."""

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import connection

from matrix.store import registry
from sonar.models import HistoryEntry
from tests import flush
from tests.accounts import account
from tests.matrix.world import World, transfer


def filled() -> dict[str, int]:
    """Return how many rows each table has that has any."""
    counts = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT count(*) FROM "{table}"')
            counts[table] = cursor.fetchone()[0]
    return {table: count for table, count in counts.items() if count}


@pytest.mark.usefixtures("real_commits")
def test_what_was_committed_is_taken_back_as_django_does_it(small_world: World) -> None:
    transfer(small_world.ral, small_world.glasgow, 5.0)
    account().groups.add(Group.objects.create(name="others"))
    before = registry.read_versions()
    flush.empty()
    left = filled()
    assert registry.read_versions().registry not in (None, before.registry)
    call_command("flush", verbosity=0, interactive=False)
    # That makes the group of operators again, which is in the history of a Sonar as it begins.
    HistoryEntry.objects.all().delete()
    assert left == filled()
