"""How the links of each cell stand together. Pure numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.reduce import ratio
from matrix.statistics.standing import FASTER, NONE, SLOWER, UNKNOWN, USUAL, Rates, Standings
from matrix.statistics.states import fail_partly

Counts = NDArray[np.int32]
Pool = Callable[[np.ufunc, NDArray[Any]], NDArray[Any]]
CellsOf = Callable[[Integers], Integers]


class LinksOfKind(NamedTuple):
    """The few links that are failing, say: their flat places among links and among cells, and
    how many each cell has. That they are few makes them cheaper than a whole matrix."""

    number: Integers
    cell: Integers
    per_cell: Counts

    @classmethod
    def of(cls, links: Flags, cells_of: CellsOf, shape: tuple[int, ...]) -> LinksOfKind:
        number = np.flatnonzero(links)
        cell = cells_of(number)
        per_cell = np.bincount(cell, minlength=math.prod(shape)).astype(np.int32)
        return cls(number, cell, per_cell.reshape(shape))

    def tell(self, standings: Standings, cells: Flags, streak: Counts, since: Floats) -> None:
        """Write into some cells how many tests made these links so, and when the first began."""
        is_told = cells.ravel()[self.cell]
        number, cell = self.number[is_told], self.cell[is_told]
        streak.ravel()[cell] = 0
        np.add.at(streak.ravel(), cell, standings.streak.ravel()[number])
        since.ravel()[cell] = np.inf
        np.minimum.at(since.ravel(), cell, standings.since.ravel()[number])


@dataclass(frozen=True)
class CellStandings:
    """How cells are now, as CellArrays has it: arrays of shape (sources, destinations).

    A cell is ``failing`` when all of its links are that were tested lately, and slower or faster
    when more than half of those links are of which it is known. Its rates, in bytes/s, are the
    means of those links; ``ratio_low`` and ``ratio_high`` bound now / usual of a single one with
    95 % confidence, and are NaN of several. ``streak`` and ``since`` are of the links that make it
    what it is, or else of those that fail, are slower, or faster, in this order.
    """

    failing: Flags
    level: NDArray[np.uint8]
    usual: Floats
    now: Floats
    ratio_low: Rates
    ratio_high: Rates
    streak: Counts
    since: Floats
    failing_links: Counts
    tested_links: Counts
    judged_links: Counts
    slower_links: Counts
    faster_links: Counts

    @classmethod
    def of(
        cls,
        standings: Standings,
        applicable: Flags,
        has_results: Flags,
        pool: Pool,
        cells_of: CellsOf,
    ) -> CellStandings:
        """Pool the links that are ``applicable``; those without results are neither slower nor
        faster. ``cells_of`` gives the flat place of the cell of each link."""
        level = standings.level * (has_results & applicable)
        tested = pool(np.add, (standings.tested & applicable).astype(np.int32))
        is_judged = level != UNKNOWN
        judged = pool(np.add, is_judged.astype(np.int32))
        kinds = {
            "failing": LinksOfKind.of(standings.failing & applicable, cells_of, judged.shape),
            "slower": LinksOfKind.of(level == SLOWER, cells_of, judged.shape),
            "faster": LinksOfKind.of(level == FASTER, cells_of, judged.shape),
        }
        count = {name: kind.per_cell for name, kind in kinds.items()}
        looks = {
            "failing": (count["failing"] > 0) & (count["failing"] == tested),
            "slower": 2 * count["slower"] > judged,
            "faster": 2 * count["faster"] > judged,
        }
        streak, since = np.zeros_like(judged), np.full(judged.shape, np.nan)
        # What only a part of its links is says since when, unless the cell is something as a whole.
        for name in ("faster", "slower", "failing"):
            kinds[name].tell(standings, count[name] > 0, streak, since)
        for name in ("faster", "slower", "failing"):
            kinds[name].tell(standings, looks[name], streak, since)
        usual, now = (
            ratio(pool(np.add, np.where(is_judged, rates, 0.0)), judged)
            for rates in (standings.usual, standings.now)
        )
        low, high = (
            np.where(judged == 1, pool(np.add, np.where(is_judged, bounds, np.float32(0))), NONE)
            for bounds in (standings.low, standings.high)
        )
        return cls(
            looks["failing"],
            level_of_cells(looks, judged),
            usual,
            now,
            low,
            high,
            streak,
            since,
            count["failing"],
            tested,
            judged,
            count["slower"],
            count["faster"],
        )

    def partly(self, ok: Integers, failed: Integers) -> Flags:
        """Say which cells fail in part, by the counts of the window's tests."""
        some_links = (self.failing_links > 0) & (self.failing_links < self.tested_links)
        return fail_partly(ok, failed, self.failing) | some_links


def level_of_cells(looks: Mapping[str, Flags], judged: Counts) -> NDArray[np.uint8]:
    level = np.where(judged > 0, USUAL, UNKNOWN).astype(np.uint8)
    for name, value in (("slower", SLOWER), ("faster", FASTER), ("failing", UNKNOWN)):
        np.putmask(level, looks[name], value)
    return level
