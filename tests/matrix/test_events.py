"""Events of happenings: each once, with all size classes, of the largest thing that it is of."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.answers.events.event import FAILING, Event, Happening, jumps, mean_factor
from matrix.answers.events.reading import joined, lasting_words, merged, today_words
from matrix.plots.sparkline import marks_of
from matrix.statistics.cells.axes import EndpointInfo
from sonar.models import Change, SizeClass
from tests.matrix.world import NOW

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SIZES = ("small", "medium", "large")
# Sites A and B with an endpoint each, C with two.
PLACES = tuple(
    EndpointInfo(number, f"{name}_DATADISK", {"site": name[0], "tier": 2}, False, False)
    for number, name in enumerate(("A", "B", "C1", "C2"), 1)
)
A, B, C1, C2 = (place.id for place in PLACES)


def happening(
    source: int | None, destination: int | None, ago: timedelta = DAY, **values: Any
) -> Happening:
    since = NOW - ago
    fields: dict[str, Any] = {
        "kind": "slower",
        "size": "large",
        "earliest": since - HOUR,
        "latest": since,
        "until": None,
        "tests": 20,
        "factor": 0.5,
        "low": 0.4,
        "high": 0.62,
    }
    return Happening(ends=(source, destination), since=since, **{**fields, **values})


def failing(
    source: int | None, destination: int | None, ago: timedelta = DAY, **values: Any
) -> Happening:
    nothing: dict[str, Any] = {"factor": None, "low": None, "high": None, "kind": FAILING}
    return happening(source, destination, ago, **{**nothing, **values})


def said(events: list[Event]) -> list[tuple[str, str, str, tuple[str, ...]]]:
    return [(event.kind, event.level, event.where(), event.sizes) for event in events]


def test_all_size_classes_of_a_link_are_one_event_with_the_earliest_date_its_tests_allow():
    tests = (
        happening(A, B, DAY, size="small"),
        happening(A, B, DAY - 2 * HOUR, size="large", earliest=NOW - DAY - HOUR),
        happening(A, B, DAY - HOUR, size="medium", earliest=NOW - DAY - HOUR / 2),
    )
    (event,) = merged(tests, PLACES, SIZES)
    assert said([event]) == [("slower", "link", "A_DATADISK → B_DATADISK", SIZES)]
    assert event.since == NOW - DAY
    assert (event.earliest, event.latest) == (NOW - DAY - HOUR / 2, NOW - DAY)
    assert event.tests == 60


def test_another_day_another_direction_and_another_kind_are_events_of_their_own():
    tests = (
        happening(A, B, 4 * DAY, size="small", until=NOW - 3 * DAY),
        happening(A, B, DAY),
        happening(B, A, DAY),
        happening(A, B, DAY, kind="faster", factor=2.0, low=1.5, high=2.5),
    )
    assert len(merged(tests, PLACES, SIZES)) == 4


def test_a_class_that_changed_twice_makes_two_events():
    tests = happening(A, B, 20 * HOUR, until=NOW - 12 * HOUR), happening(A, B, 10 * HOUR)
    expected = [NOW - 10 * HOUR, NOW - 20 * HOUR]
    assert [event.since for event in merged(tests, PLACES, SIZES)] == expected


def test_an_endpoint_that_sends_and_receives_otherwise_is_one_event_and_so_is_its_site():
    one = merged([happening(C1, None), happening(None, C1, DAY - HOUR)], PLACES, SIZES)
    assert said(one) == [("slower", "endpoint", "C1_DATADISK", ("large",))]
    site = merged([happening(C1, None), happening(C2, None)], PLACES, SIZES)
    assert said(site) == [("slower", "site", "C", ("large",))]
    assert said(merged([happening(None, A)], PLACES, SIZES)) == [
        ("slower", "destination", "A_DATADISK", ("large",))
    ]
    assert said(merged([happening(None, None)], PLACES, SIZES)) == [
        ("slower", "grid", "the whole grid", ("large",))
    ]


def test_an_endpoint_of_a_site_whose_others_are_well_is_not_the_site():
    more = (*PLACES, replace(PLACES[3], id=5, name="C3_DATADISK"))
    events = merged([happening(C1, None), happening(C2, None)], more, SIZES)
    assert [event.level for event in events] == ["source", "source"]


def test_links_that_fail_with_all_others_of_an_endpoint_are_not_told_again():
    tests = [failing(None, B), *(failing(end, B, DAY - HOUR) for end in (A, C1, C2)), failing(B, A)]
    assert said(merged(tests, PLACES, SIZES)) == [
        ("failing", "link", "B_DATADISK → A_DATADISK", ("large",)),
        ("failing", "destination", "B_DATADISK", ("large",)),
    ]
    before = failing(A, B, 9 * DAY, until=NOW - 8 * DAY)
    assert len(merged([*tests, before], PLACES, SIZES)) == 3


def test_a_failure_that_ended_is_a_recovery_at_its_end():
    (event,) = merged([failing(A, B, DAY, until=NOW - HOUR)], PLACES, SIZES)
    assert (event.kind, event.at, event.since) == ("recovered", NOW - HOUR, NOW - DAY)
    both = [failing(A, B, DAY, until=NOW - HOUR, size="small"), failing(A, B, DAY)]
    (event,) = merged(both, PLACES, SIZES)
    assert (event.kind, event.sizes, event.at) == ("failing", ("large",), NOW - DAY)


def test_in_pictures_the_factor_is_before_the_name_which_may_be_cut():
    events = merged([happening(None, B), happening(A, C1)], PLACES, SIZES)
    texts = {mark.text for mark in marks_of(events, "large", "", {"B_DATADISK": "B"})}
    assert texts == {"0.50× (0.40–0.62) B receiving", "link 0.50× (0.40–0.62)"}
    assert [mark.text for mark in marks_of(events, "large", "destination")] == [
        "0.50× (0.40–0.62) B_DATADISK receiving"
    ]


def test_what_is_of_endpoints_that_are_gone_is_left_out():
    assert merged([happening(A, 99), happening(None, 99)], PLACES, SIZES) == []


def test_the_factor_of_all_classes_is_their_mean_by_how_exactly_each_is_known():
    exact = happening(A, B, factor=0.5, low=0.49, high=0.51)
    vague = happening(A, B, factor=0.6, low=0.3, high=1.2, size="small")
    factor = mean_factor([exact, vague])
    assert factor[0] == pytest.approx(0.5, rel=0.01)
    # Classes that contradict each other make it less certain, not more.
    apart = mean_factor([exact, replace(exact, factor=0.8, low=0.78, high=0.82)])
    assert apart[1] < 0.5 < 0.8 < apart[2]
    assert mean_factor([replace(exact, low=None, high=None)]) == (pytest.approx(0.5), None, None)
    assert mean_factor([failing(A, B)]) is None


@given(st.lists(st.floats(0.05, 20), min_size=1, max_size=3), st.floats(1.01, 3))
def test_the_mean_factor_is_within_those_of_its_classes(factors, wide):
    parts = [happening(A, B, factor=f, low=f / wide, high=f * wide) for f in factors]
    factor = mean_factor(parts)
    assert min(factors) * 0.999 <= factor[0] <= max(factors) * 1.001
    assert factor[1] < factor[0] < factor[2]


def jump(ago: timedelta, factor: float, **values: Any) -> Change:
    at = NOW - ago
    fields: dict[str, Any] = {
        "kind": "link",
        "source_id": A,
        "destination_id": B,
        "low": factor * 0.9,
        "high": factor * 1.1,
        "ok_after": 10,
        "links": 1,
        "sure": True,
    }
    row = Change(at=at, earliest=at - HOUR, latest=at, factor=factor, **{**fields, **values})
    row.size_class = SizeClass(name="large")
    return row


def test_what_undoes_a_jump_is_its_end():
    dip = jumps([jump(3 * DAY, 0.4), jump(2 * DAY, 2.4)])
    assert [(each.kind, each.since, each.until) for each in dip] == [
        ("slower", NOW - 3 * DAY, NOW - 2 * DAY)
    ]
    # Half of the way back is another level.
    steps = jumps([jump(3 * DAY, 0.25), jump(2 * DAY, 2.0)])
    expected = [("slower", NOW - 2 * DAY), ("faster", None)]
    assert [(each.kind, each.until) for each in steps] == expected
    of_another = jumps([jump(3 * DAY, 0.4), jump(2 * DAY, 2.4, destination_id=C1)])
    assert [each.until for each in of_another] == [None, None]


def test_what_goes_on_now_is_what_the_matrix_says():
    stored = [failing(A, B, DAY), failing(B, A, DAY), happening(A, C1, 3 * DAY)]
    now = [failing(A, B, DAY, tests=40), failing(C1, B, HOUR), happening(A, C1, 2 * DAY)]
    now += [happening(B, C1, HOUR, factor=0.3)]
    told = joined(stored, now, frozenset(["large"]))
    assert [(each.kind, each.ends, each.tests) for each in told] == [
        (FAILING, (A, B), 40),
        ("slower", (A, C1), 20),
        (FAILING, (C1, B), 20),
        ("slower", (B, C1), 20),
    ]
    # Of other size classes nothing is known but what was found.
    assert joined(stored, [], frozenset()) == stored


def test_what_became_much_slower_since_a_stored_jump_is_another_event():
    stored = [happening(A, B, 20 * DAY, factor=0.8, low=0.7, high=0.9)]
    assert len(joined(stored, [happening(A, B, HOUR, factor=0.6)], frozenset(["large"]))) == 1
    assert len(joined(stored, [happening(A, B, HOUR, factor=0.3)], frozenset(["large"]))) == 2


def test_today_is_one_sentence_with_the_worst_first():
    day: list[Happening] = [
        failing(None, C1, 2 * HOUR),
        happening(A, B, 3 * HOUR, factor=0.41),
        happening(B, A, 3 * HOUR, kind="faster", factor=4.8, low=4.0, high=5.5),
        failing(A, C2, 20 * HOUR, until=NOW - HOUR),
    ]
    events = merged([*day, happening(B, C1, 3 * DAY)], PLACES, SIZES)
    assert today_words(events, NOW) == (
        "Today: C1_DATADISK stopped taking files, A_DATADISK → B_DATADISK slowed to 0.41×, "
        "A_DATADISK → C2_DATADISK recovered and 1 more"
    )
    assert lasting_words(events, NOW - DAY) == "Still going on from before: 1 slower"
    unsure = merged([happening(A, B, HOUR, sure=False)], PLACES, SIZES)
    assert today_words(unsure, NOW) == "Today: nothing new so far"


def test_today_begins_at_midnight_utc():
    midnight = NOW.replace(hour=0, minute=0, second=0)
    late = merged([happening(A, B, NOW - midnight + timedelta(seconds=1))], PLACES, SIZES)
    first = merged([happening(A, B, NOW - midnight)], PLACES, SIZES)
    assert today_words(late, NOW) == "Today: nothing new so far"
    assert "slowed to" in today_words(first, NOW)


def test_the_logarithm_of_what_is_left_decides_what_is_undone():
    back = 1 / 0.4 * math.exp(0.3 * math.log(0.4)) * 1.001
    assert len(jumps([jump(3 * DAY, 0.4), jump(2 * DAY, back)])) == 1
    assert len(jumps([jump(3 * DAY, 0.4), jump(2 * DAY, back * 0.99)])) == 2
