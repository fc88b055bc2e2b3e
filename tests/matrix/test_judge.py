"""The judge of the grid: evidence against plain loops, and small grids with known faults."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from matrix.statistics.arrays import Flags
from matrix.statistics.assessment import grid_links, judge, midnight
from matrix.statistics.assessment.baselines import medians
from matrix.statistics.assessment.common_ends import common_ends
from matrix.statistics.assessment.conditions import FAILING, FAST, SLOW, ClassCondition
from matrix.statistics.assessment.days import judge_day
from matrix.statistics.assessment.evidence import Cusum, TestGroups
from matrix.statistics.assessment.grid_links import (
    DAY_MS,
    DESTINATION,
    ENDPOINT,
    GRID,
    LINK,
    SITE,
    SOURCE,
    GridLinks,
    JudgedTests,
    Subject,
)
from matrix.statistics.assessment.merging import SeenTests, confirmed_by_all
from matrix.statistics.assessment.trend import Trend, grid_conditions
from tests.accuracy.product import DayByDay, together

HOUR_MS, MINUTE_MS = 3_600_000, 60_000
START = 20_000 * DAY_MS
GAINS = some.lists(
    some.tuples(some.integers(0, 3), some.floats(-3, 3).map(lambda gain: round(gain, 2))),
    max_size=30,
)


@given(GAINS, some.lists(some.floats(0, 5), min_size=4, max_size=4))
@settings(deadline=None)
def test_evidence_adds_up_as_a_loop_would(tests, amounts):
    group = np.array([each for each, _ in tests], dtype=np.int64)
    gains = np.array([gain for _, gain in tests])
    started = np.arange(len(tests)) + 100
    before = Cusum(np.array(amounts), np.arange(4))
    amount, since = [], []
    state = {each: [amounts[each], each] for each in range(4)}
    for place, (each, gain) in enumerate(tests):
        if state[each][0] <= 1e-6:
            state[each] = [0.0, 100 + place]
        state[each][0] = state[each][0] + gain
        amount.append(state[each][0])
        since.append(state[each][1])
    found = TestGroups.of(group, started).trace(gains, before)
    assert found.amount == pytest.approx(amount, abs=1e-5)
    assert found.since.tolist() == since


@given(some.lists(some.tuples(some.integers(0, 2), some.booleans()), max_size=30))
@settings(deadline=None)
def test_failures_in_a_row_are_counted_as_a_loop_would(tests):
    group = np.array([each for each, _ in tests], dtype=np.int64)
    flags = np.array([flag for _, flag in tests], dtype=bool)
    before, expected = [0, 2, 5], []
    counts = list(before)
    for each, flag in tests:
        counts[each] = counts[each] + 1 if flag else 0
        expected.append(counts[each])
    groups = TestGroups.of(group, np.arange(len(tests)))
    assert groups.streaks(flags, np.array(before)).tolist() == expected


@given(some.lists(some.tuples(some.integers(0, 3), some.floats(-9, 9)), max_size=30))
@settings(deadline=None)
def test_medians_are_those_of_numpy(values):
    group = np.array([each for each, _ in values], dtype=np.int64)
    numbers = np.array([number for _, number in values])
    expected = [
        np.median(numbers[group == each]) if (group == each).any() else np.nan for each in range(4)
    ]
    assert medians(group, numbers, 4) == pytest.approx(expected, nan_ok=True)


def square(ends: int, sites: list[int] | None = None) -> GridLinks:
    source, destination = np.nonzero(~np.eye(ends, dtype=bool))
    return GridLinks(source, destination, np.array(sites or range(ends)))


def links_of(links: GridLinks, *subjects: Subject) -> np.ndarray:
    return np.any([links.of(subject) for subject in subjects], axis=0)


@pytest.mark.parametrize(
    ("flagged", "votes", "named"),
    [
        ([Subject(SOURCE, source=2)], {}, [Subject(SOURCE, source=2)]),
        ([Subject(DESTINATION, destination=2)], {}, [Subject(DESTINATION, destination=2)]),
        ([Subject(ENDPOINT, 2, 2)], {}, [Subject(ENDPOINT, 2, 2)]),
        ([Subject(SITE, site=0)], {}, [Subject(SITE, site=0)]),
        ([Subject(LINK, 2, 3)], {}, []),
        ([Subject(GRID)], {}, [Subject(GRID)]),
        # Two links say nothing by themselves; errors that name an end do.
        ([Subject(LINK, 2, 4), Subject(LINK, 3, 4)], {}, []),
        ([Subject(SOURCE, source=2)], {(DESTINATION, 5): 1}, [Subject(SOURCE, source=2)]),
    ],
)
def test_what_links_have_in_common(flagged, votes, named):
    links = square(8, [0, 0, 1, 2, 3, 4, 5, 6])
    counts = {SOURCE: np.zeros(8, int), DESTINATION: np.zeros(8, int)}
    for (kind, end), count in votes.items():
        counts[kind][end] = count
    every = np.ones(len(links), dtype=bool)
    assert list(common_ends(links, links_of(links, *flagged), every, counts)) == named


def test_errors_name_an_end_that_has_few_links():
    links = square(3)
    every = np.ones(len(links), dtype=bool)
    votes = {SOURCE: np.array([0, 3, 0]), DESTINATION: np.array([0, 3, 0])}
    flagged = links.of(Subject(ENDPOINT, 1, 1))
    assert list(common_ends(links, flagged, every, votes)) == [Subject(ENDPOINT, 1, 1)]


def test_an_error_in_each_direction_names_the_endpoint_of_both():
    links = square(2)
    every = np.ones(2, dtype=bool)
    votes = {SOURCE: np.array([0, 1]), DESTINATION: np.array([0, 1])}
    assert list(common_ends(links, every, every, votes)) == [Subject(ENDPOINT, 1, 1)]
    votes = {SOURCE: np.array([1, 0]), DESTINATION: np.array([0, 0])}
    assert list(common_ends(links, every, every, votes)) == []


@pytest.mark.parametrize(
    ("repeated", "named"), [(True, Subject(ENDPOINT, 1, 1)), (False, Subject(SOURCE, source=1))]
)
def test_a_direction_that_keeps_failing_is_of_the_endpoint_that_the_other_one_names(
    repeated, named
):
    links = square(2)
    every = np.ones(2, dtype=bool)
    votes = {SOURCE: np.array([0, 2]), DESTINATION: np.array([0, 0])}
    subjects = common_ends(links, every, every, votes, repeated=every & repeated)
    assert list(subjects) == [named]


@pytest.mark.parametrize(
    ("own", "others", "confirmed"),
    [
        ("xxxx", "", None),
        ("xxxx", "   x", 40),
        ("xxxx", "     x", 60),
        ("xxx", "xx", 30),  # with the test that makes its own evidence enough
        ("xxxx", "o  x", None),  # as many passed
        ("xxxx", "o  xx", 50),
        ("xxx", "   x", None),
        ("xxxxx", "", 45),  # as its own class says
        ("xxxxx", "x", 40),
    ],
)
def test_failures_of_other_classes_confirm_with_those_of_its_own(own, others, confirmed):
    def seen(marks: str, *, is_own: bool) -> SeenTests:
        kept = [(10 * place, mark == "o") for place, mark in enumerate(marks, 1) if mark != " "]
        started, ok = np.array(kept, dtype=np.int64).reshape(-1, 2).T
        return SeenTests(is_own, started, ok.astype(bool))

    alone = 45 if len(own) > 4 else None
    tests = [seen(own, is_own=True), seen(others, is_own=False)]
    assert confirmed_by_all(30, alone, tests) == confirmed


def made(links: GridLinks, days: float, every_ms: int = 6 * HOUR_MS, seed: int = 1) -> JudgedTests:
    """Return tests at random moments of each interval, with rates that scatter by a fifth."""
    rng = np.random.default_rng(seed)
    rounds = round(days * DAY_MS / every_ms)
    link = np.tile(np.arange(len(links)), rounds)
    moment = np.repeat(np.arange(rounds), len(links)) + rng.random(len(link))
    started = START + (moment * every_ms).astype(np.int64)
    level = rng.normal(17.0, 1.0, len(links))
    order = np.argsort(started, kind="stable")
    rates = level[link] + rng.normal(0, 0.2, len(link))
    return JudgedTests(link, started, rates, np.zeros(len(link), np.int64)).taken(order)


def harmed(
    links: GridLinks,
    tests: JudgedTests,
    subject: Subject,
    since: int,
    until: int = 1 << 62,
    *,
    factor: float | None = None,
    blamed: int = 0,
) -> JudgedTests:
    hit = links.of(subject)[tests.link] & (tests.started >= since) & (tests.started < until)
    rates = tests.log_rate + np.where(hit, np.log(factor or 1), 0)
    if factor is not None:
        return replace(tests, log_rate=rates)
    return replace(
        tests, log_rate=np.where(hit, np.nan, rates), blamed=np.where(hit, blamed, tests.blamed)
    )


def sure(conditions: list[ClassCondition]) -> list[ClassCondition]:
    return [each for each in conditions if each.confirmed_at is not None]


def judged(links: GridLinks, tests: JudgedTests) -> list[ClassCondition]:
    return sure(DayByDay(links).judge(tests, START, int(tests.started[-1]) + 1))


def test_nothing_is_found_in_a_quiet_grid():
    links = square(8)
    assert judged(links, made(links, 12)) == []


SUBJECTS = [
    Subject(SOURCE, source=3),
    Subject(DESTINATION, destination=3),
    Subject(ENDPOINT, 3, 3),
    Subject(SITE, site=0),
    Subject(LINK, 3, 5),
]


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("factor", [1 / 3, 3, None])
def test_one_condition_says_what_since_when_and_by_how_much(subject, factor):
    links = square(8, [0, 0, 1, 2, 3, 4, 5, 6])
    since = START + 9 * DAY_MS + 5 * HOUR_MS
    tests = harmed(links, made(links, 12), subject, since, factor=factor)
    (found,) = judged(links, tests)
    assert found.subject == subject
    assert found.type == {1 / 3: SLOW, 3: FAST, None: FAILING}[factor]
    assert found.since_low <= since <= found.since_high + HOUR_MS
    assert abs(found.since - since) <= 6 * HOUR_MS
    assert found.is_open
    if factor:
        assert found.factor == pytest.approx(factor, rel=0.3 if subject.scope == LINK else 0.1)
        assert subject.scope == LINK or found.factor_low < factor < found.factor_high
    else:
        assert found.failed == found.tests > 4
    assert set(found.links) == set(np.flatnonzero(links.of(subject)).tolist())


@pytest.mark.parametrize("factor", [1 / 3, 3, None])
def test_the_end_of_a_condition_is_when_it_ended(factor):
    links, subject = square(8), Subject(ENDPOINT, 3, 3)
    since, until = START + 8 * DAY_MS + 5 * HOUR_MS, START + 10 * DAY_MS + 7 * HOUR_MS
    tests = harmed(links, made(links, 13), subject, since, until, factor=factor)
    (found,) = judged(links, tests)
    assert found.subject == subject
    assert abs(found.ended_at - until) <= 2 * HOUR_MS


def test_what_a_link_has_beyond_its_source_is_a_condition_of_its_own():
    links, source, link = square(8), Subject(SOURCE, source=3), Subject(LINK, 3, 5)
    tests = harmed(links, made(links, 14), source, START + 9 * DAY_MS, factor=1 / 2)
    tests = harmed(links, tests, link, START + 10 * DAY_MS, factor=1 / 3)
    found = {each.subject: each for each in judged(links, tests)}
    assert found.keys() == {source, link}
    assert found[source].factor == pytest.approx(1 / 2, rel=0.15)
    assert found[link].factor == pytest.approx(1 / 3, rel=0.25)


def test_a_fault_is_never_learnt():
    links, subject = square(6), Subject(SOURCE, source=3)
    since = START + 9 * DAY_MS
    tests = harmed(links, made(links, 60, seed=2), subject, since, factor=1 / 3)
    (found,) = judged(links, tests)
    assert found.is_open
    assert found.factor == pytest.approx(1 / 3, rel=0.15)
    assert found.tests == (links.of(subject)[tests.link] & (tests.started >= found.since)).sum()


def test_a_dead_destination_is_named_after_eight_failures_of_eight_links():
    links, subject = square(20), Subject(DESTINATION, destination=7)
    since = START + 6 * DAY_MS + 3 * HOUR_MS
    tests = harmed(links, made(links, 7, DAY_MS), subject, since, blamed=2)
    eighth = tests.started[~tests.ok][7]
    (found,) = judged(links, tests.within(START, int(eighth) + 1))
    assert (found.subject, found.type) == (subject, FAILING)
    assert found.failed == found.tests == 8


def test_a_server_that_dies_in_a_mesh_ten_minutes_old_is_one_condition():
    links, subject = square(3), Subject(ENDPOINT, 1, 1)
    since = START + 10 * MINUTE_MS
    tests = made(links, 1 / 48, 2 * MINUTE_MS)
    blames = np.where(links.source == 1, 1, 2)[tests.link]
    tests = harmed(links, tests, subject, since, blamed=1)
    tests = replace(tests, blamed=np.where(tests.ok, 0, blames))
    first = int(tests.started[~tests.ok][0])
    (found,) = judged(links, tests.within(START, first + 5 * MINUTE_MS))
    assert (found.subject, found.type) == (subject, FAILING)


def test_a_grid_that_is_slow_as_a_whole_is_a_condition_of_the_grid_alone():
    links = square(10)
    since, until = START + 9 * DAY_MS, START + 10 * DAY_MS
    tests = harmed(links, made(links, 12), Subject(GRID), since, until, factor=0.3)
    (found,) = judged(links, tests)
    assert (found.scope, found.type) == (GRID, SLOW)
    assert abs(found.since - since) <= 6 * HOUR_MS
    assert abs(found.ended_at - until) <= 6 * HOUR_MS
    assert found.factor == pytest.approx(0.3, rel=0.15)


def test_nothing_ends_because_all_others_have_become_as_slow():
    links = square(10)
    slow = Subject(DESTINATION, destination=3)
    tests = harmed(links, made(links, 10), slow, START + 8 * DAY_MS, factor=1 / 3)
    others = links.destination[tests.link] != 3
    others &= (tests.started >= START + 9 * DAY_MS) & (tests.started < START + 9.5 * DAY_MS)
    tests = replace(tests, log_rate=tests.log_rate - np.where(others, np.log(3), 0))
    conditions = {each.subject: each for each in judged(links, tests)}
    assert conditions[slow].is_open
    assert abs(conditions[slow].since - START - 8 * DAY_MS) <= 6 * HOUR_MS
    assert not conditions[Subject(GRID)].is_open


def test_what_the_whole_grid_shows_for_a_moment_does_not_end_before_it_was_seen():
    started = START + np.arange(20) * MINUTE_MS
    level = np.where(
        (started >= START + 10 * MINUTE_MS) & (started < START + 12 * MINUTE_MS), -1.0, 0
    )
    trend = Trend(started, level, Trend.unknown().tail)
    (condition,) = grid_conditions(trend, START, [])
    assert condition.since < condition.seen_at == condition.confirmed_at == condition.ended_at
    assert condition.factor == pytest.approx(np.exp(-1.0))


def by_its_figures(condition: ClassCondition) -> tuple:
    return tuple(vars(condition).values())


def test_days_that_are_judged_again_and_again_end_as_if_judged_once():
    links = square(8)
    tests = harmed(
        links, made(links, 11), Subject(ENDPOINT, 3, 3), START + 9 * DAY_MS, factor=1 / 2
    )
    tests = harmed(links, tests, Subject(LINK, 1, 2), START + 10 * DAY_MS + HOUR_MS)
    once = DayByDay(links).judge(tests, START, START + 11 * DAY_MS)
    before = []
    for day in range(START, START + 11 * DAY_MS, DAY_MS):
        past = tests.within(day - 28 * DAY_MS, day).of_links
        for hours in (3, 11, 24):
            today = tests.within(day, day + hours * HOUR_MS)
            found = judge_day(links, past, today, day, before)
        before = found
    assert [by_its_figures(each) for each in before] == [by_its_figures(each) for each in once]


def test_what_is_kept_between_looks_changes_nothing():
    """Each hour some tests that began earlier arrive late."""
    links, rng = square(8), np.random.default_rng(3)
    tests = made(links, 9, 3 * HOUR_MS, seed=4)
    # Some links scatter more than their past tells.
    wild = (tests.link % 5 == 0) & (tests.started >= START + 8 * DAY_MS)
    tests.log_rate[wild] += rng.normal(0, 0.5, wild.sum())
    for subject, hours in ((Subject(LINK, 1, 2), 3), (Subject(SOURCE, source=4), 9)):
        tests = harmed(links, tests, subject, START + 8 * DAY_MS + hours * HOUR_MS, factor=0.6)
    day = START + 8 * DAY_MS
    past, today = tests.within(day - 28 * DAY_MS, day), tests.within(day, day + DAY_MS)
    arrived = today.started + np.where(rng.random(len(today)) < 0.3, 5 * HOUR_MS, 0)
    nights: dict[str, midnight.Midnight] = {}
    refused: list[int] = []

    def keep(type_: str, make: Callable[[], midnight.Midnight]) -> midnight.Midnight:
        if type_ not in nights:
            nights[type_] = make()
        return nights[type_]

    for hour in range(1, 30):
        so_far = today.taken(arrived < day + hour * HOUR_MS)
        found = judge_day(links, past.of_links, so_far, day, [], keep=keep)
        fresh = judge_day(links, past.of_links, so_far, day, [])
        assert [repr(each) for each in found] == [repr(each) for each in fresh]
        refused.append(len(nights[SLOW].refused.keys))
    assert len(so_far) == len(today)
    assert max(refused) > 10
    assert {SOURCE, LINK} <= {each.scope for each in found}


def test_only_links_that_were_tested_since_are_looked_at():
    """Of 16 endpoints those of half are tested no more as a source becomes slow."""
    links = square(16)
    tests = made(links, 9)
    tests = tests.taken((links.source[tests.link] < 8) | (tests.started < START + 5 * DAY_MS))
    slow = Subject(SOURCE, source=3)
    tests = harmed(links, tests, slow, START + 8 * DAY_MS, factor=0.4)
    day = START + 8 * DAY_MS
    past, today = tests.within(START, day), tests.within(day, day + DAY_MS)
    kept = midnight.Midnight.of(links, past.of_links, day, [])
    asked: list[int] = []

    def of_links(chosen: Flags) -> JudgedTests:
        asked.append(int(chosen.sum()))
        return past.of_links(chosen)

    found = judge.Judge(links, replace(kept, past=of_links), today).run()
    assert slow in {each.subject for each in found}
    assert max(asked) <= 8 * 15


def test_a_look_in_vain_is_forgotten_once_other_tests_come_before_it():
    tests = made(square(3), 2)
    refused = midnight.Refused()
    refused.of(tests.within(START, START + DAY_MS)).update({(2, "early"), (9, "late")})
    assert refused.of(tests) == {(2, "early"), (9, "late")}
    assert refused.of(tests.taken(np.arange(len(tests)) != 5)) == {(2, "early")}
    changed = tests.taken(np.arange(len(tests)) != 5)
    changed.log_rate[2] = np.nan
    assert refused.of(changed) == set()


@pytest.mark.parametrize("subject", [*SUBJECTS, Subject(GRID)])
def test_links_of_a_subject_are_looked_up_as_they_are_defined(subject):
    links = square(8, [0, 0, 1, 2, 3, 4, 5, 6])
    ends = list(zip(links.source.tolist(), links.destination.tolist(), strict=True))
    own = [
        {
            LINK: (source, end) == (subject.source, subject.destination),
            SOURCE: source == subject.source,
            DESTINATION: end == subject.destination,
            ENDPOINT: subject.source in (source, end),
            SITE: subject.site in (links.site[source], links.site[end]),
            GRID: True,
        }[subject.scope]
        for source, end in ends
    ]
    assert links.of(subject).tolist() == own
    assert links.places(subject).tolist() == np.flatnonzero(own).tolist()
    few = np.array([0, 5, 23, 5, 40])
    assert links.covered(subject, few).tolist() == [own[link] for link in few]


def test_tests_of_few_links_are_the_same_by_an_index(monkeypatch):
    links = square(8)
    tests = made(links, 3)
    chosen = links.of(Subject(LINK, 2, 3)) | links.of(Subject(LINK, 7, 6))
    whole = tests.of_links(chosen)
    monkeypatch.setattr(grid_links, "MANY_TESTS", 0)
    indexed = tests.of_links(chosen)
    assert [each.tolist() for each in indexed.columns] == [each.tolist() for each in whole.columns]
    # A link that has no test.
    chosen[:] = False
    chosen[-1] = True
    others = tests.taken(tests.link < len(links) - 1)
    assert len(others.of_links(chosen)) == 0


def test_a_link_with_six_tests_before_and_six_since_is_listed():
    links = square(12)
    tests = made(links, 3, seed=8)
    slow = [Subject(LINK, source, source + 1) for source in range(0, 10, 2)]
    for subject in slow:
        tests = harmed(links, tests, subject, START + 36 * HOUR_MS, factor=1 / 3)
    found = DayByDay(links).judge(tests, START, START + 3 * DAY_MS)
    assert {each.subject for each in found if each.listed_at is not None} == {*slow}


def test_links_in_parts_tell_what_all_at_once_tell(monkeypatch):
    links = square(8)
    tests = harmed(
        links, made(links, 9), Subject(SOURCE, source=3), START + 8 * DAY_MS, factor=1 / 2
    )
    past = tests.within(START, START + 9 * DAY_MS)
    whole = midnight.Midnight.of(links, past.of_links, START + 9 * DAY_MS, [])
    monkeypatch.setattr(midnight, "LINKS_AT_ONCE", 20)
    parts = midnight.Midnight.of(links, past.of_links, START + 9 * DAY_MS, [])
    assert parts.usual.level == pytest.approx(whole.usual.level)
    assert parts.usual.sigma == pytest.approx(whole.usual.sigma, rel=0.3)
    assert parts.last.tolist() == whole.last.tolist()
    assert parts.streak.tolist() == whole.streak.tolist()


def test_size_classes_that_say_the_same_are_one_condition():
    links = square(8)
    by_class = {}
    for name, every, seed in (("small", 3 * HOUR_MS, 1), ("large", 12 * HOUR_MS, 2)):
        tests = made(links, 12, every, seed)
        tests = harmed(links, tests, Subject(SOURCE, source=3), START + 9 * DAY_MS, factor=1 / 3)
        by_class[name] = DayByDay(links).judge(tests, START, START + 12 * DAY_MS)
    (merged,) = [each for each in together(by_class, links) if each.condition().confirmed_at]
    assert sorted(name for name, _ in merged.parts) == ["large", "small"]
    condition = merged.condition()
    assert condition.tests == sum(part.tests for _, part in merged.parts)
    assert condition.factor == pytest.approx(1 / 3, rel=0.1)
