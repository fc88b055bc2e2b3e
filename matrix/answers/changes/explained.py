"""Which changes of links are but what befell an endpoint, or the whole grid, at the same time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import combinations

from matrix.statistics.levels.change_points import NORMAL
from sonar.results.changes import FoundChange

# A link that is tested now and then shows what befell its endpoint at its own next test.
APART = timedelta(days=1)
# What is left of a change of a link without that of its endpoints is no change of its own, if it
# is within this factor or within so many standard errors.
ALIKE = math.log(1.5)
ERRORS = 2.0
# From both ends of an interval of 95 % to a standard error.
INTERVAL = 2 * NORMAL


def unexplained(links: Iterable[FoundChange], common: Iterable[FoundChange]) -> list[FoundChange]:
    """Return the changes of links that those of endpoints and grid do not explain."""
    of_source: dict[int | None, list[FoundChange]] = defaultdict(list)
    of_destination: dict[int | None, list[FoundChange]] = defaultdict(list)
    of_grid: list[FoundChange] = []
    for change in common:
        if change.kind == "source":
            of_source[change.source_id].append(change)
        elif change.kind == "destination":
            of_destination[change.destination_id].append(change)
        else:
            of_grid.append(change)
    return [
        change
        for change in links
        if not is_explained(
            change,
            [*of_source[change.source_id], *of_destination[change.destination_id], *of_grid],
        )
    ]


def is_explained(change: FoundChange, common: Sequence[FoundChange]) -> bool:
    """Say whether one or several of these changes, all at about its time, are as large as it."""
    near = [
        other
        for other in common
        if other.earliest - APART <= change.latest and change.earliest <= other.latest + APART
    ]
    shift = math.log(change.factor)
    error = (math.log(change.high) - math.log(change.low)) / INTERVAL
    most = max(ALIKE, ERRORS * error)
    for count in range(1, min(len(near), 3) + 1):
        for together in combinations(near, count):
            total = sum(math.log(other.factor) for other in together)
            if total * shift > 0 and abs(shift - total) <= most:
                return True
    return False
