"""Both directions of a link: judged as the matrix does, against what is usual, never swapped."""

import math
from datetime import timedelta
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from django.http import QueryDict

from matrix.answers.link import report
from matrix.answers.link.directions import Direction, compared
from matrix.answers.link.report import LinkReport, Question
from matrix.answers.matrix import grid
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.standing import LEVELS
from matrix.statistics.cells.states import STATES
from matrix.store import registry
from matrix.store.conditions import MARKS
from sonar.models import Downtime, Endpoint, Schedule
from tests.conditions import stored_condition
from tests.matrix import world
from tests.matrix.facts_sql import Facts
from tests.matrix.sent import MINUTE, PLAIN, many, send
from tests.matrix.world import HOUR, NOW, World, transfer

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def asked(source: Endpoint, destination: Endpoint, text: str = "", **more: Any) -> LinkReport:
    places = {one.name: one for one in registry.read_places(registry.read_versions())}
    query = MatrixQuery.from_params(QueryDict(text))
    question = Question(places[source.name], places[destination.name], query, **more)
    return report.answer(question, NOW)


def of_class(found: LinkReport, size: str = "large") -> tuple[Direction, Direction]:
    (one,) = [one for one in found.classes if one.size == size]
    return one.there, one.back


def test_the_two_directions_are_never_swapped(small_world):
    ral, glasgow = small_world.ral, small_world.glasgow
    for rate in (10.0, 14.0):
        transfer(ral, glasgow, rate)
    transfer(glasgow, ral, 1.5)
    for source, destination, rate in ((ral, glasgow, 12.0), (glasgow, ral, 1.5)):
        there, back = of_class(asked(source, destination))
        assert (there.source.name, there.destination.name) == (source.name, destination.name)
        assert (back.source.name, back.destination.name) == (destination.name, source.name)
        assert there.median == pytest.approx(rate)
        assert back.median == pytest.approx(13.5 - rate)
        (large,) = [one for one in asked(source, destination).classes if one.size == "large"]
        assert np.median(large.results.rates / 1e6) == pytest.approx(rate)
        assert np.median(large.reverse.rates / 1e6) == pytest.approx(13.5 - rate)


def test_numbers_are_those_of_plain_sql(small_world):
    ral, glasgow = small_world.ral, small_world.glasgow
    many(ral, glasgow, 100, NOW)
    there, _ = of_class(asked(ral, glasgow), "medium")
    facts, link = Facts(MatrixQuery().window_at(NOW), NOW), (ral.name, glasgow.name, "medium")
    true, rates = facts.of(*link), [rate for _, rate in facts.rates(*link)]
    assert (there.ok, there.failed) == (true.ok, true.failed)
    parts = (there.quantiles[name] for name in ("median", "p05", "p95", "p99"))
    expected = [true.mean, true.std, *np.percentile(rates, [50, 5, 95, 99])]
    assert [there.mean, there.std, *parts] == pytest.approx(expected, rel=1e-6)
    assert there.success == true.ok / true.tests
    assert there.last == (NOW - MINUTE).timestamp()


def every_state(small_world: World) -> None:
    ral, glasgow, desy, scratch = small_world.endpoints
    plain = world.profile(**PLAIN)
    transfer(ral, glasgow, 12.0)
    transfer(glasgow, ral, None)
    transfer(desy, ral, 3.0, ago=5 * HOUR)
    transfer(scratch, glasgow, 3.0)
    Downtime.objects.create(endpoint=scratch, starts_at=NOW - HOUR, ends_at=NOW + HOUR)
    Downtime.objects.create(site=glasgow.site, starts_at=NOW + HOUR, ends_at=NOW + 2 * HOUR)
    Schedule.objects.filter(source=glasgow, destination=desy).delete()
    transfer(ral, desy, 7.0, ago=20 * DAY)
    retired = world.endpoint("OLD_DATADISK", desy.site)
    transfer(retired, ral, 4.0, ago=5 * HOUR)
    world.schedule(small_world.mesh, (retired, ral), (retired, glasgow))
    Downtime.objects.create(endpoint=desy, starts_at=NOW - 3 * HOUR, ends_at=NOW - HOUR)
    Endpoint.objects.filter(id=retired.id).update(retired_at=NOW - DAY)
    other = world.Mesh.objects.create(name="streams", streams=4)
    world.schedule(other, (glasgow, desy), every=60)
    transfer(glasgow, desy, 2.0, made=world.profile(**PLAIN | {"streams": 4}), ago=3 * HOUR)
    for hours in (1, 2, 3):
        transfer(desy, glasgow, None, ago=hours * HOUR, made=plain)
    with world.transfers() as some:
        for number in range(40):
            some.add(desy, ral, 5.0 + number % 3, ago=9 * DAY + number * HOUR, made=plain)
            rate = 1.0 if number < 5 else 5.5
            some.add(desy, ral, rate, ago=(5 + number) * HOUR, made=plain)
    stored_condition(source=desy, destination=glasgow, since=3 * HOUR)
    stored_condition("slow", source=desy, destination=ral, since=10 * HOUR, baseline=44e6)
    stored_condition("fast", source=glasgow, destination=desy, since=30 * DAY, ended=20 * DAY)
    stored_condition("slow", source=ral, destination=desy, confirmed=False)


