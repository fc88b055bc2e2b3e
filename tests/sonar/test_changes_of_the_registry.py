"""The history: whoever changes the registry by whichever channel: who, what, and from what."""

from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from manage import Commands
from sonar import tasks
from sonar.database.actor import acting
from sonar.models import (
    Alias,
    Credential,
    Downtime,
    Endpoint,
    HistoryEntry,
    MeshInterval,
    Site,
    SizeClass,
    UploadedSecret,
)
from sonar.models.topology import SourcedValues
from sonar.people import roles, tokens
from sonar.people.accounts import Identity, admit
from sonar.people.role_rules import RoleRule, RoleRules
from sonar.people.roles import Role
from sonar.registry.downtimes import importing
from tests.sonar.downtimes import gocdb, gocdb_downtime
from tests.sonar.world import NOW, endpoint, finish, in_threads, mesh, queued, three_endpoints

pytestmark = pytest.mark.django_db
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm5hIn0.c2lnbmF0dXJl"


@pytest.fixture(autouse=True)
def emptied(db: None) -> None:
    HistoryEntry.objects.all().delete()


def told() -> list[tuple[str, str, str, dict[str, object]]]:
    """Return what is new in the history, the oldest first, and forget it."""
    rows = HistoryEntry.objects.order_by("id")
    found = [(row.kind, row.name, row.action, row.changes) for row in rows]
    rows.delete()
    return found


def test_a_thing_is_added_changed_and_removed_with_what_it_was() -> None:
    site = Site.objects.create(name="RAL", cloud="UK")
    new = {"name": [None, "RAL"], "cloud": [None, "UK"], "tier": [None, 2]}
    assert told() == [("site", "RAL", "added", new)]
    site.tier = 1
    site.save()
    site.save()  # which changes nothing
    assert told() == [("site", "RAL", "changed", {"tier": [2, 1]})]
    key = site.pk
    site.delete()
    (row,) = HistoryEntry.objects.all()
    assert (row.action, row.key, row.site) == ("removed", key, key)
    assert row.changes == {"name": ["RAL", None], "cloud": ["UK", None], "tier": [1, None]}


def test_rows_that_are_changed_at_once_and_values_of_other_rows_have_an_entry_each() -> None:
    ends = three_endpoints()
    token = Credential.objects.create(name="grid", hosts=["se.example"])
    told()
    Endpoint.objects.update(inbound_cap=F("inbound_cap") + 2, credential=token)
    changes = {"inbound_cap": [2, 4], "credential": [None, "grid"]}
    assert told() == [("endpoint", end.name, "changed", changes) for end in ends]
    for end in ends:
        end.tags = ["tape"]
    Endpoint.objects.bulk_update(ends, ["tags"])
    assert [changes for *_, changes in told()] == [{"tags": [None, ["tape"]]}] * 3


def test_what_belongs_to_a_mesh_an_account_or_a_credential_is_told_of_that() -> None:
    glasgow, _, ral = three_endpoints()
    uk, user = mesh(), User.objects.create_user("anna", password="a-long-password")
    token = Credential.objects.create(name="grid", hosts=["se.example"])
    told()
    uk.sources.set([ral, glasgow])
    uk.sources.set([ral])
    MeshInterval.objects.filter(size_class__name="large").update(every_seconds=7200)
    both = [glasgow.name, ral.name]
    assert told() == [
        ("mesh", "uk", "changed", {"sources": [[], both]}),
        ("mesh", "uk", "changed", {"sources": [both, [ral.name]]}),
        ("mesh", "uk", "changed", {"intervals.large": [3600, 7200]}),
    ]
    roles.give(user, Role.SITE_ADMIN, [ral.site])
    assert told() == [("account", "anna", "changed", {"sites": [[], [ral.site.name]]})]
    UploadedSecret.objects.create(credential=token, content=b"one")
    UploadedSecret.objects.update(content=b"two")
    UploadedSecret.objects.all().delete()
    assert [changes["secret"] for *_, changes in told()] == [
        [None, "uploaded"],
        ["uploaded", "replaced"],
        ["uploaded", None],
    ]


def test_every_table_of_the_registry_has_entries_and_what_tests_write_has_none() -> None:
    ends = three_endpoints()
    end, user = ends[0], User.objects.create_user("anna")
    until = NOW + timedelta(hours=1)
    Downtime.objects.create(endpoint=end, starts_at=NOW, ends_at=until, reason="new disks")
    Alias.objects.create(kind="rse", name="GLA", endpoint=end)
    SourcedValues.objects.create(source="rucio", name="GLA", endpoint=end, values={})
    Credential.objects.create(name="grid", hosts=["se.example"])
    SizeClass.objects.filter(name="large").update(timeout_seconds=60)
    tokens.create(user, "cron", ["read"], 90)
    mesh()
    told_of = {(kind, name) for kind, name, *_ in told()}
    assert told_of >= {
        ("site", end.site.name),
        ("endpoint", end.name),
        ("downtime", end.name),
        ("alias", "GLA"),
        ("topology source", "rucio GLA"),
        ("credential", "grid"),
        ("size class", "large"),
        ("account", "anna"),
        ("token", "cron of anna"),
        ("mesh", "uk"),
    }
    finish(queued(*ends[:2]))
    user.last_login = NOW
    user.save()
    assert told() == []


