"""The rank test of Mann and Whitney for many pairs of samples at once. Pure numpy.

How probable the ranks of one sample are, to either side, where both are drawn alike. Exact where
that is cheap: without equal rates as long as there are at most MOST_ARRANGEMENTS orders of the two
samples, with equal ones up to MOST_TIED rates. Else by the normal distribution with corrections
for ties and continuity. Equal rates share the mean of their ranks.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Floats, Integers

# Up to 21 against 21, or 3 against 1,300. The counts of their rank sums are whole in float64.
MOST_ARRANGEMENTS = 10**12
# Longer tables cost more memory than they are worth.
LONGEST_TABLE = 4000
# A pattern of ties has a table of its own: there are 2 ** (rates - 1) of them.
MOST_TIED = 12
# The tails of the normal distribution are kept at so many places for each 1, up to the last.
PLACES, LAST_PLACE = 1000, 25.75


def p_values(
    wins: Floats, counts: Integers, others: Integers, ties: Floats, patterns: Integers
) -> Floats:
    """Return the two-sided p of each pair of samples; 1-d arrays, none of the samples is empty.

    ``wins`` is how often a rate of the first sample is above one of the second, an equal one
    counts half; ``ties`` the sum of t^3 - t over groups of t equal rates of both, ``patterns`` for
    tied pairs of up to MOST_TIED rates what tie_patterns() has, any number for others.
    """
    tied = ties > 0
    result = _normal(wins, counts, others, ties)
    small = tied & (counts + others <= MOST_TIED)
    _put(result, small, _of_tables(wins, counts, others, small, patterns))
    exact = ~tied & _has_table(counts, others)
    _put(result, exact, _of_tables(wins, counts, others, exact, np.zeros_like(patterns)))
    return result


def least_p(counts: Integers, others: Integers) -> Floats:
    """Return the p of pairs of samples of so many rates where all of one are above the other's."""
    both = (counts + others).max(initial=0)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, both + 1)))])
    least: Floats = 2 * np.exp(logs[counts] + logs[others] - logs[counts + others])
    return np.minimum(least, 1.0)


def _put(result: Floats, where: Flags, values: Floats) -> None:
    result[where] = values


def _has_table(counts: Integers, others: Integers) -> Flags:
    logs = np.cumsum(np.log(np.maximum(np.arange((counts + others).max(initial=0) + 1), 1)))
    arrangements = logs[counts + others] - logs[counts] - logs[others]
    short: Flags = (arrangements <= math.log(MOST_ARRANGEMENTS)) & (
        counts * others <= LONGEST_TABLE
    )
    return short


def _normal(wins: Floats, counts: Integers, others: Integers, ties: Floats) -> Floats:
    product, both = (counts * others).astype(np.float64), (counts + others).astype(np.float64)
    variance = product / 12 * (both + 1 - ties / np.maximum(both * (both - 1), 1))
    away = np.maximum(np.abs(wins - product / 2) - 0.5, 0)
    # All rates are equal where there is no variance.
    score = np.divide(away, np.sqrt(2 * variance), out=np.zeros_like(away), where=variance > 0)
    # np.interp would look for each place, at six times the cost.
    tails, place = _normal_tails(), np.minimum(score, LAST_PLACE) * PLACES
    below = place.astype(np.int64)
    low = tails.take(below)
    return np.exp(low + (tails.take(below + 1) - low) * (place - below))


@lru_cache(maxsize=1)
def _normal_tails() -> Floats:
    """Return the logarithms of erfc at each of the places, as numpy has no erfc.

    Between them to six digits, and beyond the last it is below 1e-290.
    """
    places = np.arange(LAST_PLACE * PLACES + 2) / PLACES
    return np.log([math.erfc(place) for place in places.tolist()])


def _of_tables(
    wins: Floats, counts: Integers, others: Integers, where: Flags, patterns: Integers
) -> Floats:
    """Look up the exact p of some pairs: those that share a table together."""
    kind = np.stack([counts[where], others[where], patterns[where]])
    if not kind.size:
        return np.empty(0)
    doubled = np.rint(2 * wins[where]).astype(np.int64)
    place = np.lexsort(kind)
    kinds = kind[:, place]
    first = np.flatnonzero(np.append(True, (np.diff(kinds) != 0).any(axis=0)))
    result = np.empty(len(place))
    for rows, (count, other, pattern) in zip(
        np.split(place, first[1:]), kinds[:, first].T.tolist(), strict=True
    ):
        if pattern:
            result[rows] = _of_ties(count, other, pattern)[doubled[rows]]
        else:
            result[rows] = _without_ties(min(count, other), max(count, other))[doubled[rows] // 2]
    return result


@lru_cache(maxsize=2048)
def _without_ties(few: int, many: int) -> Floats:
    """Return the two-sided p by the number of wins, 0 to few * many.

    How many orders have so many wins are the coefficients of a Gaussian binomial: a product of
    (1 - q ** (many + i)) / (1 - q ** i) for i up to ``few``.
    """
    length = few * many + 1
    arrangements = np.zeros(length)
    arrangements[0] = 1
    for step in range(1, few + 1):
        above = many + step
        arrangements[above:] -= arrangements[:-above].copy() if above < length else 0
        wide = np.zeros(-(-length // step) * step)
        wide[:length] = arrangements
        arrangements = wide.reshape(-1, step).cumsum(axis=0).ravel()[:length]
    return _two_sided(arrangements)


@lru_cache(maxsize=8192)
def _of_ties(count: int, other: int, pattern: int) -> Floats:
    """Return the two-sided p by twice the number of wins, for a pattern of tie_patterns()."""
    rates = count + other
    starts = np.array([True, *(pattern >> at & 1 for at in range(rates - 1))])
    group = np.cumsum(starts) - 1
    # Twice the rank that each has among both samples, from 2 on.
    position = np.arange(1, rates + 1, dtype=np.float64)
    doubled = (2 * np.bincount(group, position) / np.bincount(group))[group].astype(np.int64)
    arrangements = np.zeros((count + 1, rates * (rates + 1) + 1))
    arrangements[0, 0] = 1
    for rank in doubled.tolist():
        arrangements[1:, rank:] += arrangements[:-1, :-rank].copy()
    least = count * (count + 1)
    return _two_sided(arrangements[count, least : least + 2 * count * other + 1])


def _two_sided(arrangements: Floats) -> Floats:
    below = np.cumsum(arrangements)
    above = np.cumsum(arrangements[::-1])[::-1]
    p: Floats = np.minimum(2 * np.minimum(below, above) / below[-1], 1)
    return p


def tie_patterns(starts: NDArray[np.bool_]) -> Integers:
    """Return a number for the pattern of ties in each row of at most MOST_TIED rates.

    ``starts`` says of each rate but the first, in ascending order, whether it is above that
    before it. Bit MOST_TIED is set in all: none is 0, which stands for no ties.
    """
    powers = 1 << np.arange(starts.shape[1], dtype=np.int64)
    return np.asarray((starts * powers).sum(axis=1) + (1 << MOST_TIED))
