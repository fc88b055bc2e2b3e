"""What happened with the files of one size class: a rate jumped and stayed, or tests failed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from matrix.statistics.compare.two_samples import SMALLEST_RATIO
from sonar.models import Change, Outage

SLOWER, FASTER, FAILING = "slower", "faster", "failing"
# A jump is undone by one that leaves so small a part of it, as a logarithm.
LEFT_OVER = 0.3

# Rates by equal bins of time, half of them before and half since; None without a success.
Course = tuple[float | None, ...]
Ends = tuple[int | None, int | None]


@dataclass(frozen=True)
class Happening:
    """Of a link by the ids of both ends, of an endpoint by one of them, of the grid by neither.

    It began between ``earliest`` and ``latest``, as the test ``since`` shows, and lasts, or lasted
    ``until`` a test shows its end. ``factor`` is the rate since over the one before with ``low``
    and ``high``, its interval of 95 %, None where there is none. ``tests`` are those since,
    ``sure`` says that it is beyond chance among all that was searched, ``links`` how many links
    it is of.
    """

    kind: str
    ends: Ends
    size: str
    since: datetime
    earliest: datetime
    latest: datetime
    until: datetime | None
    tests: int
    links: int = 1
    sure: bool = True
    factor: float | None = None
    low: float | None = None
    high: float | None = None
    course: Course = ()

    @property
    def is_of_link(self) -> bool:
        return None not in self.ends

    def overlaps(self, other: Happening) -> bool:
        return (self.until is None or other.since <= self.until) and (
            other.until is None or self.since <= other.until
        )


class ByEnds:
    """Happenings by what they are of, to find those that befell a link with all others."""

    def __init__(self, happenings: Iterable[Happening]) -> None:
        self._places: dict[tuple[str, str, Ends], list[Happening]] = defaultdict(list)
        for happening in happenings:
            self._places[happening.kind, happening.size, happening.ends].append(happening)

    def of(self, link: Happening) -> Iterator[Happening]:
        """Yield those that befell a link in the same way, at the same time."""
        source, destination = link.ends
        for ends in ((source, destination), (source, None), (None, destination), (None, None)):
            for other in self._places.get((link.kind, link.size, ends), ()):
                if other.overlaps(link):
                    yield other


def of_changes(rows: Iterable[Change]) -> list[Happening]:
    """Return the jumps of rows of all sequences, each with its end.

    What undoes a jump is its end, and no happening of its own.
    """
    sequences: dict[tuple[object, ...], list[Change]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.at):
        whose = row.size_class.name, row.kind, row.source_id, row.destination_id
        sequences[whose].append(row)
    return [each for sequence in sequences.values() for each in of_sequence(sequence)]


def of_sequence(rows: Sequence[Change]) -> Iterator[Happening]:
    """Yield the jumps of one sequence, given in the order of time."""
    undone = False
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        if undone:
            undone = False
            continue
        undone = following is not None and undoes(following, row)
        yield of_change(row, following.at if following else None)


def undoes(later: Change, change: Change) -> bool:
    """Say whether the level after the later change is that before the other one, or nearly so."""
    left = math.log(change.factor) + math.log(later.factor)
    return abs(left) <= max(math.log(SMALLEST_RATIO), LEFT_OVER * abs(math.log(change.factor)))


def of_change(row: Change, until: datetime | None) -> Happening:
    return Happening(
        kind=SLOWER if row.factor < 1 else FASTER,
        ends=(row.source_id, row.destination_id),
        size=row.size_class.name,
        since=row.at,
        earliest=row.earliest,
        latest=row.latest,
        until=until,
        tests=row.ok_after,
        links=row.links,
        sure=row.sure,
        factor=row.factor,
        low=row.low,
        high=row.high,
        course=tuple(row.course),
    )


def of_outage(row: Outage) -> Happening:
    return Happening(
        kind=FAILING,
        ends=(row.source_id, row.destination_id),
        size=row.size_class.name,
        since=row.began,
        earliest=row.last_ok or row.began,
        latest=row.began,
        until=row.ended,
        tests=row.tests,
        links=row.links,
        course=tuple(row.course),
    )
