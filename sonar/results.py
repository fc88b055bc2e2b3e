"""The door for finished results: a probe that ends becomes a transfer here, once."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from sonar.models import Probe, Profile, Transfer
from sonar.movers.base import Receipt
from sonar.movers.measure import Outcome


def end_probe(probe: Probe, outcome: Outcome) -> bool:
    """Turn a probe that has run into a transfer with its id, in one transaction.

    Returns False, and keeps nothing, if somebody else has ended or taken back this run.
    """
    state = Transfer.State.DONE if outcome.receipt else Transfer.State.FAILED
    return _end(probe, state, _facts(outcome))


def lose_probe(probe: Probe, now: datetime) -> bool:
    """End a probe whose worker died; its rate is unknown and nobody's fault on the link."""
    started_at = probe.started_at or now
    facts = {
        "seconds": max((now - started_at).total_seconds(), 0.0),
        "error": f"its worker {probe.worker} did not report an end before the deadline",
        "error_where": "control",
    }
    return _end(probe, Transfer.State.LOST, facts)


def _facts(outcome: Outcome) -> dict[str, Any]:
    if outcome.receipt:
        return _facts_of_receipt(outcome.receipt)
    error = outcome.error
    return {
        "seconds": outcome.elapsed_seconds,
        "error": str(error),
        "error_where": error.where if error else "control",
        "error_is_permanent": bool(error and error.permanent),
    }


def _facts_of_receipt(receipt: Receipt) -> dict[str, Any]:
    return {
        "seconds": receipt.seconds,
        "ip_version": receipt.ip_version,
        "first_byte_seconds": receipt.first_byte_seconds,
        "samples": [[round(one.seconds, 3), one.bytes] for one in receipt.samples],
        "remote_connections": list(receipt.remote_connections),
    }


@transaction.atomic
def _end(probe: Probe, state: str, facts: dict[str, Any]) -> bool:
    # started_at tells this run from a later one of the same probe, handed back in between.
    mine = Probe.objects.filter(id=probe.id, state="running", started_at=probe.started_at)
    deleted, _ = mine.delete()
    if not deleted:
        return False
    Transfer.objects.create(
        id=probe.id,
        source_id=probe.source_id,
        destination_id=probe.destination_id,
        size_class_id=probe.size_class_id,
        profile=profile_of(probe, facts.pop("ip_version", None)),
        state=state,
        started_at=probe.started_at,  # type: ignore[misc]  # it has run
        bytes=probe.bytes,
        worker=probe.worker,
        **facts,
    )
    return True


def profile_of(probe: Probe, ip_version: int | None) -> Profile:
    """Find or make the one profile that a probe's result belongs to."""
    kind: dict[str, Any] = {
        "mover": probe.mover,
        "mode": probe.mode,
        "streams": probe.streams,
        "tcp_buffer_bytes": probe.tcp_buffer_bytes,
        "ip_version": ip_version,
        "origin": Profile.Origin.TEST,
        "mesh_id": probe.mesh_id,
        "activity": "",
    }
    profile, _ = Profile.objects.get_or_create(**kind)
    return profile
