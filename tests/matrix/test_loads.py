"""What is planned for a site: equal to what one works out by hand."""

import math

import pytest

from matrix.answers.site.loads import IN, OUT, PlannedTests, plan_for
from sonar.models import Endpoint, Mesh, Schedule, SizeClass
from tests.matrix import world
from tests.matrix.sent import probe
from tests.matrix.world import HOUR, NOW

pytestmark = pytest.mark.django_db
GB = 10**9


def plan(*endpoints: Endpoint) -> PlannedTests:
    return plan_for([one.id for one in endpoints])


def test_tests_and_bytes_of_a_day_are_worked_out_from_the_intervals(small_world):
    # Each of RAL's three links is tested hourly with 2 GB, and now one daily with 20 MB, too.
    mesh, link = Mesh.objects.create(name="daily"), (small_world.ral, small_world.glasgow)
    world.schedule(mesh, link, every=86_400)
    small = SizeClass.objects.get(name="small")
    Schedule.objects.filter(mesh=mesh).update(size_class=small)
    found = plan(small_world.ral)
    out, into = found.of(direction=OUT), found.of(direction=IN)
    assert (out.links, out.tests_per_day) == (4, 3 * 24 + 1)
    assert out.bytes_per_day == pytest.approx(3 * 24 * 2 * GB + 0.02 * GB)
    assert (into.links, into.bytes_per_day) == (3, pytest.approx(3 * 24 * 2 * GB))
    assert into.rate_mb_s == pytest.approx(144_000 / 86_400)
    lines = [(mesh, size, out.links, into.links) for mesh, size, out, into in found.lines()]
    assert lines == [("daily", "small", 1, 0), ("everything", "large", 3, 3)]


def test_a_link_within_the_site_is_planned_out_of_one_endpoint_and_into_the_other(
    small_world,
):
    found = plan(small_world.desy, small_world.scratch)
    assert found.of(direction=OUT).links == found.of(direction=IN).links == 6
    one = found.of(endpoint=small_world.desy.id)
    assert (one.links, one.bytes_per_day) == (6, pytest.approx(6 * 24 * 2 * GB))


def test_other_sites_links_are_not_planned_for_it(small_world):
    Schedule.objects.exclude(source=small_world.ral).exclude(destination=small_world.ral).delete()
    assert plan(small_world.glasgow).of(direction=OUT).links == 1
    Schedule.objects.all().delete()
    assert plan(small_world.glasgow).lines() == []


def test_how_many_run_at_once_follows_from_rates_and_sizes(small_world):
    found = plan(small_world.ral)
    # 72 tests a day that take 200 s each.
    assert found.at_once("source", {"large": 10.0}) == pytest.approx(72 * 200 / 86_400)
    assert math.isnan(found.at_once("source", {"large": math.nan}))


def test_what_waits_is_counted_by_reason(small_world):
    Schedule.objects.filter(source=small_world.ral, destination=small_world.glasgow).update(
        skipped_because="budget", skipped_since=NOW - HOUR
    )
    Schedule.objects.filter(destination=small_world.ral).update(
        skipped_because="cap", skipped_since=NOW - 2 * HOUR
    )
    waiting = plan(small_world.ral).waiting()
    assert waiting == [("cap", 3, NOW - 2 * HOUR), ("budget", 1, NOW - HOUR)]
    assert plan(small_world.ral).of(direction=IN).links == 3


def test_probes_are_counted_once_and_by_end(small_world):
    probe(small_world.ral, small_world.glasgow)
    probe(small_world.desy, small_world.scratch, worker="w1")
    probe(small_world.scratch, small_world.ral, worker="w1")
    found = plan(small_world.desy, small_world.scratch)
    assert (found.probes("running"), found.probes("queued")) == (2, 0)
    assert found.running(small_world.scratch.id, IN) == 1
    assert found.running(small_world.scratch.id, OUT) == 1
    assert found.running(small_world.desy.id, IN) == 0


def test_a_plan_is_read_with_two_queries(small_world, django_assert_num_queries):
    for number in range(3):
        mesh = Mesh.objects.create(name=f"mesh-{number}")
        world.schedule(mesh, (small_world.ral, small_world.desy))
    with django_assert_num_queries(2):
        plan(*small_world.endpoints)
