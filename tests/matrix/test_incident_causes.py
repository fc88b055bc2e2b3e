"""What links that are not as expected have in common, on arrays alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from matrix.statistics.arrays import Flags
from matrix.statistics.cells.expected import LinkRule, LinkRules
from matrix.statistics.cells.standing import UsualRates
from matrix.statistics.compare.two_samples import Precision
from matrix.statistics.incidents.link_states import LinkStates, LinkTimes
from matrix.statistics.incidents.naming import NamedFault, name_faults, what_is_left
from matrix.statistics.incidents.shared_ends import Place, is_of_grid, shared_ends
from matrix.statistics.samples.newest import NewestTests
from matrix.statistics.samples.pooling import Numbering

SIZE = 12
SITES = [f"site {place // 2}" for place in range(SIZE)]
OWN_SITES = [f"site {place}" for place in range(SIZE)]
NOW, HOUR = 1_000_000.0, 3600.0
RULE = LinkRule(float("nan"), 2 / 3, 0.8, 2, 3, 3, 3.0)


def square(*, rows: slice | int | None = None, columns: slice | int | None = None) -> Flags:
    flags = np.zeros((SIZE, SIZE), dtype=bool)
    if rows is not None:
        flags[rows] = True
    if columns is not None:
        flags[:, columns] = True
    return flags & JUDGED


JUDGED = ~np.eye(SIZE, dtype=bool)


@pytest.mark.parametrize(
    ("flags", "sites", "places"),
    [
        (square(rows=3), OWN_SITES, [Place("source", source=3)]),
        (square(columns=3), OWN_SITES, [Place("destination", destination=3)]),
        (square(rows=3, columns=3), OWN_SITES, [Place("endpoint", 3, 3)]),
        (square(rows=slice(2, 4), columns=slice(2, 4)), SITES, [Place("site", site="site 1")]),
        (square(rows=3) & square(columns=slice(0, 2)), OWN_SITES, []),
        (square(rows=3) & square(columns=slice(0, 6)), OWN_SITES, []),
        (square(rows=3) & square(columns=slice(0, 8)), OWN_SITES, [Place("source", source=3)]),
    ],
)
def test_what_flagged_links_have_in_common(flags: Flags, sites: list[str], places: list[Place]):
    assert list(shared_ends(flags, JUDGED, sites)) == places


def test_a_few_bad_endpoints_are_no_bad_grid_in_a_small_one_either():
    for size in (3, 4, 5, 12):
        judged = ~np.eye(size, dtype=bool)
        one = np.zeros_like(judged)
        one[0] = one[:, 0] = True
        sites = [str(place) for place in range(size)]
        assert not is_of_grid(one & judged, judged, sites, 1 / 3)
        assert is_of_grid(judged, judged, sites, 1 / 3)
    four = square(rows=slice(0, 4), columns=slice(0, 4))
    assert four.sum() > JUDGED.sum() / 3
    assert not is_of_grid(four, JUDGED, OWN_SITES, 0.4)


def newest(
    rates: np.ndarray | float = 10e6, *, streak: int = 0, age: float = HOUR
) -> tuple[NewestTests, Numbering]:
    """Return tests of all links: three successes an hour apart, then failures."""
    numbering = Numbering(np.arange(1, SIZE + 1))
    links = numbering.size
    last = (NOW - age) * 1000
    started = np.stack([np.full(links, int(last - back * HOUR * 1000)) for back in range(3)])
    wide = np.zeros((3, numbering.stride, numbering.stride), dtype=np.float32)
    wide[:, :SIZE, :SIZE] = rates
    return NewestTests(
        started,
        wide.reshape(3, links),
        np.full(links, streak, dtype=np.int32),
        np.full(links, int(last) + 1000 if streak else 0),
    ), numbering


def states(
    rates: np.ndarray | float = 10e6,
    *,
    rule: LinkRule = RULE,
    streak: int = 0,
    age: float = HOUR,
    free_since: float = 0.0,
    failing: float = 0.02,
) -> LinkStates:
    """Judge links whose usual rate is 10 MB/s, tested each hour."""
    tests, numbering = newest(rates, streak=streak, age=age)
    shape = (SIZE, SIZE)
    usual = UsualRates(
        *np.full((3, *shape), 10e6),
        Precision(np.full(shape, 0.2, np.float32), np.full(shape, 40, np.float32)),
        np.full(shape, failing, np.float32),
    )
    times = LinkTimes(NOW, np.full(shape, free_since), np.full(shape, HOUR), JUDGED)
    rules = LinkRules([rule], np.zeros(shape, np.uint16))
    return LinkStates.of(tests, usual, rules, times, numbering)


def rates_with(place: Place, factor: float, sites: list[str] = OWN_SITES) -> np.ndarray:
    """Return noisy rates of three tests, those of a place slower by a factor."""
    noise = np.random.default_rng(1).lognormal(0, 0.2, (3, SIZE, SIZE))
    return 10e6 * noise / np.where(place.links((SIZE, SIZE), sites), factor, 1.0)


def named(faults: list[NamedFault]) -> list[tuple[Place, str]]:
    return [(fault.place, fault.condition) for fault in faults]


@pytest.mark.parametrize(
    ("place", "sites"),
    [
        (Place("source", source=3), OWN_SITES),
        (Place("destination", destination=3), OWN_SITES),
        (Place("endpoint", 3, 3), OWN_SITES),
        (Place("site", site="site 1"), SITES),
        (Place("link", 3, 5), OWN_SITES),
    ],
)
def test_what_is_slow_is_named_with_its_links_and_its_factor(place: Place, sites: list[str]):
    factor = 20.0 if place.level == "link" else 2.0
    (fault,) = name_faults(states(rates_with(place, factor, sites)), sites)
    assert (fault.place, fault.condition) == (place, "slow")
    assert fault.low < 1 / factor < fault.high
    own = place.links((SIZE, SIZE), sites) & JUDGED
    assert fault.of_links == own.sum()
    assert fault.links.sum() >= 0.9 * own.sum()
    assert not (fault.links & ~own).any()
    assert what_is_left(place, "slow", states(rates_with(place, factor, sites)), sites)
    assert what_is_left(place, "slow", states(rates_with(place, 1.0, sites)), sites) is None


def test_a_quiet_grid_has_no_fault():
    assert name_faults(states(rates_with(Place("grid"), 1.0)), OWN_SITES) == []


@pytest.mark.parametrize(
    ("changes", "condition"),
    [
        ({"rates": 3e6}, "slow"),
        ({"streak": 3}, "failing"),
        ({"age": 4 * HOUR}, "silent"),
    ],
)
def test_where_everything_is_bad_it_is_sonar_itself(changes: dict, condition: str):
    (fault,) = name_faults(states(**changes), OWN_SITES)
    assert (fault.place, fault.condition) == (Place("grid"), condition)
    assert fault.links.sum() == fault.of_links == JUDGED.sum()


def test_nothing_is_silent_that_could_not_be_tested():
    assert states(age=4 * HOUR).silent[0, 1]
    assert not states(age=4 * HOUR, free_since=NOW - HOUR).silent.any()


def only(each: LinkStates, row: int, column: int) -> LinkStates:
    """Leave one link bad, and all others as they should be."""
    kept = np.zeros((SIZE, SIZE), dtype=bool)
    kept[row, column] = True
    flags = {name: getattr(each, name) & kept for name in ("slow", "failing", "promised")}
    return replace(each, change=np.full(kept.shape, np.nan), **flags)


def test_a_single_link_that_fails_is_called_when_that_is_no_chance():
    for failing, streak, is_called in ((0.02, 3, False), (0.02, 5, True), (0.3, 5, False)):
        faults = name_faults(only(states(streak=streak, failing=failing), 3, 5), OWN_SITES)
        assert named(faults) == [(Place("link", 3, 5), "failing")] * is_called


def test_a_floor_is_a_promise_that_one_link_can_break():
    rule = RULE._replace(floor=9e6, below=1.0, above=1.0)
    assert not states(9.5e6, rule=rule).slow.any()
    assert named(name_faults(only(states(8.5e6, rule=rule), 3, 5), OWN_SITES)) == [
        (Place("link", 3, 5), "slow")
    ]
    # As many of the newest as the rule says.
    rates = np.full((3, SIZE, SIZE), 9.5e6)
    rates[1] = 8.5e6
    assert not states(rates, rule=rule).slow.any()
    assert states(rates, rule=rule._replace(bad=1, of=2)).slow[0, 1]
    assert not states(rates, rule=rule._replace(bad=1, of=1)).slow.any()


def test_between_both_bounds_a_link_stays_what_it_was():
    each = states(7.5e6)
    assert not each.slow.any()
    assert each.unsettled[0, 1]
    assert not states(8.5e6).unsettled.any()
