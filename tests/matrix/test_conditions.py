"""Reading conditions: at a moment, within a time range, and as marks of all links."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection

from matrix.statistics.cells.axes import LinkIndex
from matrix.store import conditions, registry
from matrix.store.conditions import MARKS, LinkMarks
from sonar.models import Condition, Endpoint
from sonar.notation.windows import unix_ms
from tests.conditions import at, stored_condition
from tests.matrix.world import HOUR, NOW, World

pytestmark = pytest.mark.django_db
TYPES = Condition.Type
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def open_at(moment: datetime) -> list[Condition]:
    return list(conditions.rows().filter(conditions.lasting_at(moment)))


def marks_of(size: str, moment: datetime, links: LinkIndex) -> LinkMarks:
    return conditions.marks_by_class([size], moment, links)[size]


def square(marks: LinkMarks, name: str) -> Any:
    """Return an array of all links, shape (places, places): 0 or NaN for those without any."""
    values = getattr(marks, name)
    blank = np.nan if values.dtype.kind == "f" else 0
    array = np.full((marks.places, marks.places), blank, dtype=values.dtype)
    array.ravel()[marks.link] = values
    return array


@pytest.fixture
def one_statement(django_assert_num_queries):  # type: ignore[no-untyped-def]
    return lambda: django_assert_num_queries(1)


def test_open_at_a_moment_are_those_that_had_begun_and_not_ended(small_world: World, one_statement):
    ral, glasgow, desy, _ = small_world.endpoints
    lasting = stored_condition(source=ral, since=5 * HOUR)
    over = stored_condition(TYPES.SLOW, destination=desy, since=9 * HOUR, ended=2 * HOUR)
    of_site = stored_condition(site=glasgow.site, since=HOUR, confirmed=False)
    for moment, rows in (
        (NOW, [of_site, lasting]),
        (at(HOUR), [of_site, lasting]),
        (at(HOUR) - MINUTE, [lasting]),
        (at(2 * HOUR), [lasting]),
        (at(2 * HOUR) - MINUTE, [lasting, over]),
        (at(9 * HOUR), [over]),
        (at(9 * HOUR) - MINUTE, []),
    ):
        with one_statement():
            assert open_at(moment) == rows, moment
    with one_statement():
        (slow,) = open_at(at(8 * HOUR))
        assert (slow.destination.site.name, slow.tests, slow.failed) == ("DESY", 30, 1)


def test_counts_of_tests_are_those_of_all_size_classes(small_world: World):
    stored_condition(source=small_world.ral, sizes=("large", "small"))
    (row,) = open_at(NOW)
    assert (row.tests, row.failed) == (60, 60)


def test_those_that_overlap_a_window_have_a_moment_in_common_with_it(
    small_world: World, one_statement
):
    ral, _, desy, _ = small_world.endpoints
    lasting = stored_condition(source=ral, since=5 * HOUR)
    over = stored_condition(TYPES.SLOW, destination=desy, since=9 * HOUR, ended=7 * HOUR)
    for start, end, rows in (
        (10, 0, [lasting, over]),
        (7, 5, []),
        (7.5, 5, [over]),
        (6, 4, [lasting]),
        (10, 9, []),
        (10, 8, [over]),
    ):
        with one_statement():
            first, last = at(start * HOUR), at(end * HOUR) - timedelta.resolution
            assert conditions.read_overlapping(first, last, NOW)[0] == rows, (start, end)
    with one_statement():
        (row, slow), _ = conditions.read_overlapping(at(10 * HOUR), NOW, NOW)
        assert (row.source.name, row.destination, row.site) == (ral.name, None, None)
        assert (slow.destination.site.name, slow.tests, slow.failed) == ("DESY", 30, 1)
        assert (row.open_sizes, slow.open_sizes) == (["large"], [])


def test_marks_are_the_worst_of_each_link_in_a_size_class(small_world: World, one_statement):
    ral, glasgow, desy, scratch = small_world.endpoints
    failing = stored_condition(source=ral, since=5 * HOUR, baseline=None)
    slow = stored_condition(TYPES.SLOW, destination=desy, since=3 * HOUR, baseline=12e6)
    stored_condition(TYPES.FAST, source=glasgow, destination=scratch, sizes=["small"])
    unsure = stored_condition(source=glasgow, destination=desy, since=2 * HOUR, confirmed=False)
    silent = stored_condition(TYPES.SILENT, source=scratch, destination=glasgow)
    stored_condition(TYPES.SLOW, source=desy, destination=glasgow, ended=HOUR)
    stored_condition(TYPES.FAILING)
    links = registry.read_links(registry.read_versions())
    with one_statement():
        marks = marks_of("large", NOW, links)
    place = {end.id: at for at, end in enumerate(links.places)}

    def of(source: Endpoint, destination: Endpoint, name: str) -> Any:
        return square(marks, name)[place[source.id], place[destination.id]]

    def are(source: Endpoint, destination: Endpoint) -> tuple[str, int]:
        mark, condition = (of(source, destination, name) for name in ("mark", "condition"))
        return MARKS[mark], int(condition)

    assert are(ral, glasgow) == are(ral, scratch) == ("failing", failing.id)
    # Of two that are confirmed the worse one, and a confirmed one before one that is not.
    assert are(ral, desy) == ("failing", failing.id)
    assert are(glasgow, desy) == ("slow", slow.id) != ("failing", unsure.id)
    assert are(scratch, glasgow) == ("silent", silent.id)
    assert are(glasgow, scratch) == are(desy, glasgow) == are(desy, scratch) == ("", 0)
    here = scratch, desy
    assert are(*here) == ("slow", slow.id)
    assert of(*here, "since") == unix_ms(at(3 * HOUR))
    figures = [of(*here, name) for name in ("factor", "low", "high", "baseline")]
    assert figures == pytest.approx([0.4, 0.35, 0.46, 12e6])
    assert (of(*here, "tests"), of(*here, "failed"), of(*here, "is_confirmed")) == (30, 1, True)
    assert marks.are("slow").sum() == 2
    assert np.isnan(of(ral, desy, "baseline"))
    small = marks_of("small", NOW, links)
    assert small.are("fast").sum() == len(small.link) == 1
    before = marks_of("large", at(2 * HOUR), links)
    assert before.are("slow")[place[desy.id], place[glasgow.id]]


def test_of_a_rate_that_is_back_the_baseline_is_marked_for_four_weeks(small_world: World):
    ral, glasgow, *_ = small_world.endpoints
    ends = {"source": ral, "destination": glasgow}
    stored_condition(TYPES.SLOW, **ends, since=40 * DAY, ended=27 * DAY, baseline=12e6)
    stored_condition(TYPES.SLOW, **ends, since=80 * DAY, ended=29 * DAY, baseline=7e6)
    stored_condition(source=glasgow, destination=ral, since=9 * DAY, ended=8 * DAY, baseline=8e6)
    links = registry.read_links(registry.read_versions())
    marks = marks_of("large", NOW, links)
    assert marks.baseline.tolist() == [12e6]
    assert (marks.mark[0], marks.condition[0], marks.since[0], marks.tests[0]) == (0, 0, 0, 0)
    lasting = stored_condition(TYPES.SLOW, **ends, since=DAY, baseline=11e6)
    marks = marks_of("large", NOW, links)
    assert (marks.baseline[0], marks.condition[0]) == (11e6, lasting.id)


def test_marks_by_class_are_those_of_each_class_in_one_statement(small_world: World, one_statement):
    ral, glasgow, desy, _ = small_world.endpoints
    stored_condition(source=ral)
    stored_condition(TYPES.SLOW, destination=desy, sizes=["small", "large"])
    links = registry.read_links(registry.read_versions())
    with one_statement():
        marks = conditions.marks_by_class(["small", "medium", "large"], NOW, links)
    assert [len(of_class.link) for of_class in marks.values()] == [3, 0, 5]
    assert marks["small"].are("slow").sum() == 3
    # Of some places only the links between them.
    some = registry.read_links(registry.read_versions())
    some = type(some)(tuple(place for place in some.places if place.id in (ral.id, glasgow.id)))
    assert square(marks_of("large", NOW, some), "mark").tolist() == [
        [0, MARKS.index("failing")], [0, 0]
    ]  # fmt: skip


def test_marks_leave_out_links_that_are_shown_no_more(small_world: World):
    ral, glasgow, *_ = small_world.endpoints
    stored_condition(source=ral, destination=glasgow)
    links = registry.read_links(registry.read_versions())
    with connection.cursor() as cursor:
        cursor.execute("UPDATE sonar_conditionlink SET destination_id = 60000")
    assert not len(marks_of("large", NOW, links).link)
