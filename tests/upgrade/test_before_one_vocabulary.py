"""A database from before the change to one vocabulary is migrated, and nothing in it is lost.

`before_one_vocabulary.sql.gz` is a dump at migration 0060, made by `before_one_vocabulary.txt`.
Each test reads the same migrated copy of it, so a failure names one thing that was not carried
over.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from matrix.answers import search
from matrix.assessment import assessing, folding, silence
from matrix.store import registry, segment_columns
from sonar.models import HistoryEntry, SavedView
from tests.clusters import Cluster, cluster
from tests.matrix import world

DUMP = Path(__file__).with_name("before_one_vocabulary.sql.gz")
LINK = "/links/RAL_DATADISK/DESY_DATADISK/"
VIEWS = {
    "alone": "/?concurrent=none&size=large",
    "alone in the table": "/table/?concurrent=some",
    "concurrent unknown": "/?size=large&concurrent=unknown&site=RAL",
    "alone against others": "/?compare.concurrent=some&concurrent=none&size=large",
    "alone on a link": f"{LINK}?concurrent=none&size=large",
    "below target": "/?stat=vs_target&size=large",
    "predicted": "/?stat=predicted&size=large&window=7d",
    "vs predicted": "/?stat=vs_predicted&size=large&window=7d",
    "site vs predicted": "/?by=site&stat=vs_predicted",
    "wall": "/?view=1&every=60&stat=vs_target",
    "expectations": "/targets/",
    "one expectation": "/targets/least/",
    "history of the API": "/history/?channel=API",
    "history of expectations": "/history/?kind=target&channel=page",
    "history of sites": "/history/?kind=site&name=RAL",
    "names": "/operations/aliases/",
    "causes": "/causes/?concurrent=none&size=large",
    "site": "/sites/RAL/?concurrent=none&size=large",
    "subscriptions": "/subscriptions/",
    "report": "/reports/2026-W46/?site=RAL",
    "nothing renamed": "/table/?size=small&window=7d",
    "a site's name": "/history/?kind=mesh&name=beside=0",
    "a search for old words": "/search/?q=level=site&door=beside",
    "experiments only": "/table/?purpose=sweep",
    "experiments against schedule": "/?purpose=scheduled&compare.purpose=sweep&size=large",
    "experiment": "/sweeps/dd1b50e6-84a4-497b-a32a-1404c9a4683e/",
    "experiments of a link": f"{LINK}sweeps/",
    "of another": "/table/?concurrent=none&purpose=sweep",
    "events of sources": "/events/?type=slower&scope=source&significant=any&window=7d",
    "events open now": "/events/?scope=link&now=yes",
    "failing events": "/events/?type=failing&window=30d",
    "changes of old": "/events/?scope=source&type=slower&significant=any",
    "changes without a question": "/events/",
    "incidents of sites": "/incidents/?scope=site&open=yes",
    "incidents of links": "/incidents/?scope=link&type=slow&window=30d",
}
"""Saved views by name, with the addresses that the migrations give them."""


@pytest.fixture(scope="module")
def migrated(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[Cluster]:
    """The dump, restored and migrated, as the database that Django uses."""
    with cluster(tmp_path_factory, django_db_blocker) as databases:
        name = databases.make("before")
        with psycopg.connect(databases.address(name), autocommit=True) as session:
            session.execute(gzip.decompress(DUMP.read_bytes()))
        with databases.inside(name):
            call_command("migrate", verbosity=0)
            forget_databases()
            yield databases
        forget_databases()


def forget_databases() -> None:
    """Empty the caches that go by numbers of rows and versions, which two databases share."""
    segment_columns.CACHE.clear()
    folding.forget()
    kept = (registry._places, registry._links, registry._plans, silence._rules, search._sites)
    for cache in (*kept, assessing._confirmed):
        cache.forget()


@pytest.fixture
def anna(migrated: Cluster, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client of an administrator, at the hour of the newest result."""
    monkeypatch.setattr(timezone, "now", lambda: world.NOW)
    client = Client()
    client.force_login(User.objects.get(username="anna"))
    return client


