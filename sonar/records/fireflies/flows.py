"""Packets -> rows: a row for each connection and reporter, by the last that was said of it.

Which endpoints an address is of: the names of their hosts are looked up every ten minutes, and at
once when the registry has changed.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sonar.models import Endpoint, Flow
from sonar.notation.addresses import address_of, host_of, unmapped
from sonar.registry.cache import registry_version

if TYPE_CHECKING:  # every worker drops old rows, and none of them reads packets
    from sonar.records.fireflies.packet import Firefly

log = logging.getLogger(__name__)

IDENTITY = (
    *("reporter", "source_address", "source_port", "destination_address"),
    *("destination_port", "started_at"),
)
CHANGING = ("seen_at", "ended_at", "sent_bytes", "received_bytes", "tcp", "application")
KEPT_SECONDS = 600.0


def look_up(host: str) -> set[str]:
    """Return the addresses of a host, none if nobody knows it."""
    try:
        answers = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter for a name longer than there can be
        log.warning("the addresses of %s are not known: %s", host, error)
        return set()
    return {str(address_of(str(answer[4][0]))) for answer in answers}


class Addresses:
    """The addresses of the endpoints in use, as they were looked up last."""

    def __init__(self, resolve: Callable[[str], Iterable[str]] = look_up) -> None:
        self._resolve = resolve
        self._endpoints: dict[str, list[int]] = {}
        self._version, self._next_at = "", 0.0

    def refresh_if_due(self) -> None:
        """Look them up again if it is time, or another registry. At most two SQL queries."""
        version, now = registry_version(), time.monotonic()
        if version != self._version or now >= self._next_at:
            self.refresh()
            self._version, self._next_at = version, now + KEPT_SECONDS

    def refresh(self) -> None:
        """Look all of them up, one after the other. One SQL query."""
        by_host: dict[str, list[int]] = {}
        in_use = Endpoint.objects.filter(retired_at=None).order_by("id")
        for endpoint, base_url in in_use.values_list("id", "base_url"):
            by_host.setdefault(host_of(base_url), []).append(endpoint)
        endpoints_by_address: dict[str, list[int]] = {}
        for host, endpoints in by_host.items():
            for address in self._resolve(host):
                endpoints_by_address.setdefault(address, []).extend(endpoints)
        self._endpoints = endpoints_by_address

    def endpoints_at(self, address: str) -> list[int]:
        """Return the ids of the endpoints of an address."""
        return self._endpoints.get(address, [])


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
