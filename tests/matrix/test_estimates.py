"""Student's t, moderated variances and the interval of a median: against scipy, and by trials."""

import math

import numpy as np
import pytest
from scipy import special, stats

from matrix.statistics.arrays import Floats
from matrix.statistics.estimates import student
from matrix.statistics.estimates.moderation import (
    MOST_DOF,
    NOTHING,
    Prior,
    digamma,
    trigamma,
    trigamma_inverse,
)
from matrix.statistics.samples.quantiles import MANY_VALUES, median_interval, values_left_out

DOFS = np.array([1, 1.5, 2, 3, 4.2, 7, 10, 30, 81, 200, 1000, 20_000, 1e6])
VALUES = np.array([0, 1e-6, 0.1, 0.5, 1, 1.96, 3, 5, 10, 37])


def test_tails_are_those_of_scipy():
    t, dof = np.meshgrid(np.concatenate([-VALUES, VALUES]), DOFS)
    assert student.survival(t, dof) == pytest.approx(stats.t.sf(t, dof), rel=1e-9, abs=1e-290)


def test_tails_to_either_side():
    assert student.two_sided([-2.5, 2.5], 9) == pytest.approx(2 * stats.t.sf([2.5, 2.5], 9))


@pytest.mark.parametrize("probability", [0.6, 0.9, 0.975, 0.995, 0.9999, 1 - 1e-7])
def test_quantiles_are_those_of_scipy(probability: float):
    expected = stats.t.ppf(probability, DOFS)
    assert student.quantile(probability, DOFS) == pytest.approx(expected, rel=1e-7)


def test_several_quantiles_are_those_of_each():
    several = student.quantile([0.6, 0.975, 1 - 1e-7], 12)
    assert several == pytest.approx([student.one_quantile(p, 12) for p in (0.6, 0.975, 1 - 1e-7)])


def test_a_quantile_of_the_lower_half_is_refused():
    with pytest.raises(ValueError, match=r"above 0\.5"):
        student.quantile(0.5, 3)


def test_what_is_no_number_has_no_tail():
    assert np.isnan(student.survival([np.nan], [3.0])).all()


@pytest.mark.parametrize("dof", [1.0, 3.0, 1000.0])
def test_nothing_is_beyond_infinity(dof: float):
    ends = np.array([-np.inf, np.inf])
    assert student.survival(ends, dof).tolist() == [1.0, 0.0]
    assert student.two_sided(ends, dof).tolist() == [0.0, 0.0]
    assert student.survival([1e200], dof)[0] == pytest.approx(0, abs=1e-100)


def test_many_at_once_are_within_a_third_of_a_percent_also_far_out() -> None:
    t = np.concatenate([np.linspace(0, 40, 2001), [np.inf]])
    for dof in (4.0, 7.9, 8.0, 11.3, 30.0, 1e4):
        exact = student.two_sided(t, dof)
        quick = student.two_sided_of_many(t, np.full(len(t), dof))
        kept = exact > 1e-280
        assert quick[kept] == pytest.approx(exact[kept], rel=3e-3)
        near = exact > 1e-3
        assert quick[near] == pytest.approx(exact[near], rel=1e-5)
        assert quick[-1] < 1e-280


def test_digamma_and_trigamma_are_those_of_scipy() -> None:
    x = np.concatenate([np.linspace(0.5, 40, 80), [1e3, 1e5]])
    assert digamma(x) == pytest.approx(special.digamma(x), rel=1e-11, abs=1e-11)
    assert trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-11)
    for value in (0.003, 0.4, 1.0, 2.5, 30.0):
        assert trigamma(trigamma_inverse(value)) == pytest.approx(value)


def drawn(rng: np.random.Generator, dof: Floats, own_dof: float, variance: float) -> Floats:
    """Return sums of squares of groups whose variances are a scaled inverse chi-square."""
    true = variance * own_dof / rng.chisquare(own_dof, len(dof))
    return np.asarray(true * rng.chisquare(dof))


@pytest.mark.parametrize("own_dof", [3.0, 8.0, 40.0])
def test_what_all_groups_say_of_one_is_found_again(own_dof: float) -> None:
    rng = np.random.default_rng(int(own_dof))
    dof = rng.integers(2, 12, 20_000).astype(float)
    prior = Prior.of(drawn(rng, dof, own_dof, 0.09), dof)
    assert prior.dof == pytest.approx(own_dof, rel=0.25)
    assert prior.variance == pytest.approx(0.09, rel=0.03)


def test_groups_that_are_alike_are_as_good_as_one() -> None:
    rng = np.random.default_rng(1)
    dof = np.full(500, 4.0)
    prior = Prior.of(0.04 * rng.chisquare(dof), dof)
    assert prior.dof > 100
    variance, degrees = prior.moderated(np.array([0.0, 1.0]), np.array([4.0, 4.0]))
    assert variance == pytest.approx([0.04, 0.04], rel=0.25)
    assert (degrees > 100).all()
    assert Prior.of(np.full(9, 0.16), np.full(9, 4.0)).dof == MOST_DOF


def test_few_groups_say_nothing_and_equal_rates_have_no_scatter() -> None:
    assert Prior.of(np.array([1.0, 2.0]), np.array([4.0, 4.0])) == NOTHING
    silent = Prior.of(np.zeros(9), np.full(9, 4.0))
    assert silent.moderated(np.zeros(1), np.ones(1))[0] == 0
    # One whose rates are all equal is taken for as quiet as all the others make it.
    prior = Prior.of(np.array([0.0, *np.full(50, 0.36)]), np.full(51, 4.0))
    assert prior.moderated(np.zeros(1), np.full(1, 4.0))[0] > 0


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
