"""The answer of a matrix that is compared: how many cells differ by more than chance explains."""

from __future__ import annotations

from dataclasses import dataclass

from matrix.answers.comparison import changes
from matrix.answers.grid import CHANGES, Grid
from matrix.answers.headline import Headline
from matrix.answers.highlights import is_mirrored
from sonar.units import format_count


@dataclass(frozen=True)
class ChangeTally:
    """How many cells are how: ``unchanged`` as far as chance tells, or of ``too_few`` results."""

    slower: int
    faster: int
    unchanged: int
    too_few: int
    failing: int

    @classmethod
    def of(cls, grid: Grid) -> ChangeTally:
        counted = changes.counts(grid)
        compared = counted.pop("compared")
        return cls(
            unchanged=compared - sum(counted[kind] for kind in CHANGES),
            failing=int(grid.of_look("failing").sum()),
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

    @classmethod
    def of(cls, grid: Grid) -> ChangeHeadline:
        query = grid.query
        pooled = (query.rows, query.columns) != ("endpoint", "endpoint")
        mirrored = is_mirrored(query.compare)
        tally = ChangeTally.of(grid)
        return cls(tally, query.size, query.other_words(), pooled, mirrored)

    def words(self) -> str:
        return f"{', '.join(self.changes().values())}, compared with {self.other}"

    def changes(self) -> dict[str, str]:
        """Say how many are slower, and how many faster, by more than chance explains."""
        if not self.tally.slower + self.tally.faster + self.tally.unchanged:
            return {"": f"Too few results with {self.size} files"}
        noun = "cell" if self.pooled else "link"
        beyond = f"beyond chance with {self.size} files"
        counts = {look: getattr(self.tally, look) for look in CHANGES[: 1 if self.mirrored else 2]}
        said = {look: f"{format_count(number)} {look}" for look, number in counts.items() if number}
        if not said:
            return {"": f"No {noun} slower or faster {beyond}"}
        first, last = next(iter(said)), [*said][-1]
        nouns = noun if counts[first] == 1 else f"{noun}s"
        said[first] = f"{format_count(counts[first])} {nouns} {first}"
        return said | {last: f"{said[last]} {beyond}"}


def headline_of(grid: Grid) -> Headline | ChangeHeadline:
    """Return what a matrix says first."""
    return ChangeHeadline.of(grid) if grid.comparison else Headline.of(grid)
