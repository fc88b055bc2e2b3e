"""The line of overhead and bandwidth, against least squares, scipy and simulated transfers."""

import math

import numpy as np
import pytest
from scipy import stats

from matrix.statistics.transfers import overhead
from matrix.statistics.transfers.overhead import (
    BENT,
    FEW,
    FEWEST_TRANSFERS,
    FITS,
    LINE,
    ClassTimes,
    Lines,
    around_median,
)
from sonar.notation.units import MB

SIZES = (20, 200, 2000)


def times_of(size: float, seconds: np.ndarray) -> ClassTimes:
    """Return the times of groups of one size (MB); ``seconds`` are of shape (groups, transfers)."""
    groups, number = seconds.shape
    sizes = np.full(seconds.size, size * MB)
    rates = (sizes / seconds.ravel()).astype(np.float32)
    return ClassTimes.of_groups(sizes, rates, np.full(groups, number))


def transfers(
    line: tuple[float, float],
    numbers: tuple[int, ...],
    noise: float,
    sizes: tuple[float, ...] = SIZES,
    groups: int = 1,
    seed: int = 1,
) -> list[ClassTimes]:
    """Return transfers that take seconds + size / bandwidth, times log-normal noise."""
    random = np.random.default_rng(seed)
    return [
        times_of(
            size,
            (line[0] + size / line[1])
            * np.exp(random.standard_normal((groups, number)) * math.log(noise)),
        )
        for size, number in zip(sizes, numbers, strict=True)
    ]


def exact(line: tuple[float, float], sizes: tuple[float, ...] = SIZES) -> list[ClassTimes]:
    return [times_of(size, np.full((1, 5), line[0] + size / line[1])) for size in sizes]


def fits(lines: Lines) -> list[str]:
    return [FITS[at] for at in lines.fit]


@pytest.mark.parametrize("line", [(14.0, 10.9), (1.8, 42.0), (0.05, 950.0), (600.0, 0.3)])
def test_a_line_without_noise_is_given_back(line):
    lines = overhead.fit(exact(line))
    assert fits(lines) == ["line"]
    assert lines.overhead[0] == pytest.approx(line[0], rel=1e-5)
    assert lines.bandwidth[0] == pytest.approx(line[1], rel=1e-5)
    assert lines.half_size[0] == pytest.approx(line[0] * line[1], rel=1e-5)
    assert lines.off[1, 0] == pytest.approx(1, rel=1e-5)
    assert np.isnan(lines.off[[0, 2], 0]).all()
    assert lines.seconds(np.array([500.0]))[0] == pytest.approx(line[0] + 500 / line[1], rel=1e-5)


def test_the_line_is_the_weighted_least_squares_of_relative_errors():
    """At the line itself, which gives the weights: then lstsq must come back to it."""
    classes = transfers((3.0, 30.0), (5, 9, 40, 12), 1.5, (10, 100, 500, 4000), groups=60)
    lines, times = overhead.fit(classes), ClassTimes.joined(classes, np.stack)
    for at in range(60):
        size, seconds = times.size[:, at], times.seconds[:, at]
        line = lines.overhead[at] + size / lines.bandwidth[at]
        weight = np.sqrt(times.ok[:, at]) / line
        design = np.stack([weight, weight * size], axis=1)
        solution, *_ = np.linalg.lstsq(design, weight * seconds)
        assert lines.overhead[at] == pytest.approx(solution[0], rel=1e-4)
        assert 1 / lines.bandwidth[at] == pytest.approx(solution[1], rel=1e-4)


def test_medians_and_their_errors_agree_with_numpy_and_scipy():
    random = np.random.default_rng(7)
    for number in (1, 2, 3, 4, 5, 10, 11, 57, 100, 101, 600, 2001):
        seconds = np.exp(random.standard_normal((3, number)))
        times = times_of(50, seconds)
        assert times.size.tolist() == [50] * 3
        np.testing.assert_allclose(times.seconds, np.median(seconds, axis=1), rtol=1e-6)
        if number < FEWEST_TRANSFERS:
            assert np.isnan(times.error).all()
            continue
        place = max(round((number + 1) / 2 - math.sqrt(number)), 1)
        width = -2 * stats.norm.ppf(stats.binom.cdf(place - 1, number, 0.5))
        logs = np.sort(np.log(seconds), axis=1)
        error = (logs[:, number - place] - logs[:, place - 1]) / width
        np.testing.assert_allclose(times.error, error, rtol=1e-5 if number <= 100 else 4e-3)


def test_the_median_of_files_of_several_sizes_goes_with_that_of_their_times():
    sizes = np.array([10, 30, 20, 7, 5, 9, 8], dtype=np.float64) * MB
    rates = np.full(7, 2 * MB, dtype=np.float32)
    times = ClassTimes.of_groups(sizes, rates, np.array([3, 0, 4]))
    np.testing.assert_allclose(times.size, [20, np.nan, 7.5], rtol=1e-6)
    np.testing.assert_allclose(times.seconds, [10, np.nan, 3.75], rtol=1e-6)
    assert times.ok.tolist() == [3, 0, 4]


