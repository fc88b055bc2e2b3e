"""The answer of a matrix that is compared: how many cells differ by more than chance explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from django.utils.text import capfirst

from matrix.answers.comparison import changes
from matrix.answers.grid import CHANGES, Grid
from matrix.answers.headline import Headline
from matrix.answers.highlights import is_mirrored
from matrix.statistics.cells.states import FAILING
from sonar.notation.units import format_count


@dataclass(frozen=True)
class ChangeTally:
    """How many cells are how: surely ``slower`` or ``faster``, ``perhaps`` either, or alike.

    What fails is nothing else; ``too_few`` have too few results.
    """

    slower: int
    faster: int
    perhaps: int
    unchanged: int
    too_few: int
    failing: int

    @classmethod
    def of(cls, grid: Grid) -> ChangeTally:
        counted = changes.counts(grid)
        compared, perhaps = counted.pop("compared"), int(np.count_nonzero(grid.perhaps))
        is_failing = grid.cells.state == FAILING
        silent = int(np.count_nonzero(is_failing & ~np.isnan(grid.cells.value)))
        return cls(
            perhaps=perhaps,
            unchanged=compared - silent - perhaps - sum(counted[kind] for kind in CHANGES),
            failing=int(np.count_nonzero(grid.of_look("failing"))),
            **counted,
        )


@dataclass(frozen=True)
class ChangeHeadline:
    """Says a tally of a size class in one line; ``other`` is what it is compared with.

    Where each direction is compared with the other, what is faster is ``mirrored`` by what is not.
    """

    tally: ChangeTally
    size: str
    other: str
    pooled: bool = False
    mirrored: bool = False
    noun: str = "change"

    @classmethod
    def of(cls, grid: Grid) -> ChangeHeadline:
        query = grid.query
        pooled = (query.rows, query.columns) != ("endpoint", "endpoint")
        mirrored = is_mirrored(query.compare)
        tally = ChangeTally.of(grid)
        of_time = query.compare is not None and query.compare.is_of_time
        noun = "change" if of_time else "difference"
        return cls(tally, query.size, query.other_words(), pooled, mirrored, noun)

    def words(self) -> str:
        return ", ".join(words for _, words in self.parts()) + self.tail()

    def parts(self) -> list[tuple[str, str]]:
        """Return the parts of the answer, each with the look of the cells that it is about."""
        return list(self.changes().items())

    def tail(self) -> str:
        """Return what stands behind the parts: what is compared with."""
        return f", compared with {self.other}"

    def changes(self) -> dict[str, str]:
        """Say how many are failing, slower and faster, by the look that shows them."""
        tally, files = self.tally, f"with {self.size} files"
        if not tally.slower + tally.faster + tally.perhaps + tally.unchanged + tally.failing:
            return {"": f"Too few results {files}"}
        looks = ("failing", *CHANGES[: 1 if self.mirrored else 2])
        counts = {look: number for look in looks if (number := getattr(tally, look))}
        said = {look: f"{format_count(number)} {look}" for look, number in counts.items()}
        if said:
            first = next(iter(said))
            noun = f"{'cell' if self.pooled else 'link'}{'s' * (counts[first] != 1)}"
            said[first] = f"{format_count(counts[first])} {noun} {first}"
        if not counts.keys() & {*CHANGES}:
            none = f"no {'certain' if tally.perhaps else 'significant'} {self.noun}"
            said |= {"": none if said else capfirst(none)}
        last = [*said][-1]
        return said | {last: f"{said[last]} {files}"}


def headline_of(grid: Grid) -> Headline | ChangeHeadline:
    """Return what a matrix says first."""
    return ChangeHeadline.of(grid) if grid.comparison else Headline.of(grid)
