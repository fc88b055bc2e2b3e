"""The statistics of cells against plain numpy, sample by sample, and against the database."""

import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from itertools import permutations
from unittest.mock import Mock

import numpy as np
import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from matrix.query.catalogue import EXTRAS, QUANTILES
from matrix.statistics import arrays
from matrix.statistics.samples import pooling, reduce
from matrix.statistics.samples.pooling import Numbering, Pooling
from matrix.statistics.samples.quantiles import quantiles
from matrix.statistics.samples.reduce import Reduced
from matrix.statistics.samples.run import Run
from tests.matrix.samples import Sample, run_of

IDS = (1, 2, 7, 300, 65_535)
UNKNOWN = 299
# The first groups samples by cell, the second takes them in the order of their keys, and the third
# needs none of either.
WAYS = (tuple(EXTRAS), tuple(QUANTILES), ())
PLACES = len(IDS)
ALL_OF_TWO = np.ones((2, 2), dtype=bool)

# Few different rates, so that equal ones meet in a cell, and any others.
rate = st.none() | st.sampled_from([1.5e6, 4e6]) | st.floats(2**-10, 2**40, width=32)
sample = st.builds(
    Sample,
    source=st.sampled_from([*IDS, UNKNOWN]),
    destination=st.sampled_from([*IDS, UNKNOWN]),
    rate=rate,
    size=st.integers(1, 10**12),
    start=st.just(1),
)
runs = st.lists(st.lists(sample, max_size=40), max_size=4)
groups = st.lists(st.integers(0, 3), min_size=PLACES, max_size=PLACES)
shown = st.lists(st.booleans(), min_size=PLACES**2, max_size=PLACES**2)


def pooled(rows: Sequence[int], columns: Sequence[int], shown: Sequence[bool]) -> Pooling:
    return Pooling(
        Numbering(np.array(IDS)),
        np.array(rows),
        np.array(columns),
        np.array(shown).reshape(PLACES, PLACES),
        (max(rows) + 1, max(columns) + 1),
    )


def each_link(*, but: tuple[int, ...] = ()) -> Pooling:
    """Give every link its own cell; hide some by their number."""
    return pooled(range(PLACES), range(PLACES), [one not in but for one in range(PLACES**2)])


def cell_of(one: Sample, by: Pooling) -> tuple[int, int] | None:
    if one.source not in IDS or one.destination not in IDS:
        return None
    source, destination = IDS.index(one.source), IDS.index(one.destination)
    if not by.shown[source, destination]:
        return None
    return int(by.rows[source]), int(by.columns[destination])


def expected(name: str, here: list[Sample]) -> float:
    """Compute the statistic in float64 from the rates as float32."""
    done = [one for one in here if one.rate is not None]
    rates = np.array([one.rate for one in done], dtype=np.float32).astype(np.float64)
    if name in ("ok", "failed"):
        return len(done) if name == "ok" else len(here) - len(done)
    if not done or (name == "std" and len(done) < 2):
        return np.nan
    if name == "throughput":
        sizes = np.array([one.size for one in done], dtype=np.float64)
        return float(sizes.sum() / (sizes / rates).sum())
    if name in QUANTILES:
        return float(np.quantile(rates, QUANTILES[name]))
    return float(rates.mean() if name == "mean" else rates.std(ddof=1))


def agrees(found: Reduced, samples: list[Sample], by: Pooling) -> None:
    cells: dict[tuple[int, int], list[Sample]] = {cell: [] for cell in np.ndindex(by.shape)}
    for one in samples:
        if (cell := cell_of(one, by)) is not None:
            cells[cell].append(one)
    columns = {name: getattr(found, name) for name in ("ok", "failed", "mean", "std")}
    for name, values in (columns | found.extras).items():
        for cell, here in cells.items():
            wanted = pytest.approx(expected(name, here), rel=1e-9, abs=1e-9, nan_ok=True)
            assert values[cell] == wanted, (name, cell, here)


