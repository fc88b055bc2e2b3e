"""When the level of a sequence jumped: binary segmentation by least squares. Pure numpy.

Values are natural logs of rates in the order of time, of many sequences at once. What lies far off
the running median is drawn in, so that a single outlier is no change. Then the best split of each
stretch is looked for, in the whole of it and in overlapping parts of it (a dip of a few days hides
in the whole), and taken if noise alone would rarely give one as good; and so on in both halves.
At the end each change is dated anew between its neighbours, and dropped if the noise is such that
neighbouring tests resemble each other and it is no longer beyond that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from matrix.statistics.arrays import Floats, Integers, Stretches, steps, sums_of
from matrix.statistics.levels.change_noise import chance_of, critical, likeness, likest_by_chance
from matrix.statistics.samples.quantiles import quantiles_by

# A level has at least so many values: fewer are a moment, not a level.
SHORTEST_LEVEL = 5
# How often noise alone gives a sequence a change, over all that is looked for in it.
CHANCE_OF_CHANGE = 0.01
# Values further from the running median than this many times the noise are drawn in to there.
FURTHEST = 3.0
AROUND = np.arange(-2, 3)
# Half of the differences of neighbours are below this many times the noise, if it is normal.
HALF_OF_DIFFERENCES = 0.6745 * np.sqrt(2)
# Rates that agree to a part in a hundred are not taken for more exact than that.
LEAST_NOISE = 0.01
# A position is within the interval of 95 % as long as its split is not worse by more than this, in
# units of the noise: 1 - (1 - exp(-x / 2))² = 0.05 (Hansen 2000).
WORSE = 7.35
# The normal quantile of an interval of 95 %.
NORMAL = 1.959964


class Splits(NamedTuple):
    """The best split of each stretch: its first place behind it, and how much it explains.

    ``gain`` is by how much the sum of squares is less with two levels than with one; -1 where a
    stretch is too short for two.
    """

    at: Integers
    gain: Floats


@dataclass(frozen=True)
class ChangePoints:
    """Changes of level, in the order of sequence and time; arrays of one length.

    ``at`` is the place of the first value of the new level, among all values; the level before it
    begins at ``first``, that behind it ends before ``past``. It may be any place from ``earliest``
    to ``latest`` (95 %). ``level`` is the one before, ``shift`` what the new one is more, with its
    standard ``error``, all without outliers. ``chance`` is how often noise alone gives a sequence
    of this length a change as clear.
    """

    sequence: Integers
    at: Integers
    first: Integers
    past: Integers
    earliest: Integers
    latest: Integers
    level: Floats
    shift: Floats
    error: Floats
    chance: Floats

    def since(self, starts: Integers) -> ChangePoints:
        """Return the same with places that count from the start of each sequence."""
        start = starts[self.sequence]
        names = ("at", "first", "past", "earliest", "latest")
        return replace(self, **{name: getattr(self, name) - start for name in names})

    @property
    def low(self) -> Floats:
        low: Floats = self.shift - NORMAL * self.error
        return low

    @property
    def high(self) -> Floats:
        high: Floats = self.shift + NORMAL * self.error
        return high


@dataclass(frozen=True)
class Smooth:
    """Sequences without outliers, each about its ``centre``, with its ``noise``.

    ``sums`` are those of all values before each place.
    """

    values: Floats
    sums: Floats
    stretches: Stretches
    centre: Floats
    noise: Floats

    @classmethod
    def of(cls, values: Floats, stretches: Stretches) -> Self:
        """Draw in what lies far off the running median, and measure the noise that is left."""
        places, number = stretches.places(), stretches.numbers()
        values = values[places]
        counts = stretches.counts
        tight = Stretches(np.cumsum(counts) - counts, counts)
        first, last = tight.starts[number], (tight.starts + counts - 1)[number]
        window = np.arange(len(values))[:, None] + AROUND
        middle = np.sort(values[np.clip(window, first[:, None], last[:, None])], axis=1)[:, 2]
        bound = FURTHEST * typical(np.abs(steps(values, tight)), tight)[number]
        values = middle + np.clip(values - middle, -bound, bound)
        squares = sums_of(steps(values, tight) ** 2, tight) / (2 * np.maximum(counts - 1, 1))
        centre = sums_of(values, tight) / np.maximum(counts, 1)
        centred = values - centre[number]
        sums = np.concatenate([[0.0], np.cumsum(centred)])
        return cls(centred, sums, tight, centre, np.maximum(np.sqrt(squares), LEAST_NOISE))

    def splits(self, stretches: Stretches) -> Splits:
        """Return the best split of each of these stretches."""
        room = Stretches(
            stretches.starts + SHORTEST_LEVEL,
            np.maximum(stretches.counts - 2 * SHORTEST_LEVEL + 1, 0),
        )
        best, gain = stretches.starts.copy(), np.full(len(stretches.counts), -1.0)
        wide = np.flatnonzero(room.counts)
        if wide.size:
            room = room.taken(wide)
            places, number = room.places(), room.numbers()
            gains = self.gains(places, stretches.taken(wide).taken(number))
            most = np.maximum.reduceat(gains, np.cumsum(room.counts) - room.counts)
            hits = np.flatnonzero(gains == most[number])
            _, first = np.unique(number[hits], return_index=True)
            best[wide], gain[wide] = places[hits[first]], most
        return Splits(best, gain)

    def gains(self, at: Integers, stretches: Stretches) -> Floats:
        """Return how much each split explains of its stretch."""
        start, count = self.sums[stretches.starts], stretches.counts
        before = at - stretches.starts
        total = self.sums[stretches.starts + count] - start
        ahead = self.sums[at] - start - before / count * total
        gains: Floats = ahead * ahead * count / (before * (count - before))
        return gains


def typical(distances: Floats, stretches: Stretches) -> Floats:
    """Return the noise of each stretch by the median distance of neighbours."""
    (middle,) = quantiles_by(stretches.numbers(), distances, len(stretches.counts), [0.5])
    return np.asarray(np.maximum(np.nan_to_num(middle) / HALF_OF_DIFFERENCES, LEAST_NOISE))


def change_points(
    values: Floats, starts: Integers, counts: Integers, chance: float = CHANCE_OF_CHANGE
) -> ChangePoints:
    """Find the changes of level of sequences; ``chance`` is how often one has a false one."""
    smooth = Smooth.of(values, Stretches(starts, counts))
    levels = Levels.grown(smooth, chance)
    offset = starts - smooth.stretches.starts
    return levels.dated().pruned(chance).changes(offset)


def dated(values: Floats) -> tuple[int, int, int] | None:
    """Return where a sequence that has a change has it, and its earliest and latest place (95 %).

    None for one that is too short.
    """
    if len(values) < 2 * SHORTEST_LEVEL:
        return None
    smooth = Smooth.of(values, Stretches(np.array([0]), np.array([len(values)])))
    levels = Levels(smooth, np.array([0]), np.array([len(values) // 2])).dated()
    earliest, latest = levels.interval()
    return int(levels.at[0]), int(earliest[0]), int(latest[0])


@dataclass(frozen=True)
class Levels:
    """Sequences cut at changes: ``at`` of each change, in their order, and whose it is."""

    smooth: Smooth
    sequence: Integers
    at: Integers

    @classmethod
    def grown(cls, smooth: Smooth, chance: float) -> Self:
        """Split as long as a split is beyond chance."""
        owner, stretches = np.arange(len(smooth.noise)), smooth.stretches
        bound = (critical(stretches.counts, chance) * smooth.noise) ** 2
        sequence: list[Integers] = []
        at: list[Integers] = []
        while len(owner):
            splits = best_of_parts(smooth, stretches)
            clear = np.flatnonzero(splits.gain > bound[owner])
            owner, cut = owner[clear], splits.at[clear]
            starts, counts = stretches.taken(clear)
            sequence.append(owner)
            at.append(cut)
            stretches = Stretches(
                np.concatenate([starts, cut]),
                np.concatenate([cut - starts, starts + counts - cut]),
            )
            owner = np.concatenate([owner, owner])
        every = np.concatenate(at) if at else np.empty(0, np.int64)
        order = np.argsort(every)
        return cls(smooth, np.concatenate([*sequence, owner[:0]])[order], every[order])

    def around(self) -> Stretches:
        """Return both levels of each change, as one stretch."""
        whole = self.smooth.stretches.taken(self.sequence)
        before, after = np.roll(self.at, 1), np.roll(self.at, -1)
        same = np.flatnonzero(np.diff(self.sequence) == 0)
        starts, ends = whole.starts.copy(), whole.starts + whole.counts
        starts[same + 1], ends[same] = before[same + 1], after[same]
        return Stretches(starts, ends - starts)

    def dated(self) -> Levels:
        """Put each change where it splits both of its levels best: every other one at a time.

        Two neighbours that move at once might pass each other.
        """
        _, first, counts = np.unique(self.sequence, return_index=True, return_counts=True)
        levels, rank = self, np.arange(len(self.sequence)) - np.repeat(first, counts)
        for turn in (0, 1):
            moved = np.where(rank % 2 == turn, self.smooth.splits(levels.around()).at, levels.at)
            levels = Levels(self.smooth, self.sequence, moved)
        return levels

    def pruned(self, chance: float) -> Levels:
        """Drop the least clear change of a sequence until all of its changes are beyond chance."""
        levels = self
        while len(levels.at):
            chances = levels.chances()
            least = np.full(len(self.smooth.noise), -1.0)
            np.maximum.at(least, levels.sequence, chances)
            kept = (chances <= chance) | (chances < least[levels.sequence])
            if kept.all():
                break
            levels = Levels(self.smooth, levels.sequence[kept], levels.at[kept]).dated()
        return levels

    def spread(self) -> Floats:
        """Return the noise around each change, as if neighbours did not resemble each other.

        Where they do, a mean tells less than its number of values says: the noise is taken for
        as much larger. Much noise of that kind is split into many levels, and then shows none of
        it: only a change so clear that it would be taken for likeness is left out of that.
        """
        smooth, counts = self.smooth, self.smooth.stretches.counts
        mistakable = counts * likest_by_chance(counts) * smooth.noise**2
        clear = self.gains() > mistakable[self.sequence]
        coarse = Levels(smooth, self.sequence[clear], self.at[clear])
        factor = likeness(coarse.residuals(), smooth.stretches)
        return np.asarray((smooth.noise * np.sqrt(factor))[self.sequence])

    def residuals(self) -> Floats:
        """Return what is left of all values without the mean of their level."""
        smooth = self.smooth
        begins = np.union1d(smooth.stretches.starts[smooth.stretches.counts > 0], self.at)
        cuts = np.append(begins, len(smooth.values))
        counts = np.diff(cuts)
        means = np.diff(smooth.sums[cuts]) / counts
        residuals: Floats = smooth.values - np.repeat(means, counts)
        return residuals

    def gains(self) -> Floats:
        return self.smooth.gains(self.at, self.around())

    def chances(self) -> Floats:
        clearness = np.sqrt(self.gains()) / self.spread()
        return chance_of(clearness, self.smooth.stretches.counts[self.sequence])

    def interval(self) -> tuple[Integers, Integers]:
        """Return the first and the last place where each change may be (95 %)."""
        around = self.around()
        room = Stretches(around.starts + 1, around.counts - 1)
        places, number = room.places(), room.numbers()
        gains = self.smooth.gains(places, around.taken(number))
        least = self.gains() - WORSE * self.spread() ** 2
        fits = np.flatnonzero(gains >= least[number])
        _, first = np.unique(number[fits], return_index=True)
        last = np.append(first[1:], len(fits)) - 1
        return places[fits[first]], places[fits[last]]

    def changes(self, offset: Integers) -> ChangePoints:
        """Return all about them, by places that are ``offset`` further on for each sequence."""
        around, moved, sums = self.around(), offset[self.sequence], self.smooth.sums
        before, past = self.at - around.starts, around.starts + around.counts
        after = past - self.at
        level_before = (sums[self.at] - sums[around.starts]) / before
        level_after = (sums[past] - sums[self.at]) / after
        earliest, latest = self.interval() if len(self.at) else (self.at, self.at)
        return ChangePoints(
            sequence=self.sequence,
            at=self.at + moved,
            first=around.starts + moved,
            past=past + moved,
            earliest=earliest + moved,
            latest=latest + moved,
            level=level_before + self.smooth.centre[self.sequence],
            shift=level_after - level_before,
            error=self.spread() * np.sqrt(1 / before + 1 / after),
            chance=self.chances(),
        )


def best_of_parts(smooth: Smooth, stretches: Stretches) -> Splits:
    """Return the best split of each stretch: whole, or in its halves, quarters... that overlap."""
    best = smooth.splits(stretches)
    length = stretches.counts.max(initial=0)
    share = 2
    while length >= 2 * SHORTEST_LEVEL * share:
        part = stretches.counts // share
        wide = np.flatnonzero(part >= 2 * SHORTEST_LEVEL)
        for place in range(2 * share - 1):
            start = stretches.starts[wide] + place * (stretches.counts[wide] - part[wide]) // (
                2 * share - 2
            )
            splits = smooth.splits(Stretches(start, part[wide]))
            better = splits.gain > best.gain[wide]
            best.at[wide[better]] = splits.at[better]
            best.gain[wide[better]] = splits.gain[better]
        share *= 2
    return best
