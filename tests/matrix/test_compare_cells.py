"""Both sides of all cells at once: as reduce() has this one, and as each cell is by itself."""

import numpy as np
import pytest

from matrix.query.catalogue import CARD_EXTRAS
from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.compare.two_samples import GROUPS, SideRuns, compare_cells, judged
from matrix.statistics.samples.pooling import CHUNK, Numbering, Pooling
from matrix.statistics.samples.reduce import reduce
from matrix.statistics.samples.run import Run
from sonar.notation.units import MB
from tests.matrix.test_two_samples import paired

PLACES = 120
SAMPLES = 60_000


def run(rng: np.random.Generator, factor: float) -> Run:
    """Make a run of random links; some fail, and some rates are equal."""
    ids = 1 + np.stack([rng.integers(0, PLACES, SAMPLES), rng.integers(0, PLACES, SAMPLES)])
    rates = np.rint(20 * factor * rng.lognormal(0, 0.5, SAMPLES)) * MB
    rates[rng.random(SAMPLES) < 0.1] = -1
    link = (ids[0] << 16 | ids[1]).astype(np.uint64)
    bits = rates.astype(np.float32).view(np.uint32)
    keys = np.sort(link << np.uint64(32) | bits)
    links = np.unique(link).astype(np.uint32)
    return Run(keys, links, np.ones(len(links), dtype=np.int64))


def successes(runs: list[Run], rows: Integers, cell: tuple[int, int]) -> Floats:
    """Return the rates in MB/s that are in a cell, whose row has some of the sources."""
    keys = np.concatenate([one.keys for one in runs])
    source, destination = (keys >> np.uint64(48)) - 1, (keys >> np.uint64(32) & 0xFFFF) - 1
    inside = (rows[source] == cell[0]) & (destination == cell[1]) & (source != destination)
    rates = keys[inside].astype(np.uint32).view(np.float32).astype(np.float64)
    return np.asarray(rates[rates >= 0] / MB)


@pytest.mark.parametrize("of", ["median", "mean"])
@pytest.mark.parametrize("sources", [1, 3], ids=["links", "groups of three"])
def test_both_sides_of_many_cells_are_what_each_is_by_itself(of, sources):
    rng = np.random.default_rng(15)
    own, other = [run(rng, 1), run(rng, 1)], [run(rng, 0.7), run(rng, 0.7), run(rng, 0.7)]
    # Rows that are not in the order of the ids of their sources.
    rows = rng.permutation(PLACES) // sources
    shape = (int(rows.max()) + 1, PLACES)
    shown = ~np.eye(PLACES, dtype=bool)
    pooling = Pooling(Numbering(np.arange(1, PLACES + 1)), rows, np.arange(PLACES), shown, shape)
    # Several parts, for the samples as for the cells.
    assert 5 * SAMPLES > 2 * CHUNK
    assert (shape[0] * shape[1] > GROUPS) == (sources == 1)
    sides = compare_cells(pooling, SideRuns(own, shown), SideRuns(other, shown), of, CARD_EXTRAS)

    alone = reduce(own, pooling, CARD_EXTRAS)
    for name in ("ok", "failed", "mean", "std"):
        np.testing.assert_allclose(getattr(sides.reduced, name), getattr(alone, name), rtol=1e-12)
    assert sides.reduced.extras.keys() == alone.extras.keys()
    for name, values in alone.extras.items():
        np.testing.assert_array_equal(sides.reduced.extras[name], values)
    for place in rng.integers(0, shape[0] * shape[1], 15).tolist():
        cell = divmod(place, PLACES)
        both = [[successes(side, rows, cell)] for side in (own, other)]
        single = judged(paired(*both, of), of, rule=sides.rule)[0].taken(0)
        for name, value in vars(single).items():
            expected = pytest.approx(value, rel=1e-6, nan_ok=True)
            assert getattr(sides.ratios, name)[cell] == expected


def test_a_side_that_has_nothing_leaves_the_other_as_it_is():
    rng = np.random.default_rng(16)
    runs, place = [run(rng, 1)], np.arange(PLACES)
    shown = np.ones((PLACES, PLACES), dtype=bool)
    pooling = Pooling(Numbering(place + 1), place, place, shown, shown.shape)
    alone = reduce(runs, pooling)
    for own, other in ((runs, []), ([], runs), ([], [])):
        sides = compare_cells(pooling, SideRuns(own, shown), SideRuns(other, shown), "median")
        assert (sides.ratios.ok == (alone.ok if own else 0)).all()
        assert (sides.ratios.other_ok == (alone.ok if other else 0)).all()
        assert (sides.reduced.failed == (alone.failed if own else 0)).all()
        assert np.isnan(sides.ratios.ratio).all()
    # What this side does not show is not in it, whatever the other shows.
    sides = compare_cells(pooling, SideRuns(runs, ~shown), SideRuns(runs, shown), "mean")
    assert not sides.reduced.ok.any()
    assert not sides.ratios.ok.any()
    np.testing.assert_allclose(sides.ratios.other, alone.mean / MB)
