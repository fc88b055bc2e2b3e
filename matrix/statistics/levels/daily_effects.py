"""How fast each endpoint was day by day, as a source and as a destination. Pure numpy.

Each link is taken against its own mean, so that it does not matter which links were tested on a
day. What the links of a day then have in common, by source and by destination, are the effects of
that day, without links that are far off: what befalls one of them should not show in its ends.
Their middle is 0, so that the others stay where they are when one changes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from matrix.statistics.arrays import ArrayFields, Flags, Floats, Integers, each
from matrix.statistics.estimates import two_way
from matrix.statistics.samples.pooling import Numbering
from matrix.statistics.samples.reduce import log_sums, mean_log
from matrix.statistics.samples.run import Run, by_day

# An endpoint has an effect on a day on which so many of its links were tested.
FEWEST_LINKS = 3
# Links further from what their ends explain than this many times what is usual are left out.
FURTHEST = 2.5


@dataclass(frozen=True)
class DailyEffects(ArrayFields):
    """Effects in natural logs, NaN for none; ``days`` are the days (since 1970), ascending.

    ``source`` and ``destination`` have shape (endpoints, days), ``grid`` (days): the level of all.
    ``tests`` counts the successful results of each endpoint, at first as a source, then as a
    destination, shape (2, endpoints, days).
    """

    days: Integers
    grid: Floats
    source: Floats
    destination: Floats
    tests: Integers

    @classmethod
    def of(cls, runs: Sequence[Run], numbering: Numbering, left_out: Sequence[int] = ()) -> Self:
        """Reduce runs, in the order of time, each of a day or a part of one.

        ``left_out`` are links, as keys have them, that tell nothing of their ends.
        """
        means = mean_log(log_sums(runs, numbering))
        means[numbering.numbers(np.array(left_out, dtype=np.uint32))] = np.nan

        days, places = by_day(runs), len(numbering.ids)
        if days:
            parts = each(lambda day_and_runs: cls.of_day(*day_and_runs, means, numbering), days)
            return cls.joined(parts, partial(np.stack, axis=-1))
        source, destination = np.empty((2, places, 0))
        tests = np.empty((2, places, 0), dtype=np.int64)
        return cls(np.empty(0, dtype=np.int64), np.empty(0), source, destination, tests)

    @classmethod
    def of_day(cls, day: int, runs: Sequence[Run], means: Floats, numbering: Numbering) -> Self:
        """Return those of one day, without its dimension."""
        sums = log_sums(runs, numbering)
        logs = without_outliers(numbering.square(mean_log(sums) - means))
        count = numbering.square(sums[1])
        tested = ~np.isnan(logs)
        fit = two_way.fit(logs, how="means")
        source = _clear(fit.row, fit.row_component, tested.sum(axis=1))
        destination = _clear(fit.column, fit.column_component, tested.sum(axis=0))
        middles = [middle_of(source), middle_of(destination)]
        grid = fit.level + sum(middles) if tested.sum() >= FEWEST_LINKS**2 else np.nan
        return cls(
            np.array(day),
            np.array(grid),
            source - middles[0],
            destination - middles[1],
            np.stack([count.sum(axis=1), count.sum(axis=0)]),
        )

    def grid_of(self, kind: str) -> Floats:
        """Return the level of the grid on every day, to take off links; 0 where it is unknown."""
        levels = np.zeros(int(self.days[-1] - self.days[0]) + 1 if self.days.size else 0)
        if kind != "grid":
            levels[self.days - self.days[0]] = np.nan_to_num(self.grid)
        return levels

    def sequences(self) -> Iterator[tuple[str, int, Flags, Floats]]:
        """Yield what has effects: its kind, its place among endpoints, on which days, and which."""
        for kind, effects in (
            ("grid", self.grid[None]),
            ("source", self.source),
            ("destination", self.destination),
        ):
            for place, values in enumerate(effects):
                there = ~np.isnan(values)
                yield kind, place, there, values[there]


def without_outliers(logs: Floats) -> Floats:
    """Leave out links that are far from what their ends explain of them.

    A median polish says what that is, as a few links do not move it; but as it takes a change of
    an endpoint for a smaller one, where there are few, it does not give the effects.
    """
    fit = two_way.fit(logs, how="polish")
    return np.where(np.abs(fit.rest) > FURTHEST * fit.sigma, np.nan, logs)


def middle_of(effects: Floats) -> float:
    """Return the middle effect: an endpoint that changes leaves it where it is."""
    there = effects[~np.isnan(effects)]
    return float(np.median(there)) if there.size else 0.0


def _clear(effects: Floats, component: Integers, links: Integers) -> Floats:
    """Leave out what few links tell, or what was not tested together with most others."""
    return np.where((component == 0) & (links >= FEWEST_LINKS), effects, np.nan)
