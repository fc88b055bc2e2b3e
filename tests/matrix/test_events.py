"""Events of conditions: their types at the end of a time range, and the sentence of today."""

from __future__ import annotations

from datetime import timedelta

import pytest

from matrix.answers.conditions.reading import read_window
from matrix.answers.events import reading
from matrix.answers.events.event import Event, events_of
from matrix.answers.events.reading import today_words
from matrix.plots.sparkline import marks_of
from sonar.models import Condition
from sonar.notation.windows import Window
from tests.conditions import at, stored_condition
from tests.matrix.world import HOUR, NOW, World

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
TYPES = Condition.Type
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
MIDNIGHT = NOW - NOW.replace(hour=0, minute=0, second=0)


def events(start: timedelta = 90 * DAY, end: timedelta = 0 * DAY) -> list[Event]:
    return events_of(read_window(Window(at(start), at(end))))


def test_a_condition_is_an_event_of_its_kind_and_a_failure_that_ended_is_a_recovery(
    small_world: World,
):
    ral, glasgow, desy, _ = small_world.endpoints
    stored_condition(TYPES.SLOW, source=ral, destination=glasgow, since=9 * DAY, ended=8 * DAY)
    stored_condition(TYPES.FAST, source=ral, since=7 * DAY)
    stored_condition(TYPES.SILENT, site=desy.site, since=6 * DAY)
    stored_condition(source=desy, destination=desy, since=5 * DAY)
    recovered = stored_condition(destination=glasgow, since=4 * DAY, ended=3 * DAY)
    newest = events()[0]
    # A recovery is listed by its end.
    assert (newest.id, newest.at, newest.tests) == (recovered.id, NOW - 3 * DAY, 30)
    assert [(each.type, each.scope, each.lasts, each.tests) for each in events()] == [
        ("recovered", "destination", False, 30),
        ("failing", "endpoint", True, 60),
        ("silent", "site", True, 100),
        ("faster", "source", True, 30),
        ("slower", "link", False, 10),
    ]


def test_in_a_past_time_range_what_ended_later_still_lasts(small_world: World):
    stored_condition(source=small_world.ral, since=4 * DAY, ended=2 * DAY)
    (then,) = events(5 * DAY, 3 * DAY)
    assert (then.type, then.lasts, then.at) == ("failing", True, NOW - 4 * DAY)
    assert then.until == NOW - 2 * DAY
    (as_it_was,) = reading.read(Window(at(5 * DAY), at(3 * DAY)), [], as_at_end=True)
    assert (as_it_was.type, as_it_was.until) == ("failing", None)
    assert as_it_was.words() == "RAL_DATADISK fails as source"
    (over,) = reading.read(Window(at(5 * DAY), at(DAY)), [], as_at_end=True)
    assert (over.type, over.until) == ("recovered", NOW - 2 * DAY)


def test_today_is_one_sentence_with_the_worst_first(small_world: World):
    ral, glasgow, desy, scratch = small_world.endpoints
    stored_condition(TYPES.FAST, source=glasgow, destination=ral, since=3 * HOUR)
    stored_condition(TYPES.SLOW, source=ral, destination=glasgow, since=3 * HOUR)
    stored_condition(destination=scratch, since=2 * HOUR)
    stored_condition(source=ral, destination=desy, since=3 * DAY, ended=HOUR)
    stored_condition(TYPES.SLOW, source=scratch, since=3 * DAY)
    stored_condition(source=desy, since=HOUR, confirmed=False)
    assert today_words(events(), NOW) == (
        "Today: DESY_SCRATCHDISK fails as destination, "
        "RAL_DATADISK to Glasgow_DATADISK runs at 0.40× (0.35–0.46), "
        "RAL_DATADISK to DESY_DATADISK failed until 11:00 and 1 more"
    )


def test_today_begins_at_midnight_utc(small_world: World):
    stored_condition(TYPES.SLOW, source=small_world.ral, since=MIDNIGHT + SECOND)
    ended = stored_condition(source=small_world.desy, since=DAY, ended=MIDNIGHT + SECOND)
    assert today_words(events(), NOW) == "Today: no new events so far"
    Condition.objects.filter(id=ended.id).update(ended_at=NOW - MIDNIGHT)
    assert today_words(events(), NOW) == "Today: DESY_DATADISK failed as source until 00:00"
    stored_condition(source=small_world.glasgow, since=MIDNIGHT)
    assert today_words(events(), NOW).startswith("Today: Glasgow_DATADISK fails as source, ")


def test_confirmed_jumps_are_marks_in_pictures_with_the_factor_before_the_name(
    small_world: World,
):
    ral, glasgow, desy, scratch = small_world.endpoints
    stored_condition(TYPES.SLOW, destination=glasgow, since=HOUR)
    stored_condition(TYPES.SLOW, source=ral, destination=desy, since=2 * HOUR)
    stored_condition(TYPES.FAST, site=desy.site, since=3 * HOUR, sizes=("small",))
    stored_condition(TYPES.SLOW, source=scratch, since=4 * HOUR, confirmed=False)
    stored_condition(source=desy, since=5 * HOUR)

    def texts(*asked: str, **named: dict[str, str]) -> list[str]:
        return [mark.text for mark in marks_of(events(), *asked, **named)]

    assert texts("large", "", short={"Glasgow_DATADISK": "Glasgow"}) == [
        "0.40× (0.35–0.46) Glasgow as destination", "link 0.40× (0.35–0.46)",
    ]  # fmt: skip
    assert texts("large", "destination") == ["0.40× (0.35–0.46) Glasgow_DATADISK as destination"]
    assert texts("small", "source") == ["2.00× (1.80–2.20) DESY in both directions"]
    assert [mark.start for mark in marks_of(events(), "small")] == [NOW - 3 * HOUR]