# As in production, where all of this is one piece; in many; at most eight cells in a piece.
@pytest.mark.parametrize("limits", [{}, {"CHUNK": 3}, {"CHUNK": 10**6, "HIDDEN": 8}])
@given(runs=runs, rows=groups, columns=groups, shown=shown)
def test_each_statistic_of_each_cell_is_what_its_samples_give_one_by_one(
    limits: dict[str, int],
    runs: list[list[Sample]],
    rows: list[int],
    columns: list[int],
    shown: list[bool],
) -> None:
    by = pooled(rows, columns, shown)
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(pooling, name, limit)
        for extras in WAYS:
            found = reduce.reduce([run_of(some) for some in runs], by, extras)
            agrees(found, [one for some in runs for one in some], by)


@pytest.mark.parametrize("chunk", [1, 2, 5, 1000])
@given(samples=st.lists(sample, max_size=40), shown=shown)
def test_one_run_is_reduced_by_the_order_of_its_keys_in_any_number_of_parts(
    chunk: int, samples: list[Sample], shown: list[bool]
) -> None:
    by = pooled(range(PLACES), range(PLACES), shown)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "CHUNK", chunk)
        agrees(reduce.reduce([run_of(samples)], by, tuple(QUANTILES)), samples, by)


def test_one_run_may_have_more_links_than_a_chunk_has_cells() -> None:
    ids = np.arange(1, 261)
    links = (ids[:, None] << 16 | ids).ravel()
    rates = np.arange(1, 1 + len(links), dtype=np.float32)
    keys = links.astype(np.uint64) << np.uint64(32) | rates.view(np.uint32)
    run = Run(keys, links.astype(np.uint32), links)
    shown = np.ones((260, 260), dtype=bool)
    shown[259] = False
    by = Pooling(Numbering(ids), np.arange(260), np.arange(260), shown, shown.shape)
    found = reduce.reduce([run], by, tuple(QUANTILES))
    expected = np.where(shown, rates.reshape(shown.shape), np.nan)
    for values in (found.mean, *found.extras.values()):
        np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(found.ok, shown)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 8, 9, 500, 512, 513, 3000])
def test_quantiles_are_exact_for_any_number_of_samples(number: int) -> None:
    generator = np.random.default_rng(number)
    rates = generator.lognormal(16, 1, number).tolist()
    samples = [Sample(1, 2, one) for one in rates] + [Sample(1, 2, None)] * (number // 3)
    samples += [Sample(2, 1, None)] * number
    runs = [run_of(samples[start::3]) for start in range(3)]
    for extras in WAYS:
        agrees(reduce.reduce(runs, each_link(), extras), samples, each_link())


@pytest.mark.parametrize("extras", WAYS)
def test_groups_of_all_sizes_side_by_side_are_what_each_is_alone(extras: Collection[str]) -> None:
    """Some links with few, some with many, some that failed, and equal rates without scatter."""
    generator = np.random.default_rng(1)
    ends = list(permutations(IDS, 2))
    samples = []
    for number, (source, destination) in enumerate(ends):
        rates = generator.lognormal(16, 1, number * number).tolist()
        if number % 3 == 0:
            rates = [3e6] * len(rates)
        samples += [Sample(source, destination, one) for one in (*rates, *[None] * (number % 4))]
    runs = [run_of(samples[start::2]) for start in range(2)]
    hidden = each_link(but=(1, 7))
    agrees(reduce.reduce(runs, hidden, extras), samples, hidden)
    found = reduce.reduce(runs, each_link(), extras)
    agrees(found, samples, each_link())
    alike = [number for number in range(2, len(ends)) if number % 3 == 0]
    assert [
        found.std[IDS.index(ends[number][0]), IDS.index(ends[number][1])] for number in alike
    ] == [0.0] * len(alike)


def test_failed_samples_within_a_group_count_for_no_quantile() -> None:
    counts = np.array([1, 2, 3, 600, 0, 1])
    rates = np.full(counts.sum(), -1.0, dtype=np.float32)
    rates[[1, 4, 3, 6]] = [5.0, 6.0, 7.0, 8.0]
    ok = np.array([0, 1, 2, 1, 0, 0])
    starts = np.cumsum(counts) - counts
    found = quantiles(rates.view(np.uint32), starts, counts, ok, (0.5,))
    np.testing.assert_equal(found, [[np.nan, 5.0, 6.5, 8.0, np.nan, np.nan]])
    none = quantiles(rates.view(np.uint32), starts, counts, np.zeros_like(ok), (0.5, 0.95))
    assert np.isnan(none).all()


def test_an_endpoint_registered_just_now_is_none_of_the_others() -> None:
    samples = [Sample(source, 1 + source % 3, 1.0) for source in (0, 1, 2, 3, 4, 65_535)]
    by = Pooling(Numbering(np.array([1, 2])), np.arange(2), np.arange(2), ALL_OF_TWO, (2, 2))
    assert reduce.reduce([run_of(samples)], by).ok.tolist() == [[0, 1], [0, 0]]
    assert np.count_nonzero(by.numbering.newest([run_of(samples)])) == 1


def test_equal_rates_have_no_spread_at_all() -> None:
    found = reduce.reduce([run_of([Sample(1, 2, 7654321.1)] * 1000)], each_link())
    assert found.std[0, 1] == 0
    assert found.mean[0, 1] == np.float32(7654321.1)


def test_a_small_spread_on_a_large_rate_keeps_its_digits() -> None:
    samples = [Sample(1, 2, rate) for rate in (1e9, 1e9 + 64, 1e9 + 128)]
    assert reduce.reduce([run_of(samples)], each_link()).std[0, 1] == pytest.approx(64, 1e-12)


def test_samples_of_hidden_links_are_not_even_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooling, "CHUNK", 1)
    runs = [run_of([Sample(1, 2, 1.0), Sample(2, 7, 2.0), Sample(300, 1, 3.0)])]
    hidden = tuple(range(PLACES, 2 * PLACES))
    _, chunks = pooling.cut(runs, each_link(but=hidden))
    sources = [int(key >> np.uint64(48)) for one in chunks for keys in one.keys for key in keys]
    assert sorted(sources) == [1, 300]


