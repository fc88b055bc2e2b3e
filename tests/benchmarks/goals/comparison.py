"""Goal 12: two windows compared link by link, against one matrix of the same window."""

from functools import partial

import numpy as np

from matrix.answers.matrix.grid_cells import Grid
from sonar.notation.windows import Window
from tests.benchmarks import product, scale
from tests.benchmarks.bench import SIZE, Bench
from tests.benchmarks.measured import Goal, of_the_fastest, ratio

COMPARED, MEDIAN, MEAN = "30 d against the 30 d before", "30 d, median", "30 d, mean"
DAYS = 30


def goal_12(bench: Bench) -> list[Goal]:
    window = scale.aligned(DAYS)
    grid = product.compared(SIZE, window)
    agree_with_both(grid, window)
    seconds = bench.contest(
        f"{grid.comparison.enough.sum():,} links compared" if grid.comparison else "",
        {
            COMPARED: partial(product.compared, SIZE, window),
            MEDIAN: partial(product.grid, SIZE, window, "median"),
            MEAN: partial(product.grid, SIZE, window, "mean"),
        },
    )
    spread = ratio(seconds[COMPARED], seconds[MEDIAN])
    note = f"{ratio(seconds[COMPARED], seconds[MEAN]).median:.3g}x the matrix of means"
    note = f"{of_the_fastest(seconds[COMPARED], seconds[MEDIAN])}; {note}"
    text = "ratio, interval, p of two 30 d windows against one 30 d matrix"
    return [Goal.from_spread(12, text, 2.5, spread, at_least=False, note=note)]


def agree_with_both(compared: Grid, window: Window) -> None:
    """See that both medians are those of the two windows by themselves."""
    before = Window(window.start - (window.end - window.start), window.start)
    comparison = compared.comparison
    assert comparison is not None
    for values, of in ((comparison.value, window), (comparison.other, before)):
        np.testing.assert_allclose(values, product.grid(SIZE, of, "median").cells.value)
