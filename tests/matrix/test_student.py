"""Student's t against scipy."""

import numpy as np
import pytest
from scipy import stats

from matrix.statistics.estimates import student

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
    assert several == pytest.approx(
        [float(student.quantile(p, 12)) for p in (0.6, 0.975, 1 - 1e-7)]
    )


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
