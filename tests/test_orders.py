"""Whatever shows rows orders them to the last key, so that two that tie never change places.

PostgreSQL returns rows that tie as they lie on disk or as its plan has it, and any update moves
them. One test reads every page and call, turns the rows of all tables round on disk, and reads them
again; the other reads the code.
"""

import ast
import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.test import Client
from pytest_django import Settings

from matrix.http import questions
from matrix.store.cache import ANSWERS, STANDINGS
from sonar.models import Annotation, Condition, Endpoint, Incident, Probe, Site, UnknownAlias
from sonar.people.roles import Role
from tests import found, rights_samples
from tests.accounts import account, logged_in
from tests.matrix import changed, network, sent, world
from tests.matrix.world import HOUR, NOW
from tests.rights_samples import SAMPLES

PROJECT = Path(__file__).resolve().parent.parent
# /metrics has the memory of this process, /readyz its connections; the schema has no rows.
NOT_COMPARED = {"/metrics", "/readyz", "/api/v1/schema/", "/api/v1/docs/"}
READ = {route: sample for (route, method), sample in SAMPLES.items() if method == "GET"}
PATHS = [READ[route].path for route in sorted(READ.keys() - NOT_COMPARED)]
# Of a site with two endpoints.
PATHS += ["/sites/DESY/", "/api/v1/sites/DESY/"]
# Tokens of forms, and the version of the data, which has the numbers of transactions.
VOLATILE = (
    rb'name="csrfmiddlewaretoken" value="\w+"|\d+\.\d+-\d+-\d+\.\d+-\d+[.\d-]*'
    # How long the text is that has a version, what fills it up to a multiple of eight, and where
    # what follows it begins.
    rb'|\A[^{]{4}(?=\{"arrangement")|(?<=\}) +|(?<="offset":)\d+'
)
# From the last row of a table on disk to its first, and back.
TURN = (
    "CREATE TEMPORARY TABLE turned AS SELECT {1} FROM {0} ORDER BY tableoid DESC, ctid DESC",
    "DELETE FROM {0}",
    "INSERT INTO {0} ({1}) SELECT {1} FROM turned",
    "DROP TABLE turned",
)


def add_ties(ends: list[Endpoint]) -> None:
    """Add rows that differ in nothing by which one would order them."""
    first, second, third, _ = ends
    site = third.site
    told = {"origin": "gocdb", "key": "46867G0", "reason": "one of many hosts"}
    for end in ends:
        world.downtime(endpoint=end, **told)
    for text in ("one", "two", "three"):
        Annotation.objects.create(site=site, text=text, starts_at=NOW - HOUR, public=True)
        UnknownAlias.objects.create(
            kind="rcsite", name=text, source="osg", first_at=NOW, last_at=NOW, times=3
        )
    for error in ("no route to host", "certificate has expired", "disk quota exceeded"):
        for where in ("source", "destination"):
            sent.send(first, third, NOW - HOUR, error=error, error_where=where)
    for server in ("a.example.org:1", "b.example.org:1", "c.example.org:1"):
        sent.send(first, third, NOW - HOUR, data_server=server, redirect_seconds=0.5)
    Condition.objects.all().delete()
    for source, destination in permutations(ends, 2):
        sent.send(source, destination, NOW - HOUR, error="connection refused")
        changed.change(source, destination)
        changed.outage(source, destination)
        if not Probe.objects.filter(source=source, destination=destination).exists():
            sent.probe(source, destination)
    changed.change(first, None)
    changed.change(None, second)
    changed.assessed()
    network.measured(first, third)
    network.measured(third, first)
    found.evaluate(found.of_link(second, third), found.of_link(third, second))
    found.evaluate(found.into(second, [first, third]))


def turn_round() -> None:
    """Let the rows of every table of Sonar lie on disk in the opposite order."""
    models = apps.get_models(include_auto_created=True)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for model in models:
            columns = ", ".join(
                connection.ops.quote_name(field.column)
                for field in model._meta.concrete_fields
                if not field.generated
            )
            for statement in TURN if model._meta.managed and not model._meta.proxy else ():
                cursor.execute(statement.format(model._meta.db_table, columns))
    for kept in (ANSWERS, STANDINGS, questions):
        kept.forget()


def read_all(client: Client, names: dict[str, str]) -> dict[str, bytes]:
    """Return the body of each page and call."""
    bodies = {}
    for path in PATHS:
        response = client.get(path.format_map(names))
        body = b"".join(response.streaming_content) if response.streaming else response.content
        bodies[path] = re.sub(VOLATILE, b"", body)
    return bodies


@pytest.mark.long
def test_no_page_and_no_call_changes_as_rows_move_on_disk(
    real_commits: None, at_noon: None, settings: Settings
) -> None:
    settings.SONAR_RATE_ACCOUNT = settings.SONAR_RATE_ANONYMOUS = None
    names = rights_samples.scene()
    add_ties(list(Endpoint.objects.order_by("name")))
    assert Incident.objects.count() > 2
    client = logged_in(account(Role.ADMINISTRATOR))
    before = read_all(client, names)
    newest = Site.objects.order_by("-id").first()
    turn_round()
    assert Site.objects.order_by()[0] == newest
    after = read_all(client, names)
    assert [path for path in PATHS if before[path] != after[path]] == []


# Columns of which no two rows of a model have the same value.
UNIQUE = (
    {"pk"}
    | {
        field.name
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if getattr(field, "unique", False)
    }
    | {
        constraint.fields[0]
        for model in apps.get_models()
        for constraint in model._meta.total_unique_constraints
        if len(constraint.fields) == 1
    }
)
# Orders that end in another column.
TOTAL = {
    # The order is that of the values that are read.
    "matrix/answers/link/report.py: -started_at",
    "sonar/sandbox/progress.py: -started_at",
    # Of groups, by all that they are grouped by.
    "matrix/answers/aliases.py: origin, kind",
    "matrix/store/transfers.py: -number, -last, cause, error_where, state",
    "sonar/work/cleanup.py: failures, due, endpoint_id",
    # By all that makes one unique.
    "sonar/obstacles/obstacle.py: size_class, mesh",
    "sonar/results/circuits.py: endpoint_id",
    "sonar/results/conditions.py: size_class_id, day",
    "sonar/sandbox/progress.py: size_class__from_bytes, source_id, destination_id",
}


def orders() -> Iterator[tuple[str, str]]:
    """Yield each `order_by` of the code with its file, and the last column by which it orders."""
    for path in sorted([*PROJECT.glob("matrix/**/*.py"), *PROJECT.glob("sonar/**/*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "order_by":
                keys = [ast.unparse(argument).strip("'") for argument in node.args]
                if keys and not keys[-1].startswith("*"):
                    yield f"{path.relative_to(PROJECT)}: {', '.join(keys)}", keys[-1]


def test_every_order_ends_in_a_column_by_which_no_two_rows_tie() -> None:
    last = dict(orders())
    assert len(last) > 80
    ends = {order: key.lstrip("-").rpartition("__")[2] for order, key in last.items()}
    assert {order for order, key in ends.items() if key not in UNIQUE} == TOTAL
