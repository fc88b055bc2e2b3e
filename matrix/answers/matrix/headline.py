"""The answer of a matrix in one line: what is wrong, the worst first, or how far that is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import numpy as np
from django.utils.text import capfirst

from matrix.answers.conditions import words
from matrix.answers.conditions.lines import KIND_OF
from matrix.answers.conditions.reading import Judgement, is_now, members_q, read_open, state_moment
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.words.names import short_names_of
from matrix.answers.words.phrases import counted, join
from matrix.query.addresses import about_link
from matrix.query.filters import on_links
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.states import FAILING
from matrix.statistics.compare.two_samples import CHANGES
from matrix.store import registry
from matrix.store.cache import ANSWERS
from sonar.models import Condition
from sonar.notation.units import format_count, format_factor
from sonar.notation.windows import format_typed

SCOPES, TYPES = Condition.Scope, Condition.Type
# A headline names no more conditions than these, one of a comparison only one.
MOST_NAMED = 3
# The look of what counts the others.
OTHERS = "others"


class AnswerWords(NamedTuple):
    """Some words of a headline, and the look of what they are about, or nothing.

    ``condition`` is the one that they say, if they say one, and ``detail`` since when it lasts on
    how many links; ``stop`` follows where another part does.
    """

    look: str
    words: str
    detail: str = ""
    condition: Condition | None = None
    stop: str = ","


@dataclass(frozen=True)
class Tally:
    """How many links are how.

    Where cells pool several links, `failing`, `silent`, `slower`, `faster` and `usual` count links,
    the others cells. `usual` and `unknown` are measured and not partly failing; the first are at
    their usual rate, the others have too few tests to tell.
    """

    links: int = 0
    failing: int = 0
    failed: int = 0
    silent: int = 0
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
            usual=by_link["usual"] if pooled else int(np.count_nonzero(cells.of_look("usual"))),
            unknown=int(np.count_nonzero(cells.of_look("unknown"))),
            partly=int(np.count_nonzero(cells.partly)),
            pooled=pooled,
            **{name: by_link[name] for name in ("failing", "silent", "slower", "faster")},
            **{name: states[name] for name in ("failed", "stale", "untested", "down")},
        )


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

    @classmethod
    def of(cls, grid: Grid) -> ChangeTally:
        counts = grid.changes()
        compared, perhaps = counts.pop("compared"), int(np.count_nonzero(grid.perhaps))
        is_failing = (grid.cells.state == FAILING) & ~np.isnan(grid.cells.value)
        changed = sum(counts[kind] for kind in CHANGES)
        alike = compared - int(np.count_nonzero(is_failing)) - perhaps - changed
        return cls(perhaps=perhaps, unchanged=alike, **counts)


@dataclass(frozen=True)
class Headline:
    """Says what is wrong with the links of a size class, and how they differ if compared.

    ``narrowed`` says that filters have chosen the links, ``end`` is the end of a time range of the
    past, None for one up to now. ``changes`` are differences from ``other``: a ``noun`` each, and
    ``mirrored`` where each direction is compared with the opposite one. ``names`` are short ones.
    """

    tally: Tally
    size: str
    judgement: Judgement
    narrowed: bool = False
    end: datetime | None = None
    changes: ChangeTally | None = None
    other: str = ""
    noun: str = "change"
    mirrored: bool = False
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, grid: Grid, judgement: Judgement, now: datetime) -> Headline:
        query = grid.query
        of_time = query.compare is None or query.compare.is_of_time
        return cls(
            Tally.of(grid),
            query.size,
            judgement,
            narrowed=bool(on_links(query.filters)),
            end=None if is_now(grid.window, now) else grid.window.end,
            changes=ChangeTally.of(grid) if grid.comparison else None,
            other=query.other_words(),
            noun="change" if of_time else "difference",
            mirrored=grid.is_mirrored,
            names=names_of(grid),
        )

    def words(self) -> str:
        return " ".join(f"{part.words} {part.detail}".strip() + part.stop for part in self.parts())

    def parts(self) -> list[AnswerWords]:
        """Say whether measurements are doubtful, what is wrong, and what differs.

        Where there is nothing of these it says that all is well, as far as that is known.
        """
        doubtful = self.judgement.doubtful
        parts = [*self.conditions()]
        parts += self.differences(is_first=not parts)
        if not (parts or doubtful):
            parts = [AnswerWords("", self.calm())]
        if self.other:
            parts.append(AnswerWords("", f"compared with {self.other}"))
        if self.end and not self.is_bare:
            parts.append(AnswerWords("", f"as of {format_typed(self.end)}"))
        if doubtful:
            text = words.doubtful(doubtful).removesuffix(".")
            parts.insert(0, AnswerWords("doubtful", text, condition=doubtful, stop="."))
        parts[-1] = parts[-1]._replace(stop="")
        return parts

    def conditions(self) -> Iterator[AnswerWords]:
        listed = worst_first(self.judgement, self.judgement.confirmed)
        most = 1 if self.changes else MOST_NAMED
        for each in listed[:most]:
            text = words.title(each, self.names)
            if each.factor is not None:
                # Its interval is in the list of conditions.
                text = text.removesuffix(words.factor_words(each)) + format_factor(each.factor)
            number = "" if each.scope == SCOPES.LINK else f" ({counted(each.links, 'link')})"
            yield AnswerWords(KIND_OF[each.type], text, words.since(each) + number, each)
        if more := listed[most:]:
            yield AnswerWords(OTHERS, f"and {format_count(len(more))} more")

    def differences(self, *, is_first: bool) -> Iterator[AnswerWords]:
        """Yield how many are slower and faster than what is compared, if anything is."""
        changes = self.changes
        if changes is None:
            return
        looks = CHANGES[: 1 if self.mirrored else 2]
        counts = {look: number for look in looks if (number := getattr(changes, look))}
        noun = "cell" if self.tally.pooled else "link"
        for at, (look, number) in enumerate(counts.items()):
            yield AnswerWords(
                look, f"{format_count(number) if at else counted(number, noun)} {look}"
            )
        if not counts:
            text = f"no significant {self.noun}"
            if not changes.perhaps + changes.unchanged:
                text = "too few results to compare"
            yield AnswerWords("", capfirst(text) if is_first else text)

    @property
    def is_bare(self) -> bool:
        """Say whether nothing is measured, and nothing is known to be wrong."""
        tally = self.tally
        is_unmeasured = tally.untested + tally.down == tally.links
        return is_unmeasured and not self.judgement.confirmed

    def calm(self) -> str:
        """Say that nothing is wrong, or first how many links cannot be judged, and why."""
        tally, files = self.tally, f"with {self.size} files"
        if not tally.links:
            return "No link matches these filters" if self.narrowed else "No links to show yet"
        if self.is_bare:
            return f"No results for {self.size} files in this time range"
        if self.judgement.as_of is None or self.judgement.is_late:
            return capfirst(words.as_of(self.judgement))
        reasons = {
            "too few tests": tally.unknown + tally.failed,
            "no result for two intervals": tally.stale,
            "no result in this time range": tally.untested,
        }
        number = sum(reasons.values())
        if not number:
            these = "All these links are" if self.narrowed else "Everything"
            return f"{these} as usual {files}"
        of_all = f"{format_count(number)} of {'these ' * self.narrowed}"
        of_all += counted(tally.links, "cell" if tally.pooled else "link")
        why = join(f"{words} ({format_count(each)})" for words, each in reasons.items() if each)
        unjudged = f"{of_all} cannot be assessed {files}: {why}"
        is_enough = 2 * number <= tally.links - tally.down
        return f"No problem found, but {unjudged}" if is_enough else unjudged


def read_judgement(grid: Grid, now: datetime) -> Judgement:
    """Return the conditions of the links of a grid at its end, in its size class.

    However its tests are chosen: conditions are judged from all that count. Two queries, unless
    they are kept for the version of the grid.
    """

    def read() -> Judgement:
        chosen = members_q(grid.query.filters, registry.read_places(grid.version))
        judgement = read_open(state_moment(grid.window, now), chosen)
        return judgement.of_size(grid.query.size)

    judgement: Judgement = ANSWERS.get(("conditions", grid.version), read)
    return judgement


def names_of(grid: Grid) -> Mapping[str, str]:
    """Return the short names of all endpoints: the same ones, whatever a grid shows of them."""
    return short_names_of(registry.read_places(grid.version))


def on_cards(judgement: Judgement, names: Mapping[str, str]) -> dict[int, str]:
    """Say by their ids what the card of a cell says of the conditions that its links are part of.

    What is certain of a link itself is said by its state and since when that is.
    """
    texts = {}
    for each in judgement.open:
        text = words.title(each, names)
        if not each.confirmed_at:
            texts[each.id] = f"Unconfirmed: {text} {words.since(each)}"
        elif each.scope != SCOPES.LINK:
            texts[each.id] = f"Part of: {text}"
        elif each.factor is not None:
            texts[each.id] = text
    return texts


def page_of(condition: Condition, query: MatrixQuery) -> str:
    return about_link(query).url(words.path(condition))


def worst_first(judgement: Judgement, conditions: Iterable[Condition]) -> list[Condition]:
    """Return those to be listed: by type, then by how many links show it, then the slowest first.

    Conditions that began while measurements were doubtful may come of that.
    """
    ranks, listed = list(KIND_OF), judgement.listed(conditions)
    return sorted(listed, key=lambda each: (ranks.index(each.type), -each.links, each.factor or 0))
