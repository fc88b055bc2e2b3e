"""What the cells of a matrix look like, how many look so, and where only those are shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from matrix.answers.change_headline import ChangeHeadline, ChangeTally
from matrix.answers.grid import Grid
from matrix.answers.headline import Headline, Tally
from matrix.pages.controls import Choice
from matrix.pages.matrix.address import MatrixAddress
from matrix.plots.matrix import scale_of
from matrix.plots.palettes import PALETTE_LABELS, PALETTES, palette_for
from matrix.plots.scales import factor_text
from matrix.statistics.cells.standing import LEVEL_WORDS, LEVELS
from matrix.statistics.cells.states import LOOKS, PARTLY_WORDS, STATE_WORDS, STATES
from matrix.statistics.compare.two_samples import FALSE_SHARE, FEWEST_TESTS

# What is marked on a cell beside its state.
MARK_WORDS = LEVEL_WORDS | {"partly": PARTLY_WORDS}
LEGEND_WORDS = (
    STATE_WORDS | MARK_WORDS | {"failing": f"{STATE_WORDS['failing']}; its cell says for how long"}
)
NAMES = {
    "partly": "partly failing",
    "usual": "as usual",
    "unknown": "without a usual rate",
}
COUNTED = {
    "usual": "as usual",
    "faster": "faster",
    "partly": "partly failing",
    "stale": "stale",
    "untested": "untested",
    "down": "in downtime",
    "unknown": "with no usual rate yet",
}

COUNTED_CHANGES = {
    "perhaps": "perhaps different, not certain",
    "unchanged": "without a significant difference",
    "too_few": "with too few results",
}


@dataclass(frozen=True)
class LegendEntry:
    """A state, or a mark on cells, in the legend; ``url`` is empty where nothing can be shown."""

    state: str
    name: str
    words: str
    count: int
    url: str
    chosen: bool


@dataclass(frozen=True)
class PaletteChoice:
    name: str
    label: str
    ramp: str
    url: str
    chosen: bool


def legend(page: MatrixAddress, grid: Grid) -> list[LegendEntry]:
    """Say what each state and mark that occurs looks like, and where only its cells are shown."""
    counts = grid.states() | marked(grid)
    legend_words = compared_words(grid) if grid.comparison else LEGEND_WORDS
    names = NAMES
    if against := grid.query.statistic.against:
        legend_words = {**legend_words, "measured": factor_words(grid)}
        names = NAMES | {"measured": f"{reach_words(page, grid)} of {against}"}
    return [
        LegendEntry(
            state=name,
            name=names.get(name, name.replace("_", " ")),
            words=words,
            count=counts[name],
            url=toggling(page, name),
            chosen=name in page.display.only,
        )
        for name, words in legend_words.items()
        if counts[name] or name in page.display.only
    ]


def factor_words(grid: Grid) -> str:
    """Say what the colours of factors mean."""
    against = grid.query.other_words() or grid.query.statistic.against
    return f"measured: brown is slower than {against}, teal is faster"


def reach_words(page: MatrixAddress, grid: Grid) -> str:
    """Say from where to where the colours of factors run: a quarter to four times."""
    reach = 10 ** scale_of(grid, page.display).high
    return f"{factor_text(1 / reach)} to {factor_text(reach)}"


def compared_words(grid: Grid) -> dict[str, str]:
    """Say what cells look like whose colour is a ratio."""
    other = grid.query.other_words()
    beyond = f"significantly (at most {FALSE_SHARE:.0%} of those marked by chance)"
    return {
        "measured": STATE_WORDS["measured"],
        "slower": f"slower than {other}, {beyond}",
        "faster": f"faster than {other}, {beyond}",
        "too_few": f"too few: fewer than {FEWEST_TESTS} successful tests on one side of the "
        "comparison",
    } | {name: words for name, words in LEGEND_WORDS.items() if name in STATES[1:]}


def marked(grid: Grid) -> dict[str, int]:
    """Count the cells by what they are beside their state, and those with a failing link."""
    looks = {name: int(grid.of_look(name).sum()) for name in ("failing", *LEVELS, "partly")}
    return looks | {"too_few": int(grid.too_few.sum())}


def toggling(page: MatrixAddress, name: str) -> str:
    """Return the address with the focus on a state put on, or off if it is on."""
    if name not in LOOKS:
        return ""
    chosen = {*page.display.only} ^ {name}
    only = tuple(other for other in LOOKS if other in chosen)
    toggled = page.displaying(page.display.replace(only=only))
    return (toggled.telling_levels() if name in only else toggled).url()


def answer(page: MatrixAddress, headline: Headline | ChangeHeadline) -> list[Choice]:
    """Return the parts of the answer, each with where only its cells are shown, if it has some."""
    return [
        Choice(words, focusing(page, look), look in LOOKS and page.display.only == (look,))
        for look, words in headline.parts()
    ]


def counts(page: MatrixAddress, tally: Tally | ChangeTally) -> Iterator[LegendEntry]:
    """Yield what stands quietly beside the answer: how many cells are otherwise, if any."""
    if isinstance(tally, ChangeTally):
        for name, words in COUNTED_CHANGES.items():
            if number := getattr(tally, name):
                chosen = page.display.only == (name,)
                yield LegendEntry(name, words, "", number, focusing(page, name), chosen)
        return
    for name, words in COUNTED.items():
        if (number := getattr(tally, name)) and not (tally.pooled and name == "unknown"):
            of_cells = tally.pooled and name not in ("usual", "faster")
            noun = ("cell " if number == 1 else "cells ") if of_cells else ""
            chosen = page.display.only == (name,)
            yield LegendEntry(name, f"{noun}{words}", "", number, focusing(page, name), chosen)


def focusing(page: MatrixAddress, name: str) -> str:
    """Return the address of only the cells of a state, or of all if it shows only these."""
    if name not in LOOKS:
        return ""
    return page.showing(() if page.display.only == (name,) else (name,)).url()


def palettes(page: MatrixAddress) -> list[PaletteChoice]:
    """Return the palettes to choose from; around 1 there is the one."""
    if page.query.statistic.scale == "diverging":
        return []
    return [
        PaletteChoice(
            name=name,
            label=PALETTE_LABELS.get(name, name),
            ramp=", ".join(palette_for(name, page.query.statistic)),
            url=page.displaying(page.display.replace(palette=name)).url(),
            chosen=name == page.display.palette_name,
        )
        for name in PALETTES
    ]
