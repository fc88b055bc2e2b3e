"""The states of cells and links, and how the links of each cell stand together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Counts, Flags, Floats, Integers
from matrix.statistics.cells.axes import Layout
from matrix.statistics.cells.standing import (
    FASTER,
    LEVELS,
    SILENT,
    SLOWER,
    UNKNOWN,
    USUAL,
    Rates,
    Standings,
)

# A cell has one state; Cells.state holds its index in this tuple.
STATES = ("measured", "failing", "failed", "stale", "untested", "down", "not_applicable")
STATE_WORDS = {
    "measured": "measured",
    "failing": "failing: tests of the link, its source or its destination fail significantly more "
    "often than usual",
    "failed": "failed: every test in this time range failed, but too few tests ran to classify the "
    "link as failing",
    "stale": "stale: no result for two intervals of its mesh (test schedule), or no successful "
    "test within the chosen maximum age",
    "untested": "untested: scheduled, but without a result in this time range",
    "down": "down: an endpoint is in a declared downtime",
    "not_applicable": "not applicable: source and destination are the same, or the link has no "
    "mesh (test schedule) and no results",
}

MEASURED, FAILING, FAILED, STALE, UNTESTED, DOWN, NOT_APPLICABLE = range(len(STATES))

# Not applicable is the background: there is nothing to look at.
STATES_TO_SEE = STATES[:-1]
# What cells and links can be chosen by: their state, and how they are beside it.
LOOKS = (*STATES_TO_SEE, *LEVELS[USUAL:], LEVELS[UNKNOWN], "partly")

# A cell is stale when its last result is older than this many intervals of its mesh.
STALE_AFTER_INTERVALS = 2
# A cell is partly failing if one in so many of its tests failed, or more: from this share on.
PARTLY_ONE_IN = 10
PARTLY_FROM = 1 / PARTLY_ONE_IN
PARTLY_WORDS = (
    "partly failing: at least a tenth of the tests failed, or some of the links are failing"
)
# By flags of judgements, a bit for each: how many there are up to the last that holds.
LAST_HELD = np.array([flags.bit_length() for flags in range(1 << (len(STATES) - 1))])
States = NDArray[np.uint8]
CellsOf = Callable[[Integers], Integers]


def fail_partly(ok: NDArray[Any] | int, failed: NDArray[Any] | int, failing: Flags | bool) -> Flags:
    """Say whether a part of the tests of cells, links or one failed, but not all newest ones."""
    in_part = (ok > 0) & (ok + failed <= PARTLY_ONE_IN * failed)
    return np.asarray(in_part & np.logical_not(failing))


@dataclass(frozen=True)
class Evidence:
    """What cells, or links, are judged by: arrays of one shape.

    ``age`` is how long ago the last result started, in seconds, NaN for none; ``promise`` the
    interval in seconds at which a mesh tests them, infinity for no mesh. Those with either are
    ``applicable``; ``up`` says that not all of their links are in a declared downtime,
    ``failing`` that conditions say so, ``outdated`` that no success is as young as was asked for.
    """

    ok: Integers
    failed: Integers
    age: Floats
    promise: Floats
    applicable: Flags
    up: Flags
    failing: Flags
    outdated: Flags | None = None

    def states(self) -> States:
        """Return the state of each: the one place that says what is what, for pages and API."""
        stale = self.age > STALE_AFTER_INTERVALS * self.promise
        if self.outdated is not None:
            stale |= self.outdated
        # The later ones count more.
        judgements = {
            FAILED: self.failed > 0,
            MEASURED: self.ok > 0,
            STALE: (self.ok > 0) & stale,
            FAILING: self.failing,
            DOWN: ~self.up,
            NOT_APPLICABLE: ~self.applicable,
        }
        held = np.zeros(self.age.shape, dtype=np.uint8)
        for place, where in enumerate(judgements.values()):
            # To multiply takes a sixth of shifting.
            held |= where.view(np.uint8) * np.uint8(1 << place)
        # Looked up at once, which takes a fifth of writing each over those before it.
        last = np.array([UNTESTED, *judgements], dtype=np.uint8)[LAST_HELD]
        return np.asarray(last.take(held))


class LinksOfKind(NamedTuple):
    """The few links that are failing, say: their flat places among links and among cells, and
    how many each cell has. That they are few makes them cheaper than a whole matrix."""

    number: Integers
    cell: Integers
    per_cell: Counts

    @classmethod
    def of(cls, links: Flags, cells_of: CellsOf, shape: tuple[int, ...]) -> Self:
        number = np.flatnonzero(links)
        cell = cells_of(number)
        per_cell = np.zeros(shape, dtype=np.int32)
        np.add.at(per_cell.ravel(), cell, 1)
        return cls(number, cell, per_cell)

    def mark(self, cells: Flags, levels: NDArray[np.uint8], level: int) -> None:
        """Write a level into some cells of these links."""
        levels.ravel()[self.cell[cells.ravel()[self.cell]]] = level

    def tell(self, standings: Standings, cells: Flags, streak: Counts, since: Floats) -> None:
        """Write into some cells how many tests of these links failed, and since when they do."""
        is_told = cells.ravel()[self.cell]
        number, cell = self.number[is_told], self.cell[is_told]
        streak.ravel()[cell] = 0
        np.add.at(streak.ravel(), cell, standings.streak.ravel()[number])
        since.ravel()[cell] = np.inf
        np.minimum.at(since.ravel(), cell, standings.since.ravel()[number])


@dataclass(frozen=True)
class CellStandings:
    """How cells are now: arrays of shape (sources, destinations).

    A cell is ``failing`` or silent when all of its links are that were tested lately, and slower or
    faster when more than half of those links are of which it is known (``judged_links``): ``level``
    indexes LEVELS. Its rates, in bytes/s, are the means of those links that are not failing;
    ``ratio_low`` and ``ratio_high`` bound now / usual of a single one with 95 % confidence, and are
    NaN of several. ``since`` is when the first of the conditions began, in Unix time, by which
    links are failing, silent, slower, or faster: of the links that make the cell what it is, or
    else of those that fail, are silent, slower, or faster, in this order; ``streak`` counts the
    tests that failed since the last success of each. ``unconfirmed`` indexes MARKS: the worst of
    what is not confirmed. ``condition`` is the id of the condition that all links have of which
    there is one, 0 where there are several.
    """

    level: NDArray[np.uint8]
    usual: Floats
    now: Floats
    ratio_low: Rates
    ratio_high: Rates
    streak: Counts
    since: Floats
    unconfirmed: NDArray[np.uint8]
    condition: Counts
    failing_links: Counts
    tested_links: Counts
    judged_links: Counts
    silent_links: Counts
    slower_links: Counts
    faster_links: Counts

    @classmethod
    def of(
        cls, standings: Standings, applicable: Flags, has_results: Flags, layout: Layout
    ) -> Self:
        """Pool the links that are ``applicable``; those without results are not as usual."""
        pool, cells_of = layout.pool, layout.cells_of
        level = standings.level * (applicable & (has_results | (standings.level != USUAL)))
        # What fails was tested, if not by the tests that filters choose.
        is_tested = (standings.tested | standings.failing) & applicable
        tested = pool(np.add, is_tested.astype(np.int32))
        is_judged = (level != UNKNOWN) & (level != SILENT)
        judged = pool(np.add, is_judged.astype(np.int32))
        kinds = {
            "failing": LinksOfKind.of(standings.failing & applicable, cells_of, judged.shape),
            "silent": LinksOfKind.of(level == SILENT, cells_of, judged.shape),
            "slower": LinksOfKind.of(level == SLOWER, cells_of, judged.shape),
            "faster": LinksOfKind.of(level == FASTER, cells_of, judged.shape),
        }
        count = {name: kind.per_cell for name, kind in kinds.items()}
        looks = {
            "failing": (count["failing"] > 0) & (count["failing"] == tested),
            "silent": (count["silent"] > 0) & (count["silent"] >= tested),
            "slower": 2 * count["slower"] > judged,
            "faster": 2 * count["faster"] > judged,
        }
        streak, since = np.zeros_like(judged), np.full(judged.shape, np.nan)
        # What only a part of its links is says since when, unless the cell is something as a whole.
        for is_part in (True, False):
            for name in ("faster", "slower", "silent", "failing"):
                cells = count[name] > 0 if is_part else looks[name]
                kinds[name].tell(standings, cells, streak, since)
        is_known = applicable & has_results & ~standings.failing
        is_known &= ~np.isnan(standings.now) & ~np.isnan(standings.usual)
        usual, now = (layout.mean(rates, is_known) for rates in (standings.usual, standings.now))
        low, high = (layout.alone(bounds, is_known) for bounds in (standings.low, standings.high))
        level_of_cells = (judged > 0) * np.uint8(USUAL)
        marks = ("slower", SLOWER), ("faster", FASTER), ("silent", SILENT), ("failing", UNKNOWN)
        for name, value in marks:
            kinds[name].mark(looks[name], level_of_cells, value)
        unconfirmed, condition = np.zeros_like(level_of_cells), np.zeros_like(judged)
        number = np.flatnonzero((standings.condition > 0) & applicable)
        cell, ids = cells_of(number), standings.condition.ravel()[number]
        np.maximum.at(unconfirmed.ravel(), cell, standings.unconfirmed.ravel()[number])
        condition.ravel()[cell] = ids
        condition.ravel()[cell[condition.ravel()[cell] != ids]] = 0
        return cls(
            level=level_of_cells,
            usual=usual,
            now=now,
            ratio_low=low,
            ratio_high=high,
            streak=streak,
            since=since,
            unconfirmed=unconfirmed,
            condition=condition,
            failing_links=count["failing"],
            tested_links=tested,
            judged_links=judged,
            silent_links=count["silent"],
            slower_links=count["slower"],
            faster_links=count["faster"],
        )

    @property
    def failing(self) -> Flags:
        """Say of which cells all links are failing that were tested lately."""
        return np.asarray((self.failing_links > 0) & (self.failing_links == self.tested_links))

    def fail_partly(self, ok: Integers, failed: Integers) -> Flags:
        """Say which cells fail in part, by the counts of the window's tests."""
        some_links = (self.failing_links > 0) & (self.failing_links < self.tested_links)
        return fail_partly(ok, failed, self.failing) | some_links
