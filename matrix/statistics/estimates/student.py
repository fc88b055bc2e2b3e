"""Student's t distribution: tails and quantiles of arrays, which numpy has not. Pure numpy.

Within 1e-9 of what scipy.stats.t has for tails, and 1e-7 for quantiles, in parts of the value.
"""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from matrix.statistics.arrays import Floats

# Of the continued fraction; it converges in a few tens of steps for every t and dof.
STEPS = 200
CLOSE_ENOUGH = 1e-14
TINY = 1e-300
NEWTON_STEPS = 30
FURTHEST = 1e150
# The normal number stands for t from so many degrees of freedom on.
FEW_DOF = 8
# The tails of the normal distribution are kept at so many places for each 1, up to the last.
PLACES, LAST_PLACE = 1000, 25.75


def survival(t: ArrayLike, dof: ArrayLike) -> Floats:
    """Return P(T > t) for each t and its degrees of freedom (above 0); NaN for NaN."""
    values, degrees = np.broadcast_arrays(np.asarray(t, float), np.asarray(dof, float))
    # The square of what is further out is infinite, of which nothing is a share.
    square = np.square(np.clip(values, -FURTHEST, FURTHEST))
    whole = degrees + square
    half, share, rest = degrees / 2, degrees / whole, square / whole
    # The regularised incomplete beta function I_share(half, 1/2). 1 less a share near 1 would have
    # no digits left.
    flipped = share > (half + 1) / (half + 2.5)
    first, second = np.where(flipped, 0.5, half), np.where(flipped, half, 0.5)
    x = np.where(flipped, rest, share)
    with np.errstate(divide="ignore"):
        power = half * np.log(share) + 0.5 * np.log(rest)
    scale = _log_gamma(half + 0.5) - _log_gamma(half) - math.lgamma(0.5)
    part = np.exp(power + scale) * _fraction(first, second, x) / first
    tail = 0.5 * np.where(flipped, 1 - part, part)
    tail = np.where(np.isinf(values), 0.0, tail)
    return np.where(values > 0, tail, 1 - tail) * np.where(np.isnan(values), np.nan, 1)


def two_sided(t: ArrayLike, dof: ArrayLike) -> Floats:
    """Return how probable a value as far from 0 as t is, to either side."""
    return 2 * survival(np.abs(np.asarray(t, float)), dof)


def two_sided_of_many(t: Floats, dof: Floats) -> Floats:
    """Return what two_sided() does, at a twentieth of the time: within 0.3 % of it, and within
    0.001 % where that is above 0.001.

    ``t`` has one dimension and no NaN; ``dof`` is as long. By the normal number that is as probable
    as t (Hill 1970), but for few degrees of freedom.
    """
    wide = dof - 0.5
    b = 48 * np.square(wide)
    z2 = wide * np.log1p(np.square(np.minimum(np.abs(t), FURTHEST)) / dof)
    z = np.sqrt(z2)
    above = (((4 * z2 + 33) * z2 + 240) * z2 + 855) * z
    z = z + (z2 + 3) * z / b - above / (10 * b * (b + 0.8 * np.square(z2) + 100))
    # np.interp would look for each place, at six times the cost.
    place = np.minimum(z * math.sqrt(0.5), LAST_PLACE) * PLACES
    below = place.astype(np.int64)
    tails = _normal_tails()
    low = tails.take(below)
    p = np.asarray(np.exp(low + (tails.take(below + 1) - low) * (place - below)))
    few = np.flatnonzero(dof < FEW_DOF)
    p[few] = two_sided(t[few], dof[few])
    return p


@lru_cache(maxsize=1)
def _normal_tails() -> Floats:
    """Return the logarithms of erfc at each place, as numpy has no erfc."""
    places = np.arange(LAST_PLACE * PLACES + 2) / PLACES
    return np.log([math.erfc(place) for place in places.tolist()])


def quantile(probability: ArrayLike, dof: ArrayLike) -> Floats:
    """Return the value below which each share of the distribution lies; above 0.5 and below 1."""
    shares = np.asarray(probability, dtype=np.float64)
    if not np.all((shares > 0.5) & (shares < 1)):
        raise ValueError(f"a probability above 0.5 and below 1, not {probability!r}")
    normal = [NormalDist().inv_cdf(share) for share in shares.ravel()]
    degrees, tail, z = np.broadcast_arrays(
        np.asarray(dof, dtype=np.float64), 1 - shares, np.reshape(normal, shares.shape)
    )
    # Newton from below climbs straight to it, as the tail is convex there: in log(tail) few steps.
    value = z * np.sqrt(degrees / np.maximum(degrees - 1, 0.5))
    # Of the density.
    scale = _log_gamma((degrees + 1) / 2) - _log_gamma(degrees / 2) - np.log(degrees * math.pi) / 2
    for _ in range(NEWTON_STEPS):
        here = survival(value, degrees)
        part = (degrees + 1) / 2 * np.log1p(np.square(value) / degrees)
        step = here * np.log(here / tail) / np.exp(scale - part)
        value = np.maximum(value + step, z / 2)
        if not np.any(np.abs(step) > 1e-10 * value):
            break
    return np.asarray(value)


@lru_cache(maxsize=4096)
def one_quantile(probability: float, dof: float) -> float:
    """Return what quantile() does of one: many links have as many results."""
    return float(quantile(probability, dof))


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = np.ones_like(x), _nonzero(1 - (a + b) * x / (a + 1))
    d = 1 / d
    result = d
    for m in range(1, STEPS):
        for top in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _nonzero(1 + top * d)
            c = _nonzero(1 + top / c)
            result = result * (c * d)
        if not np.any(np.abs(c * d - 1) > CLOSE_ENOUGH):
            break
    return result


def _nonzero(values: Floats) -> Floats:
    return np.where(np.abs(values) < TINY, TINY, values)


def _log_gamma(x: Floats) -> Floats:
    """Return log(gamma(x)) for x > 0: Stirling's series, 8 steps up from x."""
    shift = np.zeros_like(x)
    for step in range(8):
        shift = shift + np.log(x + step)
    y = x + 8
    inverse = 1 / np.square(y)
    series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse / 1680))) / y
    return np.asarray((y - 0.5) * np.log(y) - y + math.log(2 * math.pi) / 2 + series - shift)
