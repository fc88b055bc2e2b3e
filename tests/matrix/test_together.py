"""Links together: against scipy, and how often they are called slower where they are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.day_scatter import FEWEST_DAYS
from matrix.statistics.pooling import Numbering
from matrix.statistics.together import Together, day_shifts
from matrix.statistics.two_samples import KnownScatter
from tests.matrix.samples import Sample, run_of

DAY_MS = 86_400_000
# The variance of the log of a median in parts of that of a mean, as two_samples has it.
INFLATION = {2: np.pi / 2 - 2.25 / 4, 3: np.pi / 2 - 0.68 / 3, 6: np.pi / 2 - 2.25 / 8}


def known(variance: float, dof: float) -> KnownScatter:
    return KnownScatter(np.array(variance * dof), np.array(dof))


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
    test = stats.t(18.3, mean, np.sqrt(0.04 / sum(weights)))
    assert found.ratio == pytest.approx(np.exp(mean))
    assert (found.low, found.high) == pytest.approx(tuple(np.exp(test.interval(0.95))), rel=1e-6)
    assert found.p == pytest.approx(2 * test.cdf(2 * mean) if mean > 0 else 2 * test.sf(0))
    assert (found.links, found.ok, found.other_ok) == (3, 11, 18)


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


def scatter_by_hand(logs: Floats) -> KnownScatter:
    """Do with each day and the one before what is done with two sides, all tested alike."""
    medians = np.median(logs, axis=2)
    steps = np.diff(medians, axis=0).mean(axis=1)
    tests = logs.shape[2]
    weight = logs.shape[1] / (2 * INFLATION[tests] / tests)
    count = len(steps)
    return known(float((steps**2).mean() * weight), 2 * count**2 / (3 * count - 1))


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
        expected = scatter_by_hand(logs[:, chosen])
        assert found.squares[number] == pytest.approx(float(expected.squares), rel=1e-5)
        assert found.dof[number] == pytest.approx(float(expected.dof))
    # Of a few links, nothing else is read.
    alone = day_shifts(runs, Numbering(np.array([1, 2, 3])), from_first[None])
    assert alone.squares[0] == found.squares[1]
    # What all links of a day share counts the more, the more links there are.
    assert found.squares[0] > 1.5 * found.squares[1]
    short = day_shifts(runs[: FEWEST_DAYS - 1], Numbering(np.array([1, 2, 3])), every[None])
    assert (short.squares[0], short.dof[0]) == (0, 0)


@pytest.mark.parametrize("of", [{}, {"heavy": 1.0}, {"link_days": 0.1, "site_days": 0.05}], ids=str)
def test_a_site_at_four_fifths_is_found_and_one_that_did_not_change_is_not(
    of: dict[str, float],
) -> None:
    """By 108 tests on each side over 18 links, as in a day; of 600 histories without a change."""
    rng = np.random.default_rng(6)
    certain = np.array([certain_of(rng, **of) for _ in range(600)])
    false, found = certain.mean(axis=0)
    assert false < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 600)
    assert found > (0.6 if of.get("site_days") else 0.95)


def certain_of(rng: np.random.Generator, **of: float) -> tuple[bool, bool]:
    """Say of a history whether it is certain to change as it is, and at four fifths."""
    logs = history(rng, 30, 18, 6, **of)
    scatter = scatter_by_hand(logs[:28])
    centres = np.exp(np.median(logs[[29, 28]], axis=2))
    counts: Integers = np.full((2, 18), 6)
    pairs = (np.stack([centres[0] * factor, centres[1]]) for factor in (1, 0.8))
    same, slower = (Together.of(pair, counts, "median", scatter) for pair in pairs)
    return same.p < 0.05, slower.kind == "slower"
