"""Keeps results of tests of the network: apart from transfers, and in no rate of theirs."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sonar.models import NetworkResult, Probe
from sonar.movers.measure import Outcome
from sonar.movers.network import SeenOfNetwork
from sonar.registry import redacted


def keep(probe: Probe, state: str, facts: dict[str, Any]) -> None:
    """Keep what became of a probe of the network, in the transaction that ends it."""
    NetworkResult.objects.create(
        id=probe.id,
        source_id=probe.source_id,
        destination_id=probe.destination_id,
        mesh_id=probe.mesh_id,
        size_class_id=probe.size_class_id,
        mover=probe.mover,
        mode=probe.mode,
        streams=probe.streams,
        tcp_buffer_bytes=probe.tcp_buffer_bytes,
        state=state,
        worker=probe.worker,
        **{"bytes": 0, "seconds": 0.0} | facts,
    )


def facts_of(probe: Probe, outcome: Outcome) -> dict[str, Any]:
    """Return the columns that say how a test of the network ended."""
    seen, receipt, error = outcome.seen, outcome.receipt, outcome.error
    facts: dict[str, Any] = {
        "ip_version": seen.ip_version,
        "samples": [[round(sample.seconds, 3), sample.bytes] for sample in seen.samples],
        "bytes": seen.moved_bytes or 0,
        "seconds": outcome.elapsed_seconds,
    }
    if isinstance(seen, SeenOfNetwork):
        facts |= asdict(seen.path)
    if receipt:
        return facts | {"bytes": receipt.bytes, "seconds": receipt.seconds}
    return facts | {
        "error": redacted.for_all(str(error), (probe.source, probe.destination)),
        "error_where": error.where if error else "control",
        "error_is_permanent": bool(error and error.permanent),
    }


def drop_expired(now: datetime, keep_days: int) -> None:
    """Delete the results that are older than what is kept of transfers."""
    oldest = now - timedelta(days=keep_days)
    NetworkResult.objects.filter(started_at__lt=oldest).delete()
