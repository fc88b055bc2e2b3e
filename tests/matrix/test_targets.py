"""What people expect of links changes what the judge calls slow and failing of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from matrix.statistics.assessment.conditions import FAILING, SLOW, ClassCondition
from matrix.statistics.assessment.days import judge_day
from matrix.statistics.assessment.grid_links import DAY_MS, LINK, GridLinks, JudgedTests, Subject
from matrix.statistics.assessment.targets import Targets

HOUR_MS, START = 3_600_000, 20_000 * DAY_MS
MB = 1e6
DAYS = 12
SOURCE, DESTINATION = np.nonzero(~np.eye(6, dtype=bool))
LINKS = GridLinks(SOURCE, DESTINATION, np.arange(6))
# The link that people expect something of.
ONE = 7


def made(rate: float, changes: dict[int, tuple[int, float]]) -> JudgedTests:
    """Return a test of each link every three hours, at a rate (MB/s) of the link.

    ``changes`` have by link from which day on it has another one; 0 fails.
    """
    rng = np.random.default_rng(3)
    slots = DAYS * 8
    moment = (np.arange(slots) + rng.random((len(LINKS), slots))) * 3 * HOUR_MS
    link = np.repeat(np.arange(len(LINKS)), slots)
    started = START + moment.ravel().astype(np.int64)
    log_rate = np.log(rate * MB) + 0.15 * rng.normal(size=len(link))
    for number, (day, other) in changes.items():
        later = (link == number) & (started >= START + day * DAY_MS)
        log_rate[later] += np.log(other / rate) if other else np.nan
    order = np.argsort(started)
    blamed = np.zeros(len(link), dtype=np.int64)
    return JudgedTests(link[order], started[order], log_rate[order], blamed)


def judged(tests: JudgedTests, targets: Targets | None = None) -> list[ClassCondition]:
    """Return what is confirmed after all days, or was."""
    conditions: list[ClassCondition] = []
    for day in range(START, START + DAYS * DAY_MS, DAY_MS):
        earlier, today = tests.within(0, day), tests.within(day, day + DAY_MS)
        conditions = judge_day(LINKS, earlier.of_links, today, day, conditions, targets=targets)
    return [each for each in conditions if each.confirmed_at is not None]


def expected(**values: float) -> Targets:
    """Return targets of one link; ``floor`` in MB/s, ``below`` as a part."""
    targets = Targets.usual(len(LINKS))
    columns = {}
    for name, value in values.items():
        column = getattr(targets, name).copy()
        column[ONE] = {"floor": np.log(value * MB), "below": np.log(value)}.get(name, value)
        columns[name] = column
    return replace(targets, **columns)


LINK_ONE = Subject(LINK, int(SOURCE[ONE]), int(DESTINATION[ONE]))


def test_a_link_that_was_never_above_its_floor_is_slow_by_the_floor():
    tests = made(20, {ONE: (0, 8)})
    assert judged(tests) == []
    (found,) = judged(tests, expected(floor=20))
    assert (found.subject, found.type, found.ended_at) == (LINK_ONE, SLOW, None)
    assert found.factor == pytest.approx(0.4, rel=0.1)


def test_a_link_far_above_its_floor_is_neither_slow_nor_fast():
    tests = made(60, {ONE: (8, 25)})
    assert [each.subject for each in judged(tests)] == [LINK_ONE]
    assert judged(tests, expected(floor=20)) == []


@pytest.mark.parametrize(("below", "is_slow"), [(2 / 3, False), (0.85, True)])
def test_a_tolerance_says_what_is_slow(below: float, is_slow: bool):
    tests = made(20, {ONE: (6, 15)})
    assert bool(judged(tests, expected(below=below))) == is_slow


@pytest.mark.parametrize(("below", "is_slow"), [(2 / 3, True), (0.3, False)])
def test_a_wide_tolerance_lets_it_be_half_as_fast(below: float, is_slow: bool):
    tests = made(20, {ONE: (6, 10)})
    assert bool(judged(tests, expected(below=below))) == is_slow


@pytest.mark.parametrize(("failures", "is_failing"), [(3, True), (60, False)])
def test_failures_in_a_row_say_when_a_link_fails(failures: int, is_failing: bool):
    tests = made(20, {ONE: (8, 0)})
    found = judged(tests, expected(failures=failures))
    assert [(each.subject, each.type) for each in found] == [(LINK_ONE, FAILING)] * is_failing


def test_what_is_accepted_is_the_level_while_few_tests_tell_another():
    tests = made(20, {})
    young = tests.taken((tests.link != ONE) | (tests.started >= START + 10 * DAY_MS))
    slower = replace(young, log_rate=young.log_rate - np.log(2) * (young.link == ONE))
    assert judged(slower) == []
    accepted = expected(accepted=np.log(20 * MB))
    (found,) = judged(slower, accepted)
    assert found.subject == LINK_ONE
