"""From stored results to conditions: as results come, late ones, imports, and all once more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from os import environ
from threading import Event
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from matrix import tasks
from matrix.assessment import assessing, folding, inputs
from matrix.assessment.assessing import Assessed, JudgedDay, assess
from matrix.assessment.inputs import Registry
from matrix.statistics.assessment.midnight import Midnight
from matrix.store import registry
from matrix.store.cache import STANDINGS
from sonar.models import (
    AssessedDay,
    Assessment,
    Condition,
    ConditionLink,
    ConditionPart,
    Downtime,
    Endpoint,
    HeldLevel,
    SizeClass,
    Target,
)
from sonar.results import conditions, sealing, store
from tests.accuracy import histories
from tests.accuracy.histories import DAY, HOUR, MIDNIGHT, MINUTE, Fault, Grid
from tests.matrix import world
from tests.stored_histories import NOW, QUIET, StoredHistory, history_of, moment

pytestmark = pytest.mark.django_db
SCOPE, TYPE = Condition.Scope, Condition.Type


def dead_destination(start: int, end: int | None = None) -> Callable[[Grid], list[Fault]]:
    return lambda grid: [histories.place_fault(grid, "destination", 3, start, end=end)]


def rows() -> list[tuple[object, ...]]:
    """Return all that is stored of conditions but ids and when they were seen."""
    found = []
    for row in Condition.objects.all():
        values = [
            (field.attname, str(getattr(row, field.attname)))
            for field in row._meta.concrete_fields
            if field.name not in ("id", "seen_at")
        ]
        parts = [
            (
                *(
                    (field.attname, str(getattr(part, field.attname)))
                    for field in part._meta.concrete_fields
                    if field.name not in ("id", "condition")
                ),
                *sorted(part.members.values_list("source", "destination", "baseline")),
            )
            for part in row.parts.all()
        ]
        found.append((*values, *sorted(parts, key=repr)))
    return sorted(found, key=repr)


def rebuilt() -> list[tuple[object, ...]]:
    """Return what all results show to whoever has never seen any of them."""
    Condition.objects.all().delete()
    AssessedDay.objects.all().delete()
    STANDINGS.forget()
    assess(moment(NOW))
    return rows()


def test_a_fault_is_opened_confirmed_and_ended_as_one_condition():
    start, end = NOW - 2 * DAY, NOW - DAY
    stored = history_of(dead_destination(start, end))
    stored.store(0, start)
    assert assess(moment(start)).recorded == (0, 0, 0)
    assert not Condition.objects.exists()

    at, row, stages = start, None, []
    while at < NOW:
        stored.store(at, at + 2 * HOUR)
        at += 2 * HOUR
        assess(moment(at))
        if row is None:
            row = Condition.objects.filter(scope=SCOPE.DESTINATION).first()
            seen = at
            continue
        row.refresh_from_db()
        stage = (row.confirmed_at is not None, row.ended_at is not None)
        if stage not in stages:
            stages.append(stage)
    assert row is not None
    # Confirmed with the test that made it certain, and ended a day after it began.
    assert stages[-2:] == [(True, False), (True, True)]
    assert row.seen_at == moment(seen)
    assert (row.source_id, row.destination_id) == (None, stored.ends[3].id)
    assert (row.type, row.size_classes) == (TYPE.FAILING, ["large"])
    assert row.since_low < moment(start) <= row.since <= row.since_high
    assert row.since - moment(start) < timedelta(hours=3)
    assert moment(end) <= row.ended_at < moment(end + 3 * HOUR)
    assert (row.links, row.of_links) == (5, 5)
    part = row.parts.get()
    assert part.failed == part.tests > 30
    members = part.members.values_list("destination", flat=True)
    assert set(members) == {stored.ends[3].id}
    assert Condition.objects.count() == 1


def test_a_baseline_is_that_of_the_link_before_the_condition():
    start = NOW - 2 * DAY
    stored = history_of(dead_destination(start))
    stored.store()
    assess(moment(NOW))
    tests = stored.history.tests["large"]
    for member in ConditionLink.objects.all():
        ends = [each.id for each in stored.ends]
        link = np.flatnonzero(
            (stored.history.source == ends.index(member.source_id))
            & (stored.history.destination == ends.index(member.destination_id))
        )
        own = (tests.link == link) & (tests.started < start) & np.isfinite(tests.log_rate)
        usual = float(np.exp(np.median(tests.log_rate[own])))
        assert member.baseline == pytest.approx(usual, rel=1e-5)
    assert ConditionLink.objects.count() == 5


def test_a_baseline_stays_though_what_is_usual_is_learned_from_other_days():
    start = NOW - 4 * DAY
    every = {"large": 12}
    stored = history_of(dead_destination(start), days=34, every_hours=every)
    stored.store()
    assess(moment(start + 2 * DAY))
    before = set(ConditionLink.objects.values_list("source", "baseline"))
    assert len(before) == 5
    assess(moment(NOW))
    assert set(ConditionLink.objects.values_list("source", "baseline")) == before


def test_what_ended_long_ago_is_stored_by_a_first_assessment_too():
    start = NOW - 34 * DAY
    faults = dead_destination(start, start + DAY)
    stored = history_of(faults, days=40, every_hours={"large": 8})
    stored.store()
    assess(moment(NOW))
    row = Condition.objects.get()
    assert row.since < row.ended_at < moment(NOW - 32 * DAY)
    # Days before which the results differ no more leave it as it is.
    assess(moment(NOW), since=moment(NOW).date())
    assert Condition.objects.get().ended_at == row.ended_at


def test_results_of_the_future_count_when_their_time_has_come():
    stored = history_of(dead_destination(NOW - DAY))
    stored.store()
    assert assess(moment(NOW - DAY)).recorded == (0, 0, 0)
    # Nothing is new but the time, within the day and after it.
    assert assess(moment(NOW - DAY + 6 * HOUR)).recorded == (1, 0, 0)
    tests = ConditionPart.objects.get().tests
    assess(moment(NOW))
    assert ConditionPart.objects.get().tests > tests


def test_late_results_of_a_day_give_what_all_at_once_give():
    stored = history_of(dead_destination(NOW - 2 * DAY, NOW - DAY // 2))
    for day in range(NOW - 12 * DAY, NOW, DAY):
        stored.store(day, day + DAY, share=(0, 0.7))
        assess(moment(day + DAY))
        # A part of each day arrives only with the next assessment.
        stored.store(day, day + DAY, share=(0.7, 1))
    assess(moment(NOW))
    assert Condition.objects.count() == 1
    assert rows() == rebuilt()


def test_failures_of_all_size_classes_confirm_what_each_alone_does_not():
    """A server of a mesh of two dies: four failures of small files, and others of large ones."""
    rng = np.random.default_rng(21)
    grid = histories.make_grid(rng, 2, site_sizes=(1,))
    start = NOW - 40 * MINUTE
    fault = histories.place_fault(grid, "endpoint", 1, start)
    every = {"small": 120, "medium": 300, "large": 600}
    history = histories.simulate(
        rng, grid, start - 10 * MINUTE, NOW, every, [fault], replace(QUIET, blaming=1.0)
    )
    stored = StoredHistory.of(history)
    stored.store(0, start)
    for at in range(start, start + 10 * MINUTE, MINUTE):
        stored.store(at, at + MINUTE)
        assess(moment(at + MINUTE))
        if Condition.objects.filter(confirmed_at__isnull=False).exists():
            break
    row = Condition.objects.get()
    assert (row.scope, row.source_id, row.type) == (SCOPE.ENDPOINT, stored.ends[1].id, TYPE.FAILING)
    counts = [part.failed for part in row.parts.all()]
    assert max(counts) < 5
    # The moment stays the same with more tests, a day later, and if all is judged once more.
    confirmed = row.confirmed_at
    assert moment(start) < confirmed <= moment(at + MINUTE)
    stored.store(at + MINUTE, NOW)
    for later in (NOW, NOW + 2 * DAY):
        assess(moment(later))
        assert Condition.objects.get(type=TYPE.FAILING).confirmed_at == confirmed
    before = rows()
    Condition.objects.all().delete()
    AssessedDay.objects.all().delete()
    STANDINGS.forget()
    assessing._confirmed.forget()
    assess(moment(NOW + 2 * DAY))
    failing = Condition.objects.get(type=TYPE.FAILING)
    assert failing.confirmed_at == confirmed
    assert rows() == before


def test_an_import_for_a_past_day_makes_the_days_from_it_on_be_judged_again():
    start = NOW - 6 * DAY
    stored = history_of(dead_destination(start, NOW - 5 * DAY))
    # In the beginning nobody knows the failures.
    stored.store(0, start)
    stored.store(NOW - 5 * DAY)
    assess(moment(NOW))
    assert not Condition.objects.exists()

    stored.store(start, NOW - 5 * DAY)
    judged: list[JudgedDay] = []
    assess(moment(NOW), report=judged.append)
    first = start // DAY * DAY
    assert [each.day for each in judged] == [*range(first, NOW, DAY)]
    row = Condition.objects.get()
    assert row.seen_at == moment(NOW)
    assert row.ended_at < moment(NOW - 4 * DAY)
    assert rows() == rebuilt()


def test_what_an_import_refutes_is_gone():
    start = NOW - 6 * DAY
    stored = history_of(dead_destination(start, NOW - 5 * DAY))
    stored.store()
    assess(moment(NOW))
    failed = stored.history.tests["large"]
    assert np.isnan(failed.log_rate).sum() > 30
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM sonar_transfer WHERE state = 'failed'")
    assert assess(moment(NOW)).recorded == (0, 0, 1)
    assert not Condition.objects.exists()
    assert not ConditionPart.objects.exists()


def test_sealing_changes_no_results_so_that_nothing_is_judged_again():
    stored = history_of(dead_destination(NOW - 2 * DAY))
    stored.store()
    assert assess(moment(NOW)).days == 13
    before = set(AssessedDay.objects.values_list("version", flat=True))
    assert sealing.seal(moment(NOW)) > 0
    assert assess(moment(NOW)).days == 0
    assert not before & set(AssessedDay.objects.values_list("version", flat=True))


def test_without_new_results_nothing_is_judged_and_no_answer_is_made_again():
    stored = history_of(dead_destination(NOW - 2 * DAY))
    stored.store(0, NOW - HOUR)
    assess(moment(NOW - HOUR))
    before = registry.read_versions()
    later = NOW - HOUR + 60_000
    assert assess(moment(later)) == Assessed(0, conditions.Recorded())
    assert Assessment.objects.get(size_class__name="large").assessed_at == moment(later)
    assert registry.read_versions() == before
    # Nor where there are new ones that tell nothing new.
    stored.store(NOW - HOUR, NOW)
    row = Condition.objects.get()
    assert assess(moment(NOW)).days == 1
    assert registry.read_versions() == before
    assert Condition.objects.get().since == row.since
    assert row.parts.get().tests > 0


def test_an_assessment_that_is_stopped_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch):
    stored = history_of(dead_destination(NOW - 6 * DAY, NOW - 5 * DAY))
    stored.store()
    monkeypatch.setattr(assessing, "COMMIT_SECONDS", 0.0)
    judged: list[int] = []
    stopped = assess(moment(NOW), seconds=0)
    assert not stopped.is_finished
    assert stopped.days == 1
    assert not Condition.objects.exists()
    while not assess(moment(NOW), seconds=0, report=lambda day: judged.append(day.day)).is_finished:
        pass
    assert judged == sorted(set(judged))
    assert len(judged) == 12
    once = rows()
    assert len(once) == 1
    monkeypatch.undo()
    assert once == rebuilt()


def test_another_way_of_judging_judges_all_days_again(monkeypatch: pytest.MonkeyPatch):
    stored = history_of(dead_destination(NOW - 2 * DAY))
    stored.store()
    assess(moment(NOW))
    monkeypatch.setattr(inputs, "METHOD", inputs.METHOD + 1)
    assert assess(moment(NOW)).days == 13


def test_tests_in_a_declared_outage_are_no_evidence():
    start = NOW - 2 * DAY
    stored = history_of(dead_destination(start, NOW - DAY))
    stored.store()
    downtime = Downtime(
        endpoint=stored.ends[3],
        starts_at=moment(start),
        ends_at=moment(NOW - DAY),
        reason="new disks",
        severity=Downtime.Severity.WARNING,
    )
    downtime.save()
    assess(moment(NOW))
    assert Condition.objects.count() == 1
    # Declared afterwards, it explains what is stored already.
    downtime.severity = Downtime.Severity.OUTAGE
    downtime.save()
    assert assess(moment(NOW)).recorded == (0, 0, 1)
    # Of a whole site, too.
    downtime.delete()
    assess(moment(NOW))
    assert Condition.objects.count() == 1
    Downtime.objects.create(
        site=stored.ends[3].site,
        starts_at=moment(start),
        ends_at=moment(NOW - DAY),
        reason="new disks",
    )
    assert assess(moment(NOW)).recorded == (0, 0, 1)


def test_a_condition_of_a_retired_endpoint_ended_when_it_was_retired():
    stored = history_of(dead_destination(NOW - 2 * DAY))
    stored.store()
    assess(moment(NOW))
    assert Condition.objects.get().ended_at is None
    retired = moment(NOW - HOUR)
    Endpoint.objects.filter(pk=stored.ends[3].pk).update(retired_at=retired)
    assert assess(moment(NOW)).recorded == (0, 1, 0)
    assert Condition.objects.get().ended_at == retired
    Endpoint.objects.filter(pk=stored.ends[3].pk).update(retired_at=None)
    assess(moment(NOW))
    assert Condition.objects.get().ended_at is None


def test_tests_of_a_day_are_those_that_count_with_the_end_that_their_errors_name(
    small_world: world.World,
):
    ral, glasgow, desy, _ = small_world.endpoints
    draft = Endpoint.objects.create(
        name="NEW", site=ral.site, base_url="https://new.example.org/data", enabled=False
    )
    usual = world.profile()
    with world.transfers() as some:
        for minutes, rate in ((9, 20.0), (7, 10.0), (7, 15.0)):
            some.add(ral, glasgow, rate, ago=timedelta(minutes=minutes))
        some.add(desy, glasgow, 12.0, ago=timedelta(minutes=7))
        some.add(ral, desy, None, state="lost", ago=timedelta(minutes=6))
        some.add(ral, desy, 5.0, made=world.profile(purpose="sweep"))
        some.add(ral, desy, 5.0, made=world.profile(origin="production"))
        some.add(ral, draft, 5.0)
    wheres = ("source", "destination", "transfer", "control")
    for minute, where in enumerate(wheres):
        store.append_one(
            store.Result(
                id=uuid4(),
                source_id=glasgow.id,
                destination_id=ral.id,
                size_class_id=SizeClass.objects.get(name="large").id,
                profile_id=usual.id,
                state="failed",
                # Kept in microseconds; segments have milliseconds.
                started_at=world.NOW - timedelta(minutes=5 - minute, microseconds=1_300),
                seconds=1.0,
                bytes=world.MB,
                error="refused",
                error_where=where,
            )
        )
    day = MIDNIGHT + 19 * DAY
    large = SizeClass.objects.get(name="large")
    tests = inputs.read_day(large, day, "", Registry.read(world.NOW))
    rates = [round(rate) for rate in tests.rate.tolist()]
    links = [(link >> 16, link & 0xFFFF) for link in tests.link.tolist()]
    noon = world.NOW.timestamp() * 1000
    # At the same moment by link, and those of one link by rate; not what Sonar did itself.
    assert [*zip(links, rates, tests.blamed.tolist(), strict=True)] == [
        ((ral.id, glasgow.id), 20e6, 0),
        ((ral.id, glasgow.id), 10e6, 0),
        ((ral.id, glasgow.id), 15e6, 0),
        ((desy.id, glasgow.id), 12e6, 0),
        ((glasgow.id, ral.id), -1, 1),
        ((glasgow.id, ral.id), -1, 2),
        ((glasgow.id, ral.id), -1, 0),
    ]
    assert tests.started[0] == noon - 9 * 60_000
    assert tests.started[4] == noon - 5 * 60_000 - 2
    sealing.seal(world.NOW + timedelta(days=1))
    assert inputs.read_day(large, day, "sealed", Registry.read(world.NOW)).digest == tests.digest


# ASSESSED_MONTHS=36 are three years: half an hour (with -o faulthandler_timeout=0).
MONTHS = int(environ.get("ASSESSED_MONTHS", "1"))


def monthly_faults(grid: Grid) -> Iterator[Fault]:
    """Let five things happen in each month, to other endpoints and by other factors each time."""
    ends = len(grid.site)
    for month in range(MONTHS):
        now, first = NOW - 30 * month * DAY, [(place + month) % ends for place in range(ends)]
        factor = (0.4, 0.25, 0.5, 0.6)[month % 4]
        lasts = None if month == 0 else now - DAY // 2
        place = partial(histories.place_fault, grid)
        yield place("destination", first[3], now - 20 * DAY, end=now - 18 * DAY)
        yield place("source", first[1], now - 16 * DAY, end=now - 12 * DAY, factor=factor)
        yield place("endpoint", first[-1], now - 9 * DAY, end=now - 8 * DAY)
        yield place("link", (first[0], first[2]), now - 9 * DAY, end=lasts, factor=0.3)
        yield place("destination", first[4], now - 3 * DAY, end=lasts, factor=0.5)


@pytest.mark.long
def test_months_assessed_as_they_come_give_the_same_rows_as_all_at_once(
    settings: LazySettings,
):
    """Two size classes with faults of several kinds; results come late, hours are sealed."""
    days = 30 * MONTHS
    settings.SONAR_KEEP_DAYS = days + 60
    store.make_months(moment(NOW - day * DAY) for day in range(0, days + 31, 28))
    every = {"large": 6, "small": 8}
    stored = history_of(
        lambda grid: [*monthly_faults(grid)],
        days=days,
        endpoints=7 if MONTHS == 1 else 5,
        every_hours=every,
        noise=histories.Noise(failed=0.02),
    )
    rng = np.random.default_rng(1)
    at = NOW - days * DAY
    seen: dict[int, object] = {}
    while at < NOW:
        until = min(at + int(rng.integers(6, 30)) * HOUR, NOW)
        stored.store(at, until, share=(0, 0.9))
        if rng.random() < 0.5:
            sealing.seal(moment(until))
        assess(moment(until))
        stored.store(at, until, share=(0.9, 1))
        at = until
        seen |= dict(Condition.objects.values_list("id", "seen_at"))
    assess(moment(NOW))
    incremental, ids = rows(), dict(Condition.objects.values_list("id", "seen_at"))
    assert len(incremental) >= 5 * MONTHS
    assert {row.type for row in Condition.objects.all()} >= {"slow", "failing"}
    # Those that were there keep their id and when they were seen, whatever is judged again.
    judged: list[JudgedDay] = []
    again = days - 10
    assess(moment(NOW), since=moment(NOW - again * DAY).date(), report=judged.append)
    assert len(judged) == 2 * (again + 1)
    assert rows() == incremental
    assert dict(Condition.objects.values_list("id", "seen_at")) == ids
    assert rebuilt() == incremental


@pytest.mark.django_db(transaction=True)
def test_two_assessments_at_once_take_turns(real_commits: None):
    stored = history_of(dead_destination(NOW - 2 * DAY))
    stored.store()

    def assess_there(_: int) -> Assessed:
        try:
            return assess(moment(NOW))
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        done = [*pool.map(assess_there, range(3))]
    # Whichever is first judges all of it.
    assert sorted(each.days for each in done) == [0, 0, 13]
    assert sorted(tuple(each.recorded) for each in done) == [(0, 0, 0), (0, 0, 0), (1, 0, 0)]
    assert Condition.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_assessment_that_does_not_wait_does_nothing_while_another_goes_on(real_commits: None):
    stored = history_of(dead_destination(NOW - 2 * DAY))
    stored.store()
    is_locked, is_over = Event(), Event()

    def hold() -> None:
        with transaction.atomic():
            conditions.lock()
            is_locked.set()
            is_over.wait()
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        is_locked.wait()
        try:
            assert assess(moment(NOW), wait=False) == Assessed(0, None, is_finished=False)
        finally:
            is_over.set()
        holding.result()
    assert assess(moment(NOW), wait=False).recorded == (1, 0, 0)


def test_the_command_judges_lists_what_is_open_and_begins_where_it_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("django.utils.timezone.now", lambda: moment(NOW))
    stored = history_of(dead_destination(NOW - 2 * DAY))
    stored.store()
    call_command("assess")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("13 days evaluated in ")
    assert lines[0].endswith(" s. Conditions: 1 new.")
    assert lines[1].startswith("- E03 has been failing as destination since some time between ")
    assert " 30 Oct 14:05 and 30 Oct 16:09 UTC, with large files, on 5 of 5 links, " in lines[1]
    call_command("assess")
    assert capsys.readouterr().out.splitlines()[0].startswith("0 days evaluated in ")
    call_command("assess", "--from", "2026-10-30")
    assert capsys.readouterr().out.splitlines()[0].startswith("3 days evaluated in ")
    for text in ("yesterday", "2026-02-30", "2026-11-02"):
        with pytest.raises(CommandError, match="--from"):
            call_command("assess", "--from", text)
    assert AssessedDay.objects.count() == 13


def test_the_task_assesses_and_forgets(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("django.utils.timezone.now", lambda: moment(NOW))
    stored = history_of(dead_destination(NOW - 2 * DAY, NOW - DAY))
    stored.store()
    tasks.assess()
    assert Condition.objects.count() == 1
    monkeypatch.setattr("django.utils.timezone.now", lambda: moment(NOW) + timedelta(days=400 + 30))
    tasks.assess()
    assert not Condition.objects.exists()
    assert not AssessedDay.objects.filter(day__lt=moment(NOW).date()).exists()


def test_a_run_of_the_task_ends_in_time_and_the_next_one_goes_on(
    monkeypatch: pytest.MonkeyPatch, settings: LazySettings
):
    monkeypatch.setattr("django.utils.timezone.now", lambda: moment(NOW))
    monkeypatch.setattr(assessing, "COMMIT_SECONDS", 0.0)
    stored = history_of(dead_destination(NOW - 2 * DAY), days=4)
    stored.store()
    assert settings.CELERY_BEAT_SCHEDULE["assess"]["task"] == tasks.assess.name
    settings.SONAR_INCIDENTS_SECONDS = 0
    judged = []
    while not Assessment.objects.exists():
        tasks.assess()
        judged.append(AssessedDay.objects.count())
    assert judged == [1, 2, 3, 4, 5, 5]
    assert Condition.objects.count() == 1


def slower(
    start: int, factor: float, scope: str = "destination", place: int | tuple[int, int] = 3
) -> Callable[[Grid], list[Fault]]:
    return lambda grid: [histories.place_fault(grid, scope, place, start, factor=factor)]


def accept(at: int, factor: float) -> None:
    """Say that the rates of all member links are normal."""
    HeldLevel.objects.bulk_create(
        HeldLevel(
            source_id=each.source_id,
            destination_id=each.destination_id,
            size_class=each.part.size_class,
            rate=each.baseline * factor,
            since=moment(at),
            until=moment(at + 28 * DAY),
            note="The uplink was halved by contract.",
        )
        for each in ConditionLink.objects.select_related("part__size_class")
    )


@pytest.mark.parametrize("later", [14 * HOUR, 3 * DAY])
def test_what_is_accepted_as_normal_ends_the_condition_and_is_the_level_from_then_on(later: int):
    """On the day on which it began, and later."""
    start = NOW - 6 * DAY - 10 * HOUR
    stored = history_of(slower(start, 0.4))
    accepted = start + later
    stored.store(0, accepted)
    assess(moment(accepted))
    row = Condition.objects.get()
    assert (row.scope, row.type, row.ended_at) == (SCOPE.DESTINATION, TYPE.SLOW, None)
    accept(accepted, 0.4)
    stored.store(accepted)
    for at in range(accepted, NOW, DAY):
        assess(moment(at))
        row.refresh_from_db()
        assert row.ended_at == moment(accepted)
        assert not Condition.objects.filter(ended_at=None).exists()
    assess(moment(NOW))
    assert rows() == rebuilt()
    assert ConditionPart.objects.get().tests > 0


def test_what_is_slower_than_what_was_accepted_is_slow():
    start, accepted = NOW - 8 * DAY, NOW - 6 * DAY

    def twice(grid: Grid) -> list[Fault]:
        return [*slower(start, 0.4)(grid), *slower(NOW - 2 * DAY, 0.5)(grid)]

    stored = history_of(twice)
    stored.store(0, accepted)
    assess(moment(accepted))
    accept(accepted, 0.4)
    stored.store(accepted)
    assess(moment(NOW))
    row = Condition.objects.get(ended_at=None)
    assert (row.scope, row.type) == (SCOPE.DESTINATION, TYPE.SLOW)
    assert row.factor == pytest.approx(0.5, abs=0.05)
    assert abs(row.since - moment(NOW - 2 * DAY)) < timedelta(hours=6)
    assert rows() == rebuilt()


def test_what_is_fast_is_as_usual_after_two_weeks():
    start = NOW - 20 * DAY
    stored = history_of(slower(start, 2.5), days=32, every_hours={"large": 6})
    for at in range(start - DAY, NOW, 2 * DAY):
        stored.store(at - 2 * DAY if at > start else 0, at)
        assess(moment(at))
    stored.store(NOW - 2 * DAY - DAY)
    assess(moment(NOW))
    row = Condition.objects.get()
    assert (row.scope, row.type) == (SCOPE.DESTINATION, TYPE.FAST)
    assert row.ended_at == row.since + timedelta(days=14)
    assert rows() == rebuilt()


def test_a_target_says_what_is_slow_from_the_day_on_which_it_is_written():
    stored = history_of(lambda _: [], days=6)
    stored.store()
    assess(moment(NOW))
    assert not Condition.objects.exists()
    target = Target.objects.create(
        name="fast_enough",
        floor_mb_s=1000,
        sources_filter={"site": [stored.ends[1].site.name]},
        destinations_filter={"site": [stored.ends[2].site.name]},
    )
    judged: list[JudgedDay] = []
    assess(moment(NOW), report=judged.append)
    assert [each.day for each in judged] == [MIDNIGHT]
    row = Condition.objects.get()
    assert (row.scope, row.type, row.ended_at) == (SCOPE.LINK, TYPE.SLOW, None)
    assert (row.source_id, row.destination_id) == (stored.ends[1].id, stored.ends[2].id)
    assert ConditionLink.objects.get().baseline == pytest.approx(1e9)
    # Days that are over were judged by what was expected then.
    sealing.seal(moment(NOW))
    assert assess(moment(NOW)).days == 0
    target.enabled = False
    target.save()
    assess(moment(NOW))
    assert not Condition.objects.exists()


def test_tests_of_the_past_may_be_read_from_a_file(monkeypatch: pytest.MonkeyPatch):
    def faults(grid: Grid) -> list[Fault]:
        return [
            *dead_destination(NOW - 2 * DAY)(grid),
            *slower(NOW - 3 * DAY, 0.4, "source", 1)(grid),
        ]

    history_of(faults).store()
    assess(moment(NOW))
    before = rows()
    assert {row.type for row in Condition.objects.all()} == {"slow", "failing"}
    monkeypatch.setattr(folding, "MOST_IN_MEMORY", 100)
    folding.forget()
    assert rebuilt() == before


def test_tests_of_today_alone_are_judged_when_they_are_new(monkeypatch: pytest.MonkeyPatch):
    stored = history_of(dead_destination(NOW - 2 * DAY))
    stored.store(0, NOW - HOUR)
    assess(moment(NOW - HOUR))
    nights = []
    of = Midnight.of.__func__
    monkeypatch.setattr(
        Midnight, "of", classmethod(lambda *args, **more: nights.append(1) or of(*args, **more))
    )
    stored.store(NOW - HOUR, NOW - HOUR // 2)
    assert assess(moment(NOW - HOUR // 2)).days == 1
    assert nights == []
    # But for links that are new.
    folding.forget()
    stored.store(NOW - HOUR // 2)
    assess(moment(NOW))
    assert nights != []
    kept = rows()
    assert kept == rebuilt()


def test_a_minute_without_news_costs_three_statements_with_an_open_incident(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
):
    at = moment(NOW)
    monkeypatch.setattr("django.utils.timezone.now", lambda: at)
    stored = history_of(dead_destination(NOW - 2 * DAY), days=4)
    stored.store(0, NOW)
    tasks.assess()
    tasks.assess()
    for minutes in (1, 2, 9):
        at = moment(NOW) + timedelta(minutes=minutes)
        # Two of the assessment, and whether an incident is not as its condition.
        with django_assert_num_queries(3):
            tasks.assess()
        assert Assessment.objects.get(size_class__name="large").assessed_at == at
    # A result, or a day that is to be judged again, is news; so is time.
    stored.store(NOW, NOW + HOUR)
    before = ConditionPart.objects.get().tests
    AssessedDay.objects.latest("day").delete()
    tasks.assess()
    assert AssessedDay.objects.count() == 5
    assert ConditionPart.objects.get().tests >= before
    at += timedelta(minutes=11)
    with CaptureQueriesContext(connection) as statements:
        tasks.assess()
    assert len(statements) > 2
