"""A clock that jumps, as it is put right: nothing waits for it, and what runs is not lost."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import OperationalError
from django.utils import timezone

from sonar import scheduler, tasks
from sonar.celery import app
from sonar.credentials import cache
from sonar.credentials.sources.base import StorageToken
from sonar.models import Probe, Schedule, Transfer
from sonar.processes import clock_steps
from sonar.processes.broker import PatientScheduler
from sonar.results import endings
from tests.sonar.world import NOW, claimed, queued, roomy, three_endpoints

HOUR = timedelta(hours=1)
Step = Callable[[timedelta], None]


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> Step:
    """Let the time of day jump as far as one says."""
    clock = time.time

    def jump(how_far: timedelta) -> None:
        monkeypatch.setattr(clock_steps.time, "time", lambda: clock() + how_far.total_seconds())

    return jump


def hours(steps: clock_steps.ClockSteps) -> float:
    with steps.followed() as (jumped, _):
        return round(jumped / HOUR, 2)


def test_a_jump_is_told_once_to_each_who_asks_and_what_is_slow_is_none(step: Step) -> None:
    one, other = clock_steps.ClockSteps(), clock_steps.ClockSteps()
    step(timedelta(milliseconds=900))
    assert hours(one) == 0
    step(HOUR)
    assert (hours(one), hours(other), hours(one)) == (1, 1, 0)
    step(-HOUR)
    assert hours(one) == -2


def test_a_jump_that_was_not_followed_is_told_again(step: Step) -> None:
    steps = clock_steps.ClockSteps()
    step(HOUR)
    with pytest.raises(OperationalError), steps.followed():
        raise OperationalError
    assert hours(steps) == 1


@pytest.mark.parametrize("back", [timedelta(seconds=90), HOUR, timedelta(days=30)])
def test_the_beat_sends_in_one_interval_what_a_clock_ahead_has_put_off(
    back: timedelta,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(app, "now", lambda: NOW + ahead)
    ahead = timedelta()
    beat = PatientScheduler(app, schedule_filename=str(tmp_path / "schedule"))
    sent: list[str] = []
    monkeypatch.setattr(beat, "apply_entry", lambda entry, **_: sent.append(entry.name))
    monkeypatch.setattr(PatientScheduler, "producer", None)
    interval = timedelta(seconds=settings.SONAR_PLAN_SECONDS)
    for ahead in (interval, interval - back, 2 * interval - back):
        sent.clear()
        while not (pause := beat.tick()):
            pass
        assert pause <= settings.SONAR_PLAN_SECONDS
        assert ("planner" in sent) == (ahead != interval - back)
    assert "The clock was ahead" in caplog.text


@pytest.mark.usefixtures("db")
def test_the_planner_puts_right_even_a_little_that_a_clock_was_ahead_if_it_saw_it_jump(
    step: Step,
) -> None:
    roomy()
    minutes = timedelta(minutes=2)
    assert len(scheduler.claim_due(NOW + minutes)) == 6
    Probe.objects.all().delete()
    Schedule.objects.update(next_due=NOW + minutes + HOUR)
    step(-minutes)
    assert len(scheduler.claim_due(NOW)) == 6


def run_of(now: datetime = NOW) -> Probe:
    glasgow, lancs, _ = three_endpoints()
    return claimed(queued(glasgow, lancs), now)


@pytest.mark.usefixtures("db")
def test_what_runs_while_the_clock_jumps_there_and_back_has_all_its_time_again(step: Step) -> None:
    now = timezone.now()
    longest = endings.longest_run(run_of(now).size_class)
    for ahead in (HOUR, -HOUR, timedelta(), timedelta(seconds=90)):
        step(ahead)
        tasks.recover()
        given = Probe.objects.get().deadline - (now + ahead)
        assert longest <= given < longest + timedelta(seconds=20)
    Probe.objects.update(deadline=now)
    tasks.recover()
    assert Transfer.objects.get().state == "lost"


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize("found", [NOW - HOUR, NOW + timedelta(days=1)])
def test_the_seconds_of_what_is_lost_are_no_more_than_it_may_take(found) -> None:
    run = run_of()
    assert endings.lose_probe(run, found)
    longest = endings.longest_run(run.size_class).total_seconds()
    assert Transfer.objects.get().seconds == (longest if found > NOW else 0)


def test_a_token_of_a_clock_that_was_ahead_is_renewed() -> None:
    now = time.time()
    assert cache.is_fresh(StorageToken("x", now - 1, now + 3600), 60)
    assert not cache.is_fresh(StorageToken("x", now + 90, now + 3600), 60)
