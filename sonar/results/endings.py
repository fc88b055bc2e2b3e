"""How a test ends: its probe goes, and what became of it is stored, in one transaction.

And how long results of the network are kept.
"""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from sonar.models import NetworkResult, Probe, Profile, SizeClass, Transfer
from sonar.models.transfer import purpose_of
from sonar.movers.base import Limits
from sonar.movers.measure import Outcome
from sonar.movers.network import SeenOfNetwork
from sonar.notation.csv_text import kept
from sonar.notation.result_columns import REPORTED_BY_MOVERS, Column, Home
from sonar.registry import redacted
from sonar.results import circuits, concurrency
from sonar.results.concurrency import ConcurrentTests, Span
from sonar.results.store import Profiles, Result, append_one

LONGEST_CONNECTION = 200
DEADLINE_MARGIN = timedelta(seconds=60)
SEEN_OF_PROFILES = [column.name for column in REPORTED_BY_MOVERS if column.home is Home.PROFILE]


def end_probe(probe: Probe, outcome: Outcome) -> bool:
    """Turn a probe that has run into a transfer with its id, in one transaction.

    Returns False, and keeps nothing, if somebody else has ended or taken back this run.
    """
    state = Transfer.State.DONE if outcome.receipt else Transfer.State.FAILED
    of_network = probe.mover_description.of_network
    facts = (_facts_of_network if of_network else _facts)(probe, outcome)
    return _end(probe, state, facts, _move(probe, outcome), timezone.now())


def lose_probe(probe: Probe, now: datetime) -> bool:
    """End a probe whose worker died; its rate is unknown and nobody's fault on the link.

    Its seconds are no more than it may take, as the clock may have jumped meanwhile.
    """
    started_at = probe.started_at or now
    longest = longest_run(probe.size_class)
    facts = {
        "seconds": max(min(now - started_at, longest).total_seconds(), 0.0),
        "error": "the worker did not report the end of the test before the deadline",
        "error_where": "control",
    }
    return _end(probe, Transfer.State.LOST, facts, None, now)


def end_cancelled(probe: Probe, outcome: Outcome) -> bool:
    """End a run that was cancelled while it ran; False if it was not.

    It is stored as lost: it says nothing about the link. The history has who cancelled it.
    """
    mine = Probe.objects.filter(id=probe.id, started_at=probe.started_at).exclude(cancelled_by="")
    by = mine.values_list("cancelled_by", flat=True).first()
    if by is None:
        return False
    facts = {
        "seconds": outcome.elapsed_seconds,
        "error": f"{Transfer.CANCELLED} by {by} while the test was running",
        "error_where": Transfer.Where.CONTROL,
    }
    return _end(probe, Transfer.State.LOST, facts, _move(probe, outcome), timezone.now())


def give_time_again(probes: QuerySet[Probe], now: datetime) -> None:
    """Let tests that run have all their time from now on, as the clock has jumped meanwhile.

    started_at stays: it tells the worker that its run is still the one that counts.
    """
    for size_class in SizeClass.objects.all():
        probes.filter(size_class=size_class).update(deadline=now + longest_run(size_class))


def longest_run(size_class: SizeClass) -> timedelta:
    """Return how long a test may run until its worker must have died."""
    # Twice its time limit, and patience for the checksum.
    longest = Limits(total=size_class.timeout_seconds).longest
    return timedelta(seconds=longest) + DEADLINE_MARGIN


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
    facts["verified_note"] = redacted.for_all(outcome.verified_note, ends)
    if outcome.receipt:
        return facts | {"seconds": outcome.receipt.seconds, "moved_bytes": probe.bytes}
    return facts | {"seconds": outcome.elapsed_seconds} | _failure(probe, outcome)


def _facts_of_network(probe: Probe, outcome: Outcome) -> dict[str, Any]:
    """Return the columns that say how a test of the network alone ended."""
    seen, receipt = outcome.seen, outcome.receipt
    facts: dict[str, Any] = {
        "ip_version": seen.ip_version,
        "samples": _samples(outcome),
        "bytes": seen.moved_bytes or 0,
        "seconds": outcome.elapsed_seconds,
    }
    if isinstance(seen, SeenOfNetwork):
        facts |= asdict(seen.path)
    if receipt:
        return facts | {"bytes": receipt.bytes, "seconds": receipt.seconds}
    return facts | _failure(probe, outcome)


