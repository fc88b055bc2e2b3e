"""The door for finished results: own tests and imports enter here, each id once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import orjson
from django.db import connection, transaction
from django.utils import timezone

from sonar import circuits, company, mover_catalogue, network_results, partitions, pg_copy
from sonar.company import Company, Span
from sonar.models import Probe, Profile, Transfer
from sonar.movers.measure import Outcome
from sonar.redaction import texts
from sonar.remote_names import LOG_URL, REMOTE_ID, kept

T = TypeVar("T")

BATCH = 10_000
LONGEST_CONNECTION = 200
# What is kept of sonar.movers.watch.Seen as it is.
AS_SEEN = (
    "moved_bytes",
    "queue_seconds",
    "first_byte_seconds",
    "transfer_seconds",
    "checksum_seconds",
    "streams_used",
    "tcp_buffer_used_bytes",
    "ip_version",
    "scitag",
)
# Any number, the same for every import.
IMPORT_LOCK = 0x49_4D_50_4F

# The columns of a transfer in the order in which they are copied, with their types; jsonb is sent
# as the bytes that it has in binary, a version and the text: psycopg's own way costs four times.
TYPES = {
    "id": "uuid",
    "source_id": "int8",
    "destination_id": "int8",
    "size_class_id": "int8",
    "profile_id": "int8",
    "state": "varchar",
    "started_at": "timestamptz",
    "seconds": "float8",
    "bytes": "int8",
    "prepare_seconds": "float8",
    "queue_seconds": "float8",
    "first_byte_seconds": "float8",
    "transfer_seconds": "float8",
    "checksum_seconds": "float8",
    "tcp_buffer_used_bytes": "int8",
    "moved_bytes": "int8",
    "samples": "bytea",
    "remote_connections": "bytea",
    "error": "text",
    "error_where": "varchar",
    "error_is_permanent": "bool",
    "worker": "varchar",
    "verified": "bool",
    "verified_note": "text",
    "beside_source": "float8",
    "beside_source_max": "int2",
    "beside_destination": "float8",
    "beside_destination_max": "int2",
    "remote_id": "varchar",
    "log_url": "varchar",
    "scitag": "int4",
    "upload": "bytea",
}
# To look for an id in a month's index costs 0.6 us and more, to read one that is kept there and
# to find it among those looked for 0.25 us: beyond this ratio all indexes are read, once.
LOOKS_FOR_A_READING = 0.4
MANY = 50_000
KEPT = """
    SELECT coalesce(sum(greatest(reltuples, 0)), 0), count(*)
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = 'sonar_transfer'::regclass
"""
# OFFSET 0 keeps PostgreSQL from looking for each id after all; it makes a hash of the list.
READ_ALL = """
    SELECT id FROM (SELECT id FROM sonar_transfer OFFSET 0) AS kept WHERE id = ANY(%s::uuid[])
"""
COPY = f"COPY sonar_transfer ({', '.join(TYPES)}) FROM STDIN (FORMAT BINARY)"


@dataclass(frozen=True, slots=True)
class Result:
    """A transfer that has ended: a row of Transfer before it is stored."""

    id: UUID
    source_id: int
    destination_id: int
    size_class_id: int
    profile_id: int
    state: str
    started_at: datetime
    seconds: float
    bytes: int
    prepare_seconds: float | None = None
    queue_seconds: float | None = None
    first_byte_seconds: float | None = None
    transfer_seconds: float | None = None
    checksum_seconds: float | None = None
    tcp_buffer_used_bytes: int | None = None
    moved_bytes: int | None = None
    samples: list[list[float]] = field(default_factory=list)
    remote_connections: list[str] = field(default_factory=list)
    error: str = ""
    error_where: str = ""
    error_is_permanent: bool = False
    worker: str = ""
    verified: bool | None = None
    verified_note: str = ""
    beside_source: float | None = None
    beside_source_max: int | None = None
    beside_destination: float | None = None
    beside_destination_max: int | None = None
    remote_id: str = ""
    log_url: str = ""
    scitag: int | None = None
    upload: dict[str, float] | None = None

    def row(self) -> tuple[Any, ...]:
        """Return the values in the order of TYPES."""
        return (
            self.id,
            self.source_id,
            self.destination_id,
            self.size_class_id,
            self.profile_id,
            self.state,
            self.started_at,
            self.seconds,
            self.bytes,
            self.prepare_seconds,
            self.queue_seconds,
            self.first_byte_seconds,
            self.transfer_seconds,
            self.checksum_seconds,
            self.tcp_buffer_used_bytes,
            self.moved_bytes,
            _jsonb(self.samples),
            _jsonb(self.remote_connections),
            self.error,
            self.error_where,
            self.error_is_permanent,
            self.worker,
            self.verified,
            self.verified_note,
            self.beside_source,
            self.beside_source_max,
            self.beside_destination,
            self.beside_destination_max,
            self.remote_id,
            self.log_url,
            self.scitag,
            None if self.upload is None else _jsonb(self.upload),
        )


def _jsonb(values: list[Any] | dict[str, Any]) -> bytes:
    return b"\x01" + orjson.dumps(values) if values else b"\x01[]"


class Stored(NamedTuple):
    """How many results were new, and how many were there already."""

    accepted: int
    duplicates: int


@transaction.atomic
def store(results: Iterable[Result], *, ids_are_new: bool = False) -> Stored:
    """Store results whose id is not stored yet; all of them or, on an error, none.

    Triggers mark the hours they lie in as dirty in the same transaction. Imports hold
    ``lock_imports`` meanwhile. To look for an id costs 4 us for each month that is kept: a
    caller that knows that its ids are new, as a probe's row does, spares that.
    """
    accepted = offered = 0
    for batch in _batches(results, BATCH):
        new = batch if ids_are_new else _new(batch)
        offered += len(batch)
        accepted += len(new)
        copy_results(new)
    return Stored(accepted, offered - accepted)


def lock_imports() -> None:
    """Let one import at a time store results, until the transaction ends.

    A primary key of a partitioned table holds the time too, so that it alone would let one
    id in twice with different times.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [IMPORT_LOCK])


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _new(batch: list[Result]) -> list[Result]:
    """Return the results whose id is not stored, each id once."""
    first: dict[UUID, Result] = {}
    for result in batch:
        first.setdefault(result.id, result)
    for stored in known_ids(",".join(sorted(uuid.hex for uuid in first))):
        del first[stored]
    return list(first.values())


