"""What the kernel tells of TCP connections: by its own numbers, by `ss`, and in short answers."""

import ctypes
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sonar.movers import tcp_info
from sonar.movers.programs import sockets
from sonar.movers.tcp_info import NUMBERS, TcpConnection, parsed
from tests.needs import needs
from tests.waiting import wait_for

ATTACH_FILTER, DETACH_FILTER = 26, 27
WHOLE_BYTES = 232
# What each field is made of: it is known if and only if all of that has been told.
MADE_OF = {
    "rtt_ms": ["rtt"],
    "rtt_variation_ms": ["rttvar"],
    "rtt_min_ms": ["min_rtt"],
    "retransmits": ["total_retrans"],
    "sent_bytes": ["bytes_sent"],
    "resent_bytes": ["bytes_retrans"],
    "acknowledged_bytes": ["bytes_acked"],
    "window_bytes": ["snd_cwnd", "snd_mss"],
    "delivery_rate": ["delivery_rate"],
    "held_by_receiver": ["rwnd_limited", "busy_time"],
    "held_by_sender": ["sndbuf_limited", "busy_time"],
}


@contextmanager
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give both ends of a connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    with near, far:
        yield near, far


def carry(near: socket.socket, far: socket.socket, size: int) -> None:
    """Send so much, and wait until all of it is acknowledged: then no figure changes any more."""
    near.sendall(b"x" * size)
    take(far, size)
    assert wait_for(lambda: (known(near).acknowledged_bytes or 0) >= size, 120, pause=0.005)


def take(far: socket.socket, size: int) -> None:
    while size:
        size -= len(far.recv(1 << 16))


def known(sock: socket.socket) -> TcpConnection:
    connection = tcp_info.of(sock)
    assert connection
    return connection


def drop_what_comes(sock: socket.socket) -> None:
    """Let the kernel drop all packets for a socket, as a network that loses them."""
    nothing = ctypes.create_string_buffer(struct.pack("=HBBI", 0x06, 0, 0, 0))  # BPF: ret 0
    program = struct.pack("=HxxxxxxQ", 1, ctypes.addressof(nothing))
    sock.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, program)


def test_the_kernels_figures_are_those_that_ss_shows():
    needs("ss")
    with connected() as (near, far):
        carry(near, far, 3_000_000)
        command = ["ss", "-tinHO", f"sport = :{near.getsockname()[1]}"]
        words = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        connection = known(near)
    variation = re.search(r" rtt:[\d.]+/([\d.]+)", words)
    assert variation
    shown = dict(re.findall(r"(\w+):([\d.]+)", words))
    assert connection.rtt_ms == pytest.approx(float(shown["rtt"]), abs=1e-3)
    assert connection.rtt_variation_ms == pytest.approx(float(variation[1]), abs=1e-3)
    assert connection.rtt_min_ms == pytest.approx(float(shown["minrtt"]), abs=1e-3)
    assert connection.window_bytes == int(shown["cwnd"]) * int(shown["mss"])
    assert connection.sent_bytes == int(shown["bytes_sent"])
    assert connection.acknowledged_bytes == int(shown["bytes_acked"]) > 2_900_000
    assert connection.delivery_rate
    bits = re.search(r"delivery_rate (\d+)bps", words)
    assert connection.delivery_rate * 8 == pytest.approx(int(bits[1]), rel=0.001)


def test_packets_that_are_lost_are_counted_as_they_are_sent_again():
    with connected() as (near, far):
        assert known(near).retransmits == 0
        drop_what_comes(far)
        near.sendall(b"x" * 1000)
        assert wait_for(lambda: known(near).retransmits, 120, pause=0.01)
        far.setsockopt(socket.SOL_SOCKET, DETACH_FILTER, 0)
        assert len(far.recv(1000)) == 1000
        connection = known(near)
        assert connection.sent_bytes
        assert connection.resent_bytes
        assert connection.resent_bytes >= 1000
        assert connection.sent_bytes == 1000 + connection.resent_bytes


