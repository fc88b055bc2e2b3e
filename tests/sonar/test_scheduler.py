"""Which tests are claimed, and why the others wait."""

from datetime import datetime, time, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Q, QuerySet, Sum

from sonar import scheduler
from sonar.models import (
    Circuit,
    Downtime,
    Endpoint,
    Leftover,
    Mesh,
    MeshInterval,
    Probe,
    Profile,
    Schedule,
    SizeClass,
    Transfer,
)
from sonar.obstacles import capacity
from sonar.results import endings, sealing, store
from sonar.scheduler import claims
from tests.sonar.world import (
    NOW,
    endpoint,
    in_threads,
    mesh,
    ordered,
    reasons,
    request,
    roomy,
    three_endpoints,
)

pytestmark = pytest.mark.django_db


def links(probes: object) -> list[tuple[str, str]]:
    return sorted((one.source.site.name, one.destination.site.name) for one in probes)


def test_every_link_of_a_mesh_is_scheduled_in_both_directions_for_each_class():
    three_endpoints()
    mesh()
    scheduler.follow_registry(NOW)
    assert Schedule.objects.count() == 3 * 2 * 3
    assert not Schedule.objects.filter(
        source__name="RAL_DATADISK", destination__name="RAL_DATADISK"
    )


def test_schedules_follow_the_registry():
    glasgow, lancs, ral = three_endpoints()
    uk = mesh()
    scheduler.follow_registry(NOW)
    kept = set(Schedule.objects.exclude(source=ral).exclude(destination=ral).values_list("id"))
    ral.retired_at = NOW
    ral.save()
    scheduler.follow_registry(NOW)
    assert set(Schedule.objects.values_list("id")) == kept
    uk.sources.add(lancs)
    scheduler.follow_registry(NOW)
    assert {(one.source_id, one.destination_id) for one in Schedule.objects.all()} == {
        (lancs.id, glasgow.id)
    }
    Mesh.objects.update(enabled=False)
    scheduler.follow_registry(NOW)
    assert not Schedule.objects.exists()


def test_nothing_is_computed_while_the_registry_stays(django_assert_num_queries):
    three_endpoints()
    mesh()
    scheduler.follow_registry(NOW)
    with django_assert_num_queries(1):
        scheduler.follow_registry(NOW)


def test_a_change_that_no_schedule_depends_on_costs_no_look_at_the_schedules(
    django_assert_num_queries,
):
    """A downtime, say: three million rows are not compared with the registry for that."""
    glasgow, _, _ = three_endpoints()
    mesh()
    scheduler.follow_registry(NOW)
    Schedule.objects.filter(source=glasgow).delete()
    Downtime.objects.create(
        endpoint=glasgow, starts_at=NOW, ends_at=NOW + timedelta(hours=2), reason="power"
    )
    scheduler.follow_registry(NOW)
    assert not Schedule.objects.filter(source=glasgow).exists()
    with django_assert_num_queries(1):
        scheduler.follow_registry(NOW)


@pytest.mark.usefixtures("real_commits")
def test_an_endpoint_may_retire_while_its_tests_run():
    glasgow, _, _ = three_endpoints()
    mesh()
    scheduler.claim_due(NOW)
    running = Probe.objects.filter(source=glasgow)
    assert running.exclude(schedule=None).exists()
    Endpoint.objects.filter(id=glasgow.id).update(retired_at=NOW)
    scheduler.claim_due(NOW)
    assert running.exists()
    assert not running.exclude(schedule=None).exists()
    assert not Schedule.objects.filter(source=glasgow).exists()


def test_a_shorter_interval_counts_from_now():
    three_endpoints()
    mesh(every_seconds=86400)
    scheduler.claim_due(NOW)
    MeshInterval.objects.update(every_seconds=60)
    scheduler.follow_registry(NOW)
    assert set(Schedule.objects.values_list("next_due", flat=True)) <= {
        NOW,
        NOW + timedelta(seconds=60),
    }


def test_a_due_test_is_claimed_once_and_is_due_again_after_its_interval():
    roomy()
    ids = scheduler.claim_due(NOW)
    assert len(ids) == 6
    assert set(Probe.objects.values_list("id", flat=True)) == set(ids)
    claimed = Schedule.objects.filter(probe__in=ids)
    assert set(claimed.values_list("next_due", flat=True)) == {NOW + timedelta(hours=1)}
    assert scheduler.claim_due(NOW) == []


