"""The tables of a link: its size classes now and in numbers, how it is measured, and what comes."""

import math
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from matrix.answers.comparison import all_links
from matrix.answers.link.directions import Direction
from matrix.answers.link.link_profiles import ProfileSummary
from matrix.answers.link.report import LinkReport
from matrix.answers.words.phrases import time_words, why_no_rate
from matrix.pages.base import QueryPage
from matrix.pages.parts.transfers import every_words, streams_words, until_words
from matrix.query.addresses import address
from matrix.query.attributes import OF_PROFILES
from matrix.query.catalogue import BAND_WORDS, HIGH, LOW, OF_LINK
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.states import STATE_WORDS
from sonar.models import Schedule
from sonar.notation import windows
from sonar.notation.units import DASH, format_bytes, format_count, three_digits
from sonar.notation.windows import PRESET_WORDS, PRESETS, format_day, format_minute
from sonar.obstacles.catalogue import waits_because_of

# What the state or level of a class is called beside a rate, and in its place.
WORDS = {
    "slower": "slower than usual",
    "faster": "faster than usual",
    "usual": "as usual",
    "unknown": "usual rate not known yet",
    "untested": "no test in this window",
    "not_applicable": "no mesh tests it",
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


def size_rows(answer: LinkReport, url_of: Callable[[str], str]) -> list[dict[str, Any]]:
    """Return a row for each size class, and for the reverse direction of the chosen one.

    `size_bytes` is the median size of the files of a class, empty without a test.
    """
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
        note = f"may be {direction.unconfirmed}, unconfirmed"
    return {
        "kind": kind,
        "title": WORDS.get(kind, kind),
        "figure": three_digits(direction.now) if has_rate else FIGURES.get(kind, DASH),
        "usual": f"usual {three_digits(direction.usual)}" if has_usual else "",
        "against": against,
        "note": note,
    }


def directions_of(answer: LinkReport) -> list[list[tuple[Any, ...]]]:
    """Return each class of this direction, then of the reverse.

    With its state in a word and on hover, its comparison, and its quantiles by their headings.
    """
    there = [(line.there, line.back) for line in answer.classes]
    return [
        [
            (
                direction,
                direction.standing_words,
                STATE_WORDS[direction.state],
                direction.against(reverse),
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
            own.sentence("it is", has_changed=pair.kind in CHANGED)
            if own
            else "Too few other links have results to say whether they changed as well."
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


MOVER = "how files are moved; http-tpc is HTTP third-party copy, directly between the two endpoints"
MODE = "pull: the destination fetches; push: the source sends"
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
    beside = [OF_PROFILES["beside"].words[key.beside] for key in keys]
    streams = [streams_words(line.profile.streams, line.used) for line in summaries]
    meshes = [
        key.mesh or (f"none: {key.purpose}" if key.purpose != "unknown" else "") for key in keys
    ]
    company = [
        "" if key.beside == "unknown" else words for key, words in zip(keys, beside, strict=True)
    ]
    versions = [str(key.ip_version or "") for key in keys]
    timed = "who measured the seconds that rates are made of, and from when to when"
    origin = "test: sent only to measure; production and external: imported results"
    mesh = "a set of links that are tested on one schedule; else why the test was made"
    concurrent = "other Sonar tests at the source or the destination at the same time"
    columns: list[Column] = [
        ("mover", MOVER, [key.mover for key in keys], ""),
        ("mode", MODE, [key.mode for key in keys], NOT_KNOWN),
        ("streams", STREAMS, streams, ""),
        ("IP version", "", versions, NOT_KNOWN),
        ("timed", timed, [key.timed for key in keys], NOT_KNOWN),
        ("origin", origin, [key.origin for key in keys], ""),
        ("mesh", mesh, meshes, "no mesh"),
        ("concurrent tests", concurrent, company, "not recorded"),
    ]
    return split(
        columns,
        [
            {"line": line, "beside": words, "url": url_of(line.profile.filters())}
            for line, words in zip(summaries, beside, strict=True)
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
        mesh.mover_description.known_mode(mesh.mode) or "chosen by the service" for mesh in meshes
    ]
    title = "a set of links that are tested on one schedule"
    first = "where not all due tests can start, the higher goes first"
    columns: list[Column] = [
        ("mesh", title, [mesh.name for mesh in meshes], ""),
        ("waiting because of", "", waits, "not waiting"),
        ("mover", MOVER, [mesh.mover for mesh in meshes], ""),
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
        return "", [("How it is now", url_of(query.replace(window=MatrixQuery.window)))]
    if query.filters:
        everything = url_of(query.replace(filters=()))
        return "", [("Show all tests, however they were made", everything)]
    if answer.last:
        coming = next_test(answer, planned) if planned else "No mesh tests it any more."
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
        return f"{next_test(answer, planned)} Come back then.", ()
    meshes = ("Look at the meshes", address("meshes"))
    return "An administrator can add it to a mesh.", [meshes]


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
