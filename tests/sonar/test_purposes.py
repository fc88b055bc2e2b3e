"""Why a test was made: on schedule, on order, or to try other settings than the link's mesh has."""

from datetime import timedelta

import pytest

from sonar import scheduler
from sonar.models import Mesh, Probe, Schedule, SizeClass, Sweep, Transfer
from sonar.models.transfer import purpose_of
from sonar.movers.base import MoverError
from sonar.movers.measure import Outcome
from sonar.ordering import request_probes
from sonar.ordering.request_probes import SweepRequest
from sonar.results import endings
from sonar.scheduler import ProbeRequest
from tests.sonar import world
from tests.sonar.world import NOW

pytestmark = pytest.mark.django_db
FAILED = Outcome(None, MoverError("destination", "503"), None, 1.0)


@pytest.fixture(autouse=True)
def nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_probes, "send", lambda ids: None)


@pytest.fixture
def mesh() -> Mesh:
    """A mesh of three endpoints that pulls with two streams, planned."""
    world.three_endpoints()
    made = world.mesh(streams=2)
    scheduler.follow_registry(NOW)
    return made


def request(**change: object) -> ProbeRequest:
    schedule = Schedule.objects.order_by("id").first()
    assert schedule
    fields = {"mover": "fake", "mode": "pull", "streams": 2} | change
    return ProbeRequest(schedule.source, schedule.destination, schedule.size_class, **fields)


def ended(probe: Probe) -> str:
    """End a test as a worker does; return the purpose that is stored."""
    Probe.objects.filter(id=probe.id).update(
        state="running", started_at=NOW, deadline=NOW + timedelta(hours=1), worker="worker-1"
    )
    assert endings.end_probe(Probe.objects.get(id=probe.id), FAILED)
    return Transfer.objects.get(id=probe.id).profile.purpose


def test_a_test_of_a_mesh_is_scheduled(mesh: Mesh) -> None:
    scheduler.claim_due(NOW + timedelta(hours=2))
    assert ended(Probe.objects.filter(mesh=mesh).first()) == "scheduled"


def test_an_ordered_test_with_other_settings_than_the_meshes_is_an_sweep(mesh: Mesh) -> None:
    for change, purpose in (
        ({}, "ordered"),
        ({"streams": 4}, "sweep"),
        ({"mode": "push"}, "sweep"),
    ):
        assert ordered(**change) == purpose
    world.mesh(name="four", streams=4)  # of two, one that tests so is enough
    scheduler.follow_registry(NOW)
    assert ordered(streams=4) == "ordered"
    Mesh.objects.update(tcp_buffer_bytes=1 << 20)
    assert ordered() == "sweep"
    # Where no mesh tests the link with this class there is nothing to differ from.
    asked = request(streams=8)
    Schedule.objects.filter(size_class=asked.size_class).delete()
    (probe,) = request_probes.order([asked], NOW)
    assert ended(probe) == "ordered"


def ordered(**change: object) -> str:
    (probe,) = request_probes.order([request(**change)], NOW)
    return ended(probe)


def test_every_test_of_an_sweep_is_one(mesh: Mesh) -> None:
    requests = [request(streams=number) for number in (2, 8)]
    sweep_request = SweepRequest(
        Sweep.Variable.STREAMS, requests, ["2", "8"], requests[0].size_class, "pull", None
    )
    request_probes.order_sweep(sweep_request, None, NOW)
    assert [ended(probe) for probe in Probe.objects.order_by("id")] == ["sweep"] * 2


def test_one_that_was_given_up_while_it_waited_has_its_purpose_too(mesh: Mesh) -> None:
    first, second = request_probes.order([request(), request(streams=4)], NOW)
    Probe.objects.update(state="waiting")
    for probe, purpose in ((first, "ordered"), (second, "sweep")):
        assert endings.end_waiting(Probe.objects.get(id=probe.id), "it was retired", NOW)
        assert Transfer.objects.get(id=probe.id).profile.purpose == purpose


def test_a_scheduled_test_costs_no_query_more(mesh: Mesh, django_assert_num_queries) -> None:
    probe = Probe(mesh=mesh, size_class=SizeClass.objects.first())
    with django_assert_num_queries(0):
        assert purpose_of(probe) == "scheduled"