def test_a_probe_carries_what_its_mesh_wants():
    three_endpoints()
    mesh(streams=4, mode="push", tcp_buffer_bytes=1 << 20, scitag=139)
    scheduler.claim_due(NOW)
    probe = Probe.objects.first()
    assert (probe.mover, probe.mode, probe.streams) == ("fake", "push", 4)
    assert (probe.tcp_buffer_bytes, probe.scitag) == (1 << 20, 139)
    assert probe.bytes == probe.size_class.test_bytes


def test_a_link_whose_last_test_has_not_ended_is_not_tested_twice_at_once():
    roomy()
    scheduler.claim_due(NOW)
    assert scheduler.claim_due(NOW + timedelta(days=1)) == []
    assert reasons() == {"link": 18}


def under_test() -> dict[tuple[str, str], str]:
    """The size class that is being tested by link; fails where there are two."""
    found: dict[tuple[str, str], str] = {}
    for probe in Probe.objects.select_related("source", "destination", "size_class"):
        link = (probe.source.name, probe.destination.name)
        assert link not in found, f"two tests at once from {link[0]} to {link[1]}"
        found[link] = probe.size_class.name
    return found


def test_classes_and_meshes_of_one_link_that_are_due_together_run_one_after_the_other():
    roomy("uk", "world")
    for left in (30, 24, 18, 12, 6, 0):
        assert len(scheduler.claim_due(NOW)) == len(under_test()) == 6
        assert reasons() == ({"link": left} if left else {})
        Probe.objects.all().delete()
    assert scheduler.claim_due(NOW) == []


def test_what_has_been_due_for_longest_on_a_link_goes_first_so_that_no_class_starves():
    glasgow, lancs, _ = three_endpoints()
    made = mesh()
    made.sources.add(glasgow)
    made.destinations.add(lancs)
    for name, seconds in (("small", 60), ("medium", 120), ("large", 240)):
        MeshInterval.objects.filter(size_class__name=name).update(every_seconds=seconds)
    ran: list[str] = []
    for minute in range(16):  # each test takes a minute
        scheduler.claim_due(NOW + timedelta(minutes=minute))
        ran += under_test().values()
        Probe.objects.all().delete()
    assert {name: ran.count(name) for name in set(ran)} == {"small": 8, "medium": 5, "large": 3}


def test_a_link_that_is_busy_does_not_keep_the_others_of_its_batch_from_running(monkeypatch):
    """Rows of one link fill a batch, and the next begins behind them."""
    monkeypatch.setattr(claims, "BATCH", 2)
    glasgow, lancs, _ = three_endpoints()
    for name in ("a", "b", "c"):
        mesh(name)
    Endpoint.objects.update(inbound_cap=99, outbound_cap=99)
    scheduler.follow_registry(NOW)
    first = Schedule.objects.filter(source=glasgow, destination=lancs)
    first.update(next_due=NOW - timedelta(hours=1))
    assert len(scheduler.claim_due(NOW)) == len(under_test()) == 6


def test_the_database_itself_refuses_a_second_test_of_a_link():
    glasgow, lancs, _ = three_endpoints()
    ordered(glasgow, lancs)
    ordered(glasgow, lancs)
    waiting = Probe.objects.filter(state="waiting")
    with pytest.raises(IntegrityError, match="probe_one_test_per_link"), transaction.atomic():
        waiting.update(state="queued")
    running = {"state": "running", "started_at": NOW, "deadline": NOW}
    with pytest.raises(IntegrityError, match="probe_one_test_per_link"), transaction.atomic():
        waiting.update(**running)


def test_caps_hold_for_each_direction_and_the_rest_says_so():
    glasgow, _, _ = roomy()
    Endpoint.objects.filter(id=glasgow.id).update(inbound_cap=1, outbound_cap=1)
    scheduler.claim_due(NOW)
    assert Probe.objects.filter(source=glasgow).count() == 1
    assert Probe.objects.filter(destination=glasgow).count() == 1
    assert reasons() == {"cap": 6, "link": 8}


