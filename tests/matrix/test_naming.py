"""Causes of what changed: the search against plain least squares, and what it names."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import linalg, stats

from matrix.statistics.arrays import Floats
from matrix.statistics.causes import causes as search
from matrix.statistics.causes.candidates import CandidateSets, MatrixCells, every_candidate
from matrix.statistics.causes.causes import FALSE_ALARMS, Cause, Model, name_causes, name_slower
from matrix.statistics.causes.cell_noise import LEAN, CellNoise, LinkNoise

NOISE = 0.1
SITES = ["Ashford", "Barton", "Barton", "Corby", "Dalby", "Dalby", "Dalby", "Epsom", "Fairlight"]
SIZE = len(SITES)


def quiet(shape: tuple[int, int] = (SIZE, SIZE), holes: float = 0.2, seed: int = 1) -> Floats:
    rng = np.random.default_rng(seed)
    logs = rng.normal(0, NOISE, shape)
    logs[rng.random(shape) < holes] = np.nan
    return logs


def names(causes: list[Cause]) -> list[tuple[str, int | None, int | None]]:
    return [(cause.kind, cause.row, cause.column) for cause in causes]


def cells_of(logs: Floats, sites: list[str] | None = None) -> MatrixCells:
    return MatrixCells.of(np.isfinite(logs), None, sites)


def dense(noise: CellNoise) -> Floats:
    """Write the covariance out."""
    alike = noise.block[:, None] == noise.block
    shape = np.where(alike, noise.correlation, 0.0)
    np.fill_diagonal(shape, 1)
    return shape * np.outer(noise.scale, noise.scale)


def uneven(cells: MatrixCells, correlation: float) -> CellNoise:
    rng = np.random.default_rng(5)
    block = cells.site_of_row[cells.row] * SIZE + cells.site_of_column[cells.column]
    number = np.unique(block, return_inverse=True)[1]
    return CellNoise(rng.uniform(0.5, 2, len(cells)), number, correlation)


def columns(sets: CandidateSets, cells: int) -> Floats:
    """Write the sets out, a column for each."""
    flags = np.zeros((cells, len(sets.possible)))
    flags[sets.cell, sets.member] = 1
    return flags


@pytest.mark.parametrize("correlation", [0.0, 0.4])
def test_the_covariance_of_cells_is_solved_as_if_it_were_written_out(correlation):
    cells = cells_of(quiet(), SITES)
    noise = uneven(cells, correlation)
    inverse = linalg.inv(dense(noise))
    values = np.random.default_rng(3).normal(size=len(cells))
    np.testing.assert_allclose(noise.solve(values), inverse @ values)
    for sets in every_candidate(cells):
        flags = columns(sets, len(cells))
        expected = np.einsum("im,ij,jm->m", flags, inverse, flags)
        quadratic = noise.quadratic(sets.cell, sets.member, flags.shape[1])
        np.testing.assert_allclose(quadratic, expected, atol=1e-9)


@pytest.mark.parametrize("correlation", [0.0, 0.4])
def test_what_each_set_would_explain_is_that_of_least_squares_with_it(correlation):
    logs = quiet()
    cells = cells_of(logs, SITES)
    values, noise = logs[cells.row, cells.column], uneven(cells, correlation)
    white = linalg.inv(linalg.cholesky(dense(noise), lower=True))
    given = np.stack([np.ones(len(cells)), (cells.row == 2).astype(float)])
    model = Model.of(values, given, cells, noise)
    for sets in every_candidate(cells):
        flags = columns(sets, len(cells))
        weight = noise.quadratic(sets.cell, sets.member, flags.shape[1])
        effects, ts = model.added(sets, weight, None)
        for place in np.flatnonzero(sets.possible & (effects != 0)):
            design = white @ np.stack([*given, flags[:, place]]).T
            solution, _, rank, _ = linalg.lstsq(design, white @ values)
            left = white @ values - design @ solution
            dof = len(cells) - design.shape[1]
            error = np.sqrt(left @ left / dof * linalg.inv(design.T @ design)[-1, -1])
            assert rank == design.shape[1]
            assert effects[place] == pytest.approx(solution[-1])
            assert ts[place] == pytest.approx(solution[-1] / error)


def test_a_cause_has_the_factor_and_the_interval_of_least_squares():
    logs = quiet()
    logs[3] -= np.log(2)
    (cause,) = name_causes(logs)
    values = logs[np.isfinite(logs)]
    flags = np.broadcast_to(np.arange(SIZE)[:, None] == 3, logs.shape)[np.isfinite(logs)]
    line = stats.linregress(flags.astype(float), values)
    dof = len(values) - 2
    reach = stats.t.ppf(0.975, dof) * line.stderr
    assert names([cause]) == [("source", 3, None)]
    assert cause.n == flags.sum()
    assert np.log([cause.factor, cause.low, cause.high]) == pytest.approx(
        [line.slope, line.slope - reach, line.slope + reach]
    )
    assert cause.p == pytest.approx(SIZE * line.pvalue, rel=1e-4, abs=0)


def slow(
    logs: Floats, factor: float, rows: Sequence[int] = (), columns: Sequence[int] = ()
) -> None:
    """Divide what these rows and columns have by a factor, once where they cross."""
    flags = np.zeros(logs.shape, dtype=bool)
    flags[list(rows)] = flags[:, list(columns)] = True
    logs[flags] -= np.log(factor)


@pytest.mark.parametrize(
    ("injuries", "expected"),
    [
        ([(3, [4, 5, 6])], [("site", 4, None)]),
        ([(3, [], [4, 5, 6])], [("site", None, 4)]),
        ([(3, [1, 2], [1, 2])], [("site", 1, 1)]),
        ([(1 / 2, [5])], [("source", 5, None)]),
        ([(2, [], [5])], [("destination", None, 5)]),
        ([(2, [5], [5])], [("both", 5, 5)]),
        ([(3, [5]), (2, [], [1])], [("source", 5, None), ("destination", None, 1)]),
        ([(6, [5]), (2, [], [5])], [("source", 5, None), ("destination", None, 5)]),
    ],
)
def test_what_was_injured_is_named(injuries, expected):
    logs = quiet(holes=0.1)
    for injury in injuries:
        slow(logs, *injury)
    assert names(name_causes(logs, sites=SITES)) == expected


def test_a_link_that_was_injured_is_named():
    logs = quiet(holes=0.1)
    logs[2, 7] = -np.log(3)
    assert names(name_causes(logs, sites=SITES)) == [("link", 2, 7)]


def test_a_grid_that_changed_as_a_whole_has_no_cause():
    assert name_causes(quiet() - np.log(3), sites=SITES) == []


def test_what_is_small_is_no_news_however_certain():
    logs = quiet() / 100
    logs[3] -= np.log(1.15)
    assert name_causes(logs) == []
    logs[3] -= np.log(1.15)
    assert names(name_causes(logs)) == [("source", 3, None)]


@pytest.mark.parametrize(("size", "is_named"), [(20, True), (60, False)])
def test_of_many_endpoints_less_is_taken_for_more_than_chance(size, is_named):
    """The t of a source is put between what stands out of few endpoints and of so many."""
    logs = quiet((size, size), holes=0)
    alarms = FALSE_ALARMS["source"] / size / 2
    limits = [stats.t.isf(alarms * share, size**2 - 3) for share in (1, np.sqrt(1 / 3))]
    place = (np.arange(size) == 3).astype(float).repeat(size)
    line = stats.linregress(place, logs.ravel())
    logs[3] -= line.slope
    line = stats.linregress(place, logs.ravel())
    logs[3] -= np.mean(limits) * line.stderr * np.sqrt((size**2 - 2) / (size**2 - 3))
    logs *= 40
    assert bool(name_causes(logs)) is is_named


def test_half_of_a_grid_is_not_named_as_it_may_be_the_other_half_that_changed():
    logs = quiet((2, 30), holes=0)
    logs[0] -= np.log(4)
    assert name_causes(logs) == []


@pytest.mark.parametrize("seed", range(3))
def test_names_do_not_depend_on_the_order_of_rows_and_columns(seed):
    logs = quiet()
    slow(logs, 3, [5])
    slow(logs, 2, columns=[1])
    order = np.random.default_rng(seed).permutation(SIZE)
    mixed = name_causes(logs[np.ix_(order, order)], sites=[SITES[place] for place in order])
    expected = name_causes(logs, sites=SITES)
    assert [
        (cause.kind, *(None if at is None else order[at] for at in (cause.row, cause.column)))
        for cause in mixed
    ] == names(expected)
    assert [cause.factor for cause in mixed] == pytest.approx([it.factor for it in expected])


def test_rows_and_columns_are_one_endpoint_by_its_name():
    logs = quiet((6, 8), holes=0)
    rows, towards = list("abcdef"), [*"uvwxyaz", "c"]
    logs[2] -= np.log(3)
    logs[[0, 1, 3, 4, 5], 7] -= np.log(3)
    assert names(name_causes(logs, endpoints=rows + towards)) == [("both", 2, 7)]
    assert "both" not in [cause.kind for cause in name_causes(logs)]


@pytest.mark.parametrize("parameter", ["sites", "endpoints"])
def test_a_name_for_each_row_and_column_is_asked_for(parameter):
    with pytest.raises(ValueError, match=f"{parameter}: 3 names for 2 rows and 4 columns"):
        name_causes(np.zeros((2, 4)), **{parameter: ["a", "b", "c"]})


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (1, 1), (1, 9), (9, 1), (2, 2), (3, 3)])
@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1.5])
def test_what_is_empty_tiny_or_all_the_same_names_nothing(shape, value):
    logs = np.full(shape, value)
    assert name_causes(logs) == []
    assert name_slower(logs, np.full((7, *shape), value)) == []


def test_a_change_without_any_noise_is_named_alone():
    logs = np.zeros((6, 6))
    logs[2] = -np.log(2)
    (cause,) = name_causes(logs)
    assert names([cause]) == [("source", 2, None)]
    assert [cause.factor, cause.low, cause.high] == pytest.approx([0.5, 0.5, 0.5])


def test_spread_counts_up_to_a_factor():
    rng = np.random.default_rng(8)
    spread = rng.uniform(0.3, 3, (SIZE, SIZE))
    logs = quiet() * spread
    slow(logs, 2, [5], [5])
    first, second = (name_causes(logs, spread=factor * spread) for factor in (1, 40))
    assert names(first) == names(second) == [("both", 5, 5)]
    assert first[0].low == pytest.approx(second[0].low)


def test_a_cell_of_few_transfers_is_not_named_for_its_scatter():
    logs, spread = quiet(holes=0), np.ones((SIZE, SIZE))
    spread[2, 7] = 10
    logs[2, 7] = -10 * NOISE
    assert names(name_causes(logs)) == [("link", 2, 7)]
    assert name_causes(logs, spread=spread) == []


def test_how_alike_errors_of_a_site_are_is_learned_from_what_is_left():
    rng = np.random.default_rng(2)
    site = np.repeat(np.arange(20), 3)
    places = np.arange(60)
    shared = rng.normal(size=(20, 20))[site[:, None], site]
    for correlation in (0.0, 0.5):
        logs = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.normal(size=(60, 60))
        logs += rng.normal(size=(60, 1)) + rng.normal(size=60)
        learned = CellNoise.of(logs, None, site, site).correlation
        assert learned == pytest.approx(correlation, abs=0.06)
        assert CellNoise.of(logs, None, places, places).correlation == 0


def test_rows_and_columns_that_were_taken_out_do_not_make_a_small_grid_look_less_alike():
    """The mean of 60 grids has a standard error of 0.02."""
    site = np.repeat(np.arange(4), 3)
    learned = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        shared, own = rng.normal(size=(4, 4))[site[:, None], site], rng.normal(size=(12, 12))
        learned.append(CellNoise.of(np.sqrt(0.5) * (shared + own), None, site, site).correlation)
    # Each of 24 rows and columns has 24 pairs of a site.
    lean = LEAN * np.sqrt(2 / (24 * 24))
    assert np.mean(learned) - lean == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_how_much_of_the_scatter_is_that_of_few_transfers_is_learned_too(share):
    rng = np.random.default_rng(2)
    spread = np.sqrt(rng.choice([0.2, 1, 3], (60, 60)))
    variance = 1 - share + share * np.square(spread) / np.square(spread).mean()
    logs, places = rng.normal(size=(60, 60)) * np.sqrt(variance), np.arange(60)
    noise = CellNoise.of(logs, spread, places, places)
    np.testing.assert_allclose(np.square(noise.scale), variance.ravel(), rtol=0.25)


@pytest.mark.long
def test_intervals_cover_the_true_factor():
    """Of 300, 285 are expected; fewer than 273 or more than 296 are so in one of 1,000 runs."""
    covered = 0
    for seed in range(300):
        logs = quiet(seed=seed)
        slow(logs, 2, [5], [5])
        cause = next(cause for cause in name_causes(logs) if cause.kind == "both")
        covered += cause.low <= 0.5 <= cause.high
    assert 273 <= covered <= 296


def test_a_link_is_slower_than_its_own_history_where_its_own_scatter_is_small():
    rng = np.random.default_rng(4)
    scatter = np.full((SIZE, SIZE), NOISE)
    scatter[:, 1] = 8 * NOISE
    level = rng.normal(size=(SIZE, SIZE))
    history = level + scatter * rng.normal(size=(30, SIZE, SIZE))
    now = level.copy()
    now[2, 7] -= 8 * NOISE
    now[2, 1] -= 8 * NOISE
    assert names(name_slower(now, history)) == [("link", 2, 7)]
    now[2, 7] += 16 * NOISE
    assert name_slower(now, history) == []


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_how_alike_errors_are_is_learned_from_all_windows_of_a_history(correlation):
    """About 1,800 pairs of cells share a row or column and their sites: within 0.02 or so."""
    rng = np.random.default_rng(2)
    sites = np.repeat(np.arange(4), 2)
    shared = rng.normal(size=(30, 4, 4))[:, sites[:, None], sites]
    own = rng.normal(size=(30, 8, 8))
    rest = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
    rest[rng.random(rest.shape) < 0.2] = np.nan
    noise = CellNoise.of_history(np.full((8, 8), NOISE), rest, sites, sites)
    assert noise.correlation == pytest.approx(correlation, abs=0.08)
    assert np.all(noise.scale == NOISE)


@pytest.mark.parametrize("sites", [[0, 0, 1, 1, 1, 2, 3, 3], [3, 1, 1, 0, 2, 2, 2, 2], [*range(8)]])
def test_noise_by_cells_is_that_of_one_window_of_a_history(sites: list[int]):
    rng, site = np.random.default_rng(6), np.array(sites)
    rest = 0.9 * rng.normal(size=(8, 8))[site[:, None], site] + rng.normal(size=(8, 8))
    rest[rng.random(rest.shape) < 0.3] = np.nan
    scatter = np.where(np.isfinite(rest), rng.uniform(0.1, 0.3, (8, 8)), np.nan)
    whole = CellNoise.of_history(scatter, rest[None], site, site)
    cells = MatrixCells(*np.nonzero(np.isfinite(rest)), np.arange(8), np.arange(8), site, site)
    flat = [each[cells.row, cells.column] for each in (scatter, rest)]
    noise = CellNoise.of_cells(*flat, cells)
    assert noise.correlation == pytest.approx(whole.correlation, rel=1e-12)
    assert noise.block.tolist() == whole.block.tolist()
    assert noise.scale.tolist() == whole.scale.tolist()
    assert (noise.correlation > 0.1) is (max(sites) < 7)


def test_what_is_far_from_beyond_chance_costs_no_quantile(monkeypatch: pytest.MonkeyPatch):
    asked = []
    monkeypatch.setattr(search, "_quantiles", lambda tails, _: asked.append(tails) or [2.0])
    assert name_causes(quiet(seed=3)) == []
    assert asked == [(0.975,)]


@pytest.mark.long
def test_links_that_resemble_each_other_do_not_stand_out_from_their_history_by_chance():
    """Of 150, at most 3 are expected; more than 8 are so in one of 100 runs."""
    sites = [name for name in "abcd" for _ in range(2)]
    number = np.unique(sites, return_inverse=True)[1]
    rng = np.random.default_rng(5)
    named = 0
    for _ in range(150):
        shared = rng.normal(size=(31, 4, 4))[:, number[:, None], number]
        errors = np.sqrt(0.2) * shared + np.sqrt(0.8) * rng.normal(size=(31, 8, 8))
        named += bool(name_slower(errors[0], errors[1:], sites=sites))
    assert named <= 8


def test_an_endpoint_is_slower_than_its_own_history():
    rng = np.random.default_rng(4)
    history = NOISE * rng.normal(size=(30, SIZE, SIZE))
    now = NOISE * rng.normal(size=(SIZE, SIZE))
    slow(now, 2, columns=[5])
    (cause,) = name_slower(now, history)
    assert names([cause]) == [("destination", None, 5)]
    assert cause.low < 0.5 < cause.high


def test_the_history_of_a_link_is_its_weighted_mean_and_scatter():
    rng = np.random.default_rng(6)
    spread = rng.uniform(0.5, 2, (12, 3, 4))
    history = 2 + spread * rng.normal(size=spread.shape)
    history[:3, 0, 0] = np.nan
    history[:9, 1, 1] = np.nan
    link = LinkNoise.of(history, spread)
    weight = np.where(np.isfinite(history), spread**-2, 0)
    mean = np.nansum(weight * history, axis=0) / weight.sum(axis=0)
    mean[1, 1] = np.nan
    np.testing.assert_allclose(link.usual, mean)
    np.testing.assert_allclose(link.error, link.scatter / np.sqrt(weight.sum(axis=0)))
    own = np.sqrt(np.nansum(weight * (history - mean) ** 2, axis=0) / 11)[2]
    assert np.all(np.abs(link.scatter[2] - 1) <= np.abs(own - 1) + 0.2)
    assert np.isnan(link.scatter[1, 1])
