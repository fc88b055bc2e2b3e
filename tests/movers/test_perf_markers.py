"""The body of an HTTP-TPC answer, as XRootD 5.5.3 sent it and as a hostile server might."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.movers.http.perf_markers import (
    MAX_LINE_BYTES,
    MOST_BYTES,
    PerfMarkers,
    Verdict,
    data_server,
    ip_version,
)

MARKER = (
    b"Perf Marker\nTimestamp: 1795159366\nStripe Index: 0\n"
    b"Stripe Bytes Transferred: 1654931403\nTotal Stripe Count: 1\n"
    b"RemoteConnections: tcp:127.0.0.1:21094\nEnd\n"
)
FIRST_PUSH_MARKER = (
    b"Perf Marker\nTimestamp: 1795159340\nStripe Index: 0\n"
    b"Stripe Bytes Transferred: 0\nTotal Stripe Count: 1\nEnd\n"
)
ENDINGS = (b"", b"\n", b"\r\n", b"\n\n")

LINES = st.one_of(
    st.sampled_from(
        [
            b"Perf Marker",
            b"End",
            b"Stripe Index: 1",
            b"Stripe Bytes Transferred: 7",
            b"Stripe Bytes Transferred: -7",
            b"RemoteConnections: tcp:[::1]:1,tcp:[::1]:1",
            b"success: Created",
            b"success: Created\r",
            b"failure: no",
            b"successfully begun",
            b"",
        ]
    ),
    st.binary(max_size=40),
)
BODIES = st.one_of(st.binary(max_size=400), st.lists(LINES, max_size=30).map(b"\n".join))


def read(*pieces: bytes) -> PerfMarkers:
    markers = PerfMarkers()
    for piece in pieces:
        markers.feed(piece)
    return markers


@pytest.mark.parametrize(
    ("connections", "server"),
    [
        (("tcp:192.0.2.48:1094",), "192.0.2.48:1094"),
        (("tcp:[2001:DB8::48]:1094", "tcp:[2001:db8:0::48]:1094"), "[2001:db8::48]:1094"),
        (("tcp:192.0.2.48:1094", "tcp:192.0.2.49:1094"), ""),
        (("nonsense", "tcp:=cmd|calc:1"), ""),
        ((), ""),
    ],
)
def test_connections_name_a_data_server_if_they_lead_to_one(
    connections: tuple[str, ...], server: str
):
    assert data_server(connections) == server


CONNECTION = b"tcp:127.0.0.1:21094"
HUGE = MARKER.replace(b"1654931403", b"9" * 18)


@pytest.mark.parametrize(
    ("pieces", "completed", "moved", "connections"),
    [
        ([MARKER], [1], 1654931403, 1),
        ([FIRST_PUSH_MARKER], [1], 0, 0),
        ([MARKER[:90], MARKER[90:]], [0, 1], 1654931403, 1),
        # Stripes are summed, and a later marker replaces its own.
        ([MARKER, MARKER.replace(b"Index: 0", b"Index: 1")], [1, 1], 2 * 1654931403, 1),
        ([FIRST_PUSH_MARKER, MARKER], [1, 1], 1654931403, 1),
        ([MARKER.replace(CONNECTION, b",".join([CONNECTION] * 90))], [1], 1654931403, 1),
        # Numbers beyond reason are not taken, and no more than a file can be.
        ([MARKER.replace(b"1654931403", b"9" * 5000)], [0], 0, 0),
        ([HUGE.replace(b"x: 0", b"x: %d" % index) for index in range(20)], [1] * 20, 10**18 - 1, 1),
    ],
)
def test_markers_tell_what_has_moved_and_by_which_connections(
    pieces: list[bytes], completed: list[int], moved: int, connections: int
):
    markers = PerfMarkers()
    assert [markers.feed(piece) for piece in pieces] == completed
    assert markers.moved_bytes == moved <= MOST_BYTES
    assert markers.remote_connections == ("tcp:127.0.0.1:21094",) * connections


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        *((MARKER + b"success: Created" + end, (True, "Created")) for end in ENDINGS),
        (b"success: Created", (True, "Created")),  # a short transfer may have no marker
        (MARKER + b"failure: no such file", (False, "no such file")),
        (MARKER + b"failed: no such file", (False, "no such file")),
        (MARKER + b"aborted", (False, "")),
        *((body, None) for body in (b"", MARKER, MARKER[:50], b"succ", b"201 Created\n")),
        (b"successfully begun", None),
        (b"success: Created\n" + MARKER, None),
        # A failure stands beside any success.
        (b"success\nfailure: x", (False, "x")),
        (b"failure: x\nsuccess", (False, "x")),
    ],
)
def test_the_verdict_is_the_last_line(body: bytes, verdict: tuple[bool, str] | None):
    assert read(body).finish() == (verdict and Verdict(*verdict))


def test_an_endless_line_is_held_in_bounded_memory():
    markers = PerfMarkers()
    for _ in range(100):
        markers.feed(b"x" * MAX_LINE_BYTES)
    assert len(markers._line) <= MAX_LINE_BYTES
    markers.feed(b"\nsuccess: Created")
    assert markers.finish() == Verdict(True, "Created")


def test_stripes_and_connections_without_end_are_held_in_bounded_memory():
    markers = PerfMarkers()
    for index in range(3000):
        names = MARKER.replace(b"Index: 0", b"Index: %d" % index)
        markers.feed(names.replace(b"21094", b"%d" % index))
    assert len(markers._stripes) <= 1024
    assert len(markers.remote_connections) <= 64


@given(BODIES, st.lists(st.integers(0, 400), max_size=12))
def test_any_split_of_any_body_gives_the_same_reading(body: bytes, cuts: list[int]):
    edges = [0, *sorted(cuts), max(len(body), *cuts, 0)]
    pieces = [body[start:end] for start, end in itertools.pairwise(edges)]
    whole, split = read(body), read(*pieces)
    assert split.finish() == whole.finish()
    assert split.moved_bytes == whole.moved_bytes
    assert split.remote_connections == whole.remote_connections


@given(BODIES)
def test_success_needs_a_last_line_that_says_so(body: bytes):
    verdict = read(body).finish()
    if verdict and verdict.success:
        last = [line for line in body.split(b"\n") if line.strip()][-1]
        assert last.strip().lower().startswith(b"success")


@pytest.mark.parametrize(
    ("connections", "version"),
    [
        (("tcp:127.0.0.1:21094",), 4),
        (("tcp:[2001:db8::1]:443",), 6),
        (("tcp:[::ffff:192.0.2.1]:443",), 4),
        (("tcp:127.0.0.1:1", "tcp:[2001:db8::1]:443"), None),
        (("nonsense", "tcp:[:::]:1"), None),
        ((), None),
    ],
)
def test_the_ip_version_is_what_the_connections_agree_on(
    connections: tuple[str, ...], version: int | None
):
    assert ip_version(connections) == version


@given(st.lists(st.text(max_size=30)))
def test_no_connection_name_is_too_odd_for_the_ip_version(names: list[str]):
    assert ip_version(tuple(names)) in {4, 6, None}
