"""Tests of the network alone on the link page: a sentence, and the newest of them in a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matrix.answers.link.network import NetworkTests, loss_of, rate_of
from matrix.statistics.cells.axes import EndpointInfo
from sonar.models import NetworkResult
from sonar.notation.units import format_bytes, format_count, format_share, three_digits

MOST_LISTED = 20


@dataclass(frozen=True)
class NetworkLine:
    """One test; texts are empty where nobody can tell."""

    test: NetworkResult
    there: bool
    rate: float | None
    round_trips: str
    again: str
    windows: str
    how: str


@dataclass(frozen=True)
class NetworkPart:
    """``alone`` says that the link has no files at an end: nothing else is to be seen of it."""

    sentence: str
    lines: tuple[NetworkLine, ...]
    more: int
    alone: bool

    @property
    def has_errors(self) -> bool:
        return any(line.test.error for line in self.lines)


def part_of(tests: NetworkTests, ends: tuple[EndpointInfo, EndpointInfo]) -> NetworkPart | None:
    """Return what is shown; nothing where nobody tests the network."""
    alone = not all(end.has_files for end in ends)
    listed = tests.listed
    if not listed and not alone:
        return None
    lines = tuple(line_of(test, test in tests.there) for test in listed[:MOST_LISTED])
    return NetworkPart(sentence_of(tests), lines, len(listed) - len(lines), alone)


def verdict_of(part: NetworkPart | None) -> dict[str, Any]:
    """Return what is said of a link without files in place of how its transfers are."""
    if part is None or not part.alone:
        return {}
    return {
        "kind": "na",
        "headline": "No files move here: an endpoint of this link only serves network tests.",
        "rest": part.sentence,
        "links": [("Network tests", "#network")],
    }


def sentence_of(tests: NetworkTests) -> str:
    """Say the medians of this direction."""
    failed = len(tests.there) - len(tests.done)
    if tests.rate is None:
        if not tests.there:
            return "No test in this direction in this window."
        return f"None of the {format_count(failed)} tests in this direction succeeded."
    rest = [f"a median of {three_digits(tests.rate)} MB/s (n = {format_count(len(tests.done))})"]
    if tests.rtt_ms is not None:
        rest.append(f"a round trip of {three_digits(tests.rtt_ms)} ms")
    if tests.loss is not None:
        rest.append(f"{format_share(tests.loss)} of segments retransmitted")
    failures = f" {format_count(failed)} failed." if failed else ""
    return f"In this direction: {', '.join(rest)}.{failures}"


def line_of(test: NetworkResult, there: bool) -> NetworkLine:
    loss = loss_of(test)
    return NetworkLine(
        test=test,
        there=there,
        rate=rate_of(test),
        round_trips=trips_of(test),
        again=f"{format_count(test.retransmits)} ({format_share(loss)})"
        if test.retransmits is not None and loss is not None
        else "",
        windows=windows_of(test),
        how=how_words(test),
    )


def trips_of(test: NetworkResult) -> str:
    """Return the shortest, the mean and the longest round trip in ms."""
    trips = test.rtt_min_ms, test.rtt_mean_ms, test.rtt_max_ms
    present = [three_digits(trip) for trip in trips if trip is not None]
    return " / ".join(present) if len(present) == len(trips) else ""


def windows_of(test: NetworkResult) -> str:
    """Return the largest congestion window, and the largest that the receiver offered."""
    windows = test.max_cwnd_bytes, test.max_receive_window_bytes
    if not any(windows):
        return ""
    return " / ".join(format_bytes(window) if window else "–" for window in windows)


def how_words(test: NetworkResult) -> str:
    streams = "1 stream" if test.streams == 1 else f"{test.streams} streams"
    words = [test.mode, streams]
    if test.tcp_buffer_bytes:
        words.append(f"buffer {format_bytes(test.tcp_buffer_bytes)}")
    if test.ip_version:
        words.append(f"IPv{test.ip_version}")
    if test.congestion_control:
        words.append(test.congestion_control)
    return ", ".join(words)