@pytest.mark.parametrize(("hidden", "is_cut"), [(PLACES, False), (4 * PLACES, True)])
def test_runs_are_cut_where_most_links_are_hidden(
    hidden: int, is_cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooling, "CHUNK", 1)
    cut = Mock(wraps=pooling.cut)
    monkeypatch.setattr(reduce, "cut", cut)
    samples = [Sample(1, 2, 1.0), Sample(65_535, 1, 2.0), Sample(65_535, 1, 4.0)]
    by = each_link(but=tuple(range(hidden)))
    agrees(reduce.reduce([run_of(samples)], by, tuple(QUANTILES)), samples, by)
    assert cut.called == is_cut


def test_only_what_is_asked_for_is_computed_and_throughput_needs_sizes() -> None:
    run = run_of([Sample(1, 2, 1.0)])
    assert reduce.reduce([run], each_link()).extras == {}
    assert list(reduce.reduce([run], each_link(), ["p95"]).extras) == ["p95"]
    bare = type(run)(run.keys, run.links, run.lasts, None)
    with pytest.raises(ValueError, match="sizes"):
        reduce.reduce([bare], each_link(), ["throughput"])


@pytest.mark.parametrize("chunk", [1, 2, 10**6])
def test_the_newest_result_of_a_link_is_that_of_the_last_run_that_has_it(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooling, "CHUNK", chunk)
    runs = [
        run_of([Sample(1, 2, 1.0, start=1000), Sample(1, 2, 2.0, start=2000)]),
        run_of([Sample(2, 65_535, None, start=3000), Sample(UNKNOWN, 1, 1.0, start=3500)]),
        run_of([Sample(1, 2, 1.0, start=4000), Sample(65_535, 1, 1.0, start=5000)]),
    ]
    found = Numbering(np.array(IDS)).newest(runs)
    assert {cell: value for cell, value in np.ndenumerate(found) if value} == {
        (0, 1): 4000,
        (1, 4): 3000,
        (4, 0): 5000,
    }


def test_nothing_is_reduced_to_blank_cells() -> None:
    found = reduce.reduce([], each_link(), EXTRAS)
    agrees(found, [], each_link())
    empty = Numbering(np.array([], dtype=np.int64))
    assert empty.newest([run_of([Sample(1, 2, 1.0)])]).shape == (0, 0)
    none = np.array([], dtype=np.int64)
    nowhere = Pooling(empty, none, none, np.zeros((0, 0), dtype=bool), (0, 0))
    assert reduce.reduce([run_of([Sample(1, 2, 1.0)])], nowhere).mean.shape == (0, 0)


