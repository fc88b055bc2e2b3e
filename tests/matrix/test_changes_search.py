"""Searching results for changes of level and for outages, and again: once, renewed, forgotten."""

import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import permutations
from math import prod
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from matrix import tasks
from matrix.answers.changes.search import Outcome, search_all
from matrix.answers.matrix import grid
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.levels.change_points import dated
from sonar.models import Change, ChangeSearch, Endpoint, Outage, Site, SizeClass, Transfer
from sonar.results import changes, sealing
from tests.matrix import changed
from tests.matrix.world import HOUR, NOW, Transfers, endpoints, transfers

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
DAYS = 60
# As a change stands in the tests: its kind, its ends by name, and on which day from the last.
CHANGED = datetime(2026, 10, 21, 3, tzinfo=UTC)


def endpoints_of(count: int) -> list[Endpoint]:
    names = [f"SITE-{number:02d}" for number in range(count)]
    sites = Site.objects.bulk_create(Site(name=name, cloud="UK", tier=2) for name in names)
    return list(endpoints((f"{site.name}_DATADISK", site) for site in sites).values())


def level(source: Endpoint, destination: Endpoint) -> float:
    """Return the usual rate of a link in MB/s."""
    return 20 + 3 * (source.id % 7) + 5 * (destination.id % 5)


class Slower(NamedTuple):
    """Links by the numbers of their ends, None for any, which have a factor since a moment."""

    source: int | None
    destination: int | None
    factor: float
    since: datetime = CHANGED


class History:
    """Two tests a day of each link of a grid, for DAYS days."""

    def __init__(self, count: int, *slower: Slower, noise: float = 1.2, seed: int = 1) -> None:
        self.places, self.slower, self.noise = endpoints_of(count), slower, noise
        self.rng = np.random.default_rng(seed)

    def factor(self, source: Endpoint, destination: Endpoint, started: datetime) -> float:
        ends = self.places.index(source), self.places.index(destination)
        return prod(
            each.factor
            for each in self.slower
            if started >= each.since
            and each.source in (None, ends[0])
            and each.destination in (None, ends[1])
        )

    def record(self, first: int = DAYS, last: int = 0) -> None:
        """Store the results of these days ago."""
        with transfers() as some:
            for source, destination in permutations(self.places, 2):
                for ago in range(first, last, -1):
                    for half in (0, 12):
                        age = timedelta(days=ago, hours=half - self.rng.uniform(0, 10))
                        self.add(some, source, destination, age)
        sealing.seal(NOW)

    def add(self, some: Transfers, source: Endpoint, destination: Endpoint, age: timedelta) -> None:
        noise = np.exp(self.rng.normal(0, np.log(self.noise)))
        rate = level(source, destination) * self.factor(source, destination, NOW - age) * noise
        some.add(source, destination, float(rate), ago=age)

    def searched(self) -> Outcome:
        """Store all of it and search it."""
        self.record()
        return large(search_all(NOW))


def large(outcomes: list[Outcome]) -> Outcome:
    return next(outcome for outcome in outcomes if outcome.size == "large")


def told() -> list[tuple[str, str, str]]:
    names = dict(Endpoint.objects.values_list("id", "name"))
    return [
        (change.kind, names.get(change.source_id, ""), names.get(change.destination_id, ""))
        for change in Change.objects.filter(sure=True).order_by("kind", "at", "id")
    ]


def of_link(history: History) -> list[tuple[str, str, str]]:
    """Say that the link from the first to the second place has changed, and nothing else."""
    return [("link", *(place.name for place in history.places[:2]))]


def near(change: Change, moment: datetime = CHANGED) -> bool:
    """Say whether a change is dated within a day, and its interval has the moment in it."""
    exact = abs(change.at - moment) <= DAY
    return exact and change.earliest <= moment <= change.latest


@pytest.mark.long
def test_a_source_that_becomes_slower_is_one_change_and_not_one_for_each_of_its_links():
    history = History(6, Slower(2, None, 0.5), noise=1.3)
    outcome = history.searched()
    assert outcome.stored
    assert told() == [("source", history.places[2].name, "")]
    change = Change.objects.get(sure=True)
    assert near(change)
    assert change.low < 0.5 < change.high
    assert change.links == 5
    assert change.ok_before + change.ok_after == 5 * 2 * DAYS
    # 30 links; six sources, six destinations and the grid.
    assert outcome.sequences == 30 + 13


