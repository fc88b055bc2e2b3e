"""What the link page draws and lists: its pictures, size classes, network tests and schedule."""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from matrix.answers.comparison import all_links
from matrix.answers.link.directions import Direction, compared
from matrix.answers.link.link_profiles import ProfileSummary
from matrix.answers.link.network import NetworkTests, loss_of, rate_of
from matrix.answers.link.overhead import Overhead
from matrix.answers.link.report import LinkReport
from matrix.answers.words.phrases import time_words, why_no_rate
from matrix.pages.base import QueryPage
from matrix.pages.parts.transfers import every_words, purpose_words, streams_words, until_words
from matrix.plots import rates as rate_plots
from matrix.plots.link import lines_of, other_window, rates_over_time, spans_drawn, usual_of
from matrix.query.addresses import address
from matrix.query.attributes import OF_PROFILES
from matrix.query.catalogue import BAND_WORDS, HIGH, LOW, OF_LINK
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.cells.states import STATE_WORDS
from matrix.statistics.transfers.overhead import TOLERANCE
from sonar.models import Annotation, NetworkResult, Schedule
from sonar.notation import windows
from sonar.notation.units import (
    DASH,
    MB,
    format_bytes,
    format_count,
    format_factor,
    format_seconds,
    format_share,
    three_digits,
)
from sonar.notation.windows import PRESET_WORDS, PRESETS, format_day, format_minute
from sonar.obstacles.catalogue import waits_because_of

# What the state or level of a class is called beside a rate, and in its place.
WORDS = {
    "slower": "slower than usual",
    "faster": "faster than usual",
    "usual": "as usual",
    "unknown": "no baseline yet",
    "untested": "no test in this time range",
    "not_applicable": "not in any mesh",
    "failing": "failing",
    "failed": "all tests failed",
    "stale": "not tested recently",
    "down": "in a declared downtime",
    "silent": "not tested as planned",
}
FIGURES = {"failing": "fails", "failed": "failed", "down": "down"}
# What needs no more words than its figures have.
PLAIN = ("usual", "unknown", "failed")
# Headings and the names of what stands below them: both ends of the band in one column.
QUANTILE_COLUMNS = [
    (BAND_WORDS, [LOW.name, HIGH.name]) if statistic == LOW else (statistic.label, [statistic.name])
    for statistic in OF_LINK
    if statistic.quantile is not None and statistic != HIGH
]
CHANGED = ("slower", "faster")
# How a comparison reads in a word, and the verdict that colours it, where it is no change.
READS = {
    "perhaps": ("unknown", "perhaps {}"),
    "same": ("usual", "no significant difference"),
    "": ("unknown", "too few results"),
}
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
    shapes = [rate_plots.Shape(line.name, line.results.successes, line.look) for line in lines]
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
        # Those that have a test, newest first within each direction.
        "buckets": [
            {
                "start": datetime.fromtimestamp(buckets.starts[at], UTC),
                "size": line.size,
                "direction": line.direction,
                "ok": int(buckets.ok[at]),
                "failed": int(buckets.failed[at]),
                "rates": [float(buckets.rates[statistic.name][at]) for statistic in OF_LINK],
            }
            for line in lines
            for buckets in [line.series]
            for at in np.flatnonzero(buckets.ok + buckets.failed)[::-1].tolist()
        ],
        # Those that have a transfer, each with the two rates in MB/s that it lies between.
        "bins": [
            (line.size, line.direction, *bins.edges[at : at + 2].tolist(), int(bins.counts[at]))
            for line in lines
            if line.results.successes.size
            for bins in [rate_plots.bins_of(line.results.successes)]
            for at in np.flatnonzero(bins.counts).tolist()
        ],
        "usual": usual_of(part.there),
        # What the usual range is called, as the band of a bucket.
        "band_words": BAND_WORDS,
        "first": None if picture.window == answer.window else picture.window.start,
        "other": answer.comparison.words if answer.comparison else "",
        "has_other_times": other_window(answer) is not None,
    }


