"""Backups: a file that says what it holds, and the way back, complete or without a change."""

import json
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import BytesIO, StringIO
from pathlib import Path

import psycopg
import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from psycopg import conninfo
from pytest_django import DjangoDbBlocker

from sonar.database import tables
from sonar.database.backups import label, programs
from sonar.database.backups import restore as restoring
from sonar.models import Endpoint, SignOfLife, Transfer
from sonar.sandbox import embedded
from tests.clusters import Cluster, cluster
from tests.flush import add_size_classes
from tests.matrix import sent, world
from tests.needs import lacks
from tests.sonar.migrating import migrate

SOURCE = "source"
OLDER = ("sonar", "0035_meshes_by_filter")
OTHER_MAJOR = Path("/usr/lib/postgresql/15/bin")
RESULTS = "SELECT count(*) FROM sonar_transfer"


@pytest.fixture(scope="module")
def databases(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[Cluster]:
    """A cluster with a Sonar of three sites and 40 results, two workers' signs and a session."""
    with cluster(tmp_path_factory, django_db_blocker) as made:
        made.make(SOURCE, "test_postgres")
        with made.inside(SOURCE):
            fill()
        yield made


def fill() -> None:
    from sonar.results import store

    add_size_classes()
    grid = world.make()
    store.make_months([world.NOW, world.NOW - timedelta(days=40)])
    sent.many(grid.ral, grid.glasgow, 39, world.NOW)
    sent.send(grid.ral, grid.desy, world.NOW - timedelta(days=40))
    Session.objects.create(session_key="k", session_data="d", expire_date=timezone.now())
    alive("transfers@elsewhere", age=timedelta(hours=1))


def alive(name: str, age: timedelta = timedelta(0)) -> None:
    SignOfLife.objects.create(
        name=name, kind=SignOfLife.Kind.WORKER, seen_at=timezone.now() - age, every_seconds=10
    )


@pytest.fixture(scope="module")
def backup(databases: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("backups") / "sonar.backup"
    with databases.inside(SOURCE):
        call_command("backup", str(path), stderr=StringIO())
    return path


def restore(databases: Cluster, name: str, *arguments: str) -> str:
    out = StringIO()
    with databases.inside(name):
        call_command("restore", *arguments, stdout=out)
    return out.getvalue()


def refused(databases: Cluster, name: str, *arguments: str) -> str:
    with pytest.raises(CommandError) as error:
        restore(databases, name, *arguments)
    return str(error.value)


def test_a_backup_says_what_it_holds_and_what_not_and_only_its_owner_reads_it(
    databases: Cluster, tmp_path: Path
) -> None:
    path, err = tmp_path / "sonar.backup", StringIO()
    with databases.inside(SOURCE):
        call_command("backup", str(path), stderr=err)
    said = err.getvalue()
    assert "40 results, from 2026-10-11T12:00:30Z to 2026-11-20T" in said
    assert "4 endpoints at 3 sites" in said
    assert "sessions: all users must log in again" in said
    assert "credential files" in said
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*tmp_path.iterdir()] == [path]

    before = path.read_bytes()
    with databases.inside(SOURCE), pytest.raises(CommandError, match="add --force"):
        call_command("backup", str(path))
    assert path.read_bytes() == before
    with databases.inside(SOURCE):
        call_command("backup", str(path), "--force", stderr=StringIO())
    assert path.read_bytes() != before


def test_all_comes_back_but_sessions_and_signs(databases: Cluster, backup: Path) -> None:
    name = databases.make("empty")
    said = restore(databases, name, str(backup))
    assert "empty: restored, 40 results" in said
    assert "manage.py credentials" in said
    rows = (
        "SELECT md5(string_agg(row::text, ';' ORDER BY row::text)) FROM ("
        "SELECT id, state, bytes FROM sonar_transfer) AS row"
    )
    assert databases.ask(name, rows) == databases.ask(SOURCE, rows)
    assert databases.ask(name, "SELECT count(*) FROM django_session") == 0
    assert databases.ask(name, "SELECT count(*) FROM sonar_signoflife") == 0
    assert databases.ask(SOURCE, "SELECT count(*) FROM django_session") == 1
    with databases.inside(name):
        # What makes it a Sonar: its functions and triggers, its sequences, a table for each month.
        before = databases.ask(name, "SELECT value FROM sonar_version WHERE name = 'registry'")
        Endpoint.objects.filter(name="RAL_DATADISK").update(label="x")
        after = databases.ask(name, "SELECT value FROM sonar_version WHERE name = 'registry'")
        assert after > before
        sent.send(*Endpoint.objects.order_by("pk")[:2], world.NOW)
        assert Transfer.objects.count() == 41


def test_a_database_with_anything_in_it_is_emptied_only_on_demand(
    databases: Cluster, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = databases.make("full", SOURCE)
    databases.ask(name, "DELETE FROM sonar_transfer WHERE bytes > 0")
    databases.ask(name, "CREATE TABLE of_a_newer_sonar (endpoint bigint REFERENCES sonar_endpoint)")
    assert "The database full is not empty: it holds a Sonar database with 0 results" in refused(
        databases, name, str(backup)
    )
    # Who lives: a worker, and whoever is connected.
    with databases.inside(name):
        alive("transfers@here")
    assert "Sonar is running on the database full: transfers@here" in refused(
        databases, name, str(backup), "--replace", "--yes"
    )
    databases.ask(name, "DELETE FROM sonar_signoflife")
    with psycopg.connect(databases.address(name)):
        assert "has 1 other open session." in refused(
            databases, name, str(backup), "--replace", "--yes"
        )
    assert "Confirm --replace" in refused(databases, name, str(backup), "--replace")

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: "no")
    assert "Confirm --replace" in refused(databases, name, str(backup), "--replace")
    assert databases.ask(name, RESULTS) == 0
    monkeypatch.setattr("builtins.input", lambda question: name)
    restore(databases, name, str(backup), "--replace")
    assert databases.ask(name, RESULTS) == 40
    assert databases.ask(name, "SELECT to_regclass('of_a_newer_sonar')") is None


def test_what_is_of_nobody_s_sonar_is_named_before_it_is_emptied(
    databases: Cluster, backup: Path
) -> None:
    name = databases.make("other")
    databases.ask(name, "CREATE TABLE accounts (name text)")
    assert "it holds 1 tables and functions of another application" in refused(
        databases, name, str(backup)
    )
    with databases.inside(name), pytest.raises(CommandError, match="other has no Sonar tables"):
        call_command("backup", "never.backup")


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def other_label(**values: object) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        length = int(content[-14:])
        begin = len(content) - label.FOOTER - length
        text = json.dumps(json.loads(content[begin : begin + length]) | values).encode()
        return content[:begin] + text + b"%s%013d\n" % (label.MARK, len(text))

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (cut, "was truncated or made with another program"),
        (flip, "is damaged: its checksum"),
        (lambda content: b"what", "is not a Sonar backup"),
        (lambda content: b"", "is not a Sonar backup"),
        (
            other_label(sonar="9.1", migrations=[["sonar", "9999_of_the_future"]]),
            r"made by Sonar 9\.1.*sonar\.9999_of_the_future; count: 1.*Install Sonar 9\.1 or newer",
        ),
        (
            other_label(rows={"public.sonar_site": 4}),
            "public.sonar_site has 3 rows, and the backup noted 4",
        ),
        (other_label(programs=99), "Install the programs of that version.*client-99"),
    ],
)
def test_a_file_that_will_not_do_is_refused_and_changes_nothing(
    change: Callable[[bytes], bytes],
    why: str,
    databases: Cluster,
    backup: Path,
    tmp_path: Path,
) -> None:
    name = databases.make("kept", SOURCE)
    databases.ask(name, "DELETE FROM sonar_signoflife")
    path = tmp_path / "other.backup"
    path.write_bytes(change(backup.read_bytes()))
    said = refused(databases, name, str(path), "--replace", "--yes")
    assert re.search(why, said, re.DOTALL), said
    assert databases.ask(name, RESULTS) == 40


