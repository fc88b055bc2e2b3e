"""A Sonar in which nothing stands still: rows come and go between two statements of a reader."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any
from uuid import uuid4

from django.db import connection, transaction

from sonar.models import (
    Annotation,
    Circuit,
    Condition,
    ConditionLink,
    ConditionPart,
    Credential,
    CredentialState,
    Downtime,
    Endpoint,
    Mesh,
    MeshInterval,
    NetworkResult,
    Probe,
    Profile,
    Schedule,
    Site,
    SizeClass,
    Sweep,
    SweepStep,
    Transfer,
)
from sonar.results import sealing
from tests.conditions import stored_condition
from tests.matrix import network, world
from tests.matrix.world import HOUR, NOW

# What a guest consists of, each after what it refers to.
TABLES = [
    model._meta.db_table
    for model in (
        *(Credential, Site, Endpoint, Mesh, MeshInterval, Schedule, Probe, Transfer),
        *(NetworkResult, Downtime, Annotation, Circuit, CredentialState),
        *(Sweep, SweepStep),
        *(Condition, ConditionPart, ConditionLink),
    )
]
SEALED_EVERY = 5


class Meanwhile:
    """A connection of its own, on which something is committed while another one reads."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)

    def do(self, change: Callable[[], object]) -> None:
        self._thread.submit(change).result()

    def close(self) -> None:
        self.do(lambda: connection.close())  # noqa: PLW0108 - that of the other thread
        self._thread.shutdown()


@contextmanager
def meanwhile() -> Iterator[Meanwhile]:
    apart = Meanwhile()
    try:
        yield apart
    finally:
        apart.close()


class Guests:
    """Endpoints that come and go, each with its site and all that may hang on an endpoint.

    They are made once, of which a copy stands aside: to come or to go takes some milliseconds.
    """

    COUNT = 3

    def __init__(self) -> None:
        self.steps = 0
        ask("CREATE SCHEMA aside")
        for number in range(self.COUNT):
            known = {table: ids(table) for table in TABLES}
            invite(number)
            for table in TABLES:
                put_aside(table, number, ids(table) - known[table])

    def step(self) -> None:
        """Commit that one guest goes and another one comes back; now and then, seal."""
        goes, comes = self.steps % self.COUNT, (self.steps - 1) % self.COUNT
        with transaction.atomic():
            ask(";".join([*going(goes), *(coming(comes) if self.steps else ())]))
        self.steps += 1
        if self.steps % SEALED_EVERY == 0:
            sealing.seal(NOW)


def ask(statements: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statements)


def ids(table: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id::text FROM {table}")
        return {found for (found,) in cursor.fetchall()}


def put_aside(table: str, number: int, rows: set[str]) -> None:
    with connection.cursor() as cursor:
        chosen = f"SELECT * FROM {table} WHERE id::text = ANY (%s)"
        cursor.execute(f"CREATE TABLE aside.{table}_{number} AS {chosen}", [list(rows)])


def going(number: int) -> Iterator[str]:
    for table in reversed(TABLES):
        yield f"DELETE FROM {table} WHERE id IN (SELECT id FROM aside.{table}_{number})"


def coming(number: int) -> Iterator[str]:
    for table in TABLES:
        yield f"INSERT INTO {table} SELECT * FROM aside.{table}_{number}"


@contextmanager
def guests() -> Iterator[Guests]:
    try:
        yield Guests()
    finally:
        ask("DROP SCHEMA IF EXISTS aside CASCADE")


def invite(number: int) -> None:
    """Register a guest, and let everything happen to it that may happen to an endpoint."""
    site = Site.objects.create(name=f"Guest{number}")
    guest = world.endpoint(f"GUEST{number}", site)
    ral, desy = (Endpoint.objects.get(name=f"{name}_DATADISK") for name in ("RAL", "DESY"))
    small, large = (SizeClass.objects.get(name=name) for name in ("small", "large"))
    mesh = Mesh.objects.create(name=f"guests{number}")
    mesh.intervals.create(size_class=large, every_seconds=3600)
    world.schedule(mesh, (guest, ral), (ral, guest))
    order(guest, ral, small)
    order(ral, guest, small, state="waiting", waits_because="RAL_DATADISK is busy.")
    order(guest, desy, small, state="running", started_at=NOW - HOUR, deadline=NOW + HOUR)
    made = Profile.objects.filter(mover="http-tpc").first()
    with world.transfers() as some:
        some.add(guest, ral, 10.0, made=made)
        some.add(ral, guest, None, made=made)
    network.measured(guest, ral)
    tell_of(guest, ral, site, large)


def tell_of(guest: Endpoint, ral: Endpoint, site: Site, large: SizeClass) -> None:
    """Add what people and Sonar itself have to say of a guest."""
    since = NOW - HOUR
    Downtime.objects.create(endpoint=guest, starts_at=since, ends_at=NOW + HOUR, reason="new disks")
    Annotation.objects.create(site=site, text="a note", starts_at=since, public=True)
    Circuit.objects.create(
        endpoint=guest, failures=9, since=since, last_at=NOW, error="503", next_test_at=NOW
    )
    credential = Credential.objects.create(name=f"of-{guest.name}", hosts=["example.org"])
    CredentialState.objects.create(
        credential=credential,
        endpoint=guest,
        role="own",
        since=since,
        holds=True,
        sentence="the secret is empty",
        checked_at=NOW,
    )
    sweep = Sweep.objects.create(
        source=guest, destination=ral, variable="size", mover="http-tpc", requested_at=NOW
    )
    for position, size in enumerate(("small", "large")):
        sweep.steps.create(position=position, value=size, test_id=uuid4())
    stored_condition("slow", source=guest, destination=ral)


def order(source: Endpoint, destination: Endpoint, size: SizeClass, **more: Any) -> Probe:
    """Order a test outside every mesh, past its door."""
    fields = {"size_class": size, "bytes": size.test_bytes, "mover": "http-tpc"}
    times = {"requested_at": NOW, "sent_at": NOW}
    return Probe.objects.create(source=source, destination=destination, **(fields | times | more))


@contextmanager
def before_statements(happens: Callable[[], object], first: int = 0) -> Iterator[None]:
    """Let something happen before each SQL statement of this thread, from the one at ``first``."""
    number = count()

    def run(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if next(number) >= first:
            happens()
        return execute(sql, *rest)

    with connection.execute_wrapper(run):
        yield
