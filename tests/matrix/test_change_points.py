"""When levels jumped, against ruptures; how often the date is right, and how often noise jumps."""

import numpy as np
import pytest
import ruptures

from matrix.statistics.arrays import Floats, Integers, Stretches
from matrix.statistics.levels.change_noise import (
    NOISE_CHANCES,
    correlation_of_products,
    correlation_of_steps,
    critical,
)
from matrix.statistics.levels.change_points import (
    CHANCE_OF_CHANGE,
    SHORTEST_LEVEL,
    ChangePoints,
    Smooth,
    best_of_parts,
    change_points,
)

HALF = np.log(2)


def stretches_of(rows: Floats) -> tuple[Integers, Integers]:
    sequences, length = rows.shape
    return np.arange(sequences) * length, np.full(sequences, length)


def changes_of(rows: Floats) -> ChangePoints:
    return change_points(rows.ravel(), *stretches_of(rows))


def quiet(sequences: int, length: int, noise: float = 1.35, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).normal(0, np.log(noise), (sequences, length))


def halved(sequences: int, length: int, noise: float, seed: int = 2) -> Floats:
    """Return sequences whose level is half in the second half of their length."""
    rows = quiet(sequences, length, noise, seed)
    rows[:, length // 2 :] -= HALF
    return rows


def places(changes: ChangePoints, length: int) -> Integers:
    return np.asarray(changes.at - changes.sequence * length)


@pytest.mark.parametrize("length", [12, 47, 200])
def test_the_best_split_is_that_of_ruptures(length: int) -> None:
    rows = halved(20, length, 1.5)
    smooth = Smooth.of(rows.ravel(), Stretches(*stretches_of(rows)))
    splits = smooth.splits(smooth.stretches)
    for number, start in enumerate(smooth.stretches.starts.tolist()):
        values = smooth.values[start : start + length]
        oracle = ruptures.Binseg(model="l2", min_size=SHORTEST_LEVEL, jump=1).fit(values)
        place, _ = oracle.predict(n_bkps=1)
        assert splits.at[number] - start == place
        gain = oracle.cost.sum_of_costs([length]) - oracle.cost.sum_of_costs([place, length])
        assert splits.gain[number] == pytest.approx(gain)


@pytest.mark.long
def test_several_changes_are_where_the_best_segmentation_of_ruptures_has_them() -> None:
    rng = np.random.default_rng(3)
    levels = np.repeat([0.0, -1.2, 0.3, -0.6], [25, 30, 15, 40])
    rows = levels + rng.normal(0, 0.2, (30, len(levels)))
    rows[:, 33] -= 4  # an outlier is no level
    changes = changes_of(rows)
    assert np.bincount(changes.sequence).tolist() == [3] * 30
    for number, row in enumerate(rows):
        smooth = Smooth.of(row, Stretches(np.array([0]), np.array([len(row)])))
        oracle = ruptures.Dynp(model="l2", min_size=SHORTEST_LEVEL, jump=1).fit(smooth.values)
        *bounds, _ = oracle.predict(n_bkps=3)
        assert places(changes, len(levels))[changes.sequence == number].tolist() == bounds


@pytest.mark.parametrize(("noise", "share"), [(1.2, 0.99), (1.5, 0.87)])
def test_a_factor_of_2_in_the_middle_of_60_tests_is_dated_within_two(
    noise: float, share: float
) -> None:
    """The best split alone is at 0.998 and 0.88; some changes at 1.5 are not beyond chance."""
    rows = halved(4000, 60, noise)
    changes = changes_of(rows)
    near = np.abs(places(changes, 60) - 30) <= 2
    assert len(np.unique(changes.sequence[near])) / len(rows) >= share
    right = np.abs(places(changes, 60) - 30) <= 8
    covered = (changes.low <= -HALF) & (changes.high >= -HALF)
    assert covered[right].mean() >= 0.93
    dated = (changes.earliest <= changes.sequence * 60 + 30) & (
        changes.sequence * 60 + 30 <= changes.latest
    )
    assert dated[right].mean() >= 0.95


@pytest.mark.parametrize("length", [10, 20, 60, 150])
def test_noise_alone_changes_no_more_often_than_is_said(length: int) -> None:
    """Of normal noise, of one with heavy tails, and of none at all; three standard errors."""
    sequences = 300_000 // length
    most = CHANCE_OF_CHANGE + 3 * np.sqrt(CHANCE_OF_CHANGE * (1 - CHANCE_OF_CHANGE) / sequences)
    assert len(np.unique(changes_of(quiet(sequences, length)).sequence)) <= most * sequences
    tails = np.random.default_rng(4).standard_t(3, (sequences, length)) * 0.2
    # Heavy tails are drawn in, but not all of what they do.
    assert len(np.unique(changes_of(tails).sequence)) <= 2 * most * sequences
    assert changes_of(np.zeros((3, length))).at.size == 0


@pytest.mark.long
@pytest.mark.parametrize("length", [12, 50, 400])
def test_what_is_tabled_of_chance_is_what_noise_does(length: int) -> None:
    rows = quiet(2_000_000 // length, length, seed=5)
    smooth = Smooth.of(rows.ravel(), Stretches(*stretches_of(rows)))
    clear = np.sqrt(best_of_parts(smooth, smooth.stretches).gain) / smooth.noise
    for chance in NOISE_CHANCES[:2]:
        share = np.mean(clear > critical(np.array([length]), chance)[0])
        assert share == pytest.approx(chance, abs=4 * np.sqrt(chance / len(rows)))


def test_both_levels_are_told_without_outliers() -> None:
    rows = 3 + halved(40, 30, 1.2)
    told = changes_of(rows)
    rows[:, 20] -= 4  # one of the fifteen tests of the new level
    changes = changes_of(rows)
    for each in (told, changes):
        assert each.sequence.tolist() == list(range(40))
        assert each.level == pytest.approx(3, abs=0.2)
        assert each.level + each.shift == pytest.approx(3 - HALF, abs=0.2)


def test_a_dip_is_two_changes_though_the_whole_hides_it() -> None:
    rows = quiet(200, 90, seed=6)
    rows[:, 40:50] -= np.log(3)
    assert np.mean(np.bincount(changes_of(rows).sequence, minlength=200) == 2) > 0.95


def test_what_neighbours_have_in_common_is_no_change() -> None:
    """A wave with the hours of the day, and noise that goes on for some tests."""
    hours = np.arange(300) * 2 * np.pi / 6
    assert len(np.unique(changes_of(quiet(300, 300) + 0.4 * np.sin(hours)).sequence)) <= 3
    alike = quiet(300, 300, seed=7)
    for place in range(1, 300):
        alike[:, place] += 0.5 * alike[:, place - 1]
    assert len(np.unique(changes_of(alike).sequence)) <= 9


def correlated(sequences: int, length: int, by: float, seed: int = 9) -> Floats:
    """Return noise of which each value resembles the one before it: autoregressive."""
    rows = quiet(sequences, length, seed=seed)
    for place in range(1, length):
        rows[:, place] = by * rows[:, place - 1] + np.sqrt(1 - by**2) * rows[:, place]
    return rows


@pytest.mark.parametrize("by", [0.0, 0.3, 0.6])
def test_how_much_neighbours_resemble_each_other_is_measured(by: float) -> None:
    """In two ways, of which a change of level disturbs one alone."""
    rows = correlated(400, 200, by)
    stretches = Stretches(*stretches_of(rows))
    products, steps = (
        measure(rows.ravel(), stretches)
        for measure in (correlation_of_products, correlation_of_steps)
    )
    for number in (0, 7):
        row = rows[number]
        assert products[number] == pytest.approx(row[1:] @ row[:-1] / (row @ row))
        far, near = (row[by:] - row[:-by] for by in (2, 1))
        assert steps[number] == pytest.approx(np.mean(far**2) / np.mean(near**2) - 1)
    assert (products.mean(), steps.mean()) == pytest.approx((by, by), abs=0.03)
    rows[:, 100:] -= HALF
    assert correlation_of_products(rows.ravel(), stretches).mean() > by + 0.2
    assert correlation_of_steps(rows.ravel(), stretches).mean() == pytest.approx(by, abs=0.03)


@pytest.mark.parametrize(("length", "most"), [(20, 0.07), (40, 0.08), (60, 0.07), (100, 0.05)])
def test_noise_that_goes_on_is_seldom_taken_for_a_change(length: int, most: float) -> None:
    """With a correlation of 0.3 between neighbours: of 3 to 7 %, without a cure of up to 14 %."""
    rows = correlated(200_000 // length, length, 0.3)
    assert len(np.unique(changes_of(rows).sequence)) <= most * len(rows)


def test_a_change_in_noise_that_goes_on_is_found() -> None:
    rows = correlated(500, 100, 0.3)
    rows[:, 50:] -= 2 * HALF
    near = np.abs(places(changes_of(rows), 100) - 50) <= 2
    assert near.sum() / len(rows) >= 0.95


def test_sequences_of_any_length_stand_beside_each_other() -> None:
    rng = np.random.default_rng(8)
    counts = np.array([0, 1, 4, 60, 0, 9, 10, 33, 0])
    # Between them stands what is of none.
    starts = np.cumsum(counts + 3) - counts
    values = rng.normal(0, 0.1, starts[-1] + 50)
    values[starts[3] + 30 : starts[3] + 60] += 1
    together = change_points(values, starts, counts)
    assert together.sequence.tolist() == [3]
    alone = change_points(values[starts[3] :], np.array([0]), np.array([60]))
    assert (together.at - starts[3]).tolist() == alone.at.tolist() == [30]
    assert (together.first - starts[3], together.past - starts[3]) == (0, 60)
    assert together.shift == pytest.approx(alone.shift)
    nothing = change_points(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    assert nothing.at.size == 0