def known_ids(ids: str) -> list[UUID]:
    """Return those ids that are stored, in whatever month, by one statement.

    They are given as hex with commas: a list of parameters costs ten times as much to write. In
    order they cost half: neighbours in a month's index are looked for one after the other.
    """
    with connection.cursor() as cursor:
        if _reading_all_is_cheaper(ids.count(",") + 1):
            cursor.execute("SET LOCAL random_page_cost = 1")
            cursor.execute(READ_ALL, [f"{{{ids}}}"])
        else:
            cursor.execute("SELECT sonar_known_ids(%s::uuid[])", [f"{{{ids}}}"])
        return [stored for (stored,) in cursor.fetchall()]


def _reading_all_is_cheaper(ids: int) -> bool:
    if ids < MANY:  # what is to be asked here costs as much as some hundred ids
        return False
    with connection.cursor() as cursor:
        cursor.execute(KEPT)
        kept, months = cursor.fetchone()
    return bool(ids * months > LOOKS_FOR_A_READING * kept)


def append(rows: Iterable[bytes], moments: Iterable[datetime]) -> None:
    """Append rows that are new and that COPY takes as they are, for these months."""
    partitions.ensure(moments)
    with pg_copy.copying(COPY) as copy:
        copy.write(pg_copy.SIGNATURE)
        for block in rows:
            copy.write(block)
        copy.write(pg_copy.TRAILER)


def copy_results(results: list[Result]) -> None:
    """Append results that are new."""
    if not results:
        return
    partitions.ensure(result.started_at for result in results)
    with pg_copy.copying(COPY) as copy:
        copy.set_types(list(TYPES.values()))
        for result in results:
            copy.write_row(result.row())


class Profiles:
    """The ids of profiles, each looked up or made once."""

    def __init__(self) -> None:
        self._ids: dict[tuple[tuple[str, Any], ...], int] = {}

    def id_of(self, **kind: Any) -> int:  # noqa: ANN401 - the fields of Profile
        """Find or make the one profile with these fields; what is not given has its default."""
        key = tuple(sorted(kind.items()))
        if key not in self._ids:
            self._ids[key] = Profile.objects.get_or_create(**kind)[0].id
        return self._ids[key]


def end_probe(probe: Probe, outcome: Outcome) -> bool:
    """Turn a probe that has run into a transfer with its id, in one transaction.

    Returns False, and keeps nothing, if somebody else has ended or taken back this run.
    """
    state = Transfer.State.DONE if outcome.receipt else Transfer.State.FAILED
    of_network = mover_catalogue.is_of_network(probe.mover)
    facts = (network_results.facts_of if of_network else _facts)(probe, outcome)
    return _end(probe, state, facts, _move(probe, outcome), timezone.now())


