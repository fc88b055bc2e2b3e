"""Packets -> rows: a row for each connection and reporter, with the last value of each number.

Which endpoints an address is of: the names of their hosts are looked up every ten minutes, and at
once when the registry has changed.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sonar.models import Endpoint, Flow
from sonar.notation.addresses import address_of, host_of, unmapped
from sonar.notation.units import format_counted
from sonar.registry.cache import registry_version

if TYPE_CHECKING:  # every worker drops old rows, and none of them reads packets
    from sonar.records.fireflies.packet import Firefly

log = logging.getLogger(__name__)

IDENTITY = (
    *("reporter", "source_address", "source_port", "destination_address"),
    *("destination_port", "started_at"),
)
NUMBERS = ("sent_bytes", "received_bytes")
CHANGING = ("seen_at", "ended_at", *NUMBERS, "tcp", "application")
KEPT_SECONDS = 600.0


def look_up(host: str) -> set[str]:
    """Return the addresses of a host, none if nobody knows it."""
    try:
        answers = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter for a name longer than there can be
        log.warning("the addresses of host %s could not be looked up: %s", host, error)
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
        in_use = Endpoint.objects.in_use().order_by("id")
        for endpoint, base_url in in_use.values_list("id", "base_url"):
            by_host.setdefault(host_of(base_url), []).append(endpoint)
        endpoints_by_address: dict[str, list[int]] = {}
        for host, endpoints in by_host.items():
            for address in self._resolve(host):
                endpoints_by_address.setdefault(address, []).extend(endpoints)
        self._endpoints = endpoints_by_address

    def endpoints_at(self, address: str) -> list[int]:
        return self._endpoints.get(address, [])


def flow_of(firefly: Firefly, reporter: str, addresses: Addresses, now: datetime) -> Flow:
    """Return the row of a packet; ``addresses`` knows which endpoints its addresses are of.

    ``started_at`` is None if neither the packet nor its state says when the connection began.
    """
    flow = firefly.flow_id
    source, destination = str(unmapped(flow.src_ip)), str(unmapped(flow.dst_ip))
    return Flow(  # type: ignore[misc]  # `store` finds the beginning where it is not said
        reporter=reporter,
        scitag=firefly.scitag,
        source_address=source,
        source_port=flow.src_port,
        destination_address=destination,
        destination_port=flow.dst_port,
        source_endpoints=addresses.endpoints_at(source),
        destination_endpoints=addresses.endpoints_at(destination),
        started_at=firefly.began_at(now),
        seen_at=firefly.seen_at(now),
        ended_at=firefly.ended_at(now),
        application=firefly.application,
        sent_bytes=firefly.usage.sent,
        received_bytes=firefly.usage.received,
        tcp=firefly.netlink,
    )


def store(flows: Iterable[Flow]) -> int:
    """Keep the flows; return how many packets were of a connection whose beginning is not known.

    Each value that a packet does not have stays as it was: flowd-go sends the numbers of TCP only
    while a connection lasts, not at its end. Nothing that the end says is changed by packets that
    arrive after it. Two SQL queries, three if a packet does not say when its connection began.
    """
    flows = list(flows)
    dated = _with_beginnings(flows)
    moments = {flow.started_at for flow in dated}
    before = Flow.objects.filter(started_at__in=moments)
    of_identity: dict[tuple[object, ...], list[Flow]] = {}
    # What says that a connection is over comes last, and else what was said later.
    for flow in sorted(dated, key=lambda each: (each.ended_at is not None, each.seen_at)):
        of_identity.setdefault(_identity(flow), []).append(flow)
    for row in before:
        if reports := of_identity.get(_identity(row)):
            reports.insert(len(reports) if row.ended_at else 0, row)
    newest = []
    for reports in of_identity.values():
        last = reports[-1]
        last.tcp = {name: number for each in reports for name, number in each.tcp.items()}
        for name in NUMBERS:
            values = [getattr(each, name) for each in reports]
            setattr(last, name, next((each for each in reversed(values) if each is not None), None))
        last.pk = None
        newest.append(last)
    Flow.objects.bulk_create(
        newest, update_conflicts=True, unique_fields=IDENTITY, update_fields=CHANGING
    )
    return len(flows) - len(dated)


def _with_beginnings(flows: Sequence[Flow]) -> list[Flow]:
    """Return the flows, each with when it began; leave out those of which nobody says it.

    flowd and flowd-go send the beginning of a transfer that a server announced, and not again at
    its end. It is that of the same reporter's newest connection there that is not over.
    """
    dated = [flow for flow in flows if flow.started_at]
    if len(dated) == len(flows):
        return dated
    unknown = [flow for flow in flows if not flow.started_at]
    lasting = Flow.objects.filter(
        ended_at=None,
        reporter__in={flow.reporter for flow in unknown},
        source_port__in={flow.source_port for flow in unknown},
        destination_port__in={flow.destination_port for flow in unknown},
    )
    begun: dict[tuple[object, ...], list[datetime]] = {}
    for flow in [*lasting, *(flow for flow in dated if not flow.ended_at)]:
        begun.setdefault(_identity(flow)[:-1], []).append(flow.started_at)
    for flow in unknown:
        moments = begun.get(_identity(flow)[:-1], ())
        if began_at := max((each for each in moments if each <= flow.seen_at), default=None):
            flow.started_at = began_at
            dated.append(flow)
    return dated


def _identity(flow: Flow) -> tuple[object, ...]:
    return tuple(getattr(flow, name) for name in IDENTITY)


def drop_expired(now: datetime, keep_days: int) -> None:
    """Delete what began more than so many days ago. One SQL query."""
    count, _ = Flow.objects.filter(started_at__lt=now - timedelta(days=keep_days)).delete()
    if count:
        connections = format_counted(count, "reported connection")
        log.info("deleted because older than SONAR_KEEP_DAYS: %s", connections)
