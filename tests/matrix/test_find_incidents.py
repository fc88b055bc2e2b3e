"""From the newest tests to incidents, through the database: what calls, and what must not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import permutations, product

import numpy as np
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command

from matrix import tasks
from matrix.answers.incidents import evaluate, words
from matrix.answers.incidents.class_now import ClassNow
from matrix.answers.incidents.grid_now import GridNow
from matrix.answers.matrix import standing
from matrix.statistics.compare import day_scatter
from matrix.statistics.samples import newest, pooling
from matrix.store.cache import STANDINGS
from sonar.alerting import decisions
from sonar.models import (
    Endpoint,
    EvaluationRun,
    Expectation,
    HeldLevel,
    HistoryEntry,
    Incident,
    Mesh,
    Site,
    SizeClass,
)
from tests.matrix.world import HOUR, NOW, downtime, endpoints, schedule, transfers

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
# Rates of a link on its days, in MB/s: they scatter a little.
RATES = (9.0, 11.0, 10.0, 10.5, 9.5, 10.0, 11.5, 8.5, 10.0, 10.5)


@pytest.fixture
def grid() -> list[Endpoint]:
    """Register six endpoints of six sites; each link was tested on ten days, three hours ago at
    last, and is tested every hour."""
    sites = Site.objects.bulk_create(Site(name=f"S{number}") for number in range(6))
    ends = list(endpoints((f"E{at}", site) for at, site in enumerate(sites)).values())
    schedule(Mesh.objects.create(name="all"), *permutations(ends, 2))
    with transfers() as some:
        for number, (source, destination) in enumerate(permutations(ends, 2)):
            for day in range(10):
                rate = RATES[(day + number) % len(RATES)]
                some.add(source, destination, rate, ago=(day + 1) * DAY)
            some.add(source, destination, RATES[number % len(RATES)], ago=3 * HOUR)
    return ends


def add_tests(
    grid: list[Endpoint],
    rate: Callable[[Endpoint, Endpoint], float | None],
    *,
    ago: timedelta = timedelta(),
) -> None:
    """Test each link three times, the last 20 minutes ago."""
    with transfers() as some:
        for source, destination in permutations(grid, 2):
            for minutes in (100, 60, 20):
                some.add(
                    source,
                    destination,
                    rate(source, destination),
                    ago=timedelta(minutes=minutes) + ago,
                )


def look(*, after: timedelta = timedelta()) -> list[tuple[str, str]]:
    """Look at the newest tests, as if the beat had done so each minute; return what is open."""
    now = NOW + after
    EvaluationRun.objects.update_or_create(
        pk=1, defaults={"evaluated_at": now, "awake_since": NOW - 10 * DAY, "links": 0}
    )
    evaluate.evaluate(now)
    rows = Incident.objects.filter(closed_at=None).order_by("opened_at", "id")
    return [(words.title(row), row.condition) for row in rows]


def test_a_grid_as_usual_calls_nobody(grid: list[Endpoint]):
    add_tests(grid, lambda *_: 10.0)
    assert look() == []
    assert EvaluationRun.objects.get().links == 30


def test_one_slow_destination_is_one_incident_with_its_links_and_figures(grid: list[Endpoint]):
    slow = grid[2]
    add_tests(grid, lambda _, destination: 4.0 if destination == slow else 10.0)
    assert look() == [("E2 receives slowly", "slow")]
    incident = Incident.objects.get()
    assert (incident.links, incident.of_links, incident.sizes) == (5, 5, ["large"])
    assert incident.low < 0.4 < incident.high
    assert {(row.destination_id, row.rate) for row in incident.members.all()} == {(slow.id, 4e6)}
    assert incident.began_at == NOW - timedelta(minutes=100)
    assert "E2 receives slowly: at 4" in words.sentence(incident)
    # What is usual is held for all of its links while it lasts.
    assert {row.destination_id for row in HeldLevel.objects.all()} == {slow.id}
    assert look(after=timedelta(minutes=1)) == [("E2 receives slowly", "slow")]
    assert Incident.objects.count() == 1


def test_it_closes_an_hour_after_all_is_well_and_what_was_held_is_let_go(grid: list[Endpoint]):
    slow = grid[2]
    add_tests(grid, lambda source, _: 4.0 if source == slow else 10.0)
    assert look() == [("E2 sends slowly", "slow")]
    add_tests(grid, lambda *_: 10.0, ago=-2 * HOUR)
    assert look(after=2 * HOUR) == [("E2 sends slowly", "slow")]
    assert look(after=2.5 * HOUR) == [("E2 sends slowly", "slow")]
    assert look(after=3 * HOUR) == []
    look(after=3 * HOUR)
    assert HeldLevel.objects.count() == 0
    assert list(Incident.objects.get().events.values_list("kind", flat=True)) == [
        "opened",
        "closed",
    ]


def test_what_fails_and_what_is_silent_are_named_and_all_at_once_is_sonar(grid: list[Endpoint]):
    add_tests(grid, lambda source, _: None if source == grid[1] else 10.0)
    assert look() == [("E1 fails to send files", "failing")]
    assert look(after=4 * HOUR) == [
        ("E1 fails to send files", "failing"),
        ("Sonar itself or its own network: too many links have no new results", "silent"),
    ]


def judged() -> ClassNow:
    STANDINGS.forget()
    return ClassNow.read(SizeClass.objects.get(name="large"), GridNow.read(NOW))


def test_a_part_of_the_days_and_of_the_links_at_a_time_tells_the_same(
    grid: list[Endpoint], monkeypatch: pytest.MonkeyPatch
):
    """Some links have been failing for weeks, some for a day; some are slow, one is untested."""
    new = endpoints((f"NEW{at}", grid[0].site) for at in range(3)).values()
    since = dict(zip(new, (22, 15, 1), strict=True))
    schedule(Mesh.objects.create(name="new"), *((end, grid[0]) for end in since))
    with transfers() as some:
        for number, (source, destination) in enumerate(product(since, grid)):
            for day in range(1, 28 if number else 0):
                ok = day > since[source]
                rate = RATES[(3 * day + number) % len(RATES)] * (1 + number % 2)
                some.add(source, destination, rate if ok else None, ago=day * DAY)
    add_tests(grid, lambda source, _: 2.0 if source == grid[3] else 10.0)
    whole = judged()
    for module, links in ((standing, 30), (newest, 10), (day_scatter, 10)):
        monkeypatch.setattr(module, "LINKS", links)
    monkeypatch.setattr(standing, "FEW_DAYS", 3 * DAY)
    monkeypatch.setattr(pooling, "CHUNK", 8)
    assert len(whole.grid.links.numbering.parts(30)) == 4
    parts = judged()
    arrays = whole.states.arrays() | {"usual": whole.usual}
    for name, values in (parts.states.arrays() | {"usual": parts.usual}).items():
        np.testing.assert_array_equal(values, arrays[name], name)
    assert np.isfinite(whole.states.change).any()
    assert whole.states.streak.max() > 10
    assert [*parts.causes()] == [*whole.causes()] != []


def test_sonar_that_was_away_calls_nothing_silent(grid: list[Endpoint]):
    EvaluationRun.objects.create(pk=1, evaluated_at=NOW - DAY, awake_since=NOW - 9 * DAY, links=30)
    evaluate.evaluate(NOW + 2 * HOUR)
    assert not Incident.objects.exists()
    assert EvaluationRun.objects.get().awake_since == NOW + 2 * HOUR


@pytest.mark.parametrize("reason", ["downtime", "site", "endpoint", "resumed"])
def test_nobody_is_called_for_what_is_known(grid: list[Endpoint], reason: str):
    known = grid[3]
    add_tests(grid, lambda source, _: None if source == known else 10.0)
    if reason == "downtime":
        downtime(site=known.site)
    elif reason == "site":
        Site.objects.filter(pk=known.site_id).update(paused_since=NOW - DAY, pause_reason="move")
    elif reason == "endpoint":
        Endpoint.objects.filter(pk=known.id).update(paused_since=NOW - DAY, pause_reason="move")
    else:
        with transfers() as some:
            some.add(known, grid[0], 10.0, ago=timedelta(minutes=5))
            for other in (grid[1], grid[2], grid[4]):
                some.add(known, other, 10.0, ago=timedelta(minutes=5))
    assert look() == []


def test_after_a_pause_nothing_is_silent_until_it_could_be_tested(grid: list[Endpoint]):
    add_tests(grid, lambda *_: 10.0)
    with transfers() as some:
        for source, destination in permutations(grid, 2):
            if grid[3] not in (source, destination):
                some.add(source, destination, 10.0, ago=timedelta(hours=-3.5))
    entry = {"door": "page", "who": "", "token": "", "name": "E3", "action": "changed"}
    paused = HistoryEntry.objects.create(
        at=NOW + 3 * HOUR, kind="endpoint", key=grid[3].id, changes={"paused_since": []}, **entry
    )
    assert look(after=4 * HOUR) == []
    paused.delete()
    assert look(after=4 * HOUR) == [("E3 has no new results", "silent")]


def test_a_floor_is_expected_of_whom_it_names_and_the_first_by_priority_counts(
    grid: list[Endpoint],
):
    add_tests(grid, lambda *_: 10.0)
    of_site = {"site": grid[1].site, "below": 1.0, "above": 1.0}
    Expectation.objects.create(name="fast", floor=12e6, priority=5, **of_site)
    low = Expectation.objects.create(name="slow", floor=1e6, priority=9, **of_site)
    assert look() == []
    low.enabled = False
    low.save()
    assert look() == [("E1 is slow in both directions", "slow")]
    assert Incident.objects.get().members.first().expected == 12e6


def test_the_new_normal_is_taken_for_usual_and_calls_nobody_again(grid: list[Endpoint]):
    add_tests(grid, lambda _, destination: 4.0 if destination == grid[2] else 10.0)
    look()
    user = User.objects.create_user("ann")
    decisions.accept(Incident.objects.get(), user, NOW, "The link was halved by contract.")
    assert look(after=timedelta(minutes=1)) == []
    assert {(row.rate, row.by, row.until) for row in HeldLevel.objects.all()} == {
        (4e6, user, NOW + 28 * DAY)
    }


def test_the_task_is_sent_by_the_beat_and_the_command_says_what_is_open(
    grid: list[Endpoint], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)
    add_tests(grid, lambda _, destination: 4.0 if destination == grid[2] else 10.0)
    assert settings.CELERY_BEAT_SCHEDULE["find_incidents"]["task"] == tasks.find_incidents.name
    tasks.find_incidents()
    call_command("find_incidents")
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("30 links judged in ")
    assert first.endswith(": nothing new.")
    assert second.startswith("- E2 receives slowly: at 4")
