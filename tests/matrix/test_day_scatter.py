"""How far tests scatter from day to day: found again, whatever drifts, jumps or is missing."""

from dataclasses import replace

import numpy as np
import pytest

from matrix.statistics.arrays import Floats
from matrix.statistics.compare.day_scatter import FEWEST_DAYS, day_scatter, scatter_in_a_row
from matrix.statistics.compare.two_samples import KnownScatter
from matrix.statistics.samples.pooling import Numbering
from tests.matrix.samples import Sample, run_of

DAY_MS = 86_400_000
IDS = np.array([1, 2])


def scatter_of(days: list[Floats | None], in_a_row: int = 0) -> KnownScatter:
    """Return that of a link by its rates on days; None for a day without tests."""
    runs = []
    for day, rates in enumerate(days):
        if rates is not None:
            run = run_of(Sample(1, 2, rate) for rate in rates)
            runs.append(replace(run, start=day * DAY_MS))
    if in_a_row:
        return scatter_in_a_row(runs, Numbering(IDS), in_a_row)
    return day_scatter(runs, Numbering(IDS))


def variance(scatter: KnownScatter) -> float:
    return float(scatter.squares[0, 1] / scatter.dof[0, 1])


def drawn(rng: np.random.Generator, levels: Floats, tests: int, scatter: float) -> list[Floats]:
    return [np.exp(level + scatter * rng.standard_normal(tests)) for level in levels]


def mean_variance(
    levels: Floats, tests: int, scatter: float, of_days: float = 0.0, in_a_row: int = 0
) -> float:
    rng = np.random.default_rng(5)
    found = []
    for _ in range(200):
        days = drawn(rng, levels + of_days * rng.standard_normal(28), tests, scatter)
        found.append(variance(scatter_of([*days], in_a_row)))
    return float(np.mean(found))


def test_it_is_that_of_single_tests() -> None:
    assert mean_variance(np.zeros(28), 6, 0.2) == pytest.approx(0.04, rel=0.06)


def test_what_a_day_does_to_all_of_its_tests_counts_as_often_as_there_are_tests() -> None:
    """A window of as many tests a day then scatters by what is said of a test, over its number."""
    expected = 0.04 + 6 * 0.01
    assert mean_variance(np.zeros(28), 6, 0.2, 0.1) == pytest.approx(expected, rel=0.06)


def test_a_level_that_drifts_by_half_or_jumps_once_hardly_counts() -> None:
    drift = np.linspace(0, -0.7, 28)
    assert mean_variance(drift, 6, 0.2) == pytest.approx(0.04, rel=0.1)
    jump = np.where(np.arange(28) < 14, 0.0, -0.7)
    assert mean_variance(jump, 6, 0.2) < 0.04 + 6 * 0.49 / 2 / 27 * 1.1


def test_days_without_tests_are_passed_over_and_of_few_days_nothing_is_known() -> None:
    rng = np.random.default_rng(6)
    days: list[Floats | None] = [*drawn(rng, np.zeros(FEWEST_DAYS), 3, 0.2)]
    spread = [day for one in days for day in (one, None)]
    known = scatter_of(spread)
    assert known.squares == pytest.approx(scatter_of(days).squares)
    assert known.dof[0, 1] > 0
    assert scatter_of(days[:-1]).dof[0, 1] == 0
    assert (known.dof == 0).sum() == 3


def test_of_three_in_a_row_what_a_day_does_counts_three_times_however_many_a_day_has() -> None:
    for tests in (8, 24):
        found = mean_variance(np.zeros(28), tests, 0.2, 0.1, in_a_row=3)
        assert found == pytest.approx(0.04 + 3 * 0.01, rel=0.06)
    # Of a day that has no more, all of them do.
    rng = np.random.default_rng(8)
    days: list[Floats | None] = [*drawn(rng, 0.1 * rng.standard_normal(28), 2, 0.2)]
    assert scatter_of(days, in_a_row=3).squares == pytest.approx(scatter_of(days).squares)


def test_three_in_a_row_may_share_the_hour_that_is_slow_every_day() -> None:
    rng = np.random.default_rng(9)
    dip = np.repeat([0.0, -0.7], [18, 6])
    days: list[Floats | None] = [np.exp(dip + 0.1 * rng.standard_normal(24)) for _ in range(28)]
    assert variance(scatter_of(days)) == pytest.approx(0.01, rel=0.3)
    inner = 0.01 + 0.49 * 0.25 * 0.75 * 24 / 23
    assert variance(scatter_of(days, in_a_row=3)) == pytest.approx(inner, rel=0.05)


def test_of_few_days_it_is_that_of_all_tests() -> None:
    rng = np.random.default_rng(10)
    days: list[Floats | None] = [*drawn(rng, np.array([0.0, 0.3, -0.2]), 4, 0.2)]
    known = scatter_of(days, in_a_row=3)
    logs = np.log(np.float32(np.concatenate(days)).astype(float))
    assert known.squares[0, 1] == pytest.approx(float(np.square(logs - logs.mean()).sum()))
    assert known.dof[0, 1] == 11
    assert scatter_of([np.array([5.0])], in_a_row=3).dof.tolist() == [[0, 0], [0, 0]]


def test_equal_rates_do_not_scatter_and_the_rate_of_an_empty_file_is_no_error() -> None:
    same: list[Floats | None] = [np.full(6, 7.0) for _ in range(6)]
    for in_a_row in (0, 3):
        assert variance(scatter_of(same, in_a_row)) == pytest.approx(0, abs=1e-12)
        assert np.isfinite(variance(scatter_of([*same, np.array([0.0, 7.0])], in_a_row)))