def overhead_part(overhead: Overhead | None) -> dict[str, Any] | None:
    """Return overhead and bandwidth: a sentence, a picture, and its numbers."""
    if overhead is None:
        return None
    counts = ", ".join(f"{format_count(each.ok)} {each.name}" for each in overhead.classes)
    sentence = f"{overhead_words(overhead)} Based on the median times of {counts} files"
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
        between = [each for each in overhead.classes if not math.isnan(each.off)]
        furthest = max(between, key=lambda each: abs(math.log(each.off)), default=None)
        if furthest is None or 1 / TOLERANCE < furthest.off < TOLERANCE:
            return f"{sentence}smaller files move faster than a fixed overhead allows."
        return (
            f"{sentence}{furthest.name} files take {format_factor(furthest.off)} the time that the "
            "other size classes suggest."
        )
    seconds = format_seconds(overhead.overhead, overhead.overhead_low, overhead.overhead_high)
    sentence = f"Each transfer has {seconds} of overhead, regardless of its size"
    if math.isnan(overhead.bandwidth):
        return f"{sentence}. Larger files take no longer, so the bandwidth is not known."
    low, high = three_digits(overhead.bandwidth_low), overhead.bandwidth_high
    bounds = f"at least {low}" if math.isinf(high) else f"{low}–{three_digits(high)}"
    bandwidth = f"{three_digits(overhead.bandwidth)} MB/s ({bounds})"
    if overhead.overhead == 0:
        sentence = f"No overhead is visible (at most {format_seconds(overhead.overhead_high)}): "
        return f"{sentence}data moves at {bandwidth}, regardless of the file size."
    half = format_bytes(overhead.half_size * MB)
    return (
        f"{sentence}, and then moves data at {bandwidth}. "
        f"For files under {half}, most of the transfer time is overhead."
    )


MOST_LISTED = 20


def network_part(
    tests: NetworkTests, ends: tuple[EndpointInfo, EndpointInfo]
) -> dict[str, Any] | None:
    """Return the network tests, if any; `alone` says that the link has no files at an end."""
    alone = not all(end.has_files for end in ends)
    every = sorted((*tests.there, *tests.back), key=lambda test: test.started_at, reverse=True)
    listed = every[:MOST_LISTED]
    if not listed and not alone:
        return None
    failed = format_count(len(tests.there) - len(tests.done))
    sentence = "No network test ran in this direction in this time range."
    if tests.rate is not None:
        count, rate = format_count(len(tests.done)), three_digits(tests.rate)
        medians = [f"median {rate} MB/s (n = {count})"]
        if tests.rtt_ms is not None:
            medians.append(f"round trip {three_digits(tests.rtt_ms)} ms")
        if tests.loss is not None:
            medians.append(f"{format_share(tests.loss)} of segments retransmitted")
        failures = "" if failed == "0" else f" Failed network tests: {failed}."
        sentence = f"Network tests in this direction: {', '.join(medians)}.{failures}"
    elif tests.there:
        sentence = f"No network test in this direction succeeded ({failed} failed)."
    return {
        "sentence": sentence,
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
        "headline": "No files are transferred: an endpoint of this link only serves network tests.",
        "rest": part["sentence"],
        "links": [("Network tests", "#network")],
    }


def network_line(test: NetworkResult) -> dict[str, Any]:
    """Return a test as texts, empty where nobody can tell; round trips are min, mean and max."""
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


def size_rows(answer: LinkReport, url_of: Callable[[str], str]) -> list[dict[str, Any]]:
    """Return a row for each size class, and for the reverse direction of the chosen one."""
    chosen = answer.question.query.size
    rows = [
        size_row(part.there, answer)
        | {
            "name": part.size,
            "url": url_of(part.size),
            "size_bytes": format_bytes(float(np.median(sizes))) if sizes.size else "",
            "chosen": part.size == chosen,
        }
        for part in answer.classes
        for sizes in [part.tests.bytes]
    ]
    return [*rows, size_row(answer.chosen.back, answer) | {"name": f"reverse, {chosen}"}]


def size_row(direction: Direction, answer: LinkReport) -> dict[str, Any]:
    """Return how a class is now: `kind` is the state or level that colours it, `title` its words.

    `figure` is the rate now in MB/s, or a word where there is none that counts; `against` compares
    it with what is usual, else counts what failed. `note` is what is unusual, and since when.
    """
    kind = direction.level if direction.state == "measured" else direction.state
    is_old = why_no_rate(direction.state, direction.since, answer.now_or_end)
    has_rate = not (is_old or math.isnan(direction.now))
    has_usual = not math.isnan(direction.usual)
    against = ""
    if has_rate and has_usual:
        against = direction.factor
    elif direction.tests:
        fails = direction.state in FIGURES
        count, word = (direction.failed, "failed") if fails else (direction.ok, "ok")
        against = f"{format_count(count)} of {format_count(direction.tests)} {word}"
    note = ""
    if kind not in PLAIN:
        since = direction.since
        began = "" if math.isnan(since) else f" since {time_words(since, answer.now_or_end)}"
        last = f", last {format_count(direction.streak)} failed" if direction.streak else ""
        note = f"{WORDS[kind]}{began}{last}"
    elif direction.unconfirmed:
        note = f"possibly {direction.unconfirmed}, unconfirmed"
    return {
        "kind": kind,
        "title": WORDS.get(kind, kind),
        "figure": three_digits(direction.now) if has_rate else FIGURES.get(kind, DASH),
        "usual": f"baseline {three_digits(direction.usual)}" if has_usual else "",
        "against": against,
        "note": note,
    }


