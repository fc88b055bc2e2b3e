"""The interval of a median: by scipy's binomial distribution, and as often right as it says."""

import math

import numpy as np
import pytest
from scipy import stats

from matrix.statistics.samples.quantiles import MANY_VALUES, median_interval, values_left_out


@pytest.mark.parametrize("count", [*range(1, 60), 100, 342, MANY_VALUES, MANY_VALUES + 1, 5000])
def test_the_bounds_are_those_of_the_binomial_distribution(count: int) -> None:
    left_out = values_left_out(count)
    # As far in as 95 % allow, and no further.
    inside = 1 - 2 * stats.binom.cdf(np.array([left_out - 1, left_out]), count, 0.5)
    if count > MANY_VALUES:
        assert inside == pytest.approx(0.95, abs=0.01)
    else:
        assert (inside[0] >= 0.95, inside[1] >= 0.95) == (True, False)


def test_few_values_have_no_interval() -> None:
    for count in range(6):
        assert all(map(math.isnan, median_interval([1.0] * count)))
    assert median_interval([6.0, 1.0, 5.0, 2.0, 4.0, 3.0]) == (1.0, 6.0)
    assert median_interval(np.arange(10.0)) == (1.0, 8.0)


def test_it_holds_the_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(31)
    bounds = np.array([median_interval(rng.lognormal(0, 1, 18)) for _ in range(4000)])
    assert np.mean((bounds[:, 0] <= 1) & (bounds[:, 1] >= 1)) >= 0.95
