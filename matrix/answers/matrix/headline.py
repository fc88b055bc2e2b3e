"""The answer of a matrix in one line: how many links are failing or slower than usual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.utils.text import capfirst

from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.words.phrases import counted
from matrix.query.filters import on_links
from matrix.statistics.cells.states import FAILING
from matrix.statistics.compare.two_samples import CHANGES
from sonar.notation.units import format_count
from sonar.notation.windows import format_typed

# What is wrong with links, by the look of their cells.
PROBLEMS = {"failing": "failing", "failed": "without a success", "slower": "slower than usual"}


@dataclass(frozen=True)
class Tally:
    """How many links are how.

    Where cells pool several links, `failing`, `slower`, `faster` and `usual` count links, the
    others cells. `usual` and `unknown` are measured and not partly failing; the first are at
    their usual rate, of the others none is known.
    """

    links: int = 0
    failing: int = 0
    failed: int = 0
    slower: int = 0
    faster: int = 0
    usual: int = 0
    unknown: int = 0
    partly: int = 0
    stale: int = 0
    untested: int = 0
    down: int = 0
    pooled: bool = False

    @classmethod
    def of(cls, grid: Grid) -> Tally:
        cells, states = grid.cells, grid.states()
        pooled = (grid.query.rows, grid.query.columns) != ("endpoint", "endpoint")
        by_link = grid.links()
        return cls(
            links=sum(states.values()) - states["not_applicable"],
            failing=by_link["failing"],
            slower=by_link["slower"],
            faster=by_link["faster"],
            usual=by_link["usual"] if pooled else int(np.count_nonzero(cells.of_look("usual"))),
            unknown=int(np.count_nonzero(cells.of_look("unknown"))),
            partly=int(np.count_nonzero(cells.partly)),
            pooled=pooled,
            **{name: states[name] for name in ("failed", "stale", "untested", "down")},
        )


@dataclass(frozen=True)
class Headline:
    """Says a tally of a size class in one line.

    ``narrowed`` says that filters have chosen the links, ``end`` is the end of a window of the
    past, None for one up to now.
    """

    tally: Tally
    size: str
    narrowed: bool = False
    end: datetime | None = None

    @classmethod
    def of(cls, grid: Grid) -> Headline:
        narrowed = bool(on_links(grid.query.filters))
        is_past = grid.moment >= grid.window.end
        end = grid.window.end if is_past else None
        return cls(Tally.of(grid), grid.query.size, narrowed, end)

    def words(self) -> str:
        return ", ".join(words for _, words in self.parts()) + self.tail()

    def parts(self) -> list[tuple[str, str]]:
        """Return the parts of the answer, each with the look of the cells that it is about.

        Without anything wrong there is one, about none: its look is empty.
        """
        return list(self.problems()) or [("", self.nothing_wrong())]

    def tail(self) -> str:
        """Return what stands behind the parts: the end of a window of the past."""
        tally = self.tally
        is_bare = tally.untested + tally.down == tally.links and not any(self.problems())
        return f" at {format_typed(self.end)}" if self.end and not is_bare else ""

    def nothing_wrong(self) -> str:
        tally = self.tally
        if not tally.links:
            return "No link matches these filters" if self.narrowed else "No links to show yet"
        if tally.untested + tally.down == tally.links:
            return f"Nothing measured with {self.size} files in this window"
        return self.calm()

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield how many links are failing, without a success and slower, with the look of each."""
        tally = self.tally
        if tally.failing == tally.links - tally.down > 1 and not tally.pooled:
            all_links = f"All{' these' if self.narrowed else ''} links"
            yield "failing", f"{all_links}{self.was(2)} failing with {self.size} files"
            return
        counts = {
            "failing": tally.failing,
            "failed": 0 if tally.pooled else tally.failed,
            "slower": tally.slower,
        }
        present = [(look, number) for look, number in counts.items() if number]
        for at, (look, number) in enumerate(present):
            subject, files = ("", "") if at else (self.links(number), f" with {self.size} files")
            yield look, f"{format_count(number)}{subject} {PROBLEMS[look]}{files}"

    def links(self, number: int) -> str:
        noun = " of these links" if self.narrowed else " link" if number == 1 else " links"
        return noun + self.was(number)

    def was(self, number: int) -> str:
        if not self.end:
            return ""
        return " was" if number == 1 else " were"

    def calm(self) -> str:
        """Say that nothing is wrong, as far as that is known, and first where most is not."""
        tally = self.tally
        if tally.stale and tally.stale + tally.untested + tally.down == tally.links:
            return f"All results with {self.size} files {'were' if self.end else 'are'} stale"
        is_judged = tally.usual or tally.faster
        if 2 * (tally.stale + tally.untested) > tally.links - tally.down:
            rest = "none failing or slower than usual" if is_judged else "no usual rates known yet"
            return f"{self.silent()}, {rest}"
        if not is_judged:
            return f"No usual rates with {self.size} files{self.was(2)} known yet"
        if tally.usual + tally.down == tally.links and not tally.pooled:
            subject = "All these links" if self.narrowed else "Everything"
            return f"{subject}{self.was(2 if self.narrowed else 1)} as usual with {self.size} files"
        subject = "None of these links" if self.narrowed else "No link"
        return f"{subject}{self.was(1)} failing or slower than usual with {self.size} files"

    def silent(self) -> str:
        """Say how many are without a result that is new enough."""
        tally = self.tally
        states = {"stale": tally.stale, "untested": tally.untested}
        words = " or ".join(state for state, number in states.items() if number)
        these, noun = "these " if self.narrowed else "", "cells" if tally.pooled else "links"
        number = format_count(sum(states.values()))
        of_all = f"{these}{format_count(tally.links)} {noun}{self.was(2)}"
        return f"{number} of {of_all} {words} with {self.size} files"


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
        counts = grid.changes()
        compared, perhaps = counts.pop("compared"), int(np.count_nonzero(grid.perhaps))
        is_failing = grid.cells.state == FAILING
        silent = int(np.count_nonzero(is_failing & ~np.isnan(grid.cells.value)))
        return cls(
            perhaps=perhaps,
            unchanged=compared - silent - perhaps - sum(counts[kind] for kind in CHANGES),
            failing=int(np.count_nonzero(grid.of_look("failing"))),
            **counts,
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
        tally = ChangeTally.of(grid)
        of_time = query.compare is not None and query.compare.is_of_time
        noun = "change" if of_time else "difference"
        return cls(tally, query.size, query.other_words(), pooled, grid.is_mirrored, noun)

    def words(self) -> str:
        return ", ".join(words for _, words in self.parts()) + self.tail()

    def tail(self) -> str:
        """Return what stands behind the parts: what is compared with."""
        return f", compared with {self.other}"

    def parts(self) -> list[tuple[str, str]]:
        """Say how many are failing, slower and faster, each with the look that shows them."""
        tally, files = self.tally, f"with {self.size} files"
        if not tally.slower + tally.faster + tally.perhaps + tally.unchanged + tally.failing:
            return [("", f"Too few results {files}")]
        looks = ("failing", *CHANGES[: 1 if self.mirrored else 2])
        counts = {look: number for look in looks if (number := getattr(tally, look))}
        said = {look: f"{format_count(number)} {look}" for look, number in counts.items()}
        if said:
            first = next(iter(said))
            said[first] = f"{counted(counts[first], 'cell' if self.pooled else 'link')} {first}"
        if not counts.keys() & {*CHANGES}:
            none = f"no {'certain' if tally.perhaps else 'significant'} {self.noun}"
            said |= {"": none if said else capfirst(none)}
        *others, (look, words) = said.items()
        return [*others, (look, f"{words} {files}")]


def headline_of(grid: Grid) -> Headline | ChangeHeadline:
    """Return what a matrix says first."""
    return ChangeHeadline.of(grid) if grid.comparison else Headline.of(grid)