def test_a_connection_that_the_other_end_broke_is_known_all_the_same():
    with connected() as (near, far):
        carry(near, far, 100_000)
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        far.close()
        with pytest.raises(OSError, match="reset"):
            near.recv(1)
        assert (known(near).acknowledged_bytes or 0) >= 100_000


def test_of_what_is_no_connection_nothing_is_known():
    with socket.socket() as unconnected:
        assert tcp_info.of(unconnected) is None
    with socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        assert tcp_info.of(datagrams) is None
    with connected() as (near, _):
        near.close()
        assert tcp_info.of(near) is None


def answer_of(numbers: dict[str, int]) -> bytes:
    answer = bytearray(WHOLE_BYTES)
    for name, number in numbers.items():
        start, kind = NUMBERS[name]
        struct.pack_into(kind, answer, start, number)
    return bytes(answer)


ANSWERS = st.fixed_dictionaries(
    {
        name: st.integers(1, 2**32 - 2 if kind == "=I" else 2**64 - 1)
        for name, (_, kind) in NUMBERS.items()
    }
)


@given(ANSWERS, st.integers(0, WHOLE_BYTES))
def test_an_older_kernel_tells_less_and_nothing_else(numbers: dict[str, int], length: int):
    whole, short = parsed(answer_of(numbers)), parsed(answer_of(numbers)[:length])
    ends = {name: start + struct.calcsize(kind) for name, (start, kind) in NUMBERS.items()}
    if length < ends["rtt"]:
        assert short is None
        return
    for field, parts in MADE_OF.items():
        is_told = all(ends[part] <= length for part in parts)
        assert getattr(short, field) == (getattr(whole, field) if is_told else None), field


@given(ANSWERS)
def test_a_share_is_never_more_than_all(numbers: dict[str, int]):
    connection = parsed(answer_of(numbers))
    assert connection
    assert 0 <= (connection.held_by_receiver or 0) <= 1
    assert 0 <= (connection.held_by_sender or 0) <= 1


@given(st.binary(max_size=300))
def test_whatever_a_kernel_answers_is_read_or_not_known(answer: bytes):
    connection = parsed(answer)
    assert connection is None or connection.rtt_ms > 0


def test_a_shortest_round_trip_that_there_is_not_yet_is_not_known():
    connection = parsed(answer_of({"rtt": 1500, "min_rtt": 2**32 - 1}))
    assert (connection.rtt_ms, connection.rtt_min_ms) == (1.5, None)


SENDER = """
import socket, sys
connections = []
for host, port, size in zip(*(iter(sys.argv[1:]),) * 3):
    connections.append(socket.create_connection((host, int(port))))
    connections[-1].sendall(bytes(int(size)))
sys.stdin.read()
"""


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_busiest_connection_of_a_program_is_found_among_all(host: str):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sizes = (1000, 50_000, 2000)
    with socket.create_server((host, 0), family=family) as server, connected() as others:
        carry(*others, 100_000)
        port = str(server.getsockname()[1])
        arguments = [word for size in sizes for word in (host, port, str(size))]
        command = [sys.executable, "-S", "-c", SENDER, *arguments]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as program, ExitStack() as open_ends:
            for size in sizes:
                far, _ = server.accept()
                take(open_ends.enter_context(far), size)

            def acknowledged() -> int:
                busiest = sockets.busiest(program.pid)
                return (busiest and busiest.acknowledged_bytes) or 0

            wait_for(lambda: acknowledged() >= max(sizes), 120, pause=0.005)
            assert 0 <= acknowledged() - max(sizes) <= 2


def test_a_program_that_has_ended_has_no_connection():
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert sockets.busiest(ended.pid) is None


@given(st.binary(max_size=400))
@example(bytes(16))
@example(sockets.HEADER.pack(96, 0, 0, 0, 0) + bytes(80))
def test_whatever_netlink_says_is_read_to_its_end(datagram: bytes):
    for _, message in sockets.messages(datagram):
        sockets.info_of(message)