@pytest.mark.long
def test_links_destinations_and_the_grid_change_each_by_themselves():
    of_others = Slower(None, 4, 2.0, CHANGED + 8 * DAY), Slower(None, None, 0.7, CHANGED - 12 * DAY)
    history = History(6, Slower(0, 1, 1 / 3), *of_others, seed=2)
    history.searched()
    one, other, *_, hit, _ = (place.name for place in history.places)
    assert told() == [("destination", "", hit), ("grid", "", ""), ("link", one, other)]
    destination, whole, link = Change.objects.filter(sure=True).order_by("kind")
    assert near(link)
    assert near(destination, CHANGED + 8 * DAY)
    assert near(whole, CHANGED - 12 * DAY)
    assert destination.low < 2 < destination.high
    # Another change moves the middle of six endpoints a little, and with it the level of all.
    assert whole.factor == pytest.approx(0.7, rel=0.06)
    assert link.after is not None
    assert link.before is not None
    assert link.after / link.before == pytest.approx(link.factor)


def course_of(change: Change, length: timedelta, level: float | None = None) -> list[float | None]:
    """Return geometric means of bins, going through the tests one by one.

    Each link is taken against its own mean before, or against a level in bytes/s.
    """
    tests = Transfer.objects.filter(state="done").values_list(
        "source_id", "destination_id", "started_at", "bytes", "seconds"
    )
    of_links = defaultdict(list)
    for source, destination, started, size, seconds in tests:
        if change.source_id in (None, source) and change.destination_id in (None, destination):
            of_links[source, destination].append((started, np.log(size / seconds)))
    logs: list[list[float]] = [[] for _ in range(24)]
    for of_link in of_links.values():
        before = [log for started, log in of_link if started < change.at]
        base = np.log(level) if level else np.mean(before)
        for started, log in of_link:
            place = (started - (change.at - length)) * 12 // length
            if 0 <= place < 24:
                logs[place].append(log - base)
    return [float(f"{np.exp(np.mean(values)):.3g}") if values else None for values in logs]


def alike(course: list[float | None], other: list[float | None]) -> bool:
    """Say whether two courses differ by rounding alone."""
    pairs = list(zip(course, other, strict=True))
    return all(
        one is two is None or (one and two and abs(one / two - 1) < 0.011) for one, two in pairs
    )


@pytest.mark.long
def test_changes_of_endpoints_and_of_the_grid_keep_what_all_their_links_did():
    of_others = Slower(None, 4, 2.0, CHANGED + 8 * DAY), Slower(None, None, 0.7, CHANGED - 12 * DAY)
    History(6, *of_others, seed=2).searched()
    every = Change.objects.filter(sure=True).order_by("kind")
    assert [change.kind for change in every] == ["destination", "grid"]
    for change in every:
        # Both levels last longer than the most that is shown.
        assert alike(change.course, course_of(change, 14 * DAY))
        low, high = sorted([1, change.factor])
        assert low * 0.7 < min(change.course) < max(change.course) < high * 1.4


@pytest.mark.long
def test_a_new_change_of_a_link_is_shown_with_as_long_before_it():
    History(4, Slower(0, 1, 1 / 3, NOW - 4 * DAY), noise=1.1, seed=8).searched()
    (change,) = Change.objects.filter(kind="link", sure=True)
    end = NOW.replace(second=0) + timedelta(minutes=1)
    assert alike(change.course, course_of(change, end - change.at, change.before))
    assert None in change.course
    assert len([factor for factor in change.course if factor]) > 10


@pytest.mark.long
def test_a_change_is_shown_until_the_next_one():
    twice = Slower(0, 1, 1 / 3, NOW - 30 * DAY), Slower(0, 1, 3, NOW - 25 * DAY)
    History(4, *twice, noise=1.1, seed=8).searched()
    first, second = Change.objects.filter(kind="link", sure=True).order_by("at")
    length = second.at - first.at
    assert alike(first.course, course_of(first, length, first.before))
    assert alike(second.course, course_of(second, length, second.before))


@pytest.mark.long
def test_a_quiet_grid_has_no_sure_change():
    History(6, noise=1.5, seed=3).searched()
    assert told() == []
    assert ChangeSearch.objects.get(size_class__name="large").sequences == 43


def stored() -> list[dict[str, object]]:
    return list(Change.objects.order_by("id").values())


