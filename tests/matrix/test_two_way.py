"""The two-way model against a least-squares solve, and what published figures say of it."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.estimates import two_way
from matrix.statistics.estimates.two_way import Components, TwoWay
from tests.matrix import world


@st.composite
def matrices(draw: st.DrawFn) -> Floats:
    """Matrices with holes, also such that no values connect."""
    shape = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    holes = draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    return np.where(rng.random(shape) < holes, np.nan, rng.normal(2, 1, shape))


def design(has_value: Flags) -> Floats:
    """A line for each value: 1 for its row, 1 for its column."""
    rows, columns = np.nonzero(has_value)
    lines = np.zeros((len(rows), sum(has_value.shape)))
    lines[np.arange(len(rows)), rows] = 1
    lines[np.arange(len(rows)), has_value.shape[0] + columns] = 1
    return lines


@given(matrices())
def test_least_squares_fits_what_a_solver_fits(logs: Floats) -> None:
    has_value = np.isfinite(logs)
    model, lines, values = two_way.fit(logs), design(has_value), logs[has_value]
    solution, _, rank, _ = np.linalg.lstsq(lines, values, rcond=None)
    np.testing.assert_allclose(model.fitted[has_value], lines @ solution, atol=1e-9)
    np.testing.assert_allclose(model.rest[has_value], values - lines @ solution, atol=1e-9)
    assert np.array_equal(np.isnan(model.rest), ~has_value)
    assert model.dof == len(values) - rank
    hat = lines @ np.linalg.pinv(lines)
    np.testing.assert_allclose(model.leverage[has_value], np.diag(hat), atol=1e-9)


@given(matrices())
def test_effects_are_about_0_in_each_component_and_their_errors_those_of_a_solver(
    logs: Floats,
) -> None:
    model = two_way.fit(logs)
    covariance = np.linalg.pinv(design(np.isfinite(logs)).T @ design(np.isfinite(logs)))
    sides = (
        (model.row, model.row_error, model.row_component, 0),
        (model.column, model.column_error, model.column_component, logs.shape[0]),
    )
    for effects, errors, component, first in sides:
        assert np.array_equal(np.isnan(effects), component < 0)
        for number in range(model.components):
            there = np.flatnonzero(component == number)
            assert abs(effects[there].sum()) < 1e-9
            if len(there) < 2 or not model.dof:
                assert np.isnan(errors[there]).all()
                continue
            centring = np.eye(len(there)) - 1 / len(there)
            block = covariance[np.ix_(first + there, first + there)]
            variance = np.diag(centring @ block @ centring) * model.sigma**2
            np.testing.assert_allclose(errors[there] ** 2, variance, atol=1e-9)


@given(matrices())
def test_leaving_one_out_is_fitting_all_the_others(logs: Floats) -> None:
    model = two_way.fit(logs)
    by_others, about_mean = [], []
    for row, column in np.argwhere(np.isfinite(logs)):
        others = logs.copy()
        others[row, column] = np.nan
        predicted = two_way.fit(others).fitted[row, column]
        if np.isfinite(predicted):
            by_others.append(logs[row, column] - predicted)
            same = model.row_component == model.row_component[row]
            about_mean.append(logs[row, column] - np.nanmean(logs[same]))
    if np.square(about_mean).sum() < 1e-9:
        assert np.isnan(model.r2_left_out) or not by_others
        return
    expected = 1 - np.square(by_others).sum() / np.square(about_mean).sum()
    assert model.r2_left_out == pytest.approx(expected, abs=1e-6)


@given(matrices(), st.sampled_from(two_way.FITS))
def test_fits_of_a_matrix_and_of_its_transposed_mirror_each_other(logs: Floats, how: str) -> None:
    model, mirrored = two_way.fit(logs, how), two_way.fit(logs.T, how)
    if how == "means":
        np.testing.assert_allclose(model.row, mirrored.column, atol=1e-9)
        np.testing.assert_allclose(model.rest, mirrored.rest.T, atol=1e-9)
    np.testing.assert_allclose(
        model.fitted + model.rest, np.where(np.isfinite(logs), logs, np.nan), atol=1e-9
    )
    assert model.components == mirrored.components
    assert sorted(model.levels) == pytest.approx(sorted(mirrored.levels), abs=10)


@given(matrices())
def test_a_polish_leaves_medians_of_0(logs: Floats) -> None:
    model = two_way.fit(logs, "polish")
    # Columns are polished last.
    for column in model.rest.T:
        values = column[np.isfinite(column)]
        assert not values.size or abs(np.median(values)) < 1e-9


@pytest.mark.parametrize("how", two_way.FITS)
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (1, 4), (4, 1), (3, 3)])
def test_no_matrix_is_too_small(shape: tuple[int, int], how: str) -> None:
    for logs in (np.full(shape, np.nan), np.ones(shape), np.full(shape, np.inf)):
        model = two_way.fit(logs, how)
        assert model.row.shape == shape[:1]
        assert model.column.shape == shape[1:]
        assert model.rest.shape == shape
        assert np.isnan(model.r2)
        assert np.isnan(model.reach()) or model.dof


def test_what_no_values_connect_is_not_compared() -> None:
    hole = np.nan
    logs = np.array([[1, 2, hole, hole], [hole, hole, 3, 4], [hole, hole, 6, 8.0]])
    model = two_way.fit(logs)
    assert model.components == 2
    assert model.levels == pytest.approx([5.25, 1.5])
    assert model.level == pytest.approx(5.25)
    assert model.row_component.tolist() == [1, 0, 0]
    assert np.isnan(model.fitted[0, 2:]).all()
    assert np.isnan(model.row_error[0])


def test_a_long_chain_is_one_component() -> None:
    # Each step of the search finds one row more.
    chain = np.eye(300, dtype=bool) | np.eye(300, k=1, dtype=bool)
    assert Components.of(chain).count == 1


def published(how: str) -> tuple[TwoWay, list[str], list[str]]:
    lines = list(csv.reader(world.PUBLISHED.read_text().splitlines()))
    rates = np.array([line[1:-1] for line in lines[1:-1]], dtype=float)
    sources = [line[0].removesuffix("_DATADISK") for line in lines[1:-1]]
    destinations = [name.removesuffix("_DATADISK") for name in lines[0][1:-1]]
    return two_way.fit(np.log(rates), how), sources, destinations


def test_the_published_matrix_by_means() -> None:
    model, sources, destinations = published("means")
    assert model.r2 == pytest.approx(0.848, rel=0.02)
    assert model.r2_adjusted == pytest.approx(0.81, rel=0.02)
    assert model.r2_left_out == pytest.approx(0.76, rel=0.02)
    as_source = dict(zip(sources, np.exp(model.row), strict=True))
    assert as_source["UKI-NORTHGRID-MAN-HEP"] == pytest.approx(0.458, rel=0.02)
    assert as_source["UKI-LT2-QMUL"] == pytest.approx(2.548, rel=0.02)
    assert as_source["UKI-SCOTGRID-GLASGOW"] == pytest.approx(1.0, rel=0.02)
    as_destination = dict(zip(destinations, np.exp(model.column), strict=True))
    assert as_destination["TAIWAN-LCG2"] == pytest.approx(0.277, rel=0.02)
    assert as_destination["TRIUMF-LCG2"] == pytest.approx(0.553, rel=0.02)
    off = [
        ("UKI-LT2-QMUL", "FZK-LCG2", 0.287),
        ("UKI-SOUTHGRID-RALPP", "NDGF-T1", 0.403),
        ("UKI-NORTHGRID-MAN-HEP", "NDGF-T1", 0.408),
        ("UKI-SCOTGRID-GLASGOW", "NDGF-T1", 3.279),
    ]
    for source, destination, factor in off:
        rest = model.rest[sources.index(source), destinations.index(destination)]
        assert np.exp(rest) == pytest.approx(factor, rel=0.02)


def test_the_published_matrix_by_a_polish() -> None:
    model, sources, destinations = published("polish")
    assert model.r2 == pytest.approx(0.829, rel=0.02)
    rest = np.exp(model.rest)
    assert rest[sources.index("UKI-LT2-QMUL"), destinations.index("FZK-LCG2")] == pytest.approx(
        0.214, rel=0.02
    )
    glasgow = np.exp(model.row[sources.index("UKI-SCOTGRID-GLASGOW")])
    assert glasgow == pytest.approx(0.77, rel=0.02)
    assert np.exp(np.median(np.abs(model.rest))) == pytest.approx(1.13, rel=0.02)


@pytest.mark.long
@pytest.mark.parametrize("how", two_way.FITS)
def test_intervals_hold_the_true_effect_as_often_as_they_say(how: str) -> None:
    rng = np.random.default_rng(20261123)
    held = []
    for _ in range(150):
        row, column = rng.normal(0, 0.5, 12), rng.normal(0, 0.5, 9)
        logs = row[:, None] + column + rng.normal(0, 0.4, (12, 9))
        logs[rng.random(logs.shape) < 0.3] = np.nan
        model = two_way.fit(logs, how)
        true = row - (np.mean(row) if how == "means" else np.median(row))
        held.append(np.abs(model.row - true) <= model.reach() * model.row_error)
    # 1,800 intervals, 12 of a matrix together: one standard error is about 0.007.
    assert 0.93 <= np.mean(held) <= 0.97
