"""Searching results for changes of level: of links, of endpoints, of the whole grid; and again."""

import re
from collections import defaultdict
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import permutations

import numpy as np
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.utils import timezone

from matrix import tasks
from matrix.answers.changes.search import Outcome, search_all
from matrix.statistics.levels.change_points import dated
from sonar.models import Change, ChangeSearch, Endpoint, Site, SizeClass, Transfer
from sonar.results import changes, sealing
from tests.matrix import changed
from tests.matrix.world import NOW, Transfers, endpoints, transfers

DAY = timedelta(days=1)
DAYS = 60
# As a change stands in the tests: its kind, its ends by name, and on which day from the last.
CHANGED = datetime(2026, 10, 21, 3, tzinfo=UTC)


def grid(count: int) -> list[Endpoint]:
    names = [f"SITE-{number:02d}" for number in range(count)]
    sites = Site.objects.bulk_create(Site(name=name, cloud="UK", tier=2) for name in names)
    return list(endpoints((f"{site.name}_DATADISK", site) for site in sites).values())


def level(source: Endpoint, destination: Endpoint) -> float:
    """Return the usual rate of a link in MB/s."""
    return 20 + 3 * (source.id % 7) + 5 * (destination.id % 5)


class History:
    """Two tests a day of each link, for DAYS days; ``factors`` say who is slower since when."""

    def __init__(self, places: list[Endpoint], noise: float = 1.3, seed: int = 1) -> None:
        self.places, self.noise = places, noise
        self.rng = np.random.default_rng(seed)
        self.factors: list[tuple[Endpoint | None, Endpoint | None, datetime, float]] = []

    def slower(
        self,
        source: Endpoint | None,
        destination: Endpoint | None,
        factor: float,
        since: datetime = CHANGED,
    ) -> None:
        self.factors.append((source, destination, since, factor))

    def factor(self, source: Endpoint, destination: Endpoint, started: datetime) -> float:
        return float(
            np.prod(
                [
                    factor
                    for at, to, since, factor in self.factors
                    if started >= since and at in (None, source) and to in (None, destination)
                ]
            )
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


def large(outcomes: list[Outcome]) -> Outcome:
    return next(outcome for outcome in outcomes if outcome.size == "large")


def told() -> list[tuple[str, str, str]]:
    names = dict(Endpoint.objects.values_list("id", "name"))
    return [
        (change.kind, names.get(change.source_id, ""), names.get(change.destination_id, ""))
        for change in Change.objects.filter(sure=True).order_by("kind", "at", "id")
    ]


def near(change: Change, moment: datetime = CHANGED) -> bool:
    """Say whether a change is dated within a day, and its interval has the moment in it."""
    exact = abs(change.at - moment) <= timedelta(days=1)
    return exact and change.earliest <= moment <= change.latest


@pytest.mark.django_db
def test_a_source_that_becomes_slower_is_one_change_and_not_one_for_each_of_its_links():
    places = grid(6)
    history = History(places)
    history.slower(places[2], None, 0.5)
    history.record()
    outcome = large(search_all(NOW))
    assert outcome.stored
    assert told() == [("source", places[2].name, "")]
    change = Change.objects.get(sure=True)
    assert near(change)
    assert change.low < 0.5 < change.high
    assert change.links == 5
    assert change.ok_before + change.ok_after == 5 * 2 * DAYS
    # 30 links; six sources, six destinations and the grid.
    assert outcome.sequences == 30 + 13


@pytest.mark.django_db
def test_links_destinations_and_the_grid_change_each_by_themselves():
    places = grid(6)
    history = History(places, noise=1.2, seed=2)
    history.slower(places[0], places[1], 1 / 3)
    history.slower(None, places[4], 2.0, CHANGED + timedelta(days=8))
    history.slower(None, None, 0.7, CHANGED - timedelta(days=12))
    history.record()
    search_all(NOW)
    assert told() == [
        ("destination", "", places[4].name),
        ("grid", "", ""),
        ("link", places[0].name, places[1].name),
    ]
    destination, whole, link = Change.objects.filter(sure=True).order_by("kind")
    assert near(link)
    assert near(destination, CHANGED + timedelta(days=8))
    assert near(whole, CHANGED - timedelta(days=12))
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


@pytest.mark.django_db
def test_changes_of_endpoints_and_of_the_grid_keep_what_all_their_links_did():
    places = grid(6)
    history = History(places, noise=1.2, seed=2)
    history.slower(None, places[4], 2.0, CHANGED + timedelta(days=8))
    history.slower(None, None, 0.7, CHANGED - timedelta(days=12))
    history.record()
    search_all(NOW)
    every = Change.objects.filter(sure=True).order_by("kind")
    assert [change.kind for change in every] == ["destination", "grid"]
    for change in every:
        # Both levels last longer than the most that is shown.
        assert alike(change.course, course_of(change, timedelta(days=14)))
        low, high = sorted([1, change.factor])
        assert low * 0.7 < min(change.course) < max(change.course) < high * 1.4


@pytest.mark.django_db
def test_a_new_change_of_a_link_is_shown_with_as_long_before_it():
    places = grid(4)
    history = History(places, noise=1.1, seed=8)
    history.slower(places[0], places[1], 1 / 3, NOW - timedelta(days=4))
    history.record()
    search_all(NOW)
    (change,) = Change.objects.filter(kind="link", sure=True)
    end = NOW.replace(second=0) + timedelta(minutes=1)
    assert alike(change.course, course_of(change, end - change.at, change.before))
    assert None in change.course
    assert len([factor for factor in change.course if factor]) > 10


@pytest.mark.django_db
def test_a_change_is_shown_until_the_next_one():
    places = grid(4)
    history = History(places, noise=1.1, seed=8)
    history.slower(places[0], places[1], 1 / 3, NOW - timedelta(days=30))
    history.slower(places[0], places[1], 3, NOW - timedelta(days=25))
    history.record()
    search_all(NOW)
    first, second = Change.objects.filter(kind="link", sure=True).order_by("at")
    length = second.at - first.at
    assert alike(first.course, course_of(first, length, first.before))
    assert alike(second.course, course_of(second, length, second.before))


@pytest.mark.django_db
def test_a_quiet_grid_has_no_sure_change():
    History(grid(6), noise=1.5, seed=3).record()
    search_all(NOW)
    assert told() == []
    assert ChangeSearch.objects.get(size_class__name="large").sequences == 43


def stored() -> list[dict[str, object]]:
    return list(Change.objects.order_by("id").values())


@pytest.mark.django_db
def test_searching_again_changes_nothing_and_new_results_are_searched_anew():
    places = grid(5)
    history = History(places, noise=1.2, seed=4)
    history.slower(places[0], places[1], 0.4)
    history.record(DAYS, 1)
    search_all(NOW - timedelta(days=1))
    before = stored()
    assert told() == [("link", places[0].name, places[1].name)]
    # Nothing new: it is only noted that it was looked.
    assert large(search_all(NOW - timedelta(days=1))).stored is None
    assert ChangeSearch.objects.get(size_class__name="large").searched_at == NOW - DAY
    # The same again, by whoever asks for it: each change keeps its row.
    again = large(search_all(NOW - timedelta(days=1), again=True)).stored
    assert (again.new, again.renewed, again.gone) == (0, 0, 0)
    assert stored() == before
    # The next day has results: its end moves on, its row and when it was found do not.
    history.record(1, 0)
    assert large(search_all(NOW)).stored
    (row,) = Change.objects.filter(sure=True)
    assert (row.id, row.found_at) == (before[0]["id"], before[0]["found_at"])
    assert row.ok_after == before[0]["ok_after"] + 2


@pytest.mark.django_db
def test_late_results_are_searched_and_what_they_disprove_goes():
    places = grid(4)
    history = History(places, noise=1.2, seed=5)
    history.slower(places[0], places[1], 0.4)
    history.record(20, 0)
    search_all(NOW)
    assert told() == []
    # What came before arrives late; and with it the change.
    history.record(DAYS, 20)
    search_all(NOW)
    assert told() == [("link", places[0].name, places[1].name)]
    # Results that are deleted take it along.
    Transfer.objects.filter(source=places[0], destination=places[1]).delete()
    sealing.seal(NOW)
    search_all(NOW)
    assert told() == []
    assert not Change.objects.filter(kind="link", source=places[0].id).exists()


@pytest.mark.django_db
def test_an_old_change_stands_when_little_is_left_of_what_was_before():
    places = grid(4)
    history = History(places, noise=1.2, seed=6)
    history.slower(places[0], places[1], 0.4)
    history.record()
    search_all(NOW)
    before = stored()
    later = NOW + timedelta(days=58)
    # 88 days after it, the window begins two days before it.
    with transfers() as some:
        history.add(some, places[2], places[3], timedelta(hours=1))
    sealing.seal(NOW)
    assert large(search_all(later)).stored
    assert stored() == before
    # With its results it goes.
    assert changes.forget(CHANGED + timedelta(days=399), 400) == 0
    assert changes.forget(CHANGED + timedelta(days=402), 400) == len(before)


@pytest.mark.django_db
def test_a_class_that_is_deleted_takes_its_changes_along():
    size_class = SizeClass.objects.get(name="large")
    ral, glasgow, *_ = grid(3)
    row = changed.change(ral, glasgow, size="large")
    changed.searched()
    size_class.delete()
    assert not Change.objects.filter(id=row.id).exists()
    assert ChangeSearch.objects.count() == 2


@pytest.mark.django_db
def test_the_task_and_the_command_search_every_class(monkeypatch):
    places = grid(4)
    history = History(places, noise=1.2, seed=7)
    history.slower(places[0], places[1], 0.4)
    history.record()
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    tasks.find_changes()
    assert told() == [("link", places[0].name, places[1].name)]
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
