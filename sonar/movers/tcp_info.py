"""What the kernel knows of a TCP connection of this machine: its TCP_INFO.

The layout is that of linux/tcp.h. It only grows: older kernels give fewer bytes, and what lies
beyond them is not known.
"""

import socket
import struct
from dataclasses import dataclass

MOST_BYTES = 1024
"""Longer than any; a kernel gives what it has."""
# Where each number stands, and how long it is.
NUMBERS = {
    "snd_mss": (16, "=I"),
    "rtt": (68, "=I"),
    "rttvar": (72, "=I"),
    "snd_cwnd": (80, "=I"),
    "total_retrans": (100, "=I"),
    "bytes_acked": (120, "=Q"),
    "min_rtt": (148, "=I"),
    "delivery_rate": (160, "=Q"),
    "busy_time": (168, "=Q"),
    "rwnd_limited": (176, "=Q"),
    "sndbuf_limited": (184, "=Q"),
    "bytes_sent": (200, "=Q"),
    "bytes_retrans": (208, "=Q"),
}
NO_ROUND_TRIP = 2**32 - 1
"""Value of the kernel for a shortest round trip before any was measured."""


@dataclass(frozen=True)
class TcpConnection:
    """A connection as the kernel at its sending end saw it; None for what that does not tell.

    ``rtt_ms`` is smoothed over the last round trips, ``rtt_min_ms`` the shortest of late.
    ``held_by_receiver`` and ``held_by_sender`` are shares of the time in which it had something
    to send: the receiver's window was full, or the sender's buffer.
    """

    rtt_ms: float
    rtt_variation_ms: float | None = None
    rtt_min_ms: float | None = None
    retransmits: int | None = None
    """Packets that were sent again."""
    sent_bytes: int | None = None
    """Bytes sent, retransmitted ones included."""
    resent_bytes: int | None = None
    acknowledged_bytes: int | None = None
    window_bytes: int | None = None
    """TCP's congestion window."""
    delivery_rate: int | None = None
    """In bytes per second, as TCP estimated it last."""
    held_by_receiver: float | None = None
    held_by_sender: float | None = None


def of(sock: socket.socket) -> TcpConnection | None:
    """Return what is known of a connection, also of one that has just ended; None for nothing."""
    return parsed(answer_of(sock))


def answer_of(sock: socket.socket) -> bytes:
    """Return the TCP_INFO of a socket; nothing where there is none. Costs 1 us."""
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, MOST_BYTES)
    except (AttributeError, OSError):  # not Linux, or no TCP
        return b""


def parsed(answer: bytes) -> TcpConnection | None:
    """Return what a TCP_INFO says; None for one that never came about."""
    numbers = {name: _number(answer, *place) for name, place in NUMBERS.items()}
    round_trip, window = numbers["rtt"], numbers["snd_cwnd"]
    if not round_trip:
        return None
    shortest = numbers["min_rtt"]
    return TcpConnection(
        rtt_ms=round_trip / 1000,
        rtt_variation_ms=_milliseconds(numbers["rttvar"]),
        rtt_min_ms=None if shortest == NO_ROUND_TRIP else _milliseconds(shortest),
        retransmits=numbers["total_retrans"],
        sent_bytes=numbers["bytes_sent"],
        resent_bytes=numbers["bytes_retrans"],
        acknowledged_bytes=numbers["bytes_acked"],
        window_bytes=None if window is None else window * (numbers["snd_mss"] or 0),
        delivery_rate=numbers["delivery_rate"] or None,
        held_by_receiver=_share(numbers["rwnd_limited"], numbers["busy_time"]),
        held_by_sender=_share(numbers["sndbuf_limited"], numbers["busy_time"]),
    )


def _number(answer: bytes, start: int, kind: str) -> int | None:
    if len(answer) < start + struct.calcsize(kind):
        return None
    return int(struct.unpack_from(kind, answer, start)[0])


def _milliseconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1000


def _share(part: int | None, whole: int | None) -> float | None:
    return min(part / whole, 1.0) if part is not None and whole else None
