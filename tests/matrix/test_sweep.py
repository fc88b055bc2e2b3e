"""What a sweep over a variable shows, against scipy."""

import numpy as np
import pytest
from scipy import stats

from matrix.statistics.transfers.evidence import fit_slope, least_as_good

STREAMS = np.repeat([1.0, 2, 4, 8, 16], 3)


def rates(exponent: float, noise: float = 1.05, seed: int = 1) -> np.ndarray:
    scatter = np.random.default_rng(seed).normal(0, np.log(noise), len(STREAMS))
    return 20 * STREAMS**exponent * np.exp(scatter)


def test_a_slope_is_that_of_a_regression_of_logarithms():
    values = rates(0.6, 1.5)
    expected = stats.linregress(np.log(STREAMS), np.log(values))
    reach = stats.t.ppf(0.975, len(STREAMS) - 2) * expected.stderr
    found = fit_slope(STREAMS, values)
    assert (found.exponent, found.low, found.high) == pytest.approx(
        (expected.slope, expected.slope - reach, expected.slope + reach)
    )
    assert found.factor == pytest.approx(16**expected.slope)
    assert found.interval == pytest.approx((16**found.low, 16**found.high))


@pytest.mark.parametrize(
    ("exponent", "noise", "trend"),
    [
        (0, 1.05, "flat"),
        (1, 1.05, "proportional"),
        (0.4, 1.05, "rising"),
        (-0.3, 1.05, "falling"),
        (0, 3, "unclear"),
    ],
)
def test_a_trend_is_what_the_interval_bears_out(exponent, noise, trend):
    assert fit_slope(STREAMS, rates(exponent, noise)).trend == trend


def test_the_interval_holds_the_true_exponent_in_95_of_100_sweeps():
    held = sum(
        found.low <= 0.5 <= found.high
        for seed in range(1000)
        if (found := fit_slope(STREAMS, rates(0.5, 1.5, seed)))
    )
    assert 930 <= held <= 970


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_tests_have_no_slope(count):
    assert fit_slope(STREAMS[-count:] if count else STREAMS[:0], np.ones(count)) is None


def test_tests_of_one_value_have_no_slope():
    assert fit_slope(np.full(9, 4.0), np.ones(9)) is None


def test_the_least_value_that_is_as_good_as_the_best():
    nan = float("nan")
    assert least_as_good([1, 2, 4, 8], [10, 19, 38, 40]) == 4
    assert least_as_good([1, 2, 4], [nan, 30, 31]) == 2
    assert least_as_good([1, 2], [nan, nan]) is None
