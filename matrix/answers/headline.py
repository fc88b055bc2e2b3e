"""The answer of a matrix in one line: how many links are failing or slower than usual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from matrix.answers.grid import Grid
from matrix.query.filters import on_links
from sonar.notation.units import format_count
from sonar.notation.windows import format_typed

# What is wrong with links, by the look of their cells.
PROBLEMS = {
    "failing": "failing",
    "failed": "without a success",
    "slower": "slower than usual",
}


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
            usual=by_link["usual"] if pooled else int(cells.of_look("usual").sum()),
            unknown=int(cells.of_look("unknown").sum()),
            partly=int(cells.partly.sum()),
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

    @property
    def files(self) -> str:
        """Say the size class: other classes may stand otherwise."""
        return f" with {self.size} files"

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
        return "" if is_bare else self.at()

    def nothing_wrong(self) -> str:
        tally = self.tally
        if not tally.links:
            return "No link matches these filters" if self.narrowed else "No links to show yet"
        if tally.untested + tally.down == tally.links:
            return f"Nothing measured{self.files} in this window"
        return self.calm()

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield how many links are failing, without a success and slower, with the look of each.

        Only the first says that these are links, and with which files.
        """
        tally = self.tally
        if tally.failing == tally.links - tally.down > 1 and not tally.pooled:
            all_links = f"All{' these' if self.narrowed else ''} links"
            yield "failing", f"{all_links}{self.was(2)} failing{self.files}"
            return
        counts = {
            "failing": tally.failing,
            "failed": 0 if tally.pooled else tally.failed,
            "slower": tally.slower,
        }
        present = [(look, number) for look, number in counts.items() if number]
        for at, (look, number) in enumerate(present):
            subject, files = ("", "") if at else (self.links(number), self.files)
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
            return f"All results{self.files} {'were' if self.end else 'are'} stale"
        is_judged = tally.usual or tally.faster
        if 2 * (tally.stale + tally.untested) > tally.links - tally.down:
            rest = "none failing or slower than usual" if is_judged else "no usual rates known yet"
            return f"{self.silent()}, {rest}"
        if not is_judged:
            return f"No usual rates{self.files}{self.was(2)} known yet"
        if tally.usual + tally.down == tally.links and not tally.pooled:
            subject = "All these links" if self.narrowed else "Everything"
            return f"{subject}{self.was(2 if self.narrowed else 1)} as usual{self.files}"
        subject = "None of these links" if self.narrowed else "No link"
        return f"{subject}{self.was(1)} failing or slower than usual{self.files}"

    def silent(self) -> str:
        """Say how many are without a result that is new enough."""
        tally = self.tally
        states = {"stale": tally.stale, "untested": tally.untested}
        words = " or ".join(state for state, number in states.items() if number)
        these = "these " if self.narrowed else ""
        noun = "cells" if tally.pooled else "links"
        number = format_count(sum(states.values()))
        of_all = f"{these}{format_count(tally.links)} {noun}{self.was(2)}"
        return f"{number} of {of_all} {words}{self.files}"

    def at(self) -> str:
        """Say the end of a window of the past."""
        if not self.end:
            return ""
        return f" at {format_typed(self.end)}"