def test_averages_leave_blank_cells_out_and_a_blank_row_has_none() -> None:
    found = reduce.averages(np.array([[1.0, 3.0], [np.nan, 5.0], [np.nan, np.nan]]))
    np.testing.assert_equal(found.row, [2.0, 5.0, np.nan])
    np.testing.assert_equal(found.column, [1.0, 4.0])
    assert found.grand == 3.0


def test_averages_of_an_empty_matrix_are_blank() -> None:
    assert np.isnan(reduce.averages(np.empty((0, 0))).grand)


def test_work_comes_back_in_order_and_its_errors_too() -> None:
    assert arrays.each(lambda item: item * 2, list(range(100))) == list(range(0, 200, 2))
    assert arrays.each(lambda some: arrays.each(abs, some), [[-1, 2], [-3]]) == [[1, 2], [3]]
    assert arrays.each(abs, []) == []
    with pytest.raises(ZeroDivisionError):
        arrays.each(lambda item: 1 / item, [1, 2, 0, 3])


SQL = """
SELECT cell, avg(rate), stddev_samp(rate), min(rate), max(rate),
       percentile_cont(0.05) WITHIN GROUP (ORDER BY rate),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY rate),
       percentile_cont(0.95) WITHIN GROUP (ORDER BY rate),
       percentile_cont(0.99) WITHIN GROUP (ORDER BY rate)
FROM unnest(%s::int[], %s::float8[]) AS sample (cell, rate) GROUP BY cell
"""


@pytest.mark.long
@pytest.mark.parametrize("program", ["sonar.wsgi", "sonar.celery"], ids=["web", "worker"])
def test_linear_algebra_has_no_threads_of_its_own_beside_those_of_requests(program: str) -> None:
    code = f"""
import os, {program}
if "{program}" == "sonar.celery":
    sonar.celery.app.loader.import_default_modules()
import numpy as np
np.ones((400, 400)) @ np.ones((400, 400))
print(len(os.listdir("/proc/self/task")))
"""
    environment = {name: value for name, value in os.environ.items() if "OPENBLAS" not in name}
    run = [sys.executable, "-c", code]
    said = subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
    assert said.split()[-1] == "1"


@pytest.mark.django_db
def test_the_database_computes_the_same_statistics() -> None:
    generator = np.random.default_rng(20110201)
    rates = generator.lognormal(16, 1, 1000).tolist()
    samples = [Sample(*generator.choice(IDS, 2).tolist(), one) for one in rates]
    found = reduce.reduce([run_of(samples[:600]), run_of(samples[600:])], each_link(), EXTRAS)
    cells = [IDS.index(one.source) * PLACES + IDS.index(one.destination) for one in samples]
    with connection.cursor() as cursor:
        cursor.execute(SQL, [cells, rates])
        rows = cursor.fetchall()
    assert len(rows) == PLACES**2
    extras = [found.extras[name].ravel() for name in ("min", "max", "p05", "median", "p95", "p99")]
    for number, *wanted in rows:
        here = [values[number] for values in (found.mean.ravel(), found.std.ravel(), *extras)]
        assert here == pytest.approx(wanted, rel=2e-7)


def test_ratios_are_averaged_by_their_logarithms_and_none_of_them_breaks_it() -> None:
    means = reduce.geometric_averages(np.array([[0.5, 2.0], [0.0, np.nan], [np.nan, np.nan]]))
    np.testing.assert_allclose(means.row, [1, 0, np.nan])
    assert (means.column.tolist(), means.grand) == ([0, 2], 0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_numbers_stand_where_they_are_flagged_and_nothing_else(kind: type[np.floating]) -> None:
    values = np.array([1.5, -0.0, np.inf, np.nan, 3.0], dtype=kind)
    flags = np.array([True, True, True, True, False])
    for choose, blank in ((arrays.nan_unless, np.nan), (arrays.zero_unless, 0.0)):
        chosen = choose(flags, values)
        assert chosen.dtype == kind
        assert chosen.tobytes()[: -chosen.itemsize] == values.tobytes()[: -values.itemsize]
        np.testing.assert_equal(chosen[-1], kind(blank))
