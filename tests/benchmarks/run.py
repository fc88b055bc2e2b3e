"""Runs the chosen goals one after the other."""

from collections.abc import Callable, Iterable
from importlib import import_module

from tests.benchmarks import facts
from tests.benchmarks.bench import Bench, console
from tests.benchmarks.goals import (
    answering,
    attribution,
    browser,
    changes,
    comparison,
    ingest,
    matrix,
    over_http,
    time_series,
)
from tests.benchmarks.measured import Goal


def elsewhere(name: str) -> Callable[[Bench], list[Goal]]:
    """Return a goal that starts servers of its own."""

    def goal(bench: Bench) -> list[Goal]:
        found: list[Goal] = import_module(f"tests.benchmarks.{name}").run(bench.scale.name)
        return found

    return goal


# Goals 8, 9 and 15 last: they start more processes, and leave the caches of these to others.
GOALS: dict[int, Callable[[Bench], list[Goal]]] = {
    1: matrix.goal_1,
    2: matrix.goal_2,
    3: matrix.goal_3,
    4: matrix.goal_4,
    5: answering.goal_5,
    6: ingest.goal_6,
    7: time_series.goal_7,
    10: browser.goal_10,
    11: over_http.goal_11,
    12: comparison.goal_12,
    13: attribution.goal_13,
    14: changes.goal_14,
    0: facts.all_of_them,
    8: elsewhere("flight"),
    9: elsewhere("planning"),
    15: elsewhere("subprocesses"),
    16: elsewhere("service"),
}


def goals(bench: Bench, numbers: Iterable[int], note: Callable[[], None]) -> list[int]:
    """Run goals by number; one that breaks is reported and does not stop the others.

    Calls ``note`` after each, as a run may take an hour; returns those that broke.
    """
    chosen = set(numbers)
    broken = []
    for number, goal in GOALS.items():
        if number not in chosen:
            continue
        try:
            bench.goals += goal(bench)
        except Exception:  # noqa: BLE001 - shown whole, and the run ends with an error
            console.print_exception()
            broken.append(number)
        note()
    return broken
