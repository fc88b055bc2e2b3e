"""Runs the chosen goals one after the other."""

import time
from collections.abc import Callable, Iterable

from tests.benchmarks import apart, facts
from tests.benchmarks.bench import Bench, console
from tests.benchmarks.goals import browser, in_process, ingest, matrix, over_http, time_series
from tests.benchmarks.measured import Goal
from tests.benchmarks.report import figure


def elsewhere(number: int) -> Callable[[Bench], list[Goal]]:
    """Return a goal that starts servers of its own."""
    return lambda bench: apart.run(number, bench.scale.name)


# Those of programs last: they start more processes, and leave the caches of these to others.
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
    14: in_process.goal_14,
    0: facts.all_of_them,
    **{number: elsewhere(number) for number in apart.PROGRAMS},
}


def goals(bench: Bench, numbers: Iterable[int], note: Callable[[], None]) -> list[int]:
    """Run goals by number; one that breaks is reported and does not stop the others.

    Calls ``note`` after each, as a run may take an hour; returns those that broke.
    """
    chosen = [number for number in GOALS if number in set(numbers)]
    broken = []
    for done, number in enumerate(chosen):
        began = time.monotonic()
        try:
            found = GOALS[number](bench)
            bench.goals += found
            say(found, f"{done + 1} of {len(chosen)}", time.monotonic() - began)
        except Exception:  # noqa: BLE001 - shown whole, and the run ends with an error
            console.print_exception()
            broken.append(number)
        note()
    return broken


def say(found: Iterable[Goal], how_far: str, seconds: float) -> None:
    """Print a line for each goal as it is measured: the tables come at the end."""
    for goal in found:
        judged = f"{figure(goal.value)} {goal.unit}" if goal.value is not None else goal.note
        limit = f"{'at least' if goal.at_least else 'at most'} {goal.limit:g}"
        words = f"[{how_far}, {seconds:.0f} s] goal {goal.number}: {goal.text}: {judged} ({limit})"
        console.print(words, markup=False, highlight=False, soft_wrap=True)
