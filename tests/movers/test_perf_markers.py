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
SOURCE_MISSING = (
    b"failure: Remote side failed with status code 404; error message: "
    b'"Unable to open /nope; no such file or directory "'
)

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


def test_a_marker_gives_bytes_and_remote_connections() -> None:
    markers = PerfMarkers()
    assert markers.feed(MARKER) == 1
    assert markers.moved_bytes == 1654931403
    assert markers.remote_connections == ("tcp:127.0.0.1:21094",)


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
) -> None:
    assert data_server(connections) == server


def test_a_marker_without_remote_connections_counts() -> None:
    markers = PerfMarkers()
    assert markers.feed(FIRST_PUSH_MARKER) == 1
    assert (markers.moved_bytes, markers.remote_connections) == (0, ())


def test_a_marker_cut_between_chunks_counts_once_it_is_whole() -> None:
    markers = PerfMarkers()
    assert [markers.feed(MARKER[:90]), markers.feed(MARKER[90:])] == [0, 1]
    assert markers.moved_bytes == 1654931403


def test_stripes_are_summed() -> None:
    second = MARKER.replace(b"Index: 0", b"Index: 1").replace(b"1654931403", b"5")
    assert read(MARKER, second).moved_bytes == 1654931408


def test_a_later_marker_replaces_its_stripe() -> None:
    assert read(FIRST_PUSH_MARKER, MARKER).moved_bytes == 1654931403


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n", b"\n\n"])
def test_a_last_line_of_success_is_success_with_or_without_a_newline(ending: bytes) -> None:
    assert read(MARKER, b"success: Created" + ending).finish() == Verdict(True, "Created")


def test_a_short_transfer_may_have_no_marker() -> None:
    assert read(b"success: Created").finish() == Verdict(True, "Created")


def test_a_failure_keeps_the_words_of_the_server() -> None:
    verdict = read(MARKER, SOURCE_MISSING).finish()
    assert verdict
    assert not verdict.success
    assert verdict.text.startswith("Remote side failed with status code 404")


@pytest.mark.parametrize(
    "body", [b"", MARKER, MARKER[:50], b"succ", b"successfully begun", b"201 Created\n"]
)
def test_a_body_without_verdict_has_none(body: bytes) -> None:
    assert read(body).finish() is None


def test_a_success_that_is_not_the_last_line_is_none() -> None:
    assert read(b"success: Created\n", MARKER).finish() is None


@pytest.mark.parametrize("body", [b"success\nfailure: x", b"failure: x\nsuccess"])
def test_a_failure_stands_beside_any_success(body: bytes) -> None:
    assert read(body).finish() == Verdict(False, "x")


def test_numbers_beyond_reason_are_not_taken() -> None:
    absurd = MARKER.replace(b"1654931403", b"9" * 5000)
    assert read(absurd).moved_bytes == 0


def test_stripes_beyond_reason_are_no_more_than_a_file_can_be() -> None:
    huge = MARKER.replace(b"1654931403", b"9" * 18)
    stripes = [huge.replace(b"Index: 0", b"Index: %d" % index) for index in range(20)]
    assert read(*stripes).moved_bytes == MOST_BYTES == 10**18 - 1


def test_an_endless_line_is_held_in_bounded_memory() -> None:
    markers = PerfMarkers()
    for _ in range(100):
        markers.feed(b"x" * MAX_LINE_BYTES)
    assert len(markers._line) <= MAX_LINE_BYTES
    markers.feed(b"\nsuccess: Created")
    assert markers.finish() == Verdict(True, "Created")


def test_stripes_and_connections_without_end_are_held_in_bounded_memory() -> None:
    markers = PerfMarkers()
    for index in range(3000):
        names = MARKER.replace(b"Index: 0", b"Index: %d" % index)
        markers.feed(names.replace(b"21094", b"%d" % index))
    assert len(markers._stripes) <= 1024
    assert len(markers.remote_connections) <= 64


def test_repeated_connections_are_named_once() -> None:
    many = MARKER.replace(b"tcp:127.0.0.1:21094", b",".join([b"tcp:127.0.0.1:21094"] * 90))
    assert read(many).remote_connections == ("tcp:127.0.0.1:21094",)


@given(BODIES, st.lists(st.integers(0, 400), max_size=12))
def test_any_split_of_any_body_gives_the_same_reading(body: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), max(len(body), *cuts, 0)]
    pieces = [body[start:end] for start, end in itertools.pairwise(edges)]
    whole, split = read(body), read(*pieces)
    assert split.finish() == whole.finish()
    assert split.moved_bytes == whole.moved_bytes
    assert split.remote_connections == whole.remote_connections


@given(BODIES)
def test_success_needs_a_last_line_that_says_so(body: bytes) -> None:
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
) -> None:
    assert ip_version(connections) == version


@given(st.lists(st.text(max_size=30)))
def test_no_connection_name_is_too_odd_for_the_ip_version(names: list[str]) -> None:
    assert ip_version(tuple(names)) in {4, 6, None}
