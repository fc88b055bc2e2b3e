"""What is asked of which grids, how often, and how well it should be answered."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.accuracy import faults
from tests.accuracy.faults import Fault
from tests.accuracy.grids import Grid
from tests.accuracy.set_up import told_from_bandwidth
from tests.accuracy.trials import (
    MEAN_OVER_MEDIAN,
    Compared,
    Figure,
    Question,
    Remembered,
)

NOISES = (1.2, 1.5, 2.0)
# That of the published rates of 2011, with about 10 transfers in a cell.
USUAL_NOISE = 1.5
TEN, FIFTEEN, HUNDRED = Grid(10), Grid(15, 0.3), Grid(100, 0.3)
HARD_FIFTEEN, HARD_HUNDRED = Grid(15, 0.3, hard=True), Grid(100, 0.3, hard=True)
GRIDS = (TEN, FIFTEEN, HARD_FIFTEEN, HUNDRED, HARD_HUNDRED)

QUESTIONS = (
    NOTHING := Question("nothing", Fault("nothing", faults.nowhere)),
    DRIFT := Question("drift: everything /1.3", Fault("drift", faults.everywhere, 1.3)),
    SOURCE_2 := Question("endpoint as source /2", Fault("source", faults.source, 2)),
    DESTINATION_2 := Question(
        "endpoint as destination /2", Fault("destination", faults.destination, 2)
    ),
    THREE_WINDOWS := Question("endpoint /2, three time ranges of it", SOURCE_2.fault, Compared(3)),
    SOURCE_4 := Question("endpoint as source /4", Fault("source", faults.source, 4)),
    DESTINATION_4 := Question(
        "endpoint as destination /4", Fault("destination", faults.destination, 4)
    ),
    BOTH_2 := Question("endpoint both ways /2", Fault("both", faults.both, 2)),
    SITE_2 := Question("a whole site /2", Fault("site", faults.site, 2)),
    LINK_2 := Question("link /2", Fault("link", faults.link, 2)),
    LINK_4 := Question("link /4", Fault("link", faults.link, 4)),
    QUIET_HISTORY := Question("nothing, 30 days of history", NOTHING.fault, Remembered(1)),
    HISTORY_2 := Question(
        "link /2, 30 days of mean logs", LINK_2.fault, Remembered(MEAN_OVER_MEDIAN)
    ),
    HISTORY_4 := Question(
        "link /4, 30 days of mean logs", LINK_4.fault, Remembered(MEAN_OVER_MEDIAN)
    ),
    MEDIANS_4 := Question("link /4, 30 days of medians", LINK_4.fault, Remembered(1)),
    SET_UP := Question("endpoint +10 s of overhead", SOURCE_2.fault, told_from_bandwidth),
)


@dataclass(frozen=True)
class Goal:
    """How often a question is to be answered right on these grids."""

    question: Question
    grids: tuple[Grid, ...]
    share: float
    noises: tuple[float, ...] = (USUAL_NOISE,)

    @property
    def text(self) -> str:
        if self.question.silent:
            return f"{self.question.name}: silent in at least {self.share:.0%}"
        return f"{self.question.name}: named in at least {self.share:.0%}"

    def covers(self, question: Question, grid: Grid, noise: float) -> bool:
        return question is self.question and grid in self.grids and noise in self.noises

    def figures(self, figures: Mapping[tuple[str, str, float], Figure]) -> list[Figure]:
        return [
            figures[self.question.name, grid.name, noise]
            for grid in self.grids
            for noise in self.noises
            if (self.question.name, grid.name, noise) in figures
        ]


SMALL, LARGE = (TEN, FIFTEEN), (HUNDRED, HARD_HUNDRED)
GOALS = (
    Goal(NOTHING, GRIDS, 0.98, NOISES),
    Goal(DRIFT, GRIDS, 0.98, NOISES),
    Goal(SOURCE_2, SMALL, 0.9),
    Goal(DESTINATION_2, SMALL, 0.9),
    Goal(SOURCE_2, LARGE, 0.99),
    Goal(DESTINATION_2, LARGE, 0.99),
    Goal(THREE_WINDOWS, SMALL, 0.96),
    Goal(SOURCE_4, GRIDS, 0.99),
    Goal(DESTINATION_4, GRIDS, 0.99),
    Goal(QUIET_HISTORY, GRIDS, 0.98, NOISES),
    Goal(HISTORY_4, (*SMALL, HARD_FIFTEEN), 0.9),
)


# Where there is no goal, a figure is to give an idea; of a goal, it is to tell it from its miss.
IDEA, IDEA_LARGE, IDEA_LARGE_HISTORY = 200, 40, 20
NAMED, NAMED_LARGE = 2000, 300
SILENT, SILENT_HISTORY, SILENT_LARGE, SILENT_LARGE_HISTORY = 4000, 2000, 1000, 500


def trials_of(question: Question, grid: Grid, noise: float) -> int:
    """Return how often a question is put: most often where it has a goal to meet."""
    has_goal = any(goal.covers(question, grid, noise) for goal in GOALS)
    has_history = isinstance(question.trial, Remembered)
    if grid.size < HUNDRED.size:
        if not has_goal:
            return IDEA
        if question.silent:
            return SILENT_HISTORY if has_history else SILENT
        return NAMED
    # Its bound is quoted beside it.
    if question is HISTORY_4 and noise == USUAL_NOISE:
        return NAMED_LARGE
    if not has_goal:
        return IDEA_LARGE_HISTORY if has_history else IDEA_LARGE
    if question.silent:
        return SILENT_LARGE_HISTORY if has_history else SILENT_LARGE
    return NAMED_LARGE


def grids_of(question: Question) -> tuple[Grid, ...]:
    """Return the grids that it makes sense in, those that take longest first."""
    if question is SITE_2:
        return HARD_HUNDRED, HARD_FIFTEEN
    return (FIFTEEN, TEN) if question is SET_UP else GRIDS[::-1]


def tasks() -> Iterator[tuple[Question, Grid, float, int]]:
    """Return every figure of the table, those that take longest first."""
    every = [(question, grid) for question in QUESTIONS for grid in grids_of(question)]
    for question, grid in sorted(every, key=lambda task: -task[1].size):
        for noise in NOISES:
            yield question, grid, noise, trials_of(question, grid, noise)
