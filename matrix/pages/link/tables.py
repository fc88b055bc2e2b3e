"""Tables of how a link is measured: profiles of its results, and the schedule of its tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from matrix.answers.link.link_profiles import ProfileSummary
from matrix.answers.link.report import LinkReport
from matrix.pages.columns import Column, SplitColumns, split
from matrix.pages.link.notices import planned_for
from matrix.pages.progress import every_words, until_words
from matrix.pages.transfer.facts import streams_words
from matrix.query.attributes import OF_PROFILES
from matrix.query.filters import Filter
from sonar.models import Schedule
from sonar.notation.windows import format_minute
from sonar.obstacles.catalogue import waits_because_of

MOVER = "how files are moved; http-tpc is HTTP third-party copy, directly between the two endpoints"
MODE = "pull: the destination fetches; push: the source sends"
STREAMS = "parallel TCP connections of one test"
NOT_KNOWN = "not known"


@dataclass(frozen=True)
class ProfileTable:
    """How results were measured; ``rows`` have a summary, its cells, and what shows it alone."""

    columns: SplitColumns
    rows: list[tuple[ProfileSummary, list[tuple[str, str]], str, str]]


def profile_table(
    summaries: Sequence[ProfileSummary], url_of: Callable[[tuple[Filter, ...]], str]
) -> ProfileTable:
    """Return a row for each profile and size class; ``url_of`` has the page of a filter."""
    columns = split(list(profile_columns(summaries)))
    return ProfileTable(
        columns,
        [
            (line, columns.cells_of(row), beside_words(line), url_of(line.profile.filters()))
            for row, line in enumerate(summaries)
        ],
    )


def beside_words(line: ProfileSummary) -> str:
    return OF_PROFILES["beside"].words[line.profile.beside]


def profile_columns(summaries: Sequence[ProfileSummary]) -> Iterable[Column]:
    keys = [line.profile for line in summaries]
    yield Column("mover", MOVER, [key.mover for key in keys])
    yield Column("mode", MODE, [key.mode for key in keys], NOT_KNOWN)
    yield Column(
        "streams", STREAMS, [streams_words(line.profile.streams, line.used) for line in summaries]
    )
    yield Column(
        "IP version", "", [str(key.ip_version) if key.ip_version else "" for key in keys], NOT_KNOWN
    )
    yield Column(
        "timed",
        "who measured the seconds that rates are made of, and from when to when",
        [key.timed for key in keys],
        NOT_KNOWN,
    )
    yield Column(
        "origin",
        "test: sent only to measure; production and external: imported results",
        [key.origin for key in keys],
    )
    yield Column(
        "mesh",
        "a set of links that are tested on one schedule; else why the test was made",
        [key.mesh or (f"none: {key.purpose}" if key.purpose != "unknown" else "") for key in keys],
        "no mesh",
    )
    yield Column(
        "concurrent tests",
        "other Sonar tests at the source or the destination at the same time",
        ["" if line.profile.beside == "unknown" else beside_words(line) for line in summaries],
        "not recorded",
    )


@dataclass(frozen=True)
class PlannedTest:
    """A size class of a mesh that tests the direction; ``why`` says what it waits for, if so."""

    schedule: Schedule
    every: str
    due: str
    why: str


def planned_tests(answer: LinkReport) -> list[PlannedTest]:
    return [
        PlannedTest(
            schedule,
            every_words(schedule.every_seconds),
            until_words(schedule.next_due, answer.now),
            waits_because_of(schedule, answer.now),
        )
        for schedule in planned_for(answer)
    ]


@dataclass(frozen=True)
class ScheduleTable:
    """Tests to come; ``rows`` have each with its cells."""

    columns: SplitColumns
    rows: list[tuple[PlannedTest, list[tuple[str, str]]]]


def schedule_table(planned: Sequence[PlannedTest]) -> ScheduleTable:
    columns = split(list(schedule_columns(planned)))
    return ScheduleTable(
        columns, [(test, columns.cells_of(row)) for row, test in enumerate(planned)]
    )


def wait_words(test: PlannedTest) -> str:
    """Say why a test waits and since when; nothing for one that does not wait."""
    since = test.schedule.skipped_since
    return f"{test.why}, since {format_minute(since)}" if test.why and since else test.why


def schedule_columns(planned: Sequence[PlannedTest]) -> Iterable[Column]:
    meshes = [test.schedule.mesh for test in planned]
    yield Column(
        "mesh", "a set of links that are tested on one schedule", [mesh.name for mesh in meshes]
    )
    yield Column("waiting because of", "", [wait_words(test) for test in planned], "not waiting")
    yield Column("mover", MOVER, [mesh.mover for mesh in meshes])
    yield Column("mode", MODE, [mesh.mode for mesh in meshes])
    yield Column("streams", STREAMS, [str(mesh.streams) for mesh in meshes])
    yield Column(
        "priority",
        "where not all due tests can start, the higher goes first",
        [str(mesh.priority) for mesh in meshes],
    )
