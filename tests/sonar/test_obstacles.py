"""Each obstacle is one rule in two forms, which agree on whatever is registered and under way."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import time, timedelta

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from sonar import scheduler
from sonar.models import (
    Circuit,
    Credential,
    CredentialState,
    Downtime,
    Endpoint,
    Mesh,
    Probe,
    Schedule,
    SignOfLife,
    Site,
    SizeClass,
)
from sonar.movers import catalogue as movers
from sonar.obstacles import catalogue as obstacles
from sonar.obstacles.catalogue import NAMES, OBSTACLES
from sonar.obstacles.obstacle import RunConditions
from sonar.scheduler import claims, follow_registry
from tests.recipes import block
from tests.sonar import world
from tests.sonar.world import NOW, finish, reasons, request, three_endpoints

pytestmark = pytest.mark.django_db
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
HOST = "storage.example"
URLS = ("https", "http", "davs", "root", "ftp", "iperf3", "fake")
KINDS = ("file", "client_credentials", "x509_proxy")
OFFERS = ("transfers", *(f"transfers.{name}" for name in movers.names()), "transfers.iperf3.END0")
AT_CERN = ("transfers@cern", "transfers.http-tpc@cern", "transfers.iperf3.END0@cern")
VANTAGES = st.sampled_from(["", "", "cern", "ral"])
Draw = st.DataObject
PAUSES = st.sampled_from([{}, {"paused_since": NOW, "pause_reason": "power cut"}])


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def sometimes(data: Draw, values: st.SearchStrategy[object]) -> object:
    return data.draw(st.none() | values)


def credentials(data: Draw) -> list[Credential]:
    hosts = st.sampled_from([[HOST], ["other.example"], [HOST, "other.example"]])
    return [
        Credential.objects.create(
            name=f"credential{number}",
            kind=data.draw(st.sampled_from(KINDS)),
            hosts=data.draw(hosts),
        )
        for number in range(data.draw(st.integers(0, 3)))
    ]


def endpoints(data: Draw, owned: list[Credential]) -> list[Endpoint]:
    sites = [
        Site.objects.create(
            name=f"SITE{number}",
            tier=2,
            **quiet(data),
            **data.draw(PAUSES),
        )
        for number in range(2)
    ]
    credential = st.none() | st.sampled_from(owned) if owned else st.none()
    return [
        Endpoint.objects.create(
            name=f"END{number}",
            site=data.draw(st.sampled_from(sites)),
            base_url=f"{data.draw(st.sampled_from(URLS))}://{HOST}/{number}",
            inbound_cap=data.draw(st.integers(1, 2)),
            outbound_cap=data.draw(st.integers(1, 2)),
            budget_bytes_per_day=sometimes(data, st.sampled_from([1, 10**8, 10**12])),
            credential=data.draw(credential),
            credential_lent=data.draw(credential),
            lend_credential=data.draw(st.booleans()),
            enabled=data.draw(st.sampled_from([True, True, False])),
            vantage=data.draw(VANTAGES),
            **data.draw(PAUSES),
        )
        for number in range(data.draw(st.integers(2, 4)))
    ]


def quiet(data: Draw) -> dict[str, time]:
    hours = data.draw(st.sampled_from([(), (3, 5), (5, 6), (23, 4), (22, 5)]))
    return dict(zip(("quiet_from", "quiet_until"), map(time, hours), strict=False))


def meshes(data: Draw, owned: list[Credential]) -> list[Mesh]:
    made = []
    for number in range(data.draw(st.integers(1, 3))):
        mover = data.draw(st.sampled_from(movers.MOVERS))
        service = mover.asks_service
        mesh = Mesh.objects.create(
            name=f"mesh{number}",
            mover=mover.name,
            mode=data.draw(st.sampled_from(mover.modes)),
            priority=data.draw(st.integers(0, 1)),
            vantage=data.draw(VANTAGES),
            bytes_per_hour=sometimes(data, st.sampled_from([1, 10**8, 10**12])),
            service=f"https://{HOST}:8446" if service else "",
            service_credential=sometimes(data, st.sampled_from(owned))
            if service and owned
            else None,
            **quiet(data),
        )
        for size_class in SizeClass.objects.all():
            mesh.intervals.create(size_class=size_class, every_seconds=3600)
        made.append(mesh)
    return made


def under_way(data: Draw, ends: list[Endpoint], used: list[Mesh], owned: list[Credential]) -> None:
    end = st.sampled_from(ends)
    links = st.lists(st.permutations(ends).map(lambda them: them[:2]), max_size=3)
    for source, destination in {tuple(link) for link in data.draw(links)}:
        world.queued(source, destination, requested_at=NOW, sent_at=NOW)
    for place in {data.draw(end) for _ in range(data.draw(st.integers(0, 2)))}:
        Circuit.objects.create(
            endpoint=place,
            failures=99,
            since=NOW,
            last_at=NOW,
            next_test_at=sometimes(data, st.just(NOW + HOUR)),
        )
    for place in {data.draw(end) for _ in range(data.draw(st.integers(0, 1)))}:
        Downtime.objects.create(endpoint=place, starts_at=NOW - HOUR, ends_at=NOW + HOUR)
    if owned:
        fail(data, ends, used)
    for offers in (OFFERS, AT_CERN):
        if queues := data.draw(st.none() | st.lists(st.sampled_from(offers), max_size=4)):
            SignOfLife.objects.create(
                kind="worker",
                name=offers[0],
                seen_at=NOW,
                every_seconds=60,
                queues=[offers[0], *queues],
            )


def fail(data: Draw, ends: list[Endpoint], used: list[Mesh]) -> None:
    """Let some credentials fail where they are used."""
    uses = {(end.credential_id, end.id, None, "own") for end in ends if end.credential_id}
    for end in ends:
        if key := end.credential_lent_id or end.credential_id:
            uses.add((key, end.id, None, "lent"))
    uses |= {
        (m.service_credential_id, None, m.id, "service") for m in used if m.service_credential_id
    }
    for key, endpoint, mesh, role in sorted(uses, key=str):
        if data.draw(st.booleans()):
            CredentialState.objects.create(
                credential_id=key,
                endpoint_id=endpoint,
                mesh_id=mesh,
                role=role,
                since=NOW,
                checked_at=NOW,
                holds=data.draw(st.booleans()),
                sentence="expired",
            )


def registry(data: Draw) -> list[Schedule]:
    """Register and begin anything, and return what is scheduled."""
    owned = credentials(data)
    ends = endpoints(data, owned)
    used = meshes(data, owned)
    under_way(data, ends, used, owned)
    follow_registry(NOW)
    ends_with_credentials = [
        f"{end}__{name}"
        for end in ("source", "destination")
        for name in ("credential", "credential_lent")
    ]
    return list(Schedule.objects.select_related("mesh", "size_class", *ends_with_credentials))


def probe_of(schedule: Schedule) -> Probe:
    mesh = schedule.mesh
    return Probe(
        schedule=schedule,
        mesh=mesh,
        source=schedule.source,
        destination=schedule.destination,
        size_class=schedule.size_class,
        bytes=schedule.size_class.test_bytes,
        mover=mesh.mover,
        mode=mesh.mode,
    )


@pytest.mark.long
@given(data=st.data())
def test_what_an_obstacle_holds_back_or_warns_of_it_blocks_and_nothing_else(data: Draw):
    with undone():
        schedules, conditions = registry(data), RunConditions(NOW)
        for obstacle in OBSTACLES:
            matched = Schedule.objects.filter(obstacle.filter(conditions))
            held = set(matched.values_list("id", flat=True))
            blocked = {
                schedule.id
                for schedule in schedules
                if any(obstacle.blocks(conditions, probe_of(schedule)))
            }
            assert held == blocked, type(obstacle).__name__
            for mesh in {schedule.mesh for schedule in schedules}:
                if obstacle.advice(conditions, mesh):
                    own = {schedule.id for schedule in schedules if schedule.mesh == mesh}
                    assert own & blocked, type(obstacle).__name__


def test_their_names_are_those_that_schedules_can_keep():
    longest = Schedule._meta.get_field("skipped_because").max_length
    assert all(0 < len(name) <= longest for name in NAMES)


LARGE, SMALL = 1_000_000_000, 20_000_000


def test_a_mesh_starts_no_more_than_its_bytes_of_an_hour_and_goes_on_when_they_are_over():
    ends = three_endpoints()
    Endpoint.objects.update(inbound_cap=9, outbound_cap=9)
    uk = world.mesh(bytes_per_hour=2 * SMALL)
    uk.intervals.exclude(size_class__name="small").delete()
    assert len(scheduler.claim_due(NOW)) == 2
    assert reasons() == {"hourly bytes": 4}
    for probe in Probe.objects.all():
        finish(probe)
    assert scheduler.claim_due(NOW + 59 * MINUTE) == []
    assert len(scheduler.claim_due(NOW + 61 * MINUTE)) == 2
    # What people order outside a mesh is not of its limit.
    assert scheduler.order_all([request(*ends[:2])], NOW + 61 * MINUTE).started


def test_all_meshes_and_orders_share_the_bytes_of_an_hour_of_sonar(settings):
    glasgow, lancs, ral = three_endpoints()
    Endpoint.objects.update(inbound_cap=9, outbound_cap=9)
    settings.SONAR_BYTES_PER_HOUR = 2 * SMALL
    world.mesh().intervals.exclude(size_class__name="small").delete()
    ordered = scheduler.order_all([request(glasgow, lancs), request(lancs, ral)], NOW)
    assert len(ordered.started) == 2
    assert scheduler.claim_due(NOW) == []
    assert reasons() == {"hourly bytes": 6}
    (late,) = scheduler.order_all([request(ral, glasgow)], NOW).probes
    assert (late.state, late.waits_because) == (
        "waiting",
        "Sonar has reached its hourly limit on test bytes.",
    )


def test_who_saves_a_mesh_is_told_of_tests_larger_than_its_hour_may_have():
    uk = world.mesh(bytes_per_hour=LARGE // 2)
    sentence = (
        "Tests in size class “large” never run, because a test file exceeds the hourly limit of "
        "500 MB. Raise the limit, or remove this size class from the mesh."
    )
    assert obstacles.notice(NOW) == f"The mesh uk: {sentence}"
    Mesh.objects.update(enabled=False)
    assert obstacles.notice(NOW) == ""
    assert obstacles.advice_on(uk, NOW) == [sentence]


def test_an_obstacle_of_the_recipe_holds_back_what_it_says(monkeypatch):
    names = dict(vars(obstacles))
    exec(block("An obstacle", "sonar/obstacles/catalogue.py"), names)
    added = (*OBSTACLES, names["SoftwareUnknown"]())
    for module in (obstacles, claims):
        monkeypatch.setattr(module, "OBSTACLES", added)
    three_endpoints()
    Endpoint.objects.exclude(name="RAL_DATADISK").update(software="dCache 9", inbound_cap=9)
    world.mesh()
    scheduler.claim_due(NOW)
    assert reasons()["software"] == 12
    assert {"GLASGOW", "LANCS"} == {probe.source.site.name for probe in Probe.objects.all()}
    refused = list(
        obstacles.refusing(
            RunConditions(NOW),
            probe_of(
                Schedule.objects.filter(source__name="RAL_DATADISK").select_related("mesh").first()
            ),
        )
    )
    assert [problem.sentence for problem in refused] == [
        "Nobody has said which software RAL_DATADISK runs."
    ]
