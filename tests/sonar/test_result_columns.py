"""One table has the columns of a result: the model, and whatever is made of them, agree with it."""

import re
from dataclasses import fields
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from sonar.models import Endpoint, Probe, Profile, SizeClass, Transfer
from sonar.movers.base import Receipt
from sonar.movers.measure import Outcome
from sonar.movers.watch import Seen
from sonar.notation import result_columns
from sonar.notation.result_columns import COLUMNS, RECORD, REPORTED_BY_MOVERS, STORED, Column, Home
from sonar.records.record import ALLOWED, from_json
from sonar.results import endings
from tests.imports import PROJECT
from tests.recipes import block
from tests.sonar.world import NOW

Grid = tuple[Endpoint, Endpoint, Endpoint]
MOST_FILES = 3
TYPES = {"timestamptz": "timestamp with time zone", "bool": "boolean", "varchar": "varchar(260)"}


def test_what_is_stored_are_the_columns_of_the_table_in_the_database(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, udt_name, is_nullable FROM information_schema.columns "
            "WHERE table_name = 'sonar_transfer'"
        )
        rows = {name: (kind, null == "YES") for name, kind, null in cursor.fetchall()}
    stored = {
        column.name: (column.postgres, column.empty is None and not column.required)
        for column in STORED
    }
    assert stored == rows


def test_columns_of_profiles_are_fields_of_profiles() -> None:
    fields = {field.name for field in Profile._meta.get_fields()}
    assert {column.name for column in COLUMNS if column.home is Home.PROFILE} <= fields
    assert len({column.name for column in COLUMNS}) == len(COLUMNS)


def test_a_mover_cannot_say_what_no_column_has() -> None:
    with pytest.raises(AttributeError, match="queue_secnods"):
        Seen().queue_secnods = 3.0
    with pytest.raises(TypeError, match="worker"):
        Seen(worker="w1")
    names = {column.name for column in REPORTED_BY_MOVERS}
    assert {each.name for each in fields(Seen())} == {"samples", *names}


def test_a_column_stands_in_few_files_of_the_product() -> None:
    paths = (
        path
        for room in ("sonar", "matrix", "templates", "static")
        for path in (PROJECT / room).rglob("*")
        if path.suffix in (".py", ".html", ".js") and "migrations" not in path.parts
    )
    files = [path for path in paths if re.search(r"\bqueue_seconds\b", path.read_text())]
    movers = [path for path in files if "movers" in path.parts]  # one for each that can tell it
    assert len(files) - len(movers) <= MOST_FILES, files
    assert len(movers) == len({"http-tpc", "fts3"})


def test_each_column_says_what_it_is() -> None:
    assert [column.name for column in COLUMNS if not column.sentence.endswith(".")] == []
    assert [name for name, allowed in ALLOWED.items() if allowed.endswith(".")] == []


def test_the_recipe_of_the_docs_is_an_entry() -> None:
    code = block("A column of a result", "sonar/notation/result_columns.py")
    column = eval(code, vars(result_columns))
    assert isinstance(column, Column)
    assert (column.sql, column.null, column.internal) == ("hops", True, False)


def running(grid: Grid) -> Probe:
    source, _, destination = grid
    return Probe.objects.create(
        id=uuid4(),
        source=source,
        destination=destination,
        size_class=SizeClass.objects.get(name="large"),
        bytes=2 * 10**9,
        mover="http-tpc",
        requested_at=NOW,
        sent_at=NOW,
        state="running",
        started_at=NOW,
        deadline=NOW,
    )


@pytest.mark.parametrize(
    ("server", "kept"),
    [
        ("st-048.example.org:8443", "st-048.example.org:8443"),
        ("[2001:db8::48]:1094", "[2001:db8::48]:1094"),
        ("st-048.example.org", ""),
        ("=cmd|calc:1", ""),
        ("st-048.example.org:8443/x?token=secret", ""),
    ],
)
def test_the_server_that_a_mover_names_is_kept_if_it_is_one(
    grid: Grid, server: str, kept: str
) -> None:
    seen = Seen(data_server=server)
    outcome = Outcome(Receipt(2 * 10**9, 10.0), None, None, 10.0, 1.0, seen, verified=True)
    probe = running(grid)
    assert endings.end_probe(probe, outcome)
    assert Transfer.objects.get(id=probe.id).data_server == kept


def test_a_failed_test_keeps_it_too(grid: Grid) -> None:
    probe = running(grid)
    outcome = Outcome(None, None, None, 10.0, 1.0, Seen(data_server="st-048.example.org:1094"))
    assert endings.end_probe(probe, outcome)
    assert Transfer.objects.get(id=probe.id).data_server == "st-048.example.org:1094"


def test_a_record_has_it() -> None:
    record: dict[str, Any] = {
        "id": str(uuid4()),
        "source": "A",
        "destination": "B",
        "started_at": "2026-11-20T03:00:00Z",
        "seconds": 10,
        "bytes": 10,
        "state": "done",
        "mover": "fts",
    }
    read = from_json(record | {"data_server": "st-048.example.org:1094"})
    assert read.account == {"data_server": "st-048.example.org:1094"}
    assert "data_server" in {column.name for column in RECORD}