def rows(statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def test_every_saved_view_is_listed_here(migrated: Cluster) -> None:
    assert {*VIEWS} == {*SavedView.objects.values_list("name", flat=True)}


@pytest.mark.parametrize("name", VIEWS)
def test_a_saved_view_has_the_new_words_and_opens(anna: Client, name: str) -> None:
    address = SavedView.objects.get(name=name).address
    assert address == VIEWS[name]
    answer = anna.get(address, follow=True)
    assert answer.status_code == 200, address


def test_rates_of_targets_are_in_mb_s(migrated: Cluster) -> None:
    statement = "SELECT name, floor_mb_s, failures, enabled FROM sonar_target ORDER BY name"
    assert rows(statement) == [("least", 25.0, 4, True), ("usual", None, 3, False)]


def test_results_are_chosen_by_concurrent_tests_as_before(anna: Client) -> None:
    """A third of the scheduled tests ran alone, a third did not, of a third it is not recorded."""
    link = {"source.has": "RAL_DATADISK", "destination.has": "Glasgow_DATADISK", "window": "30d"}
    counts = {}
    for value in ("none", "some", "unknown"):
        answer = anna.get("/api/v1/links/", {**link, "concurrent": value})
        assert answer.status_code == 200, answer.content
        (row,) = answer.json()["links"]
        counts[value] = row["large"]["ok"]
    assert max(counts.values()) - min(counts.values()) <= 2, counts
    assert min(counts.values()) > 30, counts


def test_incidents_keep_their_numbers_and_the_work_of_people(migrated: Cluster) -> None:
    work = """
        SELECT incident.id, ack.username, assignee.username, muted_until, merged_into_id
        FROM sonar_incident AS incident
        LEFT JOIN auth_user AS ack ON ack.id = acknowledged_by_id
        LEFT JOIN auth_user AS assignee ON assignee.id = assignee_id
        ORDER BY incident.id
    """
    assert rows(work) == [
        (1, None, None, None, None),
        (2, None, None, None, None),
        (3, None, "anna", None, None),
        (4, "ben", None, None, None),
        (5, None, None, world.NOW + 24 * world.HOUR, None),
        (6, None, None, None, None),
        (7, None, None, None, 5),
    ]
    notes = """
        SELECT incident_id, text FROM sonar_incidentevent WHERE text LIKE 'note on %' ORDER BY 1
    """
    scopes = ("link", "source", "destination", "endpoint", "site", "grid", "link")
    assert rows(notes) == [(number, f"note on {scope}") for number, scope in enumerate(scopes, 1)]


def test_a_page_of_each_incident_opens(anna: Client) -> None:
    for number in range(1, 8):
        assert anna.get(f"/incidents/{number}/").status_code == 200, number


def test_subscriptions_and_report_orders_are_there(migrated: Cluster) -> None:
    statement = """
        SELECT subscription.name, owner.username, scope, incident_types, report, cloud
        FROM sonar_subscription AS subscription
        LEFT JOIN auth_user AS owner ON owner.id = owner_id ORDER BY 1
    """
    assert rows(statement) == [
        ("everything", None, "grid", [], "", ""),
        ("mine", "anna", "own", ["failing"], "", ""),
        ("monthly", "ben", "sites", [], "month", ""),
        ("shift", None, "sites", ["slow", "silent"], "", ""),
        ("weekly", "anna", "grid", [], "week", "UK"),
    ]


def test_history_entries_keep_their_channels_and_kinds(migrated: Cluster) -> None:
    statement = """
        SELECT channel, kind, count(*) FROM sonar_historyentry
        WHERE name LIKE '% by %' GROUP BY channel, kind
    """
    entries = {(channel, kind): count for channel, kind, count in rows(statement)}
    assert {channel for channel, _ in entries} == {*HistoryEntry.Channel.values}
    assert {kind for _, kind in entries} <= {*HistoryEntry.Kind.values}
    assert {*entries.values()} == {1}
    floors = HistoryEntry.objects.filter(name__startswith="expectation by ")
    assert all(entry.changes == {"floor_mb_s": [1, 2]} for entry in floors)
    assert floors.count() == len(HistoryEntry.Channel.values)


def test_results_and_segments_are_there(migrated: Cluster) -> None:
    assert rows("SELECT count(*) FROM sonar_transfer") == [(1543,)]
    assert rows("SELECT count(*) > 500 FROM sonar_segment") == [(True,)]