def test_what_runs_already_counts_against_the_caps():
    glasgow, _, _ = three_endpoints()
    mesh()
    Endpoint.objects.update(inbound_cap=2, outbound_cap=2)
    scheduler.claim_due(NOW)
    assert scheduler.claim_due(NOW) == []
    Probe.objects.filter(source=glasgow).first().delete()
    assert len(scheduler.claim_due(NOW)) == 1


def test_a_full_endpoint_does_not_keep_the_others_from_running(settings, monkeypatch):
    """More rows than a batch wait for one endpoint; those behind them still run."""
    monkeypatch.setattr(claims, "BATCH", 2)
    glasgow, _, _ = three_endpoints()
    mesh()
    Endpoint.objects.update(inbound_cap=9, outbound_cap=9)
    Endpoint.objects.filter(id=glasgow.id).update(inbound_cap=1, outbound_cap=1)
    scheduler.claim_due(NOW)
    assert Probe.objects.exclude(source=glasgow).exclude(destination=glasgow).count() == 2


def test_sonars_own_limit_holds(settings):
    settings.SONAR_IN_FLIGHT = 5
    roomy()
    assert len(scheduler.claim_due(NOW)) == 5
    assert reasons() == {"link": 10, "cap": 3}


def test_the_higher_priority_goes_first_then_the_older(settings):
    settings.SONAR_IN_FLIGHT = 2
    three_endpoints()
    mesh("calm", priority=1)
    scheduler.follow_registry(NOW)
    urgent = mesh("urgent", priority=9)
    scheduler.follow_registry(NOW)
    oldest = Schedule.objects.filter(mesh=urgent).last()
    Schedule.objects.filter(id=oldest.id).update(next_due=NOW - timedelta(hours=1))
    scheduler.claim_due(NOW)
    assert set(Probe.objects.values_list("mesh__name", flat=True)) == {"urgent"}
    assert Probe.objects.filter(schedule=oldest).exists()


def test_a_downtime_keeps_tests_away_and_is_the_reason():
    glasgow, _, _ = roomy()
    Downtime.objects.create(
        site=glasgow.site, starts_at=NOW, ends_at=NOW + timedelta(hours=2), reason="power"
    )
    scheduler.claim_due(NOW)
    assert links(Probe.objects.all()) == [("LANCS", "RAL"), ("RAL", "LANCS")]
    assert reasons() == {"downtime": 12, "link": 4}
    assert Schedule.objects.filter(skipped_because="downtime", skipped_since=NOW).count() == 12
    scheduler.claim_due(NOW + timedelta(hours=1))
    assert Schedule.objects.filter(skipped_because="downtime", skipped_since=NOW).count() == 12


def test_the_reason_goes_when_the_test_runs():
    glasgow, _, _ = roomy()
    Downtime.objects.create(
        endpoint=glasgow, starts_at=NOW, ends_at=NOW + timedelta(hours=2), reason="power"
    )
    scheduler.claim_due(NOW)
    assert reasons()["downtime"] == 12
    for _ in range(3):
        Probe.objects.all().delete()
        scheduler.claim_due(NOW + timedelta(minutes=120))
    assert reasons() == {}
    assert Schedule.objects.filter(skipped_since__isnull=False).count() == 0


@pytest.mark.parametrize(
    ("moment", "quiet"),
    [(time(22, 59), False), (time(23), True), (time(3), True), (time(4, 30), False)],
)
def test_quiet_hours_may_pass_midnight(moment: time, quiet: bool):
    three_endpoints()
    mesh(quiet_from="23:00", quiet_until="04:30")
    now = NOW.replace(hour=moment.hour, minute=moment.minute)
    assert (scheduler.claim_due(now) == []) is quiet
    assert (reasons() == {"quiet hours": 18}) is quiet


def test_a_budget_of_bytes_holds_over_the_day_and_within_one_tick():
    glasgow, _, _ = roomy()
    large = SizeClass.objects.get(name="large").test_bytes
    Endpoint.objects.filter(id=glasgow.id).update(budget_bytes_per_day=large + 10)
    scheduler.claim_due(NOW)
    mine = Probe.objects.filter(Q(source=glasgow) | Q(destination=glasgow))
    assert sum(mine.values_list("bytes", flat=True)) <= large + 10
    assert reasons()["budget"] > 0