def _failure(probe: Probe, outcome: Outcome) -> dict[str, Any]:
    error = outcome.error
    return {
        "error": redacted.for_all(str(error), (probe.source, probe.destination)),
        "error_where": error.where if error else "control",
        "error_is_permanent": bool(error and error.permanent),
    }


def _samples(outcome: Outcome) -> list[list[float]]:
    return [[round(sample.seconds, 3), sample.bytes] for sample in outcome.seen.samples]


def _facts_of_move(outcome: Outcome) -> dict[str, Any]:
    """Return what is known of a move, whether it succeeded or not."""
    seen = outcome.seen
    return {
        "prepare_seconds": outcome.prepare_seconds,
        "verified": outcome.verified,
        **{column.name: _kept(column, getattr(seen, column.name)) for column in REPORTED_BY_MOVERS},
        "samples": _samples(outcome),
        "remote_connections": _connections(seen.remote_connections),
        "upload": outcome.upload and outcome.upload.numbers(),
    }


def _kept(column: Column, value: Any) -> Any:  # noqa: ANN401 - of the column
    """Return a value; of a text nothing if it is not written as the column's must be."""
    pattern = column.limits.get("pattern")
    return kept(pattern, value) if pattern else value


def _connections(addresses: Iterable[str]) -> list[str]:
    """Return what a server told of its connections: addresses for operators, tokens for nobody."""
    return [redacted.for_operators(address[:LONGEST_CONNECTION]) for address in addresses]


@transaction.atomic
def _end(probe: Probe, state: str, facts: dict[str, Any], move: Span | None, now: datetime) -> bool:
    # Its start tells this run from a later one of the same probe, handed back in between.
    others = concurrency.end_run(probe, move, now)
    if others is None:
        return False
    # Whoever deleted the probe's row, and nobody else, comes here.
    _keep(probe, state, {"started_at": probe.started_at} | facts, others)
    circuits.note(probe, state, facts)
    return True


def _keep(probe: Probe, state: str, facts: dict[str, Any], others: ConcurrentTests) -> None:
    """Store what became of a probe: a transfer, or what its mover tells of the network alone.

    The latter apart from transfers, and in no rate of theirs.
    """
    common = {
        "id": probe.id,
        "source_id": probe.source_id,
        "destination_id": probe.destination_id,
        "size_class_id": probe.size_class_id,
        "state": state,
        "worker": probe.worker,
    }
    if probe.mover_description.of_network:
        facts = {"bytes": 0, "seconds": 0.0} | facts
        NetworkResult.objects.create(**_way(probe), **common, **facts)
        return
    kind = {name: facts.pop(name, None) for name in SEEN_OF_PROFILES}
    result = Result(
        **common,
        profile_id=_profile_of(probe, concurrent=others.concurrent, **kind),
        bytes=probe.bytes,
        **others._asdict(),
        **facts,
    )
    append_one(result)


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
    _keep(probe, Transfer.State.FAILED, facts, ConcurrentTests())
    return True


def _profile_of(probe: Probe, **measured: int | None) -> int:
    return Profiles().id_of(
        **measured,
        **_way(probe),
        origin=Profile.Origin.TEST,
        activity="",
        clock=probe.mover_description.clock,
        purpose=purpose_of(probe),
    )


def _way(probe: Probe) -> dict[str, Any]:
    """Return how a probe is carried out, and for which mesh."""
    names = ("mover", "streams", "tcp_buffer_bytes", "mesh_id")
    mode = probe.mover_description.known_mode(probe.mode)
    return {"mode": mode} | {name: getattr(probe, name) for name in names}


def drop_expired_of_network(now: datetime, keep_days: int) -> None:
    """Delete the results of the network that are older than what is kept of transfers."""
    oldest = now - timedelta(days=keep_days)
    NetworkResult.objects.filter(started_at__lt=oldest).delete()
