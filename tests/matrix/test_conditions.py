"""Reading conditions: at a moment, within a time range, of links, and as marks of all links."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from django.db import connection

from matrix.store import conditions, registry
from matrix.store.conditions import MARKS
from sonar.models import Condition, Endpoint
from sonar.notation.windows import Window, unix_ms
from tests.conditions import at, stored_condition
from tests.matrix.world import HOUR, NOW, World

pytestmark = pytest.mark.django_db
TYPES = Condition.Type
MINUTE = timedelta(minutes=1)


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
            assert conditions.open_at(moment) == rows, moment
    with one_statement():
        (slow,) = conditions.open_at(at(8 * HOUR))
        assert (slow.destination.site.name, slow.tests, slow.failed) == ("DESY", 30, 1)


def test_counts_of_tests_are_those_of_all_size_classes(small_world: World):
    stored_condition(source=small_world.ral, sizes=("large", "small"))
    (row,) = conditions.open_at(NOW)
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
            window = Window(at(start * HOUR), at(end * HOUR))
            assert conditions.overlapping(window) == rows, (start, end)


def test_of_links_are_those_that_have_one_as_a_member(small_world: World, one_statement):
    ral, glasgow, desy, scratch = small_world.endpoints
    of_ral = stored_condition(source=ral)
    # Only one of its links shows it.
    of_desy = stored_condition(TYPES.SLOW, destination=desy, links=[(glasgow, desy)], since=HOUR)
    stored_condition()
    for pairs, rows in (
        ([(ral, glasgow)], [of_ral]),
        ([(ral, desy)], [of_ral]),
        ([(glasgow, desy), (desy, glasgow)], [of_desy]),
        ([(glasgow, desy), (ral, scratch)], [of_desy, of_ral]),
        ([(scratch, ral)], []),
        ([], []),
    ):
        ids = [(source.id, destination.id) for source, destination in pairs]
        with one_statement():
            assert conditions.of_links(ids) == rows, pairs
    window = Window(at(7 * HOUR), at(2 * HOUR))
    assert conditions.of_links([(glasgow.id, desy.id), (ral.id, scratch.id)], window) == [of_ral]


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
        marks = conditions.marks("large", NOW, links)
    place = {end.id: at for at, end in enumerate(links.places)}

    def of(source: Endpoint, destination: Endpoint) -> tuple[object, ...]:
        here = place[source.id], place[destination.id]
        return MARKS[marks.mark[here]], int(marks.condition[here])

    assert of(ral, glasgow) == of(ral, scratch) == ("failing", failing.id)
    # Of two that are confirmed the worse one, and a confirmed one before one that is not.
    assert of(ral, desy) == ("failing", failing.id)
    assert of(glasgow, desy) == ("slow", slow.id) != ("failing", unsure.id)
    assert of(scratch, glasgow) == ("silent", silent.id)
    assert of(glasgow, scratch) == of(desy, glasgow) == of(desy, scratch) == ("", 0)
    here = place[scratch.id], place[desy.id]
    assert of(scratch, desy) == ("slow", slow.id)
    assert marks.since[here] == unix_ms(at(3 * HOUR))
    figures = marks.factor[here], marks.low[here], marks.high[here], marks.baseline[here]
    assert figures == pytest.approx((0.4, 0.35, 0.46, 12e6))
    assert (marks.tests[here], bool(marks.is_confirmed[here])) == (30, True)
    assert marks.are("slow").sum() == 2
    assert np.isnan(marks.baseline[place[ral.id], place[desy.id]])
    assert marks.since.shape == marks.are("failing").shape == (4, 4)
    small = conditions.marks("small", NOW, links)
    assert small.are("fast").sum() == (small.mark > 0).sum() == 1
    before = conditions.marks("large", at(2 * HOUR), links)
    assert MARKS[before.mark[place[desy.id], place[glasgow.id]]] == "slow"


def test_marks_leave_out_links_that_are_shown_no_more(small_world: World):
    ral, glasgow, *_ = small_world.endpoints
    stored_condition(source=ral, destination=glasgow)
    links = registry.read_links(registry.read_versions())
    with connection.cursor() as cursor:
        cursor.execute("UPDATE sonar_conditionlink SET destination_id = 60000")
    assert not (conditions.marks("large", NOW, links).mark > 0).any()