def test_a_restore_that_is_broken_off_in_the_middle_leaves_all_as_it_was(
    databases: Cluster, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = databases.make("kept", SOURCE)
    databases.ask(name, "DELETE FROM sonar_signoflife")
    send, rows = restoring._send, b"COPY public.sonar_transfer_"

    def die(descriptor: int, piece: bytes) -> None:
        """Send a part of the rows and no more, as whoever is killed."""
        if rows in piece:
            send(descriptor, piece[: piece.index(rows) + 500])
            raise MemoryError
        send(descriptor, piece)

    monkeypatch.setattr(restoring, "_send", die)
    with pytest.raises(MemoryError):
        restore(databases, name, str(backup), "--replace", "--yes")
    assert databases.ask(name, RESULTS) == 40


def test_results_that_are_stored_while_a_backup_is_written_are_in_it_or_not_as_it_says(
    databases: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is committed after the snapshot, before pg_dump starts: neither file nor label has it."""
    name, address = databases.make("busy", SOURCE), programs.address
    again = (
        "INSERT INTO sonar_transfer SELECT (jsonb_populate_record(one, jsonb_build_object('id', "
        "gen_random_uuid()))).* FROM sonar_transfer AS one LIMIT 1"
    )

    def address_later() -> str:
        databases.ask(name, again)
        return address()

    monkeypatch.setattr(programs, "address", address_later)
    with databases.inside(name):
        call_command("backup", str(tmp_path / "busy.backup"), stderr=StringIO())
    assert databases.ask(name, RESULTS) == 41
    assert label.read(tmp_path / "busy.backup").results == 40


@pytest.mark.long
def test_a_backup_of_an_older_sonar_is_migrated_afterwards(
    databases: Cluster, tmp_path: Path
) -> None:
    old = databases.make("old", SOURCE)
    with databases.inside(old):
        migrate([OLDER])
    noted = label_of(old, databases, tmp_path / "old.backup")
    assert ("sonar", noted.migration) == OLDER
    name = databases.make("upgraded")
    restore(databases, name, str(tmp_path / "old.backup"))
    with psycopg.connect(databases.address(name)) as session:
        assert tables.problem(session) is None
    assert databases.ask(name, RESULTS) == 40


@pytest.mark.long
def test_a_backup_of_one_major_version_is_restored_in_another(
    databases: Cluster,
    backup: Path,
    tmp_path: Path,
    django_db_blocker: DjangoDbBlocker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Down, which is for nobody to rely on, and from there up again."""
    if not OTHER_MAJOR.exists():
        lacks("needs PostgreSQL 15")
    path = tmp_path / "of15.backup"
    monkeypatch.setattr(embedded, "postgres_binary", lambda name: str(OTHER_MAJOR / name))
    tmp_path.chmod(0o755)
    with (
        embedded.socket_directory() as sockets,
        embedded.postgres(tmp_path / "postgres", sockets, tmp_path / "postgres.log") as url,
    ):
        older = Cluster(url, django_db_blocker)
        restore(older, older.make("down"), str(backup))
        assert label_of("down", older, path).postgres == 15
    restore(databases, databases.make("up"), str(path))
    assert databases.ask("up", RESULTS) == 40


def test_a_backup_goes_down_a_pipe_and_never_to_a_terminal(
    databases: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pipe(StringIO):
        buffer = BytesIO()

    err, pipe = StringIO(), Pipe()
    monkeypatch.setattr("sys.stdout", pipe)
    with databases.inside(SOURCE):
        call_command("backup", "-", stderr=err)
        monkeypatch.setattr(pipe, "isatty", lambda: True)
        with pytest.raises(CommandError, match="A backup is binary"):
            call_command("backup", "-")
    path = tmp_path / "piped.backup"
    path.write_bytes(Pipe.buffer.getvalue())
    assert "has not been verified" in err.getvalue()
    restore(databases, databases.make("piped"), str(path))
    assert databases.ask("piped", RESULTS) == 40


def test_the_password_is_in_no_argument_of_a_program(
    databases: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[list[str], dict[str, str]]] = []
    popen = subprocess.Popen

    def noting(command: list[str], **streams: object) -> object:
        if "--version" not in command:
            begun.append((command, streams["env"]))  # type: ignore[arg-type]
        return popen(command, **streams)  # type: ignore[call-overload]

    monkeypatch.setenv("SONAR_SECRET_KEY", "not-of-programs")
    path, name = tmp_path / "sonar.backup", databases.make("locked")
    with databases.inside(SOURCE, PASSWORD="open sesame"):
        monkeypatch.setattr(programs.subprocess, "Popen", noting)
        call_command("backup", str(path), stderr=StringIO())
    with databases.inside(name, PASSWORD="open sesame"):
        call_command("restore", str(path), stdout=StringIO())
    names = [Path(command[0]).name for command, _ in begun]
    assert names == ["pg_dump", "pg_restore", "psql", "pg_restore"]
    for command, environment in begun:
        assert "sesame" not in " ".join(command)
        assert environment["PGPASSWORD"] == "open sesame"
        assert "SONAR_SECRET_KEY" not in environment


def test_an_address_of_several_hosts_is_passed_on_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parameters = {"host": "db1,db2", "port": "5432,5433", "dbname": "sonar", "password": "sesame"}
    parameters |= {"target_session_attrs": "read-write", "prepare_threshold": 0, "user": ""}
    monkeypatch.setattr(connection, "get_connection_params", lambda: parameters)
    address = conninfo.conninfo_to_dict(programs.address())
    assert address.pop("options") == programs.WITHOUT_LIMITS
    assert address == {
        "host": "db1,db2",
        "port": "5432,5433",
        "dbname": "sonar",
        "target_session_attrs": "read-write",
    }


def program(directory: Path, major: int) -> Path:
    """Make a directory with programs that say they are of a version."""
    directory.mkdir()
    for name in programs.NAMES:
        (directory / name).write_text(f"#!/bin/sh\necho 'pg_dump (PostgreSQL) {major}.1'\n")
        (directory / name).chmod(0o755)
    return directory


def test_programs_are_those_of_the_server_or_newer_and_older_ones_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = {major: program(tmp_path / str(major), major) for major in (14, 16, 17)}
    monkeypatch.setattr(programs, "_directories", lambda: iter(there.values()))
    assert programs.choose(16, None).directory == there[16]
    assert programs.choose(15, None).directory == there[16]
    with pytest.raises(programs.BackupError, match=r"PostgreSQL 17 .*is older.*client-18"):
        programs.choose(18, None)
    with pytest.raises(programs.BackupError, match=r"PostgreSQL 14 .*client-16"):
        programs.choose(16, there[14])
    with pytest.raises(programs.BackupError, match="psql were not found in"):
        programs.choose(16, tmp_path)


def label_of(name: str, databases: Cluster, path: Path) -> label.Label:
    with databases.inside(name):
        call_command("backup", str(path), "--force", stderr=StringIO())
    return label.read(path)
