"""What tests cost, beside what the planner then sends in a day of virtual time."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from django.db.models import Q
from django.utils import timezone

from sonar import scheduler
from sonar.models import Endpoint, Mesh, Probe, Profile, Schedule, Site
from sonar.registry import mesh_size
from sonar.registry.cost import estimate, rates, words
from sonar.registry.cost.figures import Cost, Peak
from sonar.results.store import Result, store
from tests.sonar.world import endpoint, mesh

pytestmark = pytest.mark.django_db
MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
TICK, DAY = timedelta(minutes=10), timedelta(days=1)
SECONDS = {"small": 100.0, "medium": 300.0, "large": 700.0}
GB = 10**9


@pytest.fixture
def uk(settings: Any) -> Mesh:
    """A mesh of four endpoints whose caps hold nothing back; tests are planned in large steps."""
    settings.SONAR_PLAN_SECONDS = int(TICK.total_seconds())
    for name in ("GLASGOW", "LANCS", "RAL", "OX"):
        endpoint(name, inbound_cap=99, outbound_cap=99)
    made = mesh()
    for size, hours in (("small", 0.5), ("medium", 2), ("large", 6)):
        made.intervals.filter(size_class__name=size).update(every_seconds=int(hours * 3600))
    return made


def glasgow(**values: object) -> Endpoint:
    Endpoint.objects.filter(name="GLASGOW_DATADISK").update(**values)
    return Endpoint.objects.select_related("site").get(name="GLASGOW_DATADISK")


def cost(own: Endpoint, uk: Mesh, **more: Any) -> Cost:
    return estimate.of_endpoint(own, uk, MIDNIGHT, seconds=SECONDS, **more)


def end_those_that_are_over(now: datetime, profile: int) -> None:
    """Let tests end that have taken their time, each with its result."""
    over = [
        probe
        for probe in Probe.objects.select_related("size_class")
        if probe.sent_at + timedelta(seconds=SECONDS[probe.size_class.name]) <= now
    ]
    store(
        Result(
            id=probe.id,
            source_id=probe.source_id,
            destination_id=probe.destination_id,
            size_class_id=probe.size_class_id,
            profile_id=profile,
            state="done",
            started_at=probe.sent_at,
            seconds=SECONDS[probe.size_class.name],
            bytes=probe.bytes,
        )
        for probe in over
    )
    Probe.objects.filter(pk__in=[probe.pk for probe in over]).delete()


def sent_in_a_day(uk: Mesh, own: Endpoint | None, begin: datetime) -> Mapping[str, int]:
    """Let the planner work for a day; return how many tests it sent by size, of an endpoint."""
    profile = Profile.objects.get_or_create(mover="fake", mesh=uk)[0].pk
    sent: Counter[str] = Counter()
    for number in range(DAY // TICK):
        now = begin + number * TICK
        end_those_that_are_over(now, profile)
        if number and not Schedule.objects.filter(next_due__lte=now).exists():
            continue  # nothing to plan
        begun = Probe.objects.filter(id__in=scheduler.claim_due(now))
        begun = begun.filter(Q(source=own) | Q(destination=own)) if own else begun
        sent.update(begun.values_list("size_class__name", flat=True))
    return sent


@pytest.mark.parametrize(
    ("every", "quiet", "tests"),
    [
        (3600, (), 24.0),
        (7 * 3600, (), 24 / 7),
        (3600, ((1, 5),), 20.0),
        (7 * 3600, ((1, 5),), 3.0),
        # Half past four, 10:30 and so on; what is due at 4:30 of the second day waits.
        (6 * 3600, ((1, 5),), 4.0),
        (30 * 3600, ((1, 5),), 4 / 5),
        (3600, ((22, 2),), 20.0),
        (3600, ((22, 2), (1, 5)), 17.0),
        (3600, ((0, 12), (12, 0)), 0.0),
        (86400, ((9, 10),), 1.0),
    ],
)
def test_what_is_due_in_quiet_hours_is_tested_as_they_end(every: int, quiet: tuple, tests: float):
    hours = rates.quiet_of(*((time(start), time(end)) for start, end in quiet))
    assert rates.tests_a_day(every, hours) == pytest.approx(tests)


def test_an_endpoint_costs_what_its_links_ask_for_in_six_queries(
    uk: Mesh, django_assert_num_queries: Any
):
    own = glasgow(enabled=False)
    with django_assert_num_queries(6):
        said = cost(own, uk)
    assert (said.links_out, said.links_in) == (3, 3)
    assert words.summary(said) == "6 links, 384 tests and 68.2 GB a day"
    assert (said.remarks, said.budget) == ((), None)
    # Twelve links instead of six, and so many bytes an hour.
    assert said.grid.afterwards == pytest.approx(2 * said.grid.today)
    some = cost(own, uk, partners=[Endpoint.objects.get(name="RAL_DATADISK").pk])
    assert (some.links_out, some.links_in, some.asked_per_day) == (1, 1, 128)
    assert estimate.of_mesh(uk, MIDNIGHT).asked_per_day == 384  # without the one not enabled
    other = cost(own, uk, every={"large": 86400})
    assert words.summary(other) == "6 links, 6 tests and 12 GB a day"


def test_it_says_what_does_not_fit(uk: Mesh, settings: Any):
    settings.SONAR_BYTES_PER_HOUR = GB
    Site.objects.filter(name="OX").update(
        paused_since=MIDNIGHT, pause_reason="new firewall", paused_until=None
    )
    Endpoint.objects.filter(name="RAL_DATADISK").update(
        enabled=False, paused_since=MIDNIGHT, pause_reason="disks"
    )
    Endpoint.objects.filter(name="LANCS_DATADISK").update(budget_bytes_per_day=GB)
    Mesh.objects.update(enabled=False)
    own = glasgow(outbound_cap=1, budget_bytes_per_day=5 * GB)
    said = cost(own, Mesh.objects.get())
    assert list(said.remarks) == [
        "Mesh uk is not enabled. Its tests start only after it is enabled.",
        "Links with paused tests are not included: OX, RAL_DATADISK.",
        "An endpoint that is not enabled is not included: RAL_DATADISK.",
        "Tests in size class “large” never run, because a test file exceeds the hourly limit of "
        "1 GB.",
        "GLASGOW_DATADISK exceeds its budget: 22.7 GB a day is scheduled, but only 5 GB is "
        "allowed.",
        "LANCS_DATADISK exceeds its budget: 22.7 GB a day is scheduled, but only 1 GB is allowed.",
        "128 tests a day are scheduled, but the limits allow only 14. The other tests wait.",
    ]


def test_left_out_names_only_what_the_mesh_means(uk: Mesh):
    Endpoint.objects.filter(name="RAL_DATADISK").update(enabled=False)
    Mesh.objects.update(sources_filter={"site": ["OX"]}, destinations_filter={"site": ["LANCS"]})
    remarks = estimate.of_mesh(Mesh.objects.get(), MIDNIGHT).remarks
    assert not any("Left out" in each for each in remarks)
    Mesh.objects.update(sources_filter={"site": ["OX", "RAL"]})
    assert estimate.of_mesh(Mesh.objects.get(), MIDNIGHT).remarks[0] == (
        "An endpoint that is not enabled is not included: RAL_DATADISK."
    )


@pytest.mark.parametrize(
    ("out_caps", "in_caps", "in_flight", "peak"),
    [(2, 9, 99, 8), (9, 1, 99, 4), (9, 9, 5, 5), (9, 9, 99, 12)],
)
def test_a_peak_is_what_caps_links_and_sonar_allow(
    uk: Mesh, settings: Any, out_caps: int, in_caps: int, in_flight: int, peak: int
):
    settings.SONAR_IN_FLIGHT = in_flight
    Endpoint.objects.update(outbound_cap=out_caps, inbound_cap=in_caps)
    said = estimate.of_mesh(uk, MIDNIGHT)
    largest = max(each.test_bytes for each in said.classes)
    assert said.peak == Peak(peak, peak * largest)


def test_what_is_kept_of_meshes_follows_the_end_of_a_pause(
    uk: Mesh, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(timezone, "now", lambda: MIDNIGHT)
    (before,) = mesh_size.read([uk])
    over = MIDNIGHT + timedelta(hours=1)
    Site.objects.filter(name="OX").update(
        paused_since=MIDNIGHT - timedelta(hours=1), paused_until=over, pause_reason="disks"
    )
    (paused,) = mesh_size.read([uk])
    assert paused.cost.links < before.cost.links
    monkeypatch.setattr(timezone, "now", lambda: over)
    (after,) = mesh_size.read([uk])
    assert after.cost.links == before.cost.links


def check(said: Cost, sent: Mapping[str, int]) -> None:
    """Want the tests of each size within 5 %, and so the bytes."""
    counted = {each.name: each.tests_per_day for each in said.classes}
    assert counted == {name: pytest.approx(sent[name], rel=0.05, abs=1) for name in counted}
    sizes = {each.name: each.test_bytes for each in said.classes}
    moved = sum(sent[name] * size for name, size in sizes.items())
    assert said.bytes_per_day == pytest.approx(moved, rel=0.05)


QUIET = {"quiet_from": time(1), "quiet_until": time(5)}


@pytest.mark.long
@pytest.mark.parametrize(
    ("own", "of_mesh", "of_site", "is_held"),
    [
        ({}, {}, {}, False),
        ({}, QUIET, {"quiet_from": time(22), "quiet_until": time(2)}, False),
        ({"budget_bytes_per_day": 40 * GB}, {}, {}, True),
        ({"inbound_cap": 1, "outbound_cap": 1}, {}, {}, True),
    ],
    ids=["plain", "quiet hours", "budget", "caps"],
)
def test_it_is_what_is_then_sent_in_a_day(
    uk: Mesh, own: dict, of_mesh: dict, of_site: dict, is_held: bool
):
    Mesh.objects.update(**of_mesh)
    Site.objects.filter(name="LANCS").update(**of_site)
    joining = glasgow(**own)
    said = cost(joining, Mesh.objects.get())
    assert words.is_held_back(said) is is_held
    begin = MIDNIGHT + timedelta(hours=5) if of_mesh else MIDNIGHT
    sent = sent_in_a_day(uk, joining, begin)
    check(said, sent)


@pytest.mark.long
def test_a_limit_of_the_whole_grid_lets_through_what_it_says(uk: Mesh, settings: Any):
    settings.SONAR_BYTES_PER_HOUR = 5 * GB
    said = estimate.of_mesh(uk, MIDNIGHT, seconds=SECONDS)
    assert words.is_held_back(said)
    check(said, sent_in_a_day(uk, None, MIDNIGHT))