def test_no_secret_is_in_it_wherever_somebody_has_put_one() -> None:
    user = User.objects.create_user("anna", password="a-long-password")
    _, text = tokens.create(user, "cron", ["read"], 90)
    token = Credential.objects.create(name="grid", hosts=["se.example"])
    UploadedSecret.objects.create(credential=token, content=b"ciphertext-of-it")
    user.set_password("another-password")
    user.save()
    reason = f"use {JWT} or {text} or https://me:hunter2@se.example/"
    Site.objects.create(name="RAL", paused_since=NOW, pause_reason=reason)
    kept = str(list(HistoryEntry.objects.values()))
    digest = user.auth_token_set.get().digest
    hidden = ("a-long", "another", user.password, "ciphertext", JWT[:12], text, digest, "hunter2")
    assert not [secret for secret in hidden if secret in kept]
    assert "use *** or *** or https://***@se.example/" in kept
    assert "{'password': ['set', 'replaced']}" in kept


def by_file(path: Path) -> None:
    (path / "grid.yaml").write_text("sites:\n- {name: RAL, cloud: UK}\n")
    call_command("load_registry", str(path / "grid.yaml"))


def by_log_in(path: Path) -> None:
    admit(Identity("https://iam.example", "1234", "bob", ("/grid",)))


def by_refresh(path: Path) -> None:
    end = endpoint("GLA", base_url="davs://disk.gla.example.org/data")
    HistoryEntry.objects.all().delete()
    announced = gocdb_downtime("1", end.base_url.split("/")[2], NOW, NOW + timedelta(hours=1))
    (path / "gocdb.xml").write_bytes(gocdb(announced))
    importing.import_from("gocdb", str(path / "gocdb.xml"), NOW)


def by_hand(path: Path) -> None:
    Site.objects.create(name="RAL")


CHANNELS = {
    "file": (by_file, "manage.py load_registry grid.yaml"),
    "refresh": (by_refresh, "downtimes from GOCDB"),
    "log-in": (by_log_in, "log-in through iam.example"),
    "database": (by_hand, "sonar"),
}


@pytest.mark.parametrize("channel", CHANNELS)
def test_each_channel_says_who(
    channel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    User.objects.create_user("anna")
    rules = RoleRules((RoleRule("group", "/grid", Role.OPERATOR),))
    monkeypatch.setattr(settings, "SONAR_LOGIN_ROLES", rules)
    HistoryEntry.objects.all().delete()
    go, who = CHANNELS[channel]
    go(tmp_path)
    said = set(HistoryEntry.objects.values_list("channel", "who", "token"))
    assert said == {(channel, who, "")}


def test_who_acts_is_said_for_that_alone_and_again_after_a_rollback() -> None:
    with acting("page", "anna's % {}"):
        Site.objects.create(name="RAL")
        with transaction.atomic():
            Site.objects.create(name="Glasgow")
            transaction.set_rollback(True)
        with acting("refresh", "another"):
            assert Site.objects.filter(name="RAL").update(tier=1) == 1
        Site.objects.filter(name="RAL").update(tier=3)
    rows = HistoryEntry.objects.order_by("id").values_list("name", "who")
    assert list(rows) == [("RAL", "anna's % {}"), ("RAL", "another"), ("RAL", "anna's % {}")]


@pytest.mark.django_db(transaction=True)
def test_a_command_is_named_without_what_was_written_behind_it() -> None:
    User.objects.create_user("anna")
    HistoryEntry.objects.all().delete()
    Commands(["manage.py", "role", "anna", "administrator"]).execute()
    (row,) = HistoryEntry.objects.filter(kind="account")
    assert (row.channel, row.who) == ("command", "manage.py role")
    assert row.changes == {"is_superuser": [False, True], "is_staff": [False, True]}
    with pytest.raises(CommandError, match="the last active administrator"):
        call_command("role", "anna", "operator")
    assert HistoryEntry.objects.filter(kind="account").count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_who_change_a_thing_at_once_have_an_entry_each() -> None:
    end = endpoint("RAL")
    HistoryEntry.objects.all().delete()

    numbers = count()

    def raise_cap() -> None:
        with acting("page", f"number {next(numbers)}"):
            Endpoint.objects.filter(pk=end.pk).update(inbound_cap=F("inbound_cap") + 1)

    in_threads(4, raise_cap)
    rows = HistoryEntry.objects.order_by("id")
    assert {row.who for row in rows} == {f"number {who}" for who in range(4)}
    steps = sorted(row.changes["inbound_cap"] for row in rows)
    assert steps == [[2, 3], [3, 4], [4, 5], [5, 6]]


def test_what_is_too_old_is_dropped_and_the_rest_is_kept() -> None:
    Site.objects.create(name="RAL")
    Site.objects.create(name="Glasgow")
    ago = timezone.now() - timedelta(days=settings.SONAR_HISTORY_DAYS + 1)
    HistoryEntry.objects.filter(name="RAL").update(at=ago)
    tasks.apply_retention()
    assert [name for _, name, *_ in told()] == ["Glasgow"]


def test_each_table_of_the_registry_has_its_trigger() -> None:
    """A new column is told of by itself; a new table needs a trigger, or a word here."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger WHERE tgname LIKE %s",
            ["%_has_history%"],
        )
        watched = {table for (table,) in cursor.fetchall()}
        cursor.execute(
            "SELECT tgrelid::regclass::text FROM pg_trigger "
            "WHERE encode(tgargs, 'escape') LIKE 'registry%'"
        )
        counted = {table for (table,) in cursor.fetchall()}
    assert counted <= watched
