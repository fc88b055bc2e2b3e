"""Goals 5, 12 and 13: what the process of an answer computes, each on its own.

5: the matrix answer as bytes, against a DRF serializer over one object for each link. 12: two
windows compared link by link, against one matrix of the same time range. 13: the two-way model of a
matrix, with intervals and every link left out once.
"""

import gzip
from functools import partial

import numpy as np

from matrix.answers.matrix.grid_cells import Grid
from matrix.statistics.arrays import Floats
from matrix.statistics.estimates import two_way
from sonar.notation.windows import Window
from tests.benchmarks import product, scale
from tests.benchmarks.answer import DisagreementError
from tests.benchmarks.bench import SIZE, Bench
from tests.benchmarks.measured import Goal, Spread, of_the_fastest, ratio
from tests.benchmarks.peers import serializer

SONAR, SERIALIZER = "Sonar", "DRF serializer"
DAYS = 30
GZIP_LEVEL = 6
COMPARED, MEDIAN, MEAN = "30 d against the 30 d before", "30 d, median", "30 d, mean"
# Sides of the matrix, and the limit in ms.
ATTRIBUTION_LIMITS = {200: 50.0, 1000: 1500.0}
# Of the cells, so many have no value.
HOLES = 0.3


def goal_5(bench: Bench) -> list[Goal]:
    grid = product.grid(SIZE, scale.aligned(DAYS), "mean")
    links = serializer.links_of(grid)
    seconds = bench.contest(
        f"the answer for {len(links):,} links as bytes",
        {
            SONAR: partial(product.as_bytes, grid),
            SERIALIZER: partial(serializer.answer, links),
        },
    )
    text = "matrix answer as bytes against a DRF serializer"
    spread = ratio(seconds[SERIALIZER], seconds[SONAR])
    fastest = of_the_fastest(seconds[SERIALIZER], seconds[SONAR])
    note = f"{fastest}; the serializer's objects are made before"
    return [
        Goal.from_spread(5, text, 150, spread, note=note),
        size_goal(
            product.as_bytes(grid),
            serializer.answer(links),
            serializer.answer(serializer.links_of(grid, rounded=True)),
        ),
    ]


def size_goal(ours: bytes, theirs: bytes, theirs_rounded: bytes) -> Goal:
    sizes = [len(gzip.compress(body, GZIP_LEVEL)) for body in (ours, theirs, theirs_rounded)]
    note = (
        f"{sizes[0] / 1e6:.3f} against {sizes[1] / 1e6:.3f} MB; "
        f"{sizes[2] / sizes[0]:.1f}x against a serializer that rounds as Sonar does"
    )
    spread = Spread.of([sizes[1] / sizes[0]])
    return Goal.from_spread(5, "the same, gzip -6 size", 2.5, spread, note=note)


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


def goal_13(bench: Bench) -> list[Goal]:
    agree_with_a_solver()
    limits = [*ATTRIBUTION_LIMITS.items()][: 1 if bench.scale.is_small else None]
    return [attribution(bench, side, limit) for side, limit in limits]


def attribution(bench: Bench, side: int, limit: float) -> Goal:
    logs = matrix(side)
    contestants = {how: partial(two_way.fit, logs, how) for how in two_way.FITS}
    seconds = bench.contest(f"two-way model of {side:,} x {side:,}", contestants)
    spreads = {how: Spread.of([1000 * each for each in of]) for how, of in seconds.items()}
    text = f"attribution over {side:,} x {side:,}, 30 % missing"
    note = f"by a polish {spreads['polish'].median:.3g} ms"
    return Goal.from_spread(13, text, limit, spreads["means"], "ms", at_least=False, note=note)


def matrix(side: int) -> Floats:
    """Return logs of rates: effects of both ends, noise, and holes."""
    rng = np.random.default_rng(side)
    row, column = rng.normal(0, 0.5, (2, side))
    logs = row[:, None] + column + rng.normal(0, 0.4, (side, side))
    return np.where(rng.random(logs.shape) < HOLES, np.nan, logs)


def agree_with_a_solver() -> None:
    """See that a small one is fitted as a solver does."""
    logs = matrix(20)
    rows, columns = np.nonzero(np.isfinite(logs))
    lines = np.hstack([np.eye(20)[rows], np.eye(20)[columns]])
    values = logs[rows, columns]
    solved = lines @ np.linalg.lstsq(lines, values, rcond=None)[0]
    if not np.allclose(two_way.fit(logs).fitted[rows, columns], solved):
        raise DisagreementError("the two-way model is not that of a least-squares solver")
