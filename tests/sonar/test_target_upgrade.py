"""Expectations of an older Sonar become targets, and whatever was stored of them follows."""

from json import dumps
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from sonar.models import FileRow, HistoryEntry, SavedView, Target
from tests.sonar.migrating import migrate, migrate_to_now

BEFORE = [("sonar", "0064_addresses_of_views")]
ADDRESSES = {
    "/?size=large&stat=expectation": "/?size=large&stat=vs_target",
    "/?stat=expectation&only=below#RAL": "/?stat=vs_target&only=below#RAL",
    "/expectations/uk/": "/targets/uk/",
    "/history/?kind=expectation": "/history/?kind=target",
    "/?stat=mean&label=expectation": "/?stat=mean&label=expectation",
}
CHANGES = {
    "expectation": ({"floor": [None, 2e7], "name": [None, "uk"]}, "floor_mb_s", [None, 20]),
    "new normal": ({"rate": [None, 5e6]}, "rate_mb_s", [None, 5]),
    "group": (
        {"permissions": [[], ["add_expectation"]]},
        "permissions",
        [[], ["add_target"]],
    ),
}

NOW = {"expectation": "target", "new normal": "baseline"}


def write(statement: str, *values: object) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else None


@pytest.mark.long
@pytest.mark.usefixtures("real_commits")
def test_expectations_become_targets_with_all_that_is_stored_of_them_and_go_back() -> None:
    anna = User.objects.create(username="anna")
    for address in ADDRESSES:
        SavedView.objects.create(user=anna, name=address, address=address)
    FileRow.objects.create(kind="expectations", name="uk", fields={"name": "uk", "floor": 2e7})
    migrate(BEFORE)
    try:
        write(
            "INSERT INTO sonar_expectation (name, priority, enabled, floor, below, above, failures,"
            " silent_after) VALUES ('uk', 5, true, 2e7, 0.5, 0.8, 3, 3)"
        )
        HistoryEntry.objects.all().delete()
        for kind, (changes, *_) in CHANGES.items():
            fields = {"at": "2026-11-20T12:00:00Z", "channel": "page", "key": 1, "action": "added"}
            insert_history(kind, changes, fields)
        migrate_to_now()
        assert Target.objects.get().floor_mb_s == 20
        stored = {entry.kind: entry.changes for entry in HistoryEntry.objects.all()}
        assert len(stored) == len(CHANGES) == HistoryEntry.objects.count()
        for kind, (_, field, values) in CHANGES.items():
            assert stored[NOW.get(kind, kind)][field] == values
        views = dict(SavedView.objects.values_list("name", "address"))
        assert views == ADDRESSES
        row = FileRow.objects.get()
        assert (row.kind, row.fields) == ("targets", {"name": "uk", "floor": 20})
        Target.objects.update(priority=7)
        latest = HistoryEntry.objects.latest("id")
        assert (latest.kind, latest.changes) == ("target", {"priority": [5, 7]})
        migrate(BEFORE)
        assert write("SELECT floor, priority FROM sonar_expectation") == [(2e7, 7)]
        assert write("SELECT kind, fields ->> 'floor' FROM sonar_filerow") == [
            ("expectations", "20000000")
        ]
    finally:
        migrate_to_now()


def insert_history(kind: str, changes: dict[str, Any], fields: dict[str, Any]) -> None:
    """Store an entry by the columns of the time before the migration."""
    names = ", ".join(fields)
    marks = ", ".join(["%s"] * len(fields))
    write(
        f"INSERT INTO sonar_historyentry (kind, changes, who, token, name, {names})"
        f" VALUES (%s, %s, '', '', 'uk', {marks})",
        *(kind, dumps(changes), *fields.values()),
    )
