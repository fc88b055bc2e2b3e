"""What is silent now: scheduled links without a test, though nothing known holds them back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from django.conf import LazySettings

from matrix.assessment.assessing import assess
from matrix.store.cache import STANDINGS
from sonar.models import (
    AllTests,
    AssessedDay,
    Circuit,
    Condition,
    Downtime,
    Endpoint,
    Mesh,
    MeshInterval,
    Schedule,
    SizeClass,
    Version,
)
from tests.accuracy.histories import DAY, HOUR
from tests.stored_histories import NOW, StoredHistory, history_of, moment

pytestmark = pytest.mark.django_db
SCOPE, SILENT = Condition.Scope, Condition.Type.SILENT
GONE = NOW - 10 * HOUR


@pytest.fixture(autouse=True)
def hourly(settings: LazySettings) -> None:
    settings.SONAR_INCIDENTS_SECONDS = 3600


def scheduled(
    missing: Callable[[int, int], bool] = lambda source, destination: False,
    until: int = NOW,
    every_seconds: int = 3600,
) -> StoredHistory:
    """Store an hourly test of each link, without those since GONE of links that are ``missing``."""
    stored = history_of(lambda _: [], days=3, every_hours={"large": 1})
    history = stored.history
    of_link = np.array(
        [missing(*pair) for pair in zip(history.source, history.destination, strict=True)]
    )
    tests = history.tests["large"]
    kept = ~(of_link[tests.link] & (tests.started > GONE) & (tests.started < until))
    left = replace(tests, **{name: each[kept] for name, each in vars(tests).items()})
    stored = StoredHistory(replace(history, tests={"large": left}), stored.ends)
    stored.store()
    mesh = Mesh.objects.create(name="all", mover="fake")
    large = SizeClass.objects.get(name="large")
    Schedule.objects.bulk_create(
        Schedule(
            mesh=mesh,
            source=stored.ends[source],
            destination=stored.ends[destination],
            size_class=large,
            every_seconds=every_seconds,
            next_due=moment(NOW),
        )
        for source, destination in zip(history.source, history.destination, strict=True)
    )
    return stored


def assess_hourly(begin: int = GONE - 2 * HOUR, end: int = NOW) -> None:
    for at in range(begin, end + 1, HOUR):
        assess(moment(at))


def newest(stored: StoredHistory, missing: Callable[[int, int], bool]) -> int:
    """Return when the newest test of missing links before GONE started."""
    history, tests = stored.history, stored.history.tests["large"]
    own = np.array(
        [missing(*pair) for pair in zip(history.source, history.destination, strict=True)]
    )
    return int(tests.started[own[tests.link] & (tests.started <= GONE)].max())


def to_three(_: int, destination: int) -> bool:
    return destination == 3


def everything(*_: int) -> bool:
    return True


def test_a_destination_is_silent_since_its_newest_test_and_until_it_is_tested_again():
    stored = scheduled(to_three, NOW - 2 * HOUR)
    assess_hourly(end=GONE + 2 * HOUR)
    assert not Condition.objects.exists()
    assess_hourly(GONE + 3 * HOUR, NOW - 2 * HOUR)
    row = Condition.objects.get()
    assert (row.scope, row.type, row.destination_id) == (
        SCOPE.DESTINATION,
        SILENT,
        stored.ends[3].id,
    )
    assert row.since == row.since_low == row.since_high == moment(newest(stored, to_three))
    assert (row.links, row.of_links, row.ended_at, row.factor) == (5, 5, None, None)
    assert row.confirmed_at == row.parts.get().shown_at > row.since + timedelta(hours=2)
    assert {each.destination_id for each in row.parts.get().members.all()} == {stored.ends[3].id}
    assess_hourly(NOW - HOUR, NOW)
    row.refresh_from_db()
    assert moment(NOW - 2 * HOUR) <= row.ended_at <= moment(NOW - HOUR)
    # What was silent cannot be found again, and stays where days are judged again.
    ended_at = row.ended_at
    assess(moment(NOW), since=moment(NOW - DAY).date())
    row.refresh_from_db()
    assert row.ended_at == ended_at
    assert Condition.objects.count() == 1


def test_what_is_silent_now_is_found_by_a_rebuild_too():
    scheduled(to_three)
    assess_hourly()
    columns = ("since", "confirmed_at", "ended_at", "links", "of_links", "destination")
    before = list(Condition.objects.values_list(*columns))
    assert len(before) == 1
    Condition.objects.all().delete()
    AssessedDay.objects.all().delete()
    STANDINGS.forget()
    assess(moment(NOW))
    assert list(Condition.objects.values_list(*columns)) == before


def test_a_link_is_silent_alone():
    def missing(source: int, destination: int) -> bool:
        return (source, destination) == (1, 4)

    stored = scheduled(missing)
    assess_hourly()
    row = Condition.objects.get()
    assert (row.scope, row.source_id, row.destination_id, row.type) == (
        SCOPE.LINK,
        stored.ends[1].id,
        stored.ends[4].id,
        SILENT,
    )
    Schedule.objects.filter(source=row.source_id, destination=row.destination_id).delete()
    Version.objects.update_or_create(name="schedule", defaults={"value": 10**6})
    assess(moment(NOW + HOUR))
    row.refresh_from_db()
    # No mesh tests it any more.
    assert row.ended_at == moment(NOW + HOUR)


def test_without_any_test_it_is_sonar_and_each_link_has_its_time_again_afterwards():
    scheduled(everything, NOW - HOUR)
    assess_hourly(end=NOW - 2 * HOUR)
    row = Condition.objects.get()
    assert (row.scope, row.type, row.ended_at) == (SCOPE.GRID, SILENT, None)
    assert (row.links, row.of_links) == (30, 30)
    # The first test ends it; other links were not tested for longer than they may be.
    assess(moment(NOW - HOUR + 600_000))
    row.refresh_from_db()
    assert moment(NOW - HOUR) <= row.ended_at <= moment(NOW - HOUR + 600_000)
    assess_hourly(NOW)
    assert Condition.objects.count() == 1


def pause_endpoint(end: Endpoint) -> Endpoint:
    Endpoint.objects.filter(pk=end.pk).update(paused_since=moment(GONE), pause_reason="disks")
    return Endpoint.objects.filter(pk=end.pk)


HELD_BACK = {
    "downtime": (
        lambda end: Downtime.objects.create(
            site=end.site, starts_at=moment(GONE), ends_at=moment(NOW), reason="disks"
        ),
        lambda end: Downtime.objects.update(ends_at=moment(NOW)),
    ),
    "pause": (
        lambda end: Endpoint.objects.filter(pk=end.pk).update(
            paused_since=moment(GONE), pause_reason="disks"
        ),
        lambda end: Endpoint.objects.update(paused_since=None, pause_reason=""),
    ),
    "not enabled": (
        lambda end: Endpoint.objects.filter(pk=end.pk).update(enabled=False),
        lambda end: Endpoint.objects.update(enabled=True),
    ),
    "circuit breaker": (
        lambda end: Circuit.objects.create(
            endpoint=end, failures=9, since=moment(GONE), last_at=moment(GONE), error="refused"
        ),
        lambda end: Circuit.objects.all().delete(),
    ),
    "quiet hours": (
        lambda end: (
            type(end.site)
            .objects.filter(pk=end.site_id)
            .update(quiet_from=moment(GONE).time(), quiet_until=moment(NOW).time())
        ),
        lambda end: None,
    ),
    "stop of all tests": (
        lambda end: AllTests.objects.update_or_create(
            id=1, defaults={"paused_since": moment(GONE), "pause_reason": "move"}
        ),
        lambda end: AllTests.objects.update(paused_since=None, pause_reason=""),
    ),
}


@pytest.mark.parametrize("what", HELD_BACK)
def test_nothing_is_silent_that_something_known_holds_back_nor_just_after_that(what: str):
    begin, end = HELD_BACK[what]
    missing = everything if what == "stop of all tests" else to_three
    stored = scheduled(missing, NOW + DAY)
    assess_hourly(end=GONE)
    begin(stored.ends[3])
    assess_hourly(GONE + HOUR, NOW - HOUR)
    assert not Condition.objects.exists()
    end(stored.ends[3])
    if what == "not enabled":
        # Drafts have no links; those that are enabled have.
        STANDINGS.forget()
    assess_hourly(NOW, NOW + HOUR)
    assert not Condition.objects.filter(destination=stored.ends[3], ended_at=None).exists()


def test_what_goes_into_a_downtime_silent_stays_so_until_it_is_tested_again():
    stored = scheduled(to_three, NOW - HOUR)
    assess_hourly(end=GONE + 4 * HOUR)
    row = Condition.objects.get()
    Downtime.objects.create(
        endpoint=stored.ends[3],
        starts_at=moment(GONE + 4 * HOUR),
        ends_at=moment(NOW - 2 * HOUR),
        reason="disks",
    )
    assess_hourly(GONE + 5 * HOUR, NOW - HOUR)
    before = row.since
    row.refresh_from_db()
    assert (row.since, row.ended_at) == (before, None)
    assess(moment(NOW))
    row.refresh_from_db()
    assert row.ended_at is not None


def test_sonar_was_away_itself():
    scheduled(everything, NOW - HOUR // 2)
    assess_hourly(end=GONE)
    assess(moment(NOW - HOUR))
    assert not Condition.objects.exists()


def test_links_that_are_to_be_tested_more_often_have_their_time_first():
    stored = scheduled(to_three, every_seconds=24 * 3600)
    large = SizeClass.objects.get(name="large")
    interval = MeshInterval.objects.create(
        mesh=Mesh.objects.get(), size_class=large, every_seconds=24 * 3600
    )
    assess_hourly()
    interval.every_seconds = 3600
    interval.save()
    Schedule.objects.update(every_seconds=3600)
    Version.objects.update_or_create(name="schedule", defaults={"value": 10**6})
    assess_hourly(NOW, NOW + 2 * HOUR)
    assert not Condition.objects.filter(destination=stored.ends[3]).exists()
    assess(moment(NOW + 3 * HOUR))
    assert Condition.objects.filter(type=SILENT).exists()
