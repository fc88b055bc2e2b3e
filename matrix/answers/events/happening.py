"""What happened with the files of one size class: a rate jumped and stayed, or tests failed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from matrix.answers.matrix.grid import Grid
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


def jumps(rows: Iterable[Change]) -> list[Happening]:
    """Return the jumps of rows of all sequences, each with its end.

    What undoes a jump is its end, and no happening of its own.
    """
    sequences: dict[tuple[object, ...], list[Change]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.at):
        whose = row.size_class.name, row.kind, row.source_id, row.destination_id
        sequences[whose].append(row)
    return [each for sequence in sequences.values() for each in jumps_in_sequence(sequence)]


def jumps_in_sequence(rows: Sequence[Change]) -> Iterator[Happening]:
    """Yield the jumps of one sequence, given in the order of time."""
    undone = False
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        if not undone:
            yield jump(row, following.at if following else None)
        undone = not undone and following is not None and undoes(following, row)


def undoes(later: Change, change: Change) -> bool:
    """Say whether the level after the later change is that before the other one, or nearly so."""
    left = math.log(change.factor) + math.log(later.factor)
    return abs(left) <= max(math.log(SMALLEST_RATIO), LEFT_OVER * abs(math.log(change.factor)))


def jump(row: Change, until: datetime | None) -> Happening:
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


def failing_happening(row: Outage) -> Happening:
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


LOOKS = (FAILING, SLOWER, FASTER)
# An endpoint fails on as long as at least so many of its links do.
FEWEST_LINKS = 3
# What is slower or faster than a jump explains by more than this is something new.
MUCH = math.log(2)


def present_happenings(grid: Grid, ids: Mapping[str, int]) -> list[Happening]:
    """Return what goes on by a grid of single links; ``ids`` are those of endpoints by name."""
    return [each for look in LOOKS for each in happenings_with_look(grid, look, ids)]


def happenings_with_look(grid: Grid, look: str, ids: Mapping[str, int]) -> Iterator[Happening]:
    cells = grid.cells
    for row, column in np.argwhere(cells.of_look(look)).tolist():
        at = row, column
        yield going_on(
            look,
            (ids[grid.sources[row].name], ids[grid.destinations[column].name]),
            grid.query.size,
            since=float(cells.since[at]),
            tests=int(cells.streak[at]),
            factor=(
                float(cells.now[at] / cells.usual[at]),
                *(float(bound[at]) for bound in (cells.ratio_low, cells.ratio_high)),
            ),
        )


def going_on(
    kind: str, ends: Ends, size: str, *, since: float, tests: int, factor: tuple[float, ...]
) -> Happening:
    """Return what goes on at a link since a test (Unix s).

    ``factor`` is now / usual with its interval, NaN where there is none; what fails has none.
    """
    began = datetime.fromtimestamp(since, UTC)
    ratio, low, high = (None if kind == FAILING or math.isnan(value) else value for value in factor)
    return Happening(
        kind=kind,
        ends=ends,
        size=size,
        since=began,
        earliest=began,
        latest=began,
        until=None,
        tests=tests,
        factor=ratio,
        low=low,
        high=high,
    )


def joined(
    stored: Sequence[Happening], present: Sequence[Happening], sizes: frozenset[str]
) -> list[Happening]:
    """Return what was found by looking back together with what goes on now in some size classes.

    Of what fails now a stored outage says since when there is no success; one that is not failing
    any more, without a success yet, is neither failing nor recovered.
    """
    failing = {(each.ends, each.size): each for each in present if each.kind == FAILING}
    kept = [refreshed(each, failing) if each.size in sizes else each for each in stored]
    every = [each for each in kept if each is not None]
    outages = [each for each in every if each.kind == FAILING and each.until is None]
    ends = {(each.ends, each.size) for each in outages}
    fresh = [each for each in failing.values() if (each.ends, each.size) not in ends]
    lasting = ByEnds(each for each in every if each.until is None)
    shifted = [each for each in present if each.kind != FAILING and not is_known(each, lasting)]
    return [*every, *fresh, *shifted]


def is_known(present: Happening, lasting: ByEnds) -> bool:
    """Say whether a stored jump that lasts is what makes a link slower, or faster, now.

    The newest three tests are no exact measure: only much more than the jump is another one.
    """
    shift = math.log(present.factor or 1)
    return any(
        abs(shift) - abs(math.log(other.factor)) <= MUCH
        for other in lasting.of(present)
        if other.factor
    )


def refreshed(
    happening: Happening, failing: Mapping[tuple[Ends, str], Happening]
) -> Happening | None:
    """Return an open outage as it is now, None if it is none any more; all else as it is."""
    if happening.kind != FAILING or happening.until:
        return happening
    if happening.is_of_link:
        now = failing.get((happening.ends, happening.size))
        return replace(happening, tests=now.tests) if now else None
    links = sum(
        each.size == happening.size
        and any(own == end for own, end in zip(happening.ends, each.ends, strict=True) if own)
        for each in failing.values()
    )
    return replace(happening, links=links) if links >= FEWEST_LINKS else None
