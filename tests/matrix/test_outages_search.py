"""Outages as a search stores them: once, ended later, renewed, forgotten; against plain SQL."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import permutations
from operator import attrgetter

import numpy as np
import pytest
from django.db import connection

from matrix.answers.changes.search import search_all
from matrix.answers.matrix import grid
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Endpoint, Outage, Transfer
from sonar.results import changes, sealing
from tests.matrix.test_changes_search import grid as endpoints_of
from tests.matrix.test_changes_search import large
from tests.matrix.world import HOUR, NOW, transfers

pytestmark = pytest.mark.django_db

# Each row of failures of a link between a success and the next, without looking at the code.
SQL = """
WITH tests AS (
    SELECT source_id, destination_id, date_trunc('milliseconds', started_at) AS started_at,
        state = 'done' AS ok
    FROM sonar_transfer WHERE state <> 'lost'
), numbered AS (
    SELECT *, count(*) FILTER (WHERE ok) OVER (
        PARTITION BY source_id, destination_id ORDER BY started_at) AS successes
    FROM tests
), rows AS (
    SELECT source_id, destination_id, successes,
        max(started_at) FILTER (WHERE ok) AS last_ok,
        min(started_at) FILTER (WHERE NOT ok) AS began,
        max(started_at) FILTER (WHERE NOT ok) AS newest,
        count(*) FILTER (WHERE NOT ok) AS tests
    FROM numbered GROUP BY 1, 2, 3
), ended AS (
    SELECT *, lead(last_ok) OVER (
        PARTITION BY source_id, destination_id ORDER BY successes) AS ended
    FROM rows
)
SELECT source_id, destination_id, last_ok, began, newest, ended, tests
FROM ended WHERE tests >= 3 ORDER BY 1, 2, 4
"""


def add(source: Endpoint, destination: Endpoint, outcomes: str, ago: timedelta) -> None:
    """Store a test an hour from a time ago on: `.` succeeds, `x` fails, a blank is no test."""
    with transfers() as some:
        for hour, letter in enumerate(outcomes):
            if letter != " ":
                rate = 40 if letter == "." else None
                some.add(source, destination, rate, ago=ago - hour * HOUR)


def add_into(places: Sequence[Endpoint], outcomes: str, ago: timedelta) -> None:
    """Store tests of all links to the last of some endpoints."""
    *sources, destination = places
    for source in sources:
        add(source, destination, outcomes, ago)


def search(now: datetime = NOW) -> tuple[int, int, int]:
    """Seal and search; return how many outages were new, renewed and gone."""
    sealing.seal(now)
    stored = large(search_all(now)).outages
    assert stored
    return stored.new, stored.renewed, stored.gone


def rows(kind: str = "link") -> list[Outage]:
    return list(Outage.objects.filter(kind=kind).order_by("source_id", "destination_id", "began"))


def values() -> list[dict[str, object]]:
    return list(Outage.objects.order_by("id").values())


def test_outages_of_links_are_those_that_sql_finds_and_lasting_ones_are_failing_links():
    places = endpoints_of(5)
    rng = np.random.default_rng(1)
    for source, destination in permutations(places, 2):
        letters = rng.choice(list(".x "), 150, p=[0.3, 0.5, 0.2])
        add(source, destination, "".join(letters), timedelta(hours=150))
    search()
    with connection.cursor() as cursor:
        cursor.execute(SQL)
        in_sql = cursor.fetchall()
    assert len(in_sql) > 100
    fields = ("source_id", "destination_id", "last_ok", "began", "newest", "ended", "tests")
    assert list(map(attrgetter(*fields), rows())) == in_sql
    standings = grid.build(MatrixQuery(), NOW).links()
    lasting = Outage.objects.filter(kind="link", ended=None)
    assert standings["failing"] == lasting.count() > 2


def test_a_destination_that_fails_has_a_row_of_its_own_beside_its_links():
    places = endpoints_of(5)
    add_into(places, "......xxxxx...", timedelta(hours=20))
    assert search() == (5, 0, 0)
    (row,) = rows("destination")
    start = NOW - timedelta(hours=20)
    assert (row.source_id, row.destination_id) == (None, places[4].id)
    assert (row.last_ok, row.began) == (start + 5 * HOUR, start + 6 * HOUR)
    assert (row.newest, row.ended) == (start + 10 * HOUR, start + 11 * HOUR)
    assert (row.tests, row.links) == (20, 4)
    assert len(rows()) == 4
    assert rows("source") == []


def test_an_outage_that_ends_keeps_its_row():
    places = endpoints_of(4)
    add_into(places, "....xxx", timedelta(hours=40))
    then = NOW - timedelta(hours=30)
    assert search(then) == (4, 0, 0)
    first = values()
    assert {row["ended"] for row in first} == {None}
    add_into(places, "xx..", timedelta(hours=29))
    assert search(NOW) == (0, 4, 0)
    later = values()
    assert [(row["id"], row["found_at"]) for row in later] == [(row["id"], then) for row in first]
    assert {row["ended"] for row in later} == {NOW - timedelta(hours=27)}
    assert sorted(row["tests"] for row in later) == [5, 5, 5, 15]
    # Nothing new, and the same again: nothing is renewed.
    again = large(search_all(NOW, again=True)).outages
    assert (again.new, again.renewed, again.gone) == (0, 0, 0)
    assert values() == later


def test_late_results_split_an_outage_and_deleted_ones_take_it_along():
    ral, glasgow, *_ = endpoints_of(3)
    add(ral, glasgow, ".xxxxxxx.", timedelta(hours=20))
    assert search() == (1, 0, 0)
    (before,) = rows()
    add(ral, glasgow, ".", timedelta(hours=15, minutes=30))
    assert search() == (1, 1, 0)
    first, second = rows()
    assert (first.id, first.ended) == (before.id, NOW - timedelta(hours=15, minutes=30))
    assert (second.last_ok, second.tests) == (first.ended, 3)
    Transfer.objects.filter(source=ral, state="failed").delete()
    assert search() == (0, 0, 2)
    assert rows() == []


def test_an_old_outage_stands_and_one_that_lasts_goes_on_beyond_the_days_searched():
    ral, glasgow, third = endpoints_of(3)
    add(ral, glasgow, ".xxx.", timedelta(days=102))
    add(ral, third, ".xxx", timedelta(days=102))
    assert search(NOW - timedelta(days=100)) == (2, 0, 0)
    ended, lasting = values()
    # By now both began before the days of a search.
    add(ral, third, "xxxx", timedelta(days=70))
    add(ral, third, "xxxx", timedelta(days=1))
    assert search() == (0, 1, 0)
    old, renewed = values()
    assert old == ended
    assert renewed == lasting | {"newest": NOW - timedelta(hours=21), "tests": 3 + 8}
    add(ral, third, ".", timedelta(hours=20))
    assert search() == (0, 1, 0)
    assert values() == [old, renewed | {"ended": NOW - timedelta(hours=20)}]


def test_what_ended_before_the_days_that_are_renewed_stands_whatever_comes_late():
    ral, glasgow, third = endpoints_of(3)
    add(ral, glasgow, ".xxxxx.", timedelta(days=80))
    add(ral, third, ".xxxxx", timedelta(days=80))
    add(glasgow, ral, ".", timedelta(hours=2))
    assert search() == (2, 0, 0)
    before = values()
    # A failure more in each, from then; and the end of the second, from today.
    for destination in (glasgow, third):
        add(ral, destination, "x", timedelta(days=80) - 3 * HOUR - timedelta(minutes=30))
    add(ral, third, ".", timedelta(hours=1))
    assert search() == (0, 1, 0)
    first, second = values()
    assert first == before[0]
    assert (second["id"], second["tests"]) == (before[1]["id"], 6)
    assert second["ended"] == NOW - HOUR


def test_an_outage_with_few_tests_in_the_days_searched_stands():
    ral, glasgow, *_ = endpoints_of(3)
    for days in (95, 94, 50):
        add(ral, glasgow, "x", timedelta(days=days))
    assert search(NOW - timedelta(days=40)) == (1, 0, 0)
    before = values()
    add(glasgow, ral, ".", timedelta(hours=2))
    assert search() == (0, 0, 0)
    assert values() == before


def test_an_outage_after_a_success_is_another_than_one_from_before_the_days_searched():
    ral, glasgow, *_ = endpoints_of(3)
    add(ral, glasgow, ".xxx", timedelta(days=102))
    assert search(NOW - timedelta(days=100)) == (1, 0, 0)
    (before,) = values()
    add(ral, glasgow, ".xxx", timedelta(days=2))
    assert search() == (1, 0, 0)
    old, new = values()
    assert (old["newest"], old["tests"]) == (before["newest"], 3)
    assert new["last_ok"] == NOW - timedelta(days=2)


def test_outages_keep_what_rates_were_before_and_since():
    ral, glasgow, third, fourth = endpoints_of(4)
    with transfers() as some:
        for source, usual in ((ral, 40), (glasgow, 10), (third, 20)):
            # A quarter of a day at a time: as usual for 2 days, out for one, and at half of it.
            for quarter in range(24):
                at, out = 6 * HOUR * quarter + 3 * HOUR, 8 <= quarter < 12
                rate = usual if quarter < 8 else usual / 2
                some.add(source, fourth, None if out else rate, ago=timedelta(days=7) - at)
    search()
    (row,) = rows("destination")
    assert row.ended - row.began == timedelta(days=1)
    # Twelve bins of two hours: one in three has a test.
    course = [1.0, None, None] * 4 + [0.5, None, None] * 4
    assert [outage.course for outage in (row, *rows())] == [course] * 4


def test_an_outage_that_lasts_has_nothing_since_and_one_from_the_first_on_nothing_at_all():
    ral, glasgow, third = endpoints_of(3)
    add(ral, glasgow, ".....xxx", timedelta(hours=8))
    add(ral, third, "xxxx....", timedelta(hours=8))
    search()
    lasting, first = rows()
    # At least six hours are shown: half an hour each.
    assert lasting.course == [None, None, *[1.0, None] * 5, *[None] * 12]
    assert first.course == [None] * 24


def test_outages_are_forgotten_with_their_results():
    ral, glasgow, third = endpoints_of(3)
    add(ral, glasgow, ".xxx.", timedelta(days=2))
    add(ral, third, ".xxxx", timedelta(days=2))
    search()
    first, last = (row.newest for row in rows())
    kept = timedelta(days=400)
    assert changes.forget(first + kept, 400) == 0
    assert changes.forget(last + kept, 400) == 1
    assert [row.destination_id for row in rows()] == [third.id]
    assert changes.forget(last + kept + HOUR, 400) == 1


def test_storing_takes_the_same_number_of_statements_whatever_is_found(
    django_assert_max_num_queries,
):
    places = endpoints_of(6)
    for source, destination in permutations(places, 2):
        add(source, destination, ".xxx.xxx", timedelta(hours=20))
    sealing.seal(NOW)
    with django_assert_max_num_queries(60):
        search_all(NOW)
    assert Outage.objects.count() == 2 * (30 + 6 + 6)
