"""What the rate does within a transfer, and how a course is named."""

import numpy as np
import pytest

from matrix.statistics.transfers.rate_profile import (
    FEWEST_STRETCHES,
    SHAPES,
    RateProfile,
    weighted_quantiles,
)

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
