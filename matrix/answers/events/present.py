"""What the newest tests say: which links are failing, slower or faster now, as all pages have it.

The search for changes and outages looks back now and then, and only where a level has lasted for
some tests: what is going on is the matrix's to say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from matrix.answers.events.happening import FAILING, FASTER, SLOWER, ByEnds, Ends, Happening
from matrix.answers.grid import Grid

LOOKS = (FAILING, SLOWER, FASTER)
# An endpoint fails on as long as at least so many of its links do.
FEWEST_LINKS = 3
# What is slower or faster than a jump explains by more than this is something new.
MUCH = math.log(2)


def of_grid(grid: Grid, ids: Mapping[str, int]) -> list[Happening]:
    """Return what goes on by a grid of single links; ``ids`` are those of endpoints by name."""
    return [each for look in LOOKS for each in of_look(grid, look, ids)]


def of_look(grid: Grid, look: str, ids: Mapping[str, int]) -> Iterator[Happening]:
    cells = grid.cells
    for row, column in np.argwhere(cells.of_look(look)).tolist():
        factor = float(cells.now[row, column] / cells.usual[row, column])
        yield going_on(
            look,
            (ids[grid.sources[row].name], ids[grid.destinations[column].name]),
            grid.query.size,
            since=float(cells.since[row, column]),
            tests=int(cells.streak[row, column]),
            factor=(
                factor,
                float(cells.ratio_low[row, column]),
                float(cells.ratio_high[row, column]),
            ),
        )


def going_on(
    kind: str, ends: Ends, size: str, *, since: float, tests: int, factor: tuple[float, ...]
) -> Happening:
    """Return what goes on at a link since a test (Unix s).

    ``factor`` is now / usual with its interval, NaN where there is none; what fails has none.
    """
    began = datetime.fromtimestamp(since, UTC)
    values = [None if kind == FAILING or math.isnan(value) else value for value in factor]
    return Happening(
        kind=kind,
        ends=ends,
        size=size,
        since=began,
        earliest=began,
        latest=began,
        until=None,
        tests=tests,
        factor=values[0],
        low=values[1],
        high=values[2],
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
    links = sum(each.size == happening.size and is_at(happening, each) for each in failing.values())
    return replace(happening, links=links) if links >= FEWEST_LINKS else None


def is_at(endpoint: Happening, link: Happening) -> bool:
    return any(own == end for own, end in zip(endpoint.ends, link.ends, strict=True) if own)