def test_what_is_queued_and_running_counts_against_the_budget_too():
    glasgow, lancs, _ = three_endpoints()
    mesh()
    Endpoint.objects.filter(id__in=[glasgow.id, lancs.id]).update(budget_bytes_per_day=10**10)
    scheduler.claim_due(NOW)
    for end in (glasgow, lancs):
        mine = Probe.objects.filter(Q(source=end) | Q(destination=end))
        ordered = mine.aggregate(Sum("bytes"))["bytes__sum"]
        assert scheduler.Capacity.left(NOW).budget_bytes[end.id] == 10**10 - ordered


def result(source: Endpoint, destination: Endpoint, started_at: datetime) -> Transfer:
    return Transfer.objects.create(
        source=source,
        destination=destination,
        size_class=SizeClass.objects.get(name="small"),
        profile=Profile.objects.get_or_create(mover="fake")[0],
        state="done",
        started_at=started_at,
        seconds=1,
        bytes=30 * 10**6,
    )


def test_results_of_today_use_up_the_budget_and_those_of_yesterday_do_not():
    glasgow, lancs, _ = three_endpoints()
    Endpoint.objects.filter(id=glasgow.id).update(budget_bytes_per_day=50 * 10**6)
    for started_at in (NOW, NOW - timedelta(days=1)):
        result(glasgow, lancs, started_at)
    assert scheduler.Capacity.left(NOW).budget_bytes == {glasgow.id: 20 * 10**6}


def test_results_that_are_no_tests_or_are_made_up_use_up_no_budget():
    glasgow, lancs, _ = three_endpoints()
    Endpoint.objects.filter(id=glasgow.id).update(budget_bytes_per_day=50 * 10**6)
    for profile in (
        Profile.objects.create(mover="fts", origin="production"),
        Profile.objects.create(**store.profile_fields(NOW)),
    ):
        kept = result(glasgow, lancs, NOW)
        Transfer.objects.filter(id=kept.id).update(profile=profile)
    assert scheduler.Capacity.left(NOW).budget_bytes == {glasgow.id: 50 * 10**6}


def test_results_that_come_late_or_go_count_in_hours_that_were_counted_before():
    glasgow, lancs, ral = three_endpoints()
    Endpoint.objects.filter(id=glasgow.id).update(budget_bytes_per_day=200 * 10**6)

    def left() -> int:
        (capacity,) = scheduler.Capacity.left(NOW).budget_bytes.values()
        return capacity // 10**6

    result(glasgow, lancs, NOW)
    assert left() == 170
    late = result(ral, glasgow, NOW - timedelta(hours=2))
    result(ral, lancs, NOW - timedelta(hours=2))
    assert left() == 140
    assert sealing.seal(NOW + timedelta(hours=3))
    assert left() == 140
    Transfer.objects.filter(id=late.id).update(bytes=10 * 10**6)
    assert left() == 160
    Transfer.objects.filter(id=late.id).delete()
    assert left() == 170


def test_an_hour_that_did_not_change_is_not_read_again(django_assert_num_queries):
    glasgow, lancs, _ = three_endpoints()
    result(glasgow, lancs, NOW - timedelta(hours=2))
    result(glasgow, lancs, NOW)
    today = capacity.BytesOfToday()
    with django_assert_num_queries(1 + 24):
        today.by_endpoint(NOW)
    result(lancs, glasgow, NOW)
    with django_assert_num_queries(2):
        assert today.by_endpoint(NOW) == {glasgow.id: 90 * 10**6, lancs.id: 90 * 10**6}


def test_a_small_test_runs_where_the_budget_is_too_small_for_a_large_one():
    glasgow, _, _ = roomy()
    Endpoint.objects.filter(id=glasgow.id).update(budget_bytes_per_day=25 * 10**6)
    scheduler.claim_due(NOW)
    mine = Probe.objects.filter(Q(source=glasgow) | Q(destination=glasgow))
    assert [one.size_class.name for one in mine] == ["small"]


@pytest.mark.usefixtures("real_commits")
def test_only_one_planner_plans_at_a_time():
    three_endpoints()
    mesh()
    claimed: list[int] = []

    in_threads(6, lambda: claimed.append(len(scheduler.claim_due(NOW))))
    assert sum(claimed) == Probe.objects.count() > 0
    for one in Endpoint.objects.all():
        assert Probe.objects.filter(source=one).count() <= one.outbound_cap
        assert Probe.objects.filter(destination=one).count() <= one.inbound_cap


