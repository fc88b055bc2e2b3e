"""The simulator makes the faults and the noise that it states, and scores are what they say."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.accuracy import histories, judged
from tests.accuracy.histories import (
    DAY,
    HOUR,
    MIDNIGHT,
    MINUTE,
    Fault,
    Grid,
    History,
    Noise,
    make_grid,
    place_fault,
    simulate,
)
from tests.accuracy.scores import Found, match, row

NOW = MIDNIGHT + 20 * DAY
TWICE_AN_HOUR = {"large": 1800}
STEADY = Noise(day_sd=0, failed=0, flaky_links=0)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def history_of(rng: np.random.Generator, grid: Grid, *faults: Fault, noise: Noise) -> History:
    return simulate(rng, grid, MIDNIGHT, NOW, TWICE_AN_HOUR, faults, noise)


def change(history: History, member: np.ndarray, since: int, before: int | None = None) -> float:
    """Return the ratio of rates since a moment to those before: the median over these links."""
    tests, changes = history.tests["large"], []
    for link in np.flatnonzero(member):
        own = tests.log_rate[tests.link == link]
        started = tests.started[tests.link == link]
        new, old = own[started >= since], own[started < (before or since)]
        changes.append(np.nanmedian(new) - np.nanmedian(old))
    return float(np.exp(np.median(changes)))


def test_each_link_is_tested_once_in_each_interval(rng: np.random.Generator):
    tests = history_of(rng, make_grid(rng, 4), noise=STEADY).tests["large"]
    assert (np.diff(tests.started) >= 0).all()
    slots = np.stack([tests.link, (tests.started - MIDNIGHT) // 1_800_000])
    assert len(np.unique(slots, axis=1).T) == len(tests.link) == 12 * 20 * 48
    assert np.std((tests.started - MIDNIGHT) % 1_800_000) == pytest.approx(1.8e6 / 12**0.5, rel=0.1)


def test_grids_have_all_pairs_less_missing_ones_and_sites_of_one_to_three(
    rng: np.random.Generator,
):
    grid = make_grid(rng, 20, missing=0.1)
    pairs = set(zip(grid.source.tolist(), grid.destination.tolist(), strict=True))
    assert len(pairs) == len(grid.source) == 342
    assert (grid.source != grid.destination).all()
    assert set(np.bincount(grid.site).tolist()) == {1, 2, 3}


@pytest.mark.parametrize("scope", ["link", "source", "destination", "endpoint", "site", "grid"])
def test_faults_slow_their_links_and_no_others(rng: np.random.Generator, scope: str):
    grid = make_grid(rng, 6)
    place = {"link": (2, 3), "site": 1, "grid": None}.get(scope, 2)
    fault = place_fault(grid, scope, place, NOW - 5 * DAY, factor=1 / 2)
    history = history_of(rng, grid, fault, noise=STEADY)
    source, destination = grid.source == 2, grid.destination == 2
    member = {
        "link": source & (grid.destination == 3),
        "source": source,
        "destination": destination,
        "endpoint": source | destination,
        "site": (grid.site[grid.source] == 1) | (grid.site[grid.destination] == 1),
        "grid": np.full(30, True),
    }[scope]
    assert fault.links == tuple(np.flatnonzero(member))
    assert change(history, member, fault.start) == pytest.approx(1 / 2, rel=0.05)
    if not member.all():
        assert change(history, ~member, fault.start) == pytest.approx(1, rel=0.05)


def test_factors_multiply_ramps_rise_and_faults_end(rng: np.random.Generator):
    grid = make_grid(rng, 3, site_sizes=(1,))
    slow = place_fault(grid, "source", 1, NOW - 9 * DAY, factor=1 / 2, end=NOW - 2 * DAY)
    more = place_fault(grid, "link", (1, 2), NOW - 5 * DAY, factor=1 / 3, end=NOW - 2 * DAY)
    ramp = place_fault(grid, "source", 0, NOW - 10 * DAY, factor=1 / 4, ramp=10 * DAY)
    history = history_of(rng, grid, slow, more, ramp, noise=STEADY)
    link = (grid.source == 1) & (grid.destination == 2)
    during = history.until(NOW - 2 * DAY - 1)
    assert during.faults[1].end is None
    assert change(during, link, NOW - 5 * DAY, slow.start) == pytest.approx(1 / 6, rel=0.1)
    assert change(history, link, NOW - 2 * DAY, slow.start) == pytest.approx(1, rel=0.1)
    tests = history.tests["large"]
    late = (tests.started > NOW - DAY) & (grid.source[tests.link] == 0)
    early = (tests.started < NOW - 11 * DAY) & (grid.source[tests.link] == 0)
    ratio = np.exp(tests.log_rate[late].mean() - tests.log_rate[early].mean())
    assert ratio == pytest.approx((1 / 4) ** 0.95, rel=0.1)


def test_a_fault_may_concern_one_size_class(rng: np.random.Generator):
    grid = make_grid(rng, 4)
    fault = replace(place_fault(grid, "grid", None, NOW - DAY), classes=("small",))
    history = simulate(rng, grid, MIDNIGHT, NOW, {"small": 3600, "large": 3600}, [fault], STEADY)
    assert np.isnan(history.tests["small"].log_rate).sum() == 12 * 24
    assert not np.isnan(history.tests["large"].log_rate).any()


@pytest.mark.parametrize("scope", ["source", "destination", "endpoint", "site"])
def test_dead_ends_fail_all_tests_and_seven_of_ten_errors_name_them(
    rng: np.random.Generator, scope: str
):
    grid = make_grid(rng, 6)
    fault = place_fault(grid, scope, 1, NOW - 5 * DAY)
    tests = history_of(rng, grid, fault, noise=STEADY).tests["large"]
    failed = np.isnan(tests.log_rate)
    hit = np.isin(tests.link, fault.links) & (tests.started >= fault.start)
    assert (failed == hit).all()
    assert (tests.blamed[hit] > 0).mean() == pytest.approx(0.7, abs=0.03)
    assert not tests.blamed[~hit].any()
    at = np.arange(6) if scope != "site" else grid.site
    for blamed, ends in ((1, grid.source), (2, grid.destination)):
        assert (at[ends[tests.link[tests.blamed == blamed]]] == 1).all()


def test_a_twentieth_of_links_is_flaky_and_random_failures_blame_nobody(rng: np.random.Generator):
    grid = make_grid(rng, 30)
    tests = history_of(rng, grid, noise=Noise()).tests["large"]
    failed = np.bincount(tests.link, np.isnan(tests.log_rate)) / np.bincount(tests.link)
    assert np.median(failed) == pytest.approx(0.01, abs=0.002)
    assert (failed > 0.035).mean() == pytest.approx(0.05, abs=0.025)
    assert failed.max() < 0.14
    assert not tests.blamed.any()


def test_machine_and_endpoints_wander_by_what_is_stated(rng: np.random.Generator):
    def spread(noise: Noise) -> tuple[float, float]:
        """Return how much the hourly means of all links vary, and those of one endpoint."""
        grid = make_grid(rng, 20)
        tests = history_of(rng, grid, noise=noise).tests["large"]
        hour = (tests.started - MIDNIGHT) // HOUR
        all_links = np.bincount(hour, tests.log_rate) / np.bincount(hour)
        own = grid.source[tests.link] == 3
        one = np.bincount(hour[own], tests.log_rate[own]) / np.bincount(hour[own])
        return float(all_links.std()), float((one - all_links).std())

    quiet, wander, endpoints = (
        spread(replace(STEADY, level_sd=0, **option))
        for option in ({}, {"wander_sd": 0.3}, {"endpoint_wander_sd": 0.1})
    )
    assert quiet[0] < 0.03
    assert wander[0] == pytest.approx(0.3, rel=0.25)
    assert wander[1] == pytest.approx(quiet[1], rel=0.2)
    assert endpoints[0] < 0.1
    assert endpoints[1] ** 2 - quiet[1] ** 2 == pytest.approx(0.1**2, rel=0.3)


def test_levels_scatter_and_days_are_those_stated(rng: np.random.Generator):
    grid = make_grid(rng, 20)
    tests = history_of(rng, grid, noise=replace(STEADY, day_sd=0.08)).tests["large"]
    rates = tests.log_rate[np.lexsort((tests.started, tests.link))].reshape(380, 20, 48)
    levels = rates.mean(axis=(1, 2))
    assert np.exp(np.median(levels)) == pytest.approx(30e6, rel=0.15)
    assert levels.std() == pytest.approx(1, rel=0.1)
    scatter = rates.std(axis=2, ddof=1).mean(axis=1)
    assert np.median(scatter) == pytest.approx(0.25, rel=0.05)
    assert np.log(scatter).std() == pytest.approx(0.35, rel=0.15)
    assert 0.11 < scatter.min() < scatter.max() < 0.64
    # A mean of 48 tests of a day has a scatter of its own.
    days = rates.mean(axis=2).var(axis=1, ddof=1) - scatter**2 / 48
    assert days.mean() ** 0.5 == pytest.approx(0.08, rel=0.1)


def test_the_same_seed_makes_the_same_history():
    one, other = (histories.several(np.random.default_rng(9)) for _ in range(2))
    assert one.faults == other.faults
    assert np.array_equal(
        one.tests["large"].log_rate, other.tests["large"].log_rate, equal_nan=True
    )


def test_a_history_until_a_moment_has_neither_later_tests_nor_later_faults(
    rng: np.random.Generator,
):
    history = histories.ended(rng, None, 2)
    (fault,) = history.faults
    assert history.until(fault.start - 1).faults == ()
    cut = history.until(fault.start + HOUR)
    assert cut.faults == (replace(fault, end=None),)
    assert cut.tests["large"].started.max() <= cut.now == fault.start + HOUR
    assert history.until(history.now).faults == history.faults
    third = history.until(int(history.tests["large"].started[2]))
    assert len(third.tests["large"].link) == 3


def test_scenarios_are_what_their_aims_speak_of(rng: np.random.Generator):
    for _ in range(5):
        lasting = histories.lasting(rng, 1 / 2)
        assert len(lasting.faults[0].links) == 20
        assert 2.5 * DAY <= lasting.now - lasting.faults[0].start <= 3.5 * DAY
    dead = histories.dead_destination(rng)
    tests, links = dead.tests["large"], dead.faults[0].links
    since = np.isin(tests.link, links) & (tests.started >= dead.faults[0].start)
    assert len(judged.failures(dead, dead.faults[0])) == since.sum()
    assert len(links) == 40
    assert set(np.bincount(tests.link[since])[list(links)].tolist()) <= {0, 1, 2, 3}
    slow = histories.slow_links(rng)
    tests = slow.tests["large"]
    before = tests.started < slow.faults[0].start
    assert (np.bincount(tests.link[before]) == 6).all()
    assert (np.bincount(tests.link[~before]) == 6).all()
    assert len(slow.source) == 342
    assert [fault.scope for fault in histories.several(rng).faults][2:] == ["link", "site"]
    assert len(histories.drift(rng, None).faults) == 0
    mesh = histories.new_mesh(rng, 3)
    assert [len(mesh.tests[name].link) for name in ("small", "medium", "large")] == [90, 36, 18]


def test_faults_need_a_place_that_their_scope_knows(rng: np.random.Generator):
    with pytest.raises(ValueError, match="scope link can be at 3"):
        place_fault(make_grid(rng, 4), "link", 3, NOW)


def found_of(fault: Fault, **changes: object) -> Found:
    found = Found(
        fault.scope,
        fault.type,
        fault.start - MINUTE,
        fault.start + MINUTE,
        fault.source,
        fault.destination,
        fault.site,
        confirmed_at=fault.start + 1,
        ended_at=fault.end,
        factor=fault.factor,
        factor_low=fault.factor and fault.factor * 0.9,
        factor_high=fault.factor and fault.factor * 1.1,
    )
    return replace(found, **changes)


def judge_perfectly(history: History) -> list[Found]:
    return [found_of(fault) for fault in history.faults]


# Intervals of factors should miss the truth now and then.
NEVER_WRONG = {f"endpoint /{part}: factor intervals that hold the truth" for part in (2, 4)}


def test_the_truth_meets_all_aims():
    rows = judged.table(judge_perfectly, trials=2)
    assert {row.what for row in rows if row.met is False} == NEVER_WRONG


def figures(judge: Callable[[History], list[Found]], *only: int) -> dict[str, float]:
    return {row.what: row.figure for row in judged.table(judge, trials=3, only=only)}


def test_silence_finds_nothing_and_is_false_about_nothing():
    rows = judged.table(lambda history: [], trials=2)
    met = {row.what for row in rows if row.met}
    assert {what.partition(": ")[2] for what in met} == {
        "conditions a month",
        "conditions per 1,000 grid-days",
        "no other link listed",
        "other conditions confirmed",
        "other conditions confirmed since",
        "other conditions confirmed then",
        "silent but for the grid",
    }
    shares = [row.figure for row in rows if row.share and row.count and row.what not in met]
    assert set(shares) == {0}


def test_a_beginning_that_is_one_test_late_is_one_test_wrong():
    def late(history: History) -> list[Found]:
        shift = history.every_seconds["large"] * 1000
        return [
            replace(each, since_low=each.since_low + shift, since_high=each.since_high + shift)
            for each in judge_perfectly(history)
        ]

    measured = figures(late, 1, 9)
    for about in ("endpoint /2", "endpoint /4", "ended, /2 for two days", "ended, dead for a day"):
        assert measured[f"{about}: error of since, median, test intervals"] == pytest.approx(1)
        assert measured[f"{about}: since intervals that hold the truth"] == 0
    assert measured["ended, dead for a day: error of the end, median, intervals"] == 0
    # A condition that begins after the end of a fault is not that fault.
    assert measured["ended, dead for 2 h: found and ended"] == 0


@pytest.mark.parametrize(
    ("changes", "counted"),
    [
        ({}, (True, 0)),
        ({"scope": "destination"}, (False, 1)),
        ({"source": 4}, (False, 1)),
        ({"type": "failing"}, (False, 1)),
        ({"ended_at": NOW - 2 * DAY}, (False, 1)),
        ({"since_low": NOW, "since_high": NOW}, (True, 0)),
    ],
)
def test_a_condition_belongs_to_a_fault_of_its_place_type_and_time(
    rng: np.random.Generator, changes: dict[str, object], counted: tuple[bool, int]
):
    fault = place_fault(make_grid(rng, 5), "source", 2, NOW - DAY, factor=1 / 2)
    (found,), false = match([found_of(fault, **changes)], [fault])
    assert (found is not None, len(false)) == counted


def test_a_second_condition_of_one_fault_was_not_there_and_the_nearer_is_taken(
    rng: np.random.Generator,
):
    fault = place_fault(make_grid(rng, 5), "site", 1, NOW - DAY, end=NOW - HOUR)
    early = fault.start - DAY
    near, far = found_of(fault), found_of(fault, since_low=early, since_high=early)
    assert match([far, near], [fault]) == ([near], [far])
    after = found_of(fault, since_low=fault.end, since_high=fault.end, ended_at=None)
    assert match([after], [fault]) == ([None], [after])


@pytest.mark.parametrize("confirmed_at", [None, NOW + 300 * DAY])
def test_unconfirmed_conditions_and_those_confirmed_later_do_not_count(confirmed_at: int | None):
    def unsure(history: History) -> list[Found]:
        return [replace(each, confirmed_at=confirmed_at) for each in judge_perfectly(history)]

    measured = figures(unsure, 4)
    assert measured["links at a third, 6 + 6 tests: found, confirmed"] == 0
    assert measured["links at a third, 6 + 6 tests: found, confirmed or not"] == 1


def test_false_conditions_are_counted_by_month_and_by_grid_day():
    def shout(history: History) -> list[Found]:
        link = Found("link", "slow", history.now, history.now, 0, 1, confirmed_at=history.now)
        return [link, replace(link, scope="grid"), *judge_perfectly(history)]

    measured = figures(shout, 2, 3, 4, 5, 6, 7, 8)
    assert measured["quiet grids: conditions per 1,000 grid-days"] == pytest.approx(2000 / 14)
    assert measured["342 links, calm: conditions a month"] == 1
    assert measured["342 links, calm: grid conditions a month"] == 1
    assert measured["10 to 400 links, step to 0.6: silent but for the grid"] == 0
    assert measured["new mesh of 3: dead server named within 5 min"] == 0
    assert measured["new mesh of 3: conditions at the end, mean"] == 3
    assert measured["links at a third, 6 + 6 tests: false, confirmed"] == 2 / 12
    assert measured["four faults at once: other conditions confirmed"] == 2
    assert measured["four faults at once: all found and nothing else"] == 0
    assert measured["link /3 of a source /2: link found"] == 1


@pytest.mark.parametrize(("needed", "share"), [(8, 1), (9, 0)])
def test_a_dead_destination_is_to_be_named_after_eight_failures(needed: int, share: float):
    def count(history: History) -> list[Found]:
        found = judge_perfectly(history)
        return [
            each
            for each, fault in zip(found, history.faults, strict=True)
            if len(judged.failures(history, fault)) >= needed
        ]

    measured = figures(count, 2)
    assert measured["dead destination: named after 8 failures"] == share
    assert measured["dead destination: the only condition after a day"] == 1


def test_links_that_their_source_explains_are_not_to_be_listed():
    def list_all(history: History) -> list[Found]:
        source, link = history.faults
        other = next(place for place in range(15) if place not in (link.source, link.destination))
        return [found_of(source), found_of(link), found_of(link, destination=other)]

    measured = figures(list_all, 8)
    assert measured["link /3 of a source /2: link found"] == 1
    assert measured["link /3 of a source /2: no other link listed"] == 0


def test_a_fault_that_is_over_is_not_found_while_its_condition_is_open():
    def never_end(history: History) -> list[Found]:
        return [replace(each, ended_at=None) for each in judge_perfectly(history)]

    measured = figures(never_end, 9)
    assert measured["ended, dead for a day: found and ended"] == 0
    assert measured["ended, dead for a day: error of the end, median, intervals"] == np.inf


def test_biased_factors_and_narrow_intervals_are_seen():
    def biased(history: History) -> list[Found]:
        return [
            replace(each, factor=each.factor * 1.05, factor_low=each.factor * 1.01)
            for each in judge_perfectly(history)
        ]

    measured = figures(biased, 1)
    bias = "endpoint /4: bias of the factor, mean of log ratios"
    assert measured[bias] == pytest.approx(np.log(1.05))
    assert measured["endpoint /4: factor intervals that hold the truth"] == 0


def test_rows_say_whether_an_aim_is_missed_by_chance():
    assert row("a", [True] * 9 + [False], low=0.95).verdict == "no, within chance"
    assert row("a", [True] * 50 + [False] * 50, low=0.95).verdict == "NO"
    assert row("a", [2.0], high=1).verdict == "NO"
    assert row("a", [], high=1).met is False
    assert row("a", [1.0]).met is None
    assert row("a", [0.5, 1, 9], high=1, median=True).verdict == "yes"
    assert row("a", [0.01], -0.03, 0.03).aim == "-0.03 to 0.03"
    assert row("a", [0], high=0).aim == "at most 0"
