"""Packets -> rows: a row for each connection and reporter, by the last that was said of it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sonar.fireflies.endpoint_addresses import Addresses
from sonar.models import Flow
from sonar.notation.addresses import unmapped

if TYPE_CHECKING:  # every worker drops old rows, and none of them reads packets
    from sonar.fireflies.packet import Firefly

log = logging.getLogger(__name__)

IDENTITY = (
    *("reporter", "source_address", "source_port", "destination_address"),
    *("destination_port", "started_at"),
)
CHANGING = ("seen_at", "ended_at", "sent_bytes", "received_bytes", "tcp", "application")


def flow_of(firefly: Firefly, reporter: str, addresses: Addresses, now: datetime) -> Flow:
    """Return the row of a packet; ``addresses`` knows which endpoints its addresses are of."""
    flow, life = firefly.flow_id, firefly.flow_lifecycle
    source, destination = str(unmapped(flow.src_ip)), str(unmapped(flow.dst_ip))
    return Flow(
        reporter=reporter,
        scitag=firefly.scitag,
        source_address=source,
        source_port=flow.src_port,
        destination_address=destination,
        destination_port=flow.dst_port,
        source_endpoints=addresses.endpoints_at(source),
        destination_endpoints=addresses.endpoints_at(destination),
        started_at=life.start_time,
        seen_at=firefly.seen_at(now),
        ended_at=life.end_time if life.state == "end" else None,
        application=firefly.application,
        sent_bytes=firefly.usage.sent,
        received_bytes=firefly.usage.received,
        tcp=firefly.netlink,
    )


def store(flows: Iterable[Flow]) -> None:
    """Keep what was said last of each connection. Two SQL queries.

    UDP may turn packets around: of a connection that is over nothing is changed any more.
    """
    newest = {identity(flow): flow for flow in sorted(flows, key=order)}
    moments = {flow.started_at for flow in newest.values()}
    over = Flow.objects.filter(started_at__in=moments, ended_at__isnull=False)
    for ended in over.values_list(*IDENTITY):
        newest.pop(ended, None)
    Flow.objects.bulk_create(
        newest.values(), update_conflicts=True, unique_fields=IDENTITY, update_fields=CHANGING
    )


def identity(flow: Flow) -> tuple[object, ...]:
    return tuple(getattr(flow, name) for name in IDENTITY)


def order(flow: Flow) -> tuple[bool, datetime]:
    """Put what says that a connection is over last, and else what was said later."""
    return flow.ended_at is not None, flow.seen_at


def drop_expired(now: datetime, keep_days: int) -> None:
    """Delete what began more than so many days ago. One SQL query."""
    count, _ = Flow.objects.filter(started_at__lt=now - timedelta(days=keep_days)).delete()
    if count:
        log.info("%d reported connections are older than SONAR_KEEP_DAYS: deleted", count)
