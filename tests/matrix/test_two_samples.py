"""Two samples against scipy: the rank test, its exactness, intervals, false discoveries."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from matrix.statistics import rank_test
from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.discoveries import changed
from matrix.statistics.joint_ranks import TABLED, pairs
from matrix.statistics.two_samples import Ratios, compare

EXACT, ASYMPTOTIC = "exact", "asymptotic"
PERMUTED = stats.PermutationMethod(n_resamples=100_000)
# By the counts of both samples and the number of different rates, 0 for no ties: what scipy calls
# the way in which p is to be computed.
WAYS = {
    (3, 3, 0): EXACT,
    (3, 8, 0): EXACT,
    (14, 9, 0): EXACT,
    (21, 21, 0): EXACT,
    (3, 1300, 0): EXACT,
    (22, 22, 0): ASYMPTOTIC,
    (4, 1300, 0): ASYMPTOTIC,
    (40, 33, 0): ASYMPTOTIC,
    (3, 3, 3): PERMUTED,
    (7, 5, 4): PERMUTED,
    (3, 9, 2): PERMUTED,
    (7, 6, 4): ASYMPTOTIC,
    (15, 20, 6): ASYMPTOTIC,
    (3, 600, 40): ASYMPTOTIC,
}


def draw(rng: np.random.Generator, count: int, levels: int, factor: float = 1) -> Floats:
    rates = factor * np.exp(0.4 * rng.standard_normal(count))
    return np.minimum(np.rint(2 * rates) + 1, levels) if levels else rates


@pytest.mark.parametrize(("counts", "method"), WAYS.items(), ids=str)
def test_p_is_that_of_scipy_exact_where_it_says_so(
    counts: tuple[int, int, int], method: str | stats.PermutationMethod
) -> None:
    rng = np.random.default_rng(counts)
    for factor in (1, 1.3, 2, 20):
        own, other = draw(rng, counts[0], counts[2]), draw(rng, counts[1], counts[2], factor)
        same = np.unique(np.append(own, other)).size == 1
        expected = 1.0 if same else stats.mannwhitneyu(own, other, method=method).pvalue
        # The normal tail is read between places of a table.
        assert compare(own, other).p == pytest.approx(expected, rel=1e-6)


def test_equal_rates_say_nothing_and_three_against_three_cannot_say_more_than_a_tenth() -> None:
    assert compare([2, 2, 2], [2, 2, 2, 2]).p == 1
    assert compare([2.0] * 40, [2.0] * 40).p == 1
    assert compare([1, 2, 3], [4, 5, 6]).p == pytest.approx(0.1)


def test_p_is_below_a_limit_as_often_as_it_says_where_nothing_differs() -> None:
    rng = np.random.default_rng(7)
    trials = 4000
    for counts in ((5, 7), (12, 30), (25, 25)):
        samples = [np.exp(rng.standard_normal((trials, count))) for count in counts]
        p = grouped(*([*rows] for rows in samples)).p
        for limit in (0.01, 0.05, 0.2):
            # Four standard deviations of a binomial; an exact test may keep well below its limit.
            most = limit + 4 * math.sqrt(limit * (1 - limit) / trials)
            assert (p <= limit).mean() <= most


def grouped(own: list[Floats], other: list[Floats], of: str = "median") -> Ratios:
    """Compare many pairs of samples at once, as the cells of a matrix are."""
    counts = np.array([[len(rates) for rates in side] for side in (own, other)])
    rates = np.concatenate([np.asarray(rates) for side in (own, other) for rates in side])
    bits = rates.astype(np.float32).view(np.uint32) << np.uint32(1)
    bits[counts[0].sum() :] |= np.uint32(1)
    group = np.repeat(np.tile(np.arange(len(own)), 2), counts.ravel())
    # What is behind the last group is not looked at.
    group, bits = np.append(group, [len(own)] * 2), np.append(bits, [9, 9]).astype(np.uint32)
    mixed = np.random.default_rng(0).permutation(len(group))
    return Ratios.of(pairs(group[mixed], bits[mixed], counts, of), of)


@pytest.mark.parametrize("of", ["median", "mean"])
def test_many_pairs_at_once_are_what_each_is_by_itself(of: str) -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(0, 40, (2, 400))
    sizes[:, :6] = [[0, 0, 1, 700, 3, 1500], [0, 2, 1, 4, 900, 1500]]
    own, other = (
        [np.float32(draw(rng, int(size), size % 3 * 4)).astype(float) for size in side]
        for side in sizes
    )
    together = grouped(own, other, of)
    for number, samples in enumerate(zip(own, other, strict=True)):
        single = compare(*samples, of)
        for name, value in vars(single).items():
            assert getattr(together, name)[number] == pytest.approx(value, rel=1e-12, nan_ok=True)


def test_medians_means_and_counts_are_those_of_numpy_and_too_few_have_no_interval() -> None:
    rng = np.random.default_rng(5)
    for counts in ((1, 1), (2, 9), (3, 3), (8, 5), (201, 202)):
        own, other = (draw(rng, count, 0) for count in counts)
        medians, means = compare(own, other), compare(own, other, "mean")
        assert (medians.ok, medians.other_ok) == counts
        assert (medians.value, medians.other) == pytest.approx((np.median(own), np.median(other)))
        assert (means.value, means.other) == pytest.approx((own.mean(), other.mean()))
        for ratios in (medians, means):
            assert ratios.enough == (min(counts) >= 3)
            few = np.isnan([ratios.ratio, ratios.low, ratios.high, ratios.p])
            assert (few == (min(counts) < 3)).all()
            if ratios.enough:
                assert ratios.ratio == ratios.value / ratios.other
    nothing = compare([], [1.0, 2.0, 3.0])
    assert np.isnan([nothing.value, nothing.ratio, nothing.low]).all()
    assert nothing.other == 2


def bonett_price(rates: Floats) -> float:
    """The variance of the log of a median, as the paper has it."""
    logs, count = np.sort(np.log(rates)), len(rates)
    rank = max(int(np.rint((count + 1) / 2 - math.sqrt(count))), 1)
    z = -stats.norm.ppf(stats.binom.cdf(rank - 1, count, 0.5))
    return float(((logs[count - rank] - logs[rank - 1]) / (2 * z)) ** 2)


@pytest.mark.parametrize("counts", [(3, 3), (4, 9), (16, 36), (100, 5), (TABLED + 1, 900)], ids=str)
def test_intervals_are_those_of_the_formulas(counts: tuple[int, int]) -> None:
    rng = np.random.default_rng(counts)
    own, other = (draw(rng, count, 0) for count in counts)
    medians, means = compare(own, other), compare(own, other, "mean")
    reach = stats.norm.ppf(0.975) * math.sqrt(bonett_price(own) + bonett_price(other))
    # Beyond TABLED the binomial is taken as normal.
    close = 1e-9 if max(counts) <= TABLED else 2e-3
    ends = medians.ratio * math.exp(-reach), medians.ratio * math.exp(reach)
    assert (medians.low, medians.high) == pytest.approx(ends, rel=close)
    parts = [rates.var(ddof=1) / len(rates) / rates.mean() ** 2 for rates in (own, other)]
    below = sum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True))
    reach = stats.t.ppf(0.975, sum(parts) ** 2 / below) * math.sqrt(sum(parts))
    ends = means.ratio * math.exp(-reach), means.ratio * math.exp(reach)
    assert (means.low, means.high) == pytest.approx(ends, rel=1e-6)


@pytest.mark.parametrize("of", ["median", "mean"])
@pytest.mark.parametrize("count", [3, 4, 8, 30, 100])
def test_intervals_cover_the_true_ratio_about_as_often_as_they_say(of: str, count: int) -> None:
    rng = np.random.default_rng(count)
    trials, factor = 3000, 1.7
    own, other = np.exp(0.4 * rng.standard_normal((2, trials, count)))
    ratios = grouped([*(factor * own)], [*other], of)
    covered = ((ratios.low <= factor) & (factor <= ratios.high)).mean()
    # Found with other seeds, of either kind: 0.935 to 0.967, give or take 0.008 (two deviations).
    assert 0.925 <= covered <= 0.98


def test_the_closeness_of_constant_rates_is_that_of_their_ratio() -> None:
    constant = compare([2.0, 2.0, 2.0], [4.0, 4.0, 4.0])
    assert (constant.ratio, constant.low, constant.high) == (0.5, 0.5, 0.5)
    zero = compare([0.0, 0.0, 0.0], [1.0, 2.0, 3.0])
    assert zero.ratio == 0


def test_discoveries_are_those_of_benjamini_and_hochberg_and_nan_is_no_test() -> None:
    rng = np.random.default_rng(9)
    for count in (1, 2, 50, 2000):
        p = rng.random(count) ** rng.integers(1, 6, count)
        for rate in (0.01, 0.05, 0.2):
            expected = stats.false_discovery_control(p) <= rate
            assert (changed(p, rate) == expected).all()
            with_holes = np.insert(p, 0, [np.nan] * 7)
            assert (changed(with_holes, rate)[7:] == expected).all()
            assert not changed(with_holes, rate)[:7].any()
    assert changed(np.full((2, 3), np.nan)).shape == (2, 3)
    assert not changed(np.array([])).size


def test_the_share_of_false_discoveries_is_what_was_asked_for() -> None:
    rng = np.random.default_rng(11)
    shares = []
    for _ in range(60):
        factors = np.where(np.arange(500) < 100, 2.5, 1.0)
        own = np.exp(0.4 * rng.standard_normal((500, 12))) * factors[:, None]
        other = np.exp(0.4 * rng.standard_normal((500, 12)))
        flags = changed(grouped([*own], [*other]).p)
        shares.append(flags[100:].sum() / max(flags.sum(), 1))
        assert flags[:100].mean() > 0.9
    # At most 0.05 in the mean, here 0.8 of that, with 60 lists of some 100.
    assert 0.025 <= np.mean(shares) <= 0.055


def test_a_table_of_p_is_a_distribution() -> None:
    counts: Integers = np.array([5])
    for others in (5, 6):
        wins = np.arange(5 * others + 1, dtype=float)
        many = np.full(len(wins), counts[0])
        zeros = np.zeros(len(wins))
        p = rank_test.p_values(
            wins, many, np.full(len(wins), others), zeros, zeros.astype(np.int64)
        )
        assert (p == p[::-1]).all()
        assert (np.diff(p[: len(p) // 2]) > 0).all()
        assert p.max() == 1