@pytest.mark.long
def test_searching_again_changes_nothing_and_new_results_are_searched_anew():
    history = History(5, Slower(0, 1, 0.4), seed=4)
    history.record(DAYS, 1)
    search_all(NOW - DAY)
    before = stored()
    assert told() == of_link(history)
    # Nothing new: it is only noted that it was looked.
    assert large(search_all(NOW - DAY)).stored is None
    assert ChangeSearch.objects.get(size_class__name="large").searched_at == NOW - DAY
    # The same again, by whoever asks for it: each change keeps its row.
    again = large(search_all(NOW - DAY, again=True)).stored
    assert (again.new, again.renewed, again.gone) == (0, 0, 0)
    assert stored() == before
    # The next day has results: its end moves on, its row and when it was found do not.
    history.record(1, 0)
    assert large(search_all(NOW)).stored
    (row,) = Change.objects.filter(sure=True)
    assert (row.id, row.found_at) == (before[0]["id"], before[0]["found_at"])
    assert row.ok_after == before[0]["ok_after"] + 2


@pytest.mark.long
def test_late_results_are_searched_and_what_they_disprove_goes():
    history = History(4, Slower(0, 1, 0.4), seed=5)
    history.record(20, 0)
    search_all(NOW)
    assert told() == []
    # What came before arrives late; and with it the change.
    history.record(DAYS, 20)
    search_all(NOW)
    assert told() == of_link(history)
    # Results that are deleted take it along.
    places = history.places
    Transfer.objects.filter(source=places[0], destination=places[1]).delete()
    sealing.seal(NOW)
    search_all(NOW)
    assert told() == []
    assert not Change.objects.filter(kind="link", source=places[0].id).exists()


@pytest.mark.long
def test_an_old_change_stands_when_little_is_left_of_what_was_before():
    history = History(4, Slower(0, 1, 0.4), seed=6)
    history.searched()
    before = stored()
    later = NOW + 58 * DAY
    # 88 days after it, the window begins two days before it.
    with transfers() as some:
        history.add(some, *history.places[2:], timedelta(hours=1))
    sealing.seal(NOW)
    assert large(search_all(later)).stored
    assert stored() == before
    # With its results it goes.
    assert changes.forget(CHANGED + 399 * DAY, 400) == 0
    assert changes.forget(CHANGED + 402 * DAY, 400) == len(before)


def test_a_class_that_is_deleted_takes_its_changes_along():
    size_class = SizeClass.objects.get(name="large")
    ral, glasgow, *_ = endpoints_of(3)
    row = changed.change(ral, glasgow, size="large")
    changed.searched()
    size_class.delete()
    assert not Change.objects.filter(id=row.id).exists()
    assert ChangeSearch.objects.count() == 2


@pytest.mark.long
def test_the_task_and_the_command_search_every_class(monkeypatch):
    history = History(4, Slower(0, 1, 0.4), seed=7)
    history.record()
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    tasks.find_changes()
    assert told() == of_link(history)
    assert settings.CELERY_BEAT_SCHEDULE["find_changes"]["task"] == tasks.find_changes.name
    lines = StringIO()
    with redirect_stdout(lines):
        call_command("find_changes", size="large")
        call_command("find_changes", size="large", again=True)
    first, second = lines.getvalue().splitlines()
    assert first == "large: no new results since the last search"
    assert re.fullmatch(
        r"large: 19 sequences searched in [\d.]+ s: 0 new changes, 0 renewed, 0 gone; "
        r"0 new outages, 0 renewed, 0 gone",
        second,
    )
    with pytest.raises(CommandError, match="There is no size class 'huge': use one of small"):
        call_command("find_changes", size="huge")


def test_the_change_of_an_endpoint_is_dated_within_two_tests():
    """Of its whole row: 9 links with 60 tests each, at noise x1.5; three standard errors."""
    rng = np.random.default_rng(9)
    count, links, tests = 300, 9, 60
    hits = 0
    for _ in range(count):
        times = np.sort(rng.uniform(0, tests, (links, tests)), axis=1)
        logs = rng.normal(0, np.log(1.5), times.shape) - np.log(2) * (times >= tests / 2)
        logs -= logs.mean(axis=1, keepdims=True)
        order = np.argsort(times, axis=None)
        at, earliest, latest = dated(logs.ravel()[order])
        moments = times.ravel()[order]
        hits += abs(moments[at] - tests / 2) <= 2
        assert earliest <= at <= latest
    assert hits / count >= 0.99 - 3 * np.sqrt(0.01 * 0.99 / count)


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


@pytest.mark.long
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
