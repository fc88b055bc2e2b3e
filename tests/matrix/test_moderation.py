"""Variances drawn to those of all groups: against scipy, and where the variance is known."""

import numpy as np
import pytest
from scipy import special

from matrix.statistics.arrays import Floats
from matrix.statistics.estimates.moderation import (
    MOST_DOF,
    NOTHING,
    Prior,
    digamma,
    trigamma,
    trigamma_inverse,
)


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