def constant(size: float, seconds: float, number: int = 5) -> ClassTimes:
    return times_of(size, np.full((1, number), seconds))


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        (exact((14.0, 10.9), (20,)), "few"),
        (exact((14.0, 10.9), (20, 20)), "few"),
        (exact((14.0, 10.9), (20, 79)), "few"),
        (exact((14.0, 10.9), (20, 80)), "line"),
        ([constant(20, 9.0, FEWEST_TRANSFERS - 1), constant(200, 9.0, 9)], "few"),
        ([constant(20, 1.0, FEWEST_TRANSFERS), constant(200, 9.0, 9)], "line"),
        # Small files are faster than any line allows.
        ([constant(20, 1.0), constant(200, 100.0)], "bent"),
        # Larger files are quicker.
        ([constant(20, 9.0), constant(200, 3.0)], "bent"),
        # The middle takes 1.5 times what the others say; 1.2 times is nothing.
        ([constant(20, 2.0), constant(200, 16.5), constant(2000, 101.0)], "bent"),
        ([constant(20, 2.0), constant(200, 13.0), constant(2000, 101.0)], "line"),
    ],
    ids=[
        *("one size", "same size", "alike", "just not alike", "too few", "just enough"),
        *("small too fast", "large quicker", "middle off", "middle nearly on"),
    ],
)
def test_whether_there_is_a_line_and_whether_it_fits_is_said(classes, said):
    lines = overhead.fit(classes)
    assert fits(lines) == [said]
    assert bool(np.isnan(lines.overhead[0])) == (said == "few")


def test_where_larger_files_take_no_longer_only_the_overhead_is_told():
    random = np.random.default_rng(3)
    classes = [times_of(size, 9.0 * np.exp(random.standard_normal((1, 9)) / 5)) for size in (1, 9)]
    lines = overhead.fit(classes)
    assert fits(lines) == ["line"]
    assert lines.overhead_low[0] < 9 < lines.overhead_high[0]
    assert np.isinf(lines.bandwidth_high[0]) or np.isnan(lines.bandwidth_high[0])
    assert lines.bandwidth_low[0] > 0


def test_a_single_slow_transfer_moves_nothing():
    quiet = exact((2.0, 50.0))
    stalled = np.full((1, 5), 2.0 + 200 / 50)
    stalled[0, 0] = 3600.0
    lines = overhead.fit([quiet[0], times_of(200, stalled), quiet[2]])
    assert lines.overhead[0] == pytest.approx(2.0, rel=1e-5)
    assert lines.bandwidth[0] == pytest.approx(50.0, rel=1e-5)


# 4,000 links each: two standard errors of a coverage near 0.95 are 0.007.
@pytest.mark.parametrize("noise", [1.2, 1.5, 2.0])
@pytest.mark.parametrize("line", [(0.0, 42.0), (0.1, 42.0), (1.8, 42.0), (14.0, 10.9)])
@pytest.mark.parametrize("numbers", [(3, 3, 3), (5, 5, 5), (10, 10, 10), (8, 20, 60), (99, 99, 99)])
def test_intervals_hold_what_they_should(line, noise, numbers):
    lines = overhead.fit(transfers(line, numbers, noise, groups=4000))
    inside = (lines.overhead_low <= line[0]) & (line[0] <= lines.overhead_high)
    of_bandwidth = (lines.bandwidth_low <= line[1]) & (line[1] <= lines.bandwidth_high)
    least = 0.90 if min(numbers) == FEWEST_TRANSFERS else 0.93
    assert least < inside.mean() < 0.995
    assert least < of_bandwidth.mean() < 0.99
    # 2 standard errors of a line that is true: 4.6 % are off by chance, more for very few.
    assert (lines.fit == BENT).mean() < (0.11 if min(numbers) == FEWEST_TRANSFERS else 0.085)
    assert (lines.fit != FEW).all()


def test_a_class_that_is_off_is_seen():
    classes = transfers((1.8, 42.0), (10, 10, 10), 1.2, groups=2000)
    slow = ClassTimes.joined(classes, np.stack)
    slow.seconds[1] *= 1.6
    parts = [
        ClassTimes(slow.size[at], slow.seconds[at], slow.error[at], slow.ok[at]) for at in range(3)
    ]
    lines = overhead.fit(parts)
    assert (lines.fit == BENT).mean() > 0.97
    assert np.median(lines.off[1]) == pytest.approx(1.6, rel=0.02)


def test_the_width_of_an_interval_of_a_median_is_that_of_a_binomial_distribution():
    low, width = around_median(np.array([0, 2, 3, 100, 101, 10_000]))
    assert np.isnan(width[:2]).all()
    assert (low[2:] < 0.5).all()
    assert width[2] == pytest.approx(2 * stats.norm.isf(1 / 8), rel=1e-9)
    assert width[5] == pytest.approx(4.0, rel=0.02)


def test_links_that_have_nothing_have_no_line():
    blank = ClassTimes.blank((2, 3))
    lines = overhead.fit([blank, blank])
    assert lines.overhead.shape == (2, 3)
    assert np.isnan(lines.overhead).all()
    assert (lines.fit == FEW).all()
    assert LINE not in lines.fit
    assert overhead.SUMMED == 100
