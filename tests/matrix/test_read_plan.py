"""Which segments and which raw rows answer a window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix.store import read_plan
from matrix.store.read_plan import DAY_MS, HOUR_MS, Dirty, ReadPlan, Span

# Some day, as Unix ms.
DAY = 20_000 * DAY_MS
MINUTE_MS = HOUR_MS // 60


def plan(
    first: float, past: float, days: tuple[int, ...] = (), hours: tuple[int, ...] = ()
) -> ReadPlan:
    """Plan a window given in hours since DAY, with dirty days and hours since then."""
    window = Span(DAY + int(first * HOUR_MS), DAY + int(past * HOUR_MS))
    dirty_days = frozenset(DAY + day * DAY_MS for day in days)
    dirty_hours = frozenset(DAY + hour * HOUR_MS for hour in hours)
    return read_plan.plan(window, Dirty(dirty_days, dirty_hours))


def split_days(found: ReadPlan) -> list[int]:
    return sorted((day - DAY) // DAY_MS for day in found.split)


def clean_hours(found: ReadPlan) -> list[int]:
    return [(hour - DAY) // HOUR_MS for hour in found.hours]


def raw(found: ReadPlan) -> list[tuple[float, float]]:
    return [((one.start - DAY) / HOUR_MS, (one.end - DAY) / HOUR_MS) for one in found.raw]


def test_whole_clean_days_are_read_as_days():
    found = plan(0, 72)
    assert found.days == Span(DAY, DAY + 3 * DAY_MS)
    assert (split_days(found), found.hours, found.raw) == ([], [], [])


@pytest.mark.parametrize(
    ("first", "past", "split", "hours"),
    [
        (18, 48, [], []),
        (18.5, 48, [0], list(range(18, 24))),
        (0, 30, [], []),
        (0, 29.5, [1], list(range(24, 30))),
        (6, 12, [], []),
        (6, 11, [0], list(range(6, 11))),
        (23.5, 24.5, [0, 1], [23, 24]),
    ],
)
def test_a_clean_day_is_cut_if_six_hours_of_it_are_wanted_and_else_read_by_the_hour(
    first: float, past: float, split: list[int], hours: list[int]
):
    found = plan(first, past)
    assert (split_days(found), clean_hours(found)) == (split, hours)


def test_a_marked_day_is_read_by_the_hour():
    found = plan(0, 72, days=(1,))
    assert (split_days(found), clean_hours(found), raw(found)) == ([1], list(range(24, 48)), [])


def test_dirty_hours_are_read_raw_and_the_others_of_their_day_as_hours():
    found = plan(0, 48, hours=(3, 4, 7))
    assert split_days(found) == [0]
    assert raw(found) == [(3, 5), (7, 8)]
    assert clean_hours(found) == [hour for hour in range(24) if hour not in (3, 4, 7)]


def test_raw_rows_are_read_of_the_window_only_and_across_midnight_in_one_span():
    found = plan(22.5, 25.25, hours=(22, 23, 24, 25))
    assert raw(found) == [(22.5, 25.25)]
    assert clean_hours(found) == []


def test_a_dirty_hour_outside_the_window_makes_its_day_count_as_dirty():
    found = plan(0, 20, hours=(22,))
    assert (split_days(found), raw(found)) == ([0], [])


def test_a_span_is_cut_at_midnight():
    span = Span(DAY + HOUR_MS, DAY + 2 * DAY_MS + MINUTE_MS)
    assert list(span.by_day()) == [
        Span(DAY + HOUR_MS, DAY + DAY_MS),
        Span(DAY + DAY_MS, DAY + 2 * DAY_MS),
        Span(DAY + 2 * DAY_MS, span.end),
    ]


@given(
    bounds=st.tuples(st.integers(0, 96 * 60), st.integers(1, 96 * 60)),
    days=st.sets(st.integers(-1, 5)),
    hours=st.sets(st.integers(-3, 99)),
)
def test_every_minute_of_a_window_is_read_once_and_from_what_is_clean(
    bounds: tuple[int, int], days: set[int], hours: set[int]
):
    first, past = bounds[0] / 60, (bounds[0] + bounds[1]) / 60
    found = plan(first, past, tuple(days), tuple(hours))
    for minute in range(bounds[0], bounds[0] + bounds[1], 7):
        moment = DAY + minute * MINUTE_MS
        day, hour = read_plan.floor(moment, DAY_MS), read_plan.floor(moment, HOUR_MS)
        by_day = found.days.start <= moment < found.days.end and day not in found.split
        by_hour = hour in found.hours
        by_row = sum(one.start <= moment < one.end for one in found.raw)
        assert by_day + by_hour + by_row == 1
        of_dirty_hour = (hour - DAY) // HOUR_MS in hours
        assert bool(by_row) == of_dirty_hour
        dirty_day = (day - DAY) // DAY_MS in days or any(
            read_plan.floor(DAY + one * HOUR_MS, DAY_MS) == day for one in hours
        )
        assert not (by_day and dirty_day)
