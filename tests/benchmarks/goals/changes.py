"""Goal 14: changes of level of all links and endpoints over 90 days, and of a single link."""

import numpy as np

from matrix.answers.changes import level_shifts, search
from matrix.store import runs
from sonar.notation.windows import Window
from sonar.results.segments import unix_ms
from tests.benchmarks import scale
from tests.benchmarks.bench import SIZE, Bench
from tests.benchmarks.measured import Contestant, Goal, Spread, timed

DAYS = 90
EVERY, SINGLE = "all links and endpoints, 90 d", "one link, 90 d"


def goal_14(bench: Bench) -> list[Goal]:
    window = scale.aligned(min(DAYS, bench.scale.days))
    *_, sequences = search.find(SIZE, window)
    one = single(window)
    # All of them take so long that two rounds are enough.
    with bench.at_work(EVERY):
        of_all = timed(2, {EVERY: lambda: search.find(SIZE, window)})[EVERY]
    of_one = bench.contest(SINGLE, {SINGLE: one})[SINGLE]
    text = f"changes of level of {bench.scale.links:,} links"
    note = f"{sequences:,} sequences searched, reading included"
    return [
        Goal.from_spread(
            14, f"{text}, {DAYS} d", 60, Spread.of(of_all), "s", at_least=False, note=note
        ),
        Goal.from_spread(
            14,
            "changes of level of one link",
            20,
            Spread.of([1000 * seconds for seconds in of_one]),
            "ms",
            at_least=False,
            note="from its results as they are read",
        ),
    ]


def single(window: Window) -> Contestant:
    """Return a search of one link in the results of all."""
    results = runs.read(SIZE, window, (), offsets=True)
    link = np.unique(np.concatenate([run.links for run in results]))[:1]
    return lambda: level_shifts.link_changes(results, link, unix_ms(window.end))
