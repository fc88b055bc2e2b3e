"""A running median, which shows a change where it happened. Pure numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from matrix.statistics.arrays import Floats, Integers

# A line of more places is no clearer.
MOST_PLACES = 1500
# The median of fewer follows each single test; one of more hides a change of a few hours.
FEWEST_AROUND = 5
PART_AROUND = 200
# A time this many times as long as is common between two tests is a gap in the line.
GAP = 6


@dataclass(frozen=True)
class RunningMedian:
    """``values`` at moments (``started``, ascending); NaN where the line has a gap.

    Each is the median of ``around`` samples, the one at its moment in their middle, fewer at
    both ends of a stretch without gaps: the last is that of the newest (around + 1) / 2.
    """

    started: Integers
    values: Floats
    around: int


def running_median(started: Integers, values: Floats) -> RunningMedian:
    """Draw a line through samples in the order of time; none for fewer than two in a stretch.

    As a median keeps the edge of a step, the line changes at the sample at which they did.
    """
    around = max(FEWEST_AROUND, len(values) // PART_AROUND) | 1
    every = -(-len(values) // MOST_PLACES) or 1
    moments: list[Integers] = []
    medians: list[Floats] = []
    for stretch in stretches(started):
        places = np.unique(np.append(np.arange(0, len(stretch), every), len(stretch) - 1))
        if len(stretch) > 1:
            moments += [started[stretch][places], started[stretch][-1:]]
            medians += [medians_at(values[stretch], around, places), np.array([np.nan])]
    if not moments:
        return RunningMedian(started[:0], values[:0], around)
    return RunningMedian(np.concatenate(moments), np.concatenate(medians), around)


def stretches(started: Integers) -> list[Integers]:
    """Return the places of samples that follow each other without a gap."""
    steps = np.diff(started)
    gaps = steps > GAP * np.median(steps) if steps.size else steps
    return np.split(np.arange(len(started)), np.flatnonzero(gaps) + 1)


def medians_at(values: Floats, around: int, places: Integers) -> Floats:
    """Return the median of the samples around each of some places."""
    beyond = np.full(around // 2, np.nan)
    padded = np.concatenate([beyond, values, beyond])
    medians: Floats = np.nanmedian(sliding_window_view(padded, around)[places], axis=1)
    return medians