def lose_probe(probe: Probe, now: datetime) -> bool:
    """End a probe whose worker died; its rate is unknown and nobody's fault on the link."""
    started_at = probe.started_at or now
    facts = {
        "seconds": max((now - started_at).total_seconds(), 0.0),
        "error": "its worker did not report an end before the deadline",
        "error_where": "control",
    }
    return _end(probe, Transfer.State.LOST, facts, None, now)


def _move(probe: Probe, outcome: Outcome) -> Span | None:
    """Return when a probe's bytes moved; None if that never began."""
    if probe.started_at is None or outcome.prepare_seconds is None or not outcome.elapsed_seconds:
        return None
    requested = probe.started_at + timedelta(seconds=outcome.prepare_seconds)
    queue = min(outcome.seen.queue_seconds or 0.0, outcome.elapsed_seconds)
    return Span(
        requested + timedelta(seconds=queue), requested + timedelta(seconds=outcome.elapsed_seconds)
    )


def _facts(probe: Probe, outcome: Outcome) -> dict[str, Any]:
    ends = (probe.source, probe.destination)
    facts = _facts_of_move(outcome)
    facts["verified_note"] = texts.for_all(outcome.verified_note, ends)
    if outcome.receipt:
        return facts | {"seconds": outcome.receipt.seconds, "moved_bytes": probe.bytes}
    error = outcome.error
    return facts | {
        "seconds": outcome.elapsed_seconds,
        "error": texts.for_all(str(error), ends),
        "error_where": error.where if error else "control",
        "error_is_permanent": bool(error and error.permanent),
    }


def _facts_of_move(outcome: Outcome) -> dict[str, Any]:
    """Return what is known of a move, whether it succeeded or not."""
    seen = outcome.seen
    return {
        "prepare_seconds": outcome.prepare_seconds,
        "verified": outcome.verified,
        **{name: getattr(seen, name) for name in AS_SEEN},
        "samples": [[round(sample.seconds, 3), sample.bytes] for sample in seen.samples],
        "remote_connections": _connections(seen.remote_connections),
        "remote_id": kept(REMOTE_ID, seen.remote_id),
        "log_url": kept(LOG_URL, seen.log_url),
        "upload": outcome.upload and outcome.upload.numbers(),
    }


def _connections(addresses: Iterable[str]) -> list[str]:
    """Return what a server told of its connections: addresses for operators, tokens for nobody."""
    return [texts.without_tokens(address[:LONGEST_CONNECTION]) for address in addresses]


@transaction.atomic
def _end(probe: Probe, state: str, facts: dict[str, Any], move: Span | None, now: datetime) -> bool:
    # started_at tells this run from a later one of the same probe, handed back in between.
    mine = Probe.objects.filter(id=probe.id, state="running", started_at=probe.started_at)
    deleted, _ = mine.delete()
    if not deleted:
        return False
    # Whoever deleted the probe's row, and nobody else, comes here.
    others = company.beside(probe, move)
    company.note(probe, now)
    _keep(probe, state, {"started_at": probe.started_at} | facts, others)
    circuits.note(probe, state, facts)
    return True


def _keep(probe: Probe, state: str, facts: dict[str, Any], others: Company) -> None:
    """Store what became of a probe: a transfer, or what its mover tells of the network alone."""
    if mover_catalogue.is_of_network(probe.mover):
        network_results.keep(probe, state, facts)
        return
    kind = {name: facts.pop(name, None) for name in ("ip_version", "streams_used")}
    result = Result(
        id=probe.id,
        source_id=probe.source_id,
        destination_id=probe.destination_id,
        size_class_id=probe.size_class_id,
        profile_id=_profile_of(probe, beside=others.beside, **kind),
        state=state,
        bytes=probe.bytes,
        worker=probe.worker,
        **others._asdict(),
        **facts,
    )
    store([result], ids_are_new=True)


@transaction.atomic
def end_waiting(probe: Probe, why: str, now: datetime) -> bool:
    """End a probe that waited and can never run as failed; False if it does not wait any more."""
    deleted, _ = Probe.objects.filter(id=probe.id, state=Probe.State.WAITING).delete()
    if not deleted:
        return False
    facts = {
        "started_at": now,
        "seconds": 0.0,
        "error": why,
        "error_where": Transfer.Where.CONTROL,
        "error_is_permanent": True,
    }
    _keep(probe, Transfer.State.FAILED, facts, Company())
    return True


def _profile_of(probe: Probe, **measured: int | None) -> int:
    return Profiles().id_of(
        **measured,
        mover=probe.mover,
        mode=probe.mode,
        streams=probe.streams,
        tcp_buffer_bytes=probe.tcp_buffer_bytes,
        origin=Profile.Origin.TEST,
        mesh_id=probe.mesh_id,
        activity="",
        clock=mover_catalogue.clock_of(probe.mover),
    )