def directions_of(answer: LinkReport) -> list[list[tuple[Any, ...]]]:
    """Return each class of this direction, then of the reverse, with its words and quantiles."""
    there = [(line.there, line.back) for line in answer.classes]
    return [
        [
            (
                direction,
                direction.standing_words,
                STATE_WORDS[direction.state],
                compared(direction.median, reverse.median),
                [
                    (heading, [direction.quantiles[name] for name in names])
                    for heading, names in QUANTILE_COLUMNS
                ],
            )
            for direction, reverse in pairs
        ]
        for pairs in (there, [(back, ahead) for ahead, back in there])
    ]


def comparison_part(page: QueryPage, answer: LinkReport) -> dict[str, Any] | None:
    comparison, size = answer.comparison, page.query.size
    if comparison is None:
        return None
    pair = comparison.classes[size].pair
    # Whether other links changed as much, where it is time that is compared.
    beyond, changes = "", all_links.changes(page.query, answer.now)
    if changes is not None:
        ends = (end.name for end in answer.question.ends)
        own = all_links.link_net_change(changes, *ends)
        beyond = (
            own.sentence("this link is", has_changed=pair.kind in CHANGED)
            if own
            else "Too few other links have results to show whether they changed as well."
        )
    return {
        "kind": READS.get(pair.kind, (pair.kind,))[0],
        "headline": comparison.headline(size),
        "sentence": comparison.sentence(size),
        "beyond": beyond,
        "of": comparison.of,
        "words": comparison.words,
        "rows": [
            (
                each.size,
                "" if each.size == size else page.asking(page.query.replace(size=each.size)).url(),
                each.pair,
                READS.get(each.pair.kind, ("", each.pair.kind))[1].format(each.pair.direction),
            )
            for each in comparison.classes.values()
        ],
    }


MOVER = "for example http-tpc: HTTP third-party copy, directly between the two endpoints"
MODE = "pull: the destination fetches the file; push: the source sends it"
STREAMS = "parallel TCP connections of one test"
NOT_KNOWN = "not known"
# Heading, title, a text for each row, and why there is a dash for an empty one.
Column = tuple[str, str, Sequence[str], str]


def split(columns: Sequence[Column], rows: Sequence[Any]) -> dict[str, Any]:
    """Return a table without the columns that are the same in every row.

    `heads` are headings and titles, `rows` have each row with its cells: texts, and why one may be
    empty. `constant` are headings and texts that all rows share, but for empty ones.
    """
    varying = [column for column in columns if len(set(column[2])) > 1]
    return {
        "heads": [(heading, title) for heading, title, _, _ in varying],
        "constant": [
            (heading, texts[0])
            for heading, _, texts, _ in columns
            if any(texts) and len(set(texts)) == 1
        ],
        "rows": [
            (row, [(texts[at], why) for _, _, texts, why in varying]) for at, row in enumerate(rows)
        ],
    }


