"""What the link page draws of an answer, with the same as tables, and its network tests."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from matrix.answers.link.network import NetworkTests, loss_of, rate_of
from matrix.answers.link.overhead import Overhead
from matrix.answers.link.report import LinkReport
from matrix.plots import rates as rate_plots
from matrix.plots.link import (
    DirectionLine,
    lines_of,
    other_window,
    rates_over_time,
    spans_drawn,
    usual_of,
)
from matrix.query.catalogue import BAND_WORDS, OF_LINK
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.transfers.overhead import TOLERANCE
from sonar.models import Annotation, NetworkResult
from sonar.notation.units import (
    MB,
    format_bytes,
    format_count,
    format_factor,
    format_seconds,
    format_share,
    three_digits,
)

# Heights of the pictures in rem.
HEIGHT, HEIGHT_OF_DISTRIBUTION = 20, 13
# Fewer rates have no distribution that a picture could show.
FEWEST_IN_DISTRIBUTION = 8
# What the rates of a bucket are called.
BUCKET_COLUMNS = [statistic.label for statistic in OF_LINK]


def drawn(answer: LinkReport, notes: Sequence[Annotation], *, reverse: bool) -> dict[str, Any]:
    """Draw the size class of the query, with the reverse direction if it is asked for.

    `points` of `results` results are drawn singly; the running median is of all. `first` is when
    the axis of time begins, None where that is with the window. `other` says with what it is
    compared, and `has_other_times` whether that has an axis of time of its own.
    """
    part = answer.chosen
    lines = lines_of(answer, reverse=reverse)
    picture = rates_over_time(answer, lines, spans_drawn(answer, notes))
    results = sum(len(line.results) for line in lines)
    shapes = [rate_plots.Shape(line.name, line.rates, line.look) for line in lines]
    rates = sum(shape.rates.size for shape in shapes)
    return {
        "size": part.size,
        "rates": picture.figure if results else None,
        "rates_height": HEIGHT,
        "distribution": rate_plots.distribution_figure(shapes)
        if rates >= FEWEST_IN_DISTRIBUTION
        else None,
        "distribution_height": HEIGHT_OF_DISTRIBUTION,
        "points": picture.points,
        "results": results,
        "columns": BUCKET_COLUMNS,
        "buckets": list(buckets_of(lines)),
        "bins": list(bins_of(lines)),
        "usual": usual_of(part.there),
        # What the usual range is called, as the band of a bucket.
        "band_words": BAND_WORDS,
        "first": None if picture.window == answer.window else picture.window.start,
        "other": answer.comparison.words if answer.comparison else "",
        "has_other_times": other_window(answer) is not None,
    }


def buckets_of(lines: Sequence[DirectionLine]) -> Iterator[dict[str, Any]]:
    """Yield the buckets that have a test, newest first within each direction.

    Their `rates` are the statistics of a link in the order of the catalogue.
    """
    for line in lines:
        buckets = line.series
        for at in np.flatnonzero(buckets.ok + buckets.failed)[::-1].tolist():
            yield {
                "start": datetime.fromtimestamp(buckets.starts[at], UTC),
                "size": line.size,
                "direction": line.direction,
                "ok": int(buckets.ok[at]),
                "failed": int(buckets.failed[at]),
                "rates": [float(buckets.rates[statistic.name][at]) for statistic in OF_LINK],
            }


def bins_of(lines: Sequence[DirectionLine]) -> Iterator[tuple[str, str, float, float, int]]:
    """Yield the bins that have a transfer, lowest rates first within each direction.

    Class, direction, the two rates in MB/s that it lies between, and how many there are.
    """
    for line in lines:
        if line.rates.size:
            bins = rate_plots.bins_of(line.rates)
            for at in np.flatnonzero(bins.counts).tolist():
                low, high = bins.edges[at : at + 2].tolist()
                yield line.size, line.direction, low, high, int(bins.counts[at])


def overhead_part(overhead: Overhead | None) -> dict[str, Any] | None:
    """Return overhead and bandwidth: a sentence, a picture, and its numbers."""
    if overhead is None:
        return None
    counts = ", ".join(f"{format_count(each.ok)} {each.name}" for each in overhead.classes)
    sentence = f"{overhead_words(overhead)} From the median times of {counts} files"
    return {
        "sentence": f"{sentence}{'; 95 % intervals in brackets' * overhead.fits}.",
        "figure": rate_plots.overhead_figure(overhead),
        "classes": overhead.classes,
        "fits": overhead.fits,
    }


def overhead_words(overhead: Overhead) -> str:
    """Return the line in words, or what is off it."""
    if not overhead.fits:
        sentence = "Overhead and bandwidth cannot be separated here: "
        furthest = overhead.furthest
        if furthest is None or 1 / TOLERANCE < furthest.off < TOLERANCE:
            return f"{sentence}smaller files move faster than any overhead would let them."
        return (
            f"{sentence}{furthest.name} files take {format_factor(furthest.off)} the time that the "
            "other size classes suggest."
        )
    seconds = format_seconds(overhead.overhead, overhead.overhead_low, overhead.overhead_high)
    sentence = f"Each transfer takes {seconds} whatever its size"
    if math.isnan(overhead.bandwidth):
        return f"{sentence}. Larger files take no longer, so the bandwidth is not known."
    low, high = three_digits(overhead.bandwidth_low), overhead.bandwidth_high
    bounds = f"at least {low}" if math.isinf(high) else f"{low}–{three_digits(high)}"
    bandwidth = f"{three_digits(overhead.bandwidth)} MB/s ({bounds})"
    if overhead.overhead == 0:
        sentence = f"No overhead is seen (at most {format_seconds(overhead.overhead_high)}): "
        return f"{sentence}bytes are sent at {bandwidth} whatever the size."
    half = format_bytes(overhead.half_size * MB)
    return (
        f"{sentence}, and sends its bytes at {bandwidth}. "
        f"Files under {half} spend most of their time waiting."
    )


MOST_LISTED = 20


def network_part(
    tests: NetworkTests, ends: tuple[EndpointInfo, EndpointInfo]
) -> dict[str, Any] | None:
    """Return what is shown; nothing where nobody tests the network.

    `alone` says that the link has no files at an end: nothing else is to be seen of it.
    """
    alone = not all(end.has_files for end in ends)
    every = sorted((*tests.there, *tests.back), key=lambda test: test.started_at, reverse=True)
    listed = every[:MOST_LISTED]
    if not listed and not alone:
        return None
    return {
        "sentence": sentence_of(tests),
        "lines": [network_line(test) | {"there": test in tests.there} for test in listed],
        "has_errors": any(test.error for test in listed),
        "more": len(every) - len(listed),
        "alone": alone,
    }


def verdict_alone(part: dict[str, Any] | None) -> dict[str, Any]:
    """Return what is said of a link without files in place of how its transfers are."""
    if part is None or not part["alone"]:
        return {}
    return {
        "kind": "na",
        "headline": "No files move here: an endpoint of this link only serves network tests.",
        "rest": part["sentence"],
        "links": [("Network tests", "#network")],
    }


def sentence_of(tests: NetworkTests) -> str:
    """Say the medians of this direction."""
    failed = format_count(len(tests.there) - len(tests.done))
    if tests.rate is None:
        if not tests.there:
            return "No test in this direction in this window."
        return f"None of the {failed} tests in this direction succeeded."
    rest = [f"a median of {three_digits(tests.rate)} MB/s (n = {format_count(len(tests.done))})"]
    if tests.rtt_ms is not None:
        rest.append(f"a round trip of {three_digits(tests.rtt_ms)} ms")
    if tests.loss is not None:
        rest.append(f"{format_share(tests.loss)} of segments retransmitted")
    failures = "" if failed == "0" else f" {failed} failed."
    return f"In this direction: {', '.join(rest)}.{failures}"


def network_line(test: NetworkResult) -> dict[str, Any]:
    """Return a test as texts, empty where nobody can tell.

    The shortest, the mean and the longest round trip in ms; what was sent again; the largest
    congestion window, and the largest that the receiver offered.
    """
    loss = loss_of(test)
    trips = test.rtt_min_ms, test.rtt_mean_ms, test.rtt_max_ms
    present = [three_digits(trip) for trip in trips if trip is not None]
    again = ""
    if test.retransmits is not None and loss is not None:
        again = f"{format_count(test.retransmits)} ({format_share(loss)})"
    windows = test.max_cwnd_bytes, test.max_receive_window_bytes
    sizes = [format_bytes(window) if window else "–" for window in windows]
    buffer, version = test.tcp_buffer_bytes, test.ip_version
    how = [
        test.mode,
        "1 stream" if test.streams == 1 else f"{test.streams} streams",
        f"buffer {format_bytes(buffer)}" if buffer else "",
        f"IPv{version}" if version else "",
        test.congestion_control,
    ]
    return {
        "test": test,
        "rate": rate_of(test),
        "round_trips": " / ".join(present) if len(present) == len(trips) else "",
        "again": again,
        "windows": " / ".join(sizes) if any(windows) else "",
        "how": ", ".join([*how[:2], *filter(None, how[2:])]),
    }