def test_the_number_of_queries_of_a_tick_does_not_grow_with_the_mesh(django_assert_max_num_queries):
    for number in range(20):
        endpoint(f"SITE{number}", inbound_cap=99, outbound_cap=99)
    mesh()
    scheduler.follow_registry(NOW)
    with django_assert_max_num_queries(21):
        scheduler.claim_due(NOW)
    Probe.objects.all().delete()
    # What is of the registry alone is read again when that has moved.
    with django_assert_max_num_queries(15):
        assert scheduler.claim_due(NOW + timedelta(hours=1))
    Endpoint.objects.update(enabled=False)
    Probe.objects.all().delete()
    assert not scheduler.claim_due(NOW + timedelta(hours=2))


# A clock that was ahead.


@pytest.mark.parametrize("ahead", [timedelta(hours=2), timedelta(days=1), timedelta(days=365)])
def test_a_clock_that_was_ahead_for_one_tick_leaves_nothing_idle(ahead: timedelta):
    """Daily tests of another class hide those that are due too late from the end of the index."""
    three_endpoints()
    made = mesh()
    MeshInterval.objects.filter(size_class__name="large").update(every_seconds=86400)
    MeshInterval.objects.filter(size_class__name="medium").delete()
    Endpoint.objects.update(inbound_cap=99, outbound_cap=99)
    for _ in range(2):
        scheduler.claim_due(NOW)
        Probe.objects.all().delete()
    small = Schedule.objects.filter(mesh=made, size_class__name="small")
    assert len(scheduler.claim_due(NOW + ahead)) == 6
    Probe.objects.all().delete()
    assert small.filter(next_due__gt=NOW + ahead).exists()
    scheduler.claim_due(NOW + timedelta(seconds=10))
    assert set(small.values_list("next_due", flat=True)) == {NOW + timedelta(seconds=3610)}
    large = Schedule.objects.filter(size_class__name="large")
    assert all(due <= NOW + timedelta(days=1, seconds=10) for due in values(large))


def values(schedules: QuerySet[Schedule]) -> list[datetime]:
    return list(schedules.values_list("next_due", flat=True))


def test_what_is_due_later_than_its_interval_is_due_now_however_that_came_to_be():
    roomy()
    scheduler.follow_registry(NOW)
    Schedule.objects.update(next_due=NOW + timedelta(days=1))
    assert len(scheduler.claim_due(NOW)) == 6


def test_planners_whose_clocks_differ_a_little_do_not_test_twice():
    roomy()
    for _ in range(3):
        scheduler.claim_due(NOW + timedelta(minutes=2))
        Probe.objects.all().delete()
    assert scheduler.claim_due(NOW) == []
    assert set(values(Schedule.objects.all())) == {NOW + timedelta(minutes=62)}


def test_what_else_a_clock_ahead_has_put_off_comes_back_with_it():
    glasgow, lancs, ral = three_endpoints()
    later = NOW + timedelta(days=1)
    scheduler.claim_due(later)
    sent = scheduler.order_all([request(glasgow, lancs)], later).probes[0]
    running = scheduler.order_all([request(ral, lancs)], later).probes[0]
    Probe.objects.filter(id=running.id).update(
        state="running", started_at=later, deadline=later + timedelta(minutes=3)
    )
    Leftover.objects.create(
        endpoint=ral, path="x", mover="fake", since=NOW, next_try=later, error="x"
    )
    Circuit.objects.create(
        endpoint=ral, failures=9, since=NOW, last_at=NOW, error="x", next_test_at=later
    )
    scheduler.claim_due(NOW)
    assert Probe.objects.get(id=sent.id).sent_at == NOW
    longest = endings.longest_run(running.size_class)
    assert Probe.objects.get(id=running.id).deadline == NOW + longest
    assert Probe.objects.get(id=running.id).started_at == later
    assert Leftover.objects.get().next_try == NOW
    assert Circuit.objects.get().next_test_at == NOW


def test_a_tick_finds_a_clock_that_was_ahead_by_the_end_of_an_index():
    three_endpoints()
    mesh()
    scheduler.follow_registry(NOW)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN " + claims.LOOK, {"now": 7})
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Only Scan Backward using schedule_next_due" in plan
