"""Goal 13: the two-way model of a matrix, with intervals and every link left out once."""

from functools import partial

import numpy as np

from matrix.statistics.arrays import Floats
from matrix.statistics.estimates import two_way
from tests.benchmarks.answer import DisagreementError
from tests.benchmarks.bench import Bench
from tests.benchmarks.measured import Goal, Spread

# Sides of the matrix, and the limit in ms.
LIMITS = {200: 50.0, 1000: 1500.0}
# Of the cells, so many have no value.
HOLES = 0.3


def goal_13(bench: Bench) -> list[Goal]:
    agree()
    limits = [*LIMITS.items()][: 1 if bench.scale.is_small else None]
    return [goal(bench, side, limit) for side, limit in limits]


def goal(bench: Bench, side: int, limit: float) -> Goal:
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


def agree() -> None:
    """See that a small one is fitted as a solver does."""
    logs = matrix(20)
    rows, columns = np.nonzero(np.isfinite(logs))
    lines = np.hstack([np.eye(20)[rows], np.eye(20)[columns]])
    values = logs[rows, columns]
    solved = lines @ np.linalg.lstsq(lines, values, rcond=None)[0]
    if not np.allclose(two_way.fit(logs).fitted[rows, columns], solved):
        raise DisagreementError("the two-way model is not that of a least-squares solver")
