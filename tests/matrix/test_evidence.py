"""What tests of a link show: sweeps over a variable, concurrent tests, courses; against scipy."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats

from matrix.statistics.arrays import Floats
from matrix.statistics.transfers.evidence import (
    Slowdown,
    fit_slope,
    least_as_good,
    medians_of,
    slowdown,
)
from matrix.statistics.transfers.rate_profile import (
    FEWEST_STRETCHES,
    SHAPES,
    RateProfile,
    weighted_quantiles,
)

STREAMS = np.repeat([1.0, 2, 4, 8, 16], 3)


def rates(exponent: float, noise: float = 1.05, seed: int = 1) -> np.ndarray:
    scatter = np.random.default_rng(seed).normal(0, np.log(noise), len(STREAMS))
    return 20 * STREAMS**exponent * np.exp(scatter)


def test_medians_of_rows_are_those_of_numpy_row_by_row():
    values = np.random.default_rng(4).lognormal(size=(60, 9))
    values[values < 0.6], values[values > 2] = 0, np.nan
    values[[7, 8]] = [[0.0], [np.nan]]
    expected = [np.median(row[row > 0]) if (row > 0).any() else np.nan for row in values]
    assert medians_of(values).tolist() == pytest.approx(expected, rel=1e-15, nan_ok=True)
    assert np.isnan(medians_of(np.empty((2, 0)))).all()


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


def test_a_trend_is_what_the_interval_bears_out():
    trends = {0: "flat", 1: "proportional", 0.4: "rising", -0.3: "falling"}
    assert {exponent: fit_slope(STREAMS, rates(exponent)).trend for exponent in trends} == trends
    assert fit_slope(STREAMS, rates(0, noise=3)).trend == "unclear"


@pytest.mark.long
def test_the_interval_holds_the_true_exponent_in_95_of_100_sweeps():
    held = sum(
        found.low <= 0.5 <= found.high
        for seed in range(1000)
        if (found := fit_slope(STREAMS, rates(0.5, 1.5, seed)))
    )
    assert 930 <= held <= 970


def test_too_few_tests_and_those_of_one_value_have_no_slope():
    for count in (0, 1, 3):
        assert fit_slope(STREAMS[len(STREAMS) - count :], np.ones(count)) is None
    assert fit_slope(np.full(9, 4.0), np.ones(9)) is None


def test_the_least_value_that_is_as_good_as_the_best():
    nan = float("nan")
    assert least_as_good([1, 2, 4, 8], [10, 19, 38, 40]) == 4
    assert least_as_good([1, 2, 4], [nan, 30, 31]) == 2
    assert least_as_good([1, 2], [nan, nan]) is None


WITHOUT = np.array([22.9, 23.8, 20.5])
CONCURRENT = np.array([2.6, 2.7, 2.77, 2.85, 2.95])


def test_what_five_tests_at_once_do_to_a_link_is_told_with_both_medians():
    assert slowdown(WITHOUT, CONCURRENT) == Slowdown(22.9, 3, 2.77, 5)
    assert slowdown(WITHOUT, CONCURRENT[:3]) == Slowdown(22.9, 3, 2.7, 3)


@pytest.mark.parametrize(
    ("without", "concurrent"),
    [
        (WITHOUT[:2], CONCURRENT),
        (WITHOUT, CONCURRENT[:2]),
        (WITHOUT, np.array([])),
        (CONCURRENT, WITHOUT),
        (WITHOUT, WITHOUT),
        # Each is slower, but not by more than they are apart among themselves.
        (np.array([20.0, 30.0, 40.0]), np.array([17.0, 18.0, 19.0])),
        # A fifth of them slow is no middle half.
        (np.full(50, 20.0), np.repeat([20.0, 2.0], [40, 10])),
    ],
)
def test_few_tests_faster_ones_and_those_within_the_scatter_are_no_slowdown(without, concurrent):
    assert slowdown(without, concurrent) is None


def test_one_stalled_test_alone_hides_no_slowdown_of_many():
    random = np.random.default_rng(11)
    without = np.append(random.normal(20, 2, 30), 0.5)
    found = slowdown(without, random.normal(12, 2, 20))
    assert found is not None
    assert (found.without_count, found.concurrent_count) == (31, 20)
    assert found.concurrent == pytest.approx(12, rel=0.1)


KINDS: dict[str, Callable[[Generator, int], Floats]] = {
    "normal": lambda random, count: random.normal(20, 2, count),
    "lognormal": lambda random, count: np.exp(random.normal(3, 0.5, count)),
    "with outliers": lambda random, count: np.exp(random.standard_t(2, count) / 5 + 3),
    "of two kinds": lambda random, count: (
        np.where(random.random(count) < 0.3, 5, 20) * np.exp(random.normal(0, 0.05, count))
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_equally_fast_tests_are_called_slower_in_one_case_of_a_hundred_at_most(kind):
    random = np.random.default_rng(11)
    for counts in ((3, 3), (3, 5), (5, 5), (3, 50), (50, 3), (10, 10), (30, 30)):
        groups = ([KINDS[kind](random, count) for count in counts] for _ in range(2000))
        alarms = sum(slowdown(*pair) is not None for pair in groups)
        assert alarms <= 20, counts


# Of 400 courses each; the standard error of a share near 0.97 is 0.009.
COURSES = 400
NOISE = 1.05


def shapes_of(rates: list[float], noise: float = NOISE, every: float = 5.0) -> dict[str, float]:
    """Return the share of each shape among noisy courses with these rates."""
    random = np.random.default_rng(5)
    counts = dict.fromkeys(SHAPES, 0)
    for _ in range(COURSES):
        noisy = np.array(rates) * noise ** random.standard_normal(len(rates))
        seconds = every * (np.arange(len(rates)) + 1)
        moved = np.cumsum(noisy * every) * 1e6
        samples = list(zip(seconds.tolist(), moved.tolist(), strict=True))[:-1]
        course = RateProfile.of(samples, float(seconds[-1]), float(moved[-1]))
        assert course is not None
        counts[course.shape()] += 1
    return {shape: count / COURSES for shape, count in counts.items()}


SAW = [40.0, 50.0, 60.0, 70.0, 80.0] * 5


@pytest.mark.parametrize(
    ("shape", "rates"),
    [
        ("ceiling", [80.0] * 20),
        ("ceiling", [20.0, 50.0, *[80.0] * 20]),
        ("ceiling", [*[80.0] * 10, 60.0, *[80.0] * 10]),
        ("ramps", np.linspace(5, 80, 20).tolist()),
        ("ramps", [*[10.0] * 8, *[80.0] * 12]),
        ("slows", [*[300.0] * 8, *[80.0] * 12]),
        ("saw-tooth", SAW),
        ("stalls", [*[80.0] * 8, *[0.0] * 4, *[80.0] * 8]),
        ("stalls", [*[80.0] * 3, 0.1, 0.1, *[80.0] * 5, 0.1, *[80.0] * 5]),
        ("uneven", [80.0, 50.0, 95.0, 60.0, 85.0, 45.0, 100.0, 55.0, 70.0, 90.0] * 2),
    ],
)
def test_a_shape_is_named(shape, rates):
    assert shapes_of(rates)[shape] > 0.95


@pytest.mark.parametrize("noise", [1.2, 1.5, 2.0])
def test_plain_noise_is_hardly_called_anything_but_uneven(noise):
    shapes = shapes_of([80.0] * 30, noise)
    assert shapes["uneven"] + shapes["ceiling"] > 0.9
    assert shapes["stalls"] < 0.01
    assert shapes["saw-tooth"] < 0.06


def test_waiting_for_the_first_byte_is_no_stall():
    course = RateProfile.of(
        [(5.0, 0), (10.0, 0), *((10.0 + at, at * 1e6) for at in range(1, 30))], 40, 3e7
    )
    assert course is not None
    assert course.stalled_seconds == 0
    assert course.seconds.sum() == 40


def test_a_course_needs_stretches_and_bytes():
    samples = [(float(at), at * 1e6) for at in range(1, FEWEST_STRETCHES)]
    end = float(FEWEST_STRETCHES)
    assert RateProfile.of(samples, end, end * 1e6) is not None
    assert RateProfile.of(samples[1:], end, end * 1e6) is None
    assert RateProfile.of([(float(at), 0) for at in range(1, 20)], 20.0, 0) is None
    assert RateProfile.of([], 20.0, 1e9) is None


def test_quantiles_count_time_not_samples():
    random = np.random.default_rng(2)
    values, weights = random.random(200), random.integers(1, 9, 200)
    fractions = [0.05, 0.25, 0.5, 0.75, 0.95]
    each = np.repeat(values, weights)
    expected = np.quantile(each, fractions, method="inverted_cdf")
    assert (
        weighted_quantiles(values, weights.astype(float), fractions).tolist() == expected.tolist()
    )
