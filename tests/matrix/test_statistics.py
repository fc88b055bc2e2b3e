"""The statistics of cells against numpy and against the database."""

from __future__ import annotations

import numpy as np
import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from matrix import statistics
from matrix.statistics import Samples

CELLS = 5
FINITE = {"allow_nan": False, "allow_infinity": False}
sample = st.tuples(
    st.integers(0, CELLS - 1),
    st.booleans(),
    st.integers(1, 10**12),
    st.floats(0.001, 1e5, **FINITE),
)
samples = st.lists(sample, max_size=60)


def arrays(rows: list[tuple[int, bool, int, float]]) -> Samples:
    cell, ok, size, seconds = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Samples(
        np.array(cell, dtype=np.int64),
        np.array(ok, dtype=bool),
        np.array(size, dtype=np.float64),
        np.array(seconds, dtype=np.float64),
    )


def by_cell(stat: str, rates: np.ndarray) -> float:
    if stat in statistics.QUANTILES:
        return float(np.quantile(rates, statistics.QUANTILES[stat]))
    if stat == "std":
        return float(np.std(rates, ddof=1)) if len(rates) > 1 else np.nan
    return float({"mean": np.mean, "min": np.min, "max": np.max}[stat](rates))


@pytest.mark.parametrize("stat", ["mean", "std", "min", "max", "median", "p05", "p95"])
@given(rows=samples)
def test_each_statistic_of_each_cell_is_what_numpy_gives_for_its_rates(
    stat: str, rows: list[tuple[int, bool, int, float]]
) -> None:
    done = arrays(rows).done
    found = statistics.rates(stat, done, CELLS)
    for cell in range(CELLS):
        rates = done.rate[done.cell == cell]
        expected = by_cell(stat, rates) if len(rates) else np.nan
        scale = float(np.max(rates)) if len(rates) else 1.0
        assert found[cell] == pytest.approx(expected, rel=1e-6, abs=1e-6 * scale, nan_ok=True)


@given(rows=samples)
def test_throughput_is_all_bytes_over_all_seconds(rows: list[tuple[int, bool, int, float]]) -> None:
    done = arrays(rows).done
    found = statistics.throughput(done, CELLS)
    for cell in range(CELLS):
        here = done.cell == cell
        expected = done.bytes[here].sum() / done.seconds[here].sum() if here.any() else np.nan
        assert found[cell] == pytest.approx(expected, nan_ok=True)


def test_a_small_spread_on_a_large_rate_keeps_its_digits() -> None:
    rates = np.array([1e9, 1e9 + 1, 1e9 + 2])
    assert statistics.std(np.zeros(3, dtype=np.int64), rates, 1)[0] == pytest.approx(1.0)


def test_averages_leave_blank_cells_out_and_a_blank_row_has_none() -> None:
    found = statistics.averages(np.array([[1.0, 3.0], [np.nan, 5.0], [np.nan, np.nan]]))
    np.testing.assert_equal(found.row, [2.0, 5.0, np.nan])
    np.testing.assert_equal(found.column, [1.0, 4.0])
    assert found.grand == 3.0


def test_averages_of_an_empty_matrix_are_blank() -> None:
    assert np.isnan(statistics.averages(np.empty((0, 0))).grand)


SQL = """
SELECT cell, avg(rate), stddev_samp(rate), min(rate), max(rate),
       percentile_cont(0.05) WITHIN GROUP (ORDER BY rate),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY rate),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY rate)
FROM unnest(%s::int[], %s::float8[]) AS sample (cell, rate) GROUP BY cell
"""


@pytest.mark.django_db
def test_the_database_computes_the_same_statistics() -> None:
    generator = np.random.default_rng(20110201)
    cell = generator.integers(0, 40, 1000)
    rate = generator.lognormal(16, 1, 1000)
    names = ("mean", "std", "min", "max", "p05", "median", "p95")
    done = Samples(cell, np.ones(1000, dtype=bool), rate, np.ones(1000))
    found = {name: statistics.rates(name, done, 40) for name in names}
    with connection.cursor() as cursor:
        cursor.execute(SQL, [cell.tolist(), rate.tolist()])
        rows = cursor.fetchall()
    assert len(rows) == 40
    for number, *expected in rows:
        assert [found[name][number] for name in names] == pytest.approx(expected, rel=2e-7)
