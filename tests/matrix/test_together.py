"""Links together: against scipy, and how often they are called slower where they are not.

And how far the tests of each scatter from day to day.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy import stats

from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.compare.day_scatter import FEWEST_DAYS, day_scatter, scatter_in_a_row
from matrix.statistics.compare.together import DayScatter, Together, day_shifts, days_apart
from matrix.statistics.compare.two_samples import KnownScatter
from matrix.statistics.samples.pooling import Numbering
from sonar.notation.windows import Window
from tests.matrix.samples import Sample, run_of

DAY_MS = 86_400_000
# The variance of the log of a median in parts of that of a mean, as two_samples has it.
INFLATION = {2: np.pi / 2 - 2.25 / 4, 3: np.pi / 2 - 0.68 / 3, 6: np.pi / 2 - 2.25 / 8}


def known(single: float, dof: float, common: float = 0.0) -> DayScatter:
    return DayScatter(np.array([single]), np.array([common]), np.array([dof]))


def centres_of(logs: Floats) -> Floats:
    """Return medians on both sides whose ratios have these logs; links differ by much."""
    levels = np.exp(np.linspace(-3, 3, len(logs)))
    return np.stack([levels * np.exp(logs), levels])


def test_each_link_counts_by_its_tests_and_against_itself() -> None:
    logs = np.array([-0.2, -0.4, 0.1])
    counts = np.array([[6, 3, 2], [6, 6, 6]])
    weights = [1 / (INFLATION[own] / own + INFLATION[6] / 6) for own in counts[0].tolist()]
    found = Together.of(centres_of(logs), counts, "median", known(0.04, 18.3))
    mean = np.average(logs, weights=weights)
    # The scatter of three links about what they share has two degrees of freedom on each day.
    test = stats.t(2 * 18.3, mean, np.sqrt(0.04 / sum(weights)))
    assert found.ratio == pytest.approx(np.exp(mean))
    assert (found.low, found.high) == pytest.approx(tuple(np.exp(test.interval(0.95))), rel=1e-6)
    assert found.p == pytest.approx(2 * test.cdf(2 * mean) if mean > 0 else 2 * test.sf(0))
    assert (found.links, found.ok, found.other_ok) == (3, 11, 18)


def test_what_all_links_share_does_not_grow_less_with_their_number() -> None:
    counts, logs = np.full((2, 40), 6), np.full(40, -0.2)
    found = Together.of(centres_of(logs), counts, "median", known(0.04, 18.0, 0.01), 0.5)
    single, common = 0.04 * 2 * INFLATION[6] / 6 / 40, 0.01 * 0.5
    dof = (single + common) ** 2 / (single**2 / (18 * 39) + common**2 / 18)
    half = stats.t(dof).ppf(0.975) * np.sqrt(single + common)
    assert np.log(found.high / found.ratio) == pytest.approx(half)
    assert half > 5 * np.sqrt(single)


def window(start: float, end: float) -> Window:
    return Window(*(datetime(2026, 11, 10, tzinfo=UTC) + timedelta(days=at) for at in (start, end)))


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ((1, 2), (0, 1)),
        ((0.5, 0.75), (0.25, 0.5)),
        ((7, 14), (0, 7)),
        ((7, 8), (0, 1)),
        ((30, 31), (0, 30)),
        ((0.3, 0.31), (0.29, 0.3)),
    ],
)
def test_windows_share_what_fades_within_a_day(
    own: tuple[float, float], other: tuple[float, float]
) -> None:
    """Against the mean of 1 - |t - s| over the squares and the rectangle of both windows."""
    times = [np.linspace(*side, 2001)[:-1] + (side[1] - side[0]) / 4000 for side in (own, other)]
    shared = [
        [np.clip(1 - np.abs(first[:, None] - second), 0, None).mean() for second in times]
        for first in times
    ]
    expected = shared[0][0] + shared[1][1] - 2 * shared[0][1]
    assert days_apart(window(*own), window(*other)) == pytest.approx(expected, rel=2e-3)
    if (own, other) == ((1, 2), (0, 1)):
        assert days_apart(window(*own), window(*other)) == pytest.approx(1)


def test_of_means_the_tests_alone_weigh() -> None:
    logs, counts = np.array([-0.2, -0.4]), np.array([[6, 3], [6, 6]])
    found = Together.of(centres_of(logs), counts, "mean", known(0.04, 10))
    assert found.ratio == pytest.approx(np.exp(np.average(logs, weights=[3, 2])))
    assert np.log(found.high / found.ratio) == pytest.approx(
        stats.t(10).ppf(0.975) * np.sqrt(0.04 / 5)
    )


def test_without_days_the_links_themselves_tell() -> None:
    logs = np.random.default_rng(3).normal(-0.2, 0.3, 12)
    found = Together.of(centres_of(logs), np.full((2, 12), 6), "median", known(0, 0))
    test = stats.ttest_1samp(logs, 0)
    assert found.p == pytest.approx(test.pvalue)
    bounds = tuple(np.exp(test.confidence_interval()))
    assert (found.low, found.high) == pytest.approx(bounds, rel=1e-6)


def test_a_link_without_a_test_on_a_side_says_nothing() -> None:
    centres = np.array([[0.5, np.nan, 3.0, 0.0], [1.0, 2.0, np.nan, 1.0]])
    counts = np.array([[2, 0, 5, 4], [1, 7, 0, 4]])
    found = Together.of(centres, counts, "median")
    assert (found.ratio, found.links, found.ok, found.other_ok) == (pytest.approx(0.5), 1, 2, 1)
    assert np.isnan([found.low, found.high, found.p]).all()
    none = Together.of(centres[:, 1:3], counts[:, 1:3], "median", known(0.04, 9))
    assert (none.links, none.ok, none.other_ok, none.kind) == (0, 0, 0, "")
    assert np.isnan([none.ratio, none.low, none.p]).all()


def test_links_that_are_all_alike_are_certain() -> None:
    half = Together.of(centres_of(np.full(4, np.log(0.5))), np.full((2, 4), 3), "median")
    assert (half.low, half.high, half.p, half.kind) == pytest.approx((0.5, 0.5, 0.0, "slower"))
    same = Together.of(np.ones((2, 4)), np.full((2, 4), 3), "median")
    assert (same.low, same.high, same.p, same.kind) == (1, 1, 1, "same")


def test_one_odd_test_of_a_link_with_few_does_not_move_all() -> None:
    logs = np.append(np.random.default_rng(4).normal(0, 0.15, 17), np.log(0.01))
    few = np.full((2, 18), 1)
    drawn = Together.of(centres_of(logs), few, "median")
    plain = Together.of(centres_of(logs[:-1]), few[:, :-1], "median")
    assert plain.ratio * 0.95 < drawn.ratio < plain.ratio
    # A median of six is no odd test: what it says counts in full.
    full = Together.of(centres_of(logs), np.full((2, 18), 6), "median")
    assert full.ratio == pytest.approx(np.exp(logs.mean()))


@pytest.mark.parametrize("tests", [1, 3])
def test_single_tests_that_are_further_apart_than_days_say_so(tests: int) -> None:
    logs = np.array([0.5, -0.5] * 6)
    days = known(0.01, 18.0)
    found = Together.of(centres_of(logs), np.full((2, 12), tests), "median", days)
    bounds = tuple(np.exp(stats.ttest_1samp(logs, 0).confidence_interval()))
    assert ((found.low, found.high) == pytest.approx(bounds, rel=1e-6)) == (tests == 1)
    assert found.low >= bounds[0] * (1 - 1e-9)


@pytest.mark.parametrize(("ratio", "kind"), [(0.8, "slower"), (1.3, "faster"), (1.06, "same")])
def test_what_is_certain_and_small_is_no_change(ratio: float, kind: str) -> None:
    centres = centres_of(np.full(50, np.log(ratio)))
    assert Together.of(centres, np.full((2, 50), 6), "median", known(0.01, 18)).kind == kind


def history(rng: np.random.Generator, days: int, links: int, tests: int, **of: float) -> Floats:
    """Return logs of rates, shape (days, links, tests), with effects of days."""
    levels = rng.normal(0, 1, links)
    shared = of.get("site_days", 0.0) * rng.standard_normal(days)
    own = of.get("link_days", 0.0) * rng.standard_normal((days, links))
    drawn = rng.standard_t(4, (days, links, tests)) / np.sqrt(2)
    if not of.get("heavy"):
        drawn = rng.standard_normal((days, links, tests))
    return (levels + shared[:, None] + own)[..., None] + 0.2 * drawn


def scatter_by_hand(logs: Floats) -> tuple[float, float, float]:
    """Do with each day and the one before what is done with two sides, all tested alike."""
    medians = np.median(logs, axis=2)
    moved = np.diff(medians, axis=0)
    tests, links, steps = logs.shape[2], logs.shape[1], len(moved)
    errors = moved.var(axis=1, ddof=1) / links
    single = float(errors.mean()) * links / (2 * INFLATION[tests] / tests)
    common = max(float((moved.mean(axis=1) ** 2 - errors).mean()), 0.0)
    return single, common, 2 * steps**2 / (3 * steps - 1)


def test_days_tell_how_far_the_links_of_each_choice_scatter_together() -> None:
    rng = np.random.default_rng(5)
    logs = history(rng, 28, 6, 3, site_days=0.1)
    ends = [(source, there) for source in (1, 2, 3) for there in (1, 2, 3) if source != there]
    runs = [
        replace(
            run_of(
                Sample(*ends[link], float(rate))
                for link, rates in enumerate(np.exp(of_day))
                for rate in rates
            ),
            start=day * DAY_MS,
        )
        for day, of_day in enumerate(logs)
    ]
    every = ~np.eye(3, dtype=bool)
    from_first = np.zeros((3, 3), dtype=bool)
    from_first[0, 1:] = True
    found = day_shifts(runs, Numbering(np.array([1, 2, 3])), np.stack([every, from_first]))
    for number, chosen in enumerate((slice(None), slice(0, 2))):
        told = (found.single[number], found.common[number], found.dof[number])
        assert told == pytest.approx(scatter_by_hand(logs[:, chosen]), rel=1e-4)
    # Of a few links, nothing else is read.
    alone = day_shifts(runs, Numbering(np.array([1, 2, 3])), from_first[None])
    assert alone.single[0] == found.single[1]
    # That of two days, 0.1 each, as far as 28 days tell.
    assert 0.005 < found.common[0] < 0.04
    short = day_shifts(runs[: FEWEST_DAYS - 1], Numbering(np.array([1, 2, 3])), every[None])
    assert (short.single[0], short.common[0], short.dof[0]) == (0, 0, 0)
    single = np.zeros((3, 3), dtype=bool)
    single[0, 1] = True
    lonely = day_shifts(runs, Numbering(np.array([1, 2, 3])), single[None])
    moved = np.diff(np.median(logs[:, 0], axis=1))
    of_one = (moved**2).mean() / (2 * INFLATION[3] / 3)
    assert (lonely.single[0], lonely.common[0]) == (pytest.approx(of_one, rel=1e-4), 0)


@pytest.mark.long
@pytest.mark.parametrize("of", [{}, {"heavy": 1.0}, {"link_days": 0.1, "site_days": 0.05}], ids=str)
def test_a_site_at_four_fifths_is_found_and_one_that_did_not_change_is_not(
    of: dict[str, float],
) -> None:
    """By 108 tests on each side over 18 links, as in a day; of 300 histories without a change."""
    rng = np.random.default_rng(6)
    certain = np.array([certain_of(rng, **of) for _ in range(300)])
    false, found = certain.mean(axis=0)
    assert false < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)
    assert found > (0.6 if of.get("site_days") else 0.95)


def certain_of(rng: np.random.Generator, **of: float) -> tuple[bool, bool]:
    """Say of a history whether it is certain to change as it is, and at four fifths."""
    logs = history(rng, 30, 18, 6, **of)
    single, common, dof = scatter_by_hand(logs[:28])
    centres = np.exp(np.median(logs[[29, 28]], axis=2))
    counts: Integers = np.full((2, 18), 6)
    pairs = (np.stack([centres[0] * factor, centres[1]]) for factor in (1, 0.8))
    same, slower = (
        Together.of(pair, counts, "median", known(single, dof, common), 1.0) for pair in pairs
    )
    return same.p < 0.05, slower.kind == "slower"


# How far single links scatter: found again, whatever drifts, jumps or is missing.
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


@pytest.mark.long
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


@pytest.mark.long
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
