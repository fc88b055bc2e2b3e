"""Which connections are known of a test: those that servers reported, and that of its upload.

Reported ones are its own by flow label, time and the addresses of its ends. Several tests at once
between the same addresses cannot be told apart; that is said, not guessed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from matrix.store import network
from sonar.models import Flow, Transfer
from sonar.notation.units import MB

# What only those may see who see the names of machines.
ADDRESSES = ("source_address", "destination_address", "reporter")


@dataclass(frozen=True)
class ReportedConnection:
    """A network connection of a transfer, as a server reported it in a SciTags firefly."""

    started_at: datetime
    ended_at: datetime | None
    bytes: int | None
    rtt_ms: float | None
    retransmits: int | None  # packets
    window_bytes: int | None  # of congestion, as reported last
    held_by_receiver: float | None  # by its window
    held_by_sender: float | None  # by its buffer
    application: str
    source_address: str | None
    destination_address: str | None
    reporter: str | None
    other_tests: int

    @property
    def seconds(self) -> float | None:
        """Return how long it was open; None if its end was not reported."""
        if self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()


@dataclass(frozen=True)
class SourceUpload:
    """The upload of the source file from Sonar's worker to the source, before the test.

    Its figures describe the connection from the worker to the source, not the link.
    """

    seconds: float
    bytes: int | None  # with what goes with the file
    rtt_ms: float | None
    rtt_min_ms: float | None
    rtt_variation_ms: float | None
    retransmits: int | None
    loss: float | None
    window_bytes: int | None
    delivery_rate_mb_s: float | None  # TCP's own estimate at the end
    held_by_receiver: float | None
    held_by_sender: float | None

    @property
    def rate(self) -> float | None:
        """Return in MB/s how fast it arrived."""
        return self.bytes / self.seconds / MB if self.bytes and self.seconds else None


def uploaded(transfer: Transfer) -> SourceUpload | None:
    """Return how the source file of a test was uploaded for it; None if it was there already."""
    numbers = transfer.upload
    if numbers is None:
        return None
    sent, resent = numbers.get("sent_bytes"), numbers.get("resent_bytes")
    rate = numbers.get("delivery_rate")
    otherwise = {
        "bytes": numbers.get("acknowledged_bytes"),
        "loss": resent / sent if sent and resent is not None else None,
        "delivery_rate_mb_s": rate and rate / MB,
    }
    names = [field.name for field in fields(SourceUpload)]
    return SourceUpload(**{name: numbers.get(name) for name in names} | otherwise)


def reported(transfer: Transfer) -> list[ReportedConnection]:
    """Return what was reported of the connections of a test. At most three SQL queries."""
    if transfer.scitag is None or not (rows := network.near(transfer, transfer.scitag)):
        return []
    tests = network.tests_beside(rows, transfer)
    return [_connection(flow, transfer, tests) for flow in rows]


def _connection(
    flow: Flow, transfer: Transfer, tests: Sequence[tuple[network.Link, network.Times]]
) -> ReportedConnection:
    forward = transfer.source_id in flow.source_endpoints
    tcp = flow.tcp
    return ReportedConnection(
        started_at=flow.started_at,
        ended_at=flow.ended_at,
        bytes=flow.sent_bytes if forward else flow.received_bytes,
        rtt_ms=tcp.get("rtt"),
        retransmits=_whole(tcp.get("total_retrans")),
        window_bytes=_window(tcp),
        held_by_receiver=_share(tcp, "rwnd_limited"),
        held_by_sender=_share(tcp, "sndbuf_limited"),
        application=flow.application,
        source_address=flow.source_address if forward else flow.destination_address,
        destination_address=flow.destination_address if forward else flow.source_address,
        reporter=flow.reporter,
        other_tests=sum(_fits(flow, *test) for test in tests),
    )


def _fits(flow: Flow, link: network.Link, times: network.Times) -> bool:
    """Say whether a connection may be that of a test."""
    source, destination = link
    sides = flow.source_endpoints, flow.destination_endpoints
    between = any(source in near and destination in far for near, far in (sides, sides[::-1]))
    return between and times[0] - network.CLOCKS <= flow.started_at <= times[1] + network.CLOCKS


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)


def _window(tcp: dict[str, float]) -> int | None:
    """Return the congestion window in bytes: TCP counts it in packets of its largest size."""
    packets, size = tcp.get("snd_cwnd"), tcp.get("snd_mss")
    return None if packets is None or size is None else round(packets * size)


def _share(tcp: dict[str, float], name: str) -> float | None:
    held, busy = tcp.get(name), tcp.get("busy_time")
    return min(held / busy, 1.0) if held is not None and busy else None
