"""Runs the chosen goals one after the other."""

import time
from collections.abc import Callable, Iterable
from functools import partial

from tests.benchmarks import apart, facts
from tests.benchmarks.bench import Bench, console
from tests.benchmarks.goals import browser, in_process, ingest, matrix, over_http, time_series
from tests.benchmarks.measured import Goal, figure

GOALS: dict[int, Callable[[Bench], list[Goal]]] = {
    1: matrix.goal_1,
    2: matrix.goal_2,
    3: matrix.goal_3,
    4: matrix.goal_4,
    5: in_process.goal_5,
    6: ingest.goal_6,
    7: time_series.goal_7,
    10: browser.goal_10,
    11: over_http.goal_11,
    12: in_process.goal_12,
    13: in_process.goal_13,
    0: facts.all_of_them,
}


def goals(bench: Bench, numbers: Iterable[int], note: Callable[[], None]) -> list[int]:
    """Run goals by number; one that breaks is reported and does not stop the others.

    Calls ``note`` after each, as a run may take an hour; returns those that broke.
    """
    chosen, broken = steps(bench, set(numbers)), []
    for done, (some, step) in enumerate(chosen):
        began = time.monotonic()
        try:
            found = step()
            bench.goals += found
            say(found, f"{done + 1} of {len(chosen)}", time.monotonic() - began)
        except Exception:  # noqa: BLE001 - shown whole, and the run ends with an error
            console.print_exception()
            broken += some
        note()
    return broken


def steps(bench: Bench, numbers: set[int]) -> list[tuple[list[int], partial[list[Goal]]]]:
    """Return what is measured at once, by numbers.

    Programs are last: they start more processes, and leave the caches of these to others.
    """
    here = [([number], partial(GOALS[number], bench)) for number in GOALS if number in numbers]
    programs = [[number for number in some if number in numbers] for some in apart.TOGETHER]
    return here + [(some, partial(apart.run, some, bench.scale.name)) for some in programs if some]


def say(found: Iterable[Goal], how_far: str, seconds: float) -> None:
    """Print a line for each goal as it is measured: the tables come at the end."""
    for goal in found:
        judged = f"{figure(goal.value)} {goal.unit}" if goal.value is not None else goal.note
        limit = f"{'at least' if goal.at_least else 'at most'} {goal.limit:g}"
        words = f"[{how_far}, {seconds:.0f} s] goal {goal.number}: {goal.text}: {judged} ({limit})"
        console.print(words, markup=False, highlight=False, soft_wrap=True)