QUESTIONS = (
    "",
    "window=1h",
    "window=30d",
    "size=small",
    "streams=4",
    "streams=!4",
    "mesh=streams",
    "mesh=!streams",
    "origin=production",
    "origin=!test",
    "mover=http-tpc&ip_version=6",
    "from=2026-10-01T00:00:00Z&to=2026-11-20T09:00:00Z",
    "from=2026-11-20T00:00:00Z&to=2026-11-20T11:00:30Z",
)


@pytest.mark.long
def test_every_direction_has_the_state_and_the_numbers_of_its_cell(small_world, subtests):
    every_state(small_world)
    matrix = grid.build(MatrixQuery(), NOW)
    assert all(count for count in matrix.states().values()), "all states are met"
    assert {LEVELS[level] for level in matrix.cells.level.ravel()} >= {"unknown", "slower"}
    for text in QUESTIONS:
        with subtests.test(text):
            directions_are_as_their_cells(text)


def directions_are_as_their_cells(text: str) -> None:
    matrix = grid.build(MatrixQuery.from_params(QueryDict(text)), NOW)
    rows = {group.name: at for at, group in enumerate(matrix.sources)}
    columns = {group.name: at for at, group in enumerate(matrix.destinations)}
    for ends in combinations(Endpoint.objects.all(), 2):
        for direction in of_class(asked(*ends, text), matrix.query.size):
            source, destination = direction.source.name, direction.destination.name
            if source not in rows or destination not in columns:
                assert direction.state == "not_applicable"
            else:
                is_as_its_cell(direction, matrix.cells, (rows[source], columns[destination]))


def is_as_its_cell(direction: Direction, cells: Any, at: tuple[int, int]) -> None:
    ends = direction.source.name, direction.destination.name
    assert direction.state == STATES[cells.state[at]], ends
    assert (direction.ok, direction.failed) == (cells.ok[at], cells.failed[at]), ends
    assert direction.level == LEVELS[cells.level[at]], ends
    assert direction.streak == cells.streak[at], ends
    assert direction.condition == cells.condition[at], ends
    assert direction.unconfirmed == MARKS[cells.unconfirmed[at]], ends
    if not math.isnan(cells.now[at]):
        now = cells.now[at], cells.usual[at]
        assert (direction.now, direction.usual) == pytest.approx(now), ends
    for name in ("mean", "std", "last", "since"):
        expected = getattr(cells, name)[at]
        assert getattr(direction, name) == pytest.approx(expected, nan_ok=True), (ends, name)


def test_usual_is_the_median_of_the_four_weeks_before_the_window(small_world):
    ends = small_world.ral, small_world.glasgow
    for number, rate in enumerate((1.0, 2.0, 30.0, 40.0, 50.0)):
        transfer(*ends, rate, ago=8 * DAY + number * HOUR)
    transfer(*ends, 1000.0, ago=36 * DAY)
    transfer(*ends, 1000.0, ago=8 * DAY, size="small")
    transfer(*ends, None, ago=8 * DAY)
    transfer(*ends, 10.0)
    there, back = of_class(asked(*ends))
    assert (there.usual, there.usual_count) == (30.0, 5)
    assert there.against_usual == "0.33×"
    assert math.isnan(back.usual)
    assert back.against_usual == compared(there.median, back.median) == ""


def test_the_usual_range_of_a_member_is_that_of_its_baseline(small_world):
    ends = small_world.ral, small_world.glasgow
    stored_condition("slow", source=ends[0], destination=ends[1], baseline=60e6)
    there, _ = of_class(asked(*ends))
    assert (there.usual, there.low, there.high, there.usual_count) == (60.0, 60.0, 60.0, 0)
    for number, rate in enumerate((10.0, 20.0, 30.0, 40.0, 50.0)):
        transfer(*ends, rate, ago=8 * DAY + number * HOUR)
    there, _ = of_class(asked(*ends))
    assert (there.usual, there.usual_count) == (60.0, 5)
    assert (there.low, there.high) == pytest.approx((24.0, 96.0))


def test_too_few_earlier_results_say_nothing_of_what_is_usual(small_world):
    ends = small_world.ral, small_world.glasgow
    for number in range(4):
        transfer(*ends, 5.0, ago=8 * DAY + number * HOUR)
    there, _ = of_class(asked(*ends))
    assert math.isnan(there.usual)
    assert there.usual_count == 4


def test_filters_hold_for_what_is_usual_too(small_world):
    ends = small_world.ral, small_world.glasgow
    four = world.profile(**PLAIN | {"streams": 4})
    for number in range(6):
        transfer(*ends, 5.0, ago=8 * DAY + number * HOUR, made=four)
        transfer(*ends, 50.0, ago=8 * DAY + number * HOUR, made=world.profile(**PLAIN))
    there, _ = of_class(asked(*ends, "streams=4"))
    assert there.usual == 5.0


def test_a_ratio_is_said_in_words():
    assert {compared(ratio, 1) for ratio in (1.0, 0.93, 1.08)} == {"about the same"}
    said = [compared(ratio, 1) for ratio in (0.5, 0.284, 0.0123, 2.4, 214.8, 1500.0)]
    assert said == ["0.50×", "0.28×", "0.012×", "2.4×", "215×", "1\u202f500×"]


def test_lost_results_count_for_nothing(small_world):
    ends = small_world.ral, small_world.glasgow
    send(*ends, NOW, state="lost", error="its worker died", error_where="control")
    found = asked(*ends)
    there, _ = of_class(found)
    assert (there.ok, there.failed, there.state) == (0, 0, "untested")
    assert found.failures[0].is_lost
    assert len(found.listing.results) == 1