def profile_table(
    summaries: Sequence[ProfileSummary], url_of: Callable[[tuple[Filter, ...]], str]
) -> dict[str, Any]:
    """Return how results were measured: a row for each profile and size class."""
    keys = [line.profile for line in summaries]
    concurrent = [OF_PROFILES["concurrent"].words[key.concurrent] for key in keys]
    clocks = OF_PROFILES["clock"].words
    streams = [streams_words(line.profile.streams, line.used) for line in summaries]
    meshes = [
        key.mesh or (f"none: {purpose_words(key.purpose)}" if key.purpose != "unknown" else "")
        for key in keys
    ]
    counts = {"none": "none", "some": "some", "unknown": ""}
    versions = [str(key.ip_version or "") for key in keys]
    timed = "clock that measured the transfer duration, and the start and end of the timed period"
    origin = "test: a transfer by Sonar; production and external: imported results"
    mesh = "set of links with one test schedule; for a test without a mesh, its purpose"
    others = "other Sonar tests at the source or the destination at the same time"
    columns: list[Column] = [
        ("transfer tool", MOVER, [key.mover for key in keys], ""),
        ("mode", MODE, [key.mode for key in keys], NOT_KNOWN),
        ("streams", STREAMS, streams, ""),
        ("IP version", "", versions, NOT_KNOWN),
        ("timed", timed, [clocks.get(key.clock, "") for key in keys], NOT_KNOWN),
        ("origin", origin, [key.origin for key in keys], ""),
        ("mesh", mesh, meshes, "no mesh"),
        ("concurrent tests", others, [counts[key.concurrent] for key in keys], "not recorded"),
    ]
    return split(
        columns,
        [
            {"line": line, "concurrent": words, "url": url_of(line.profile.filters())}
            for line, words in zip(summaries, concurrent, strict=True)
        ],
    )


def schedule_table(answer: LinkReport) -> dict[str, Any]:
    """Return the tests to come: each schedule, how often, when, and what it waits for, if so."""
    planned = answer.planned
    rows: list[dict[str, Any]] = [
        {
            "schedule": schedule,
            "every": every_words(schedule.every_seconds),
            "due": until_words(schedule.next_due, answer.now),
            "why": waits_because_of(schedule, answer.now),
        }
        for schedule in planned
    ]
    waits = [
        f"{row['why']}, since {format_minute(schedule.skipped_since)}"
        if row["why"] and schedule.skipped_since
        else row["why"]
        for schedule, row in zip(planned, rows, strict=True)
    ]
    meshes = [schedule.mesh for schedule in planned]
    modes = [
        mesh.mover_description.known_mode(mesh.mode) or "chosen by the transfer service"
        for mesh in meshes
    ]
    title = "set of links with one test schedule"
    first = "if not all due tests can start, those with a higher priority start first"
    columns: list[Column] = [
        ("mesh", title, [mesh.name for mesh in meshes], ""),
        ("reason for waiting", "", waits, "not waiting"),
        ("transfer tool", MOVER, [mesh.mover for mesh in meshes], ""),
        ("mode", MODE, modes, ""),
        ("streams", STREAMS, [str(mesh.streams) for mesh in meshes], ""),
        ("priority", first, [str(mesh.priority) for mesh in meshes], ""),
    ]
    return split(columns, rows)


def advice_for(
    answer: LinkReport, url_of: Callable[[MatrixQuery], str]
) -> tuple[str, Sequence[tuple[str, str]]]:
    """Say what to do about a window without a test, or one long over; with texts and addresses."""
    query, planned = answer.question.query, answer.planned
    if any(line.there.tests for line in answer.classes):
        if answer.now_or_end == answer.now:
            return "", ()
        return "", [("Show current state", url_of(query.replace(window=MatrixQuery.window)))]
    if query.filters:
        everything = url_of(query.replace(filters=()))
        return "", [("Show all tests without filters", everything)]
    if answer.last:
        coming = next_test(answer, planned) if planned else "No mesh includes this link now."
        # The shortest usual window that has the last test, else its day.
        day = answer.last.replace(hour=0, minute=0, second=0, microsecond=0)
        words = format_day(day)
        with_last = query.replace(window="", start=day, end=day + timedelta(days=1))
        for name in reversed(PRESETS):
            window = windows.preset(name, answer.now)
            if window.start <= answer.last < window.end:
                words, with_last = PRESET_WORDS[name], query.replace(window=name)
        return coming, [(f"Show {words}", url_of(with_last))]
    if planned:
        return next_test(answer, planned), ()
    meshes = ("Show meshes", address("meshes"))
    return "An administrator can add this link to a mesh.", [meshes]


def next_test(answer: LinkReport, planned: Sequence[Schedule]) -> str:
    """Say when the next test is due and, if one had to wait, why."""
    now = answer.now
    first = min(planned, key=lambda schedule: schedule.next_due)
    until = until_words(first.next_due, now)
    when = until if until.startswith("overdue") else f"due {until}"
    due = f"The next test is {when} ({format_minute(first.next_due)})"
    why = waits_because_of(first, now)
    if not why:
        return f"{due}."
    if first.skipped_since is None:
        return f"{due}; it will wait because of {why}."
    since = format_minute(first.skipped_since)
    return f"{due}; it has been waiting since {since} because of {why}."
