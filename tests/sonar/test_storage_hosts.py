"""Which hosts a storage server may redirect to: those of the registry, and what they cost."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection
from django.utils import timezone

from sonar import settings as project
from sonar.models import Endpoint, Probe
from sonar.movers.watch import Watch
from sonar.registry import cache
from sonar.registry.cache import known_hosts
from sonar.work import probes, transfer_request
from tests.sonar import world
from tests.sonar.world import three_endpoints

pytestmark = pytest.mark.django_db


def set_base_url(name: str, base_url: str) -> None:
    Endpoint.objects.filter(name=name).update(base_url=base_url)


def claimed() -> Probe:
    return world.claimed(world.ordered(*three_endpoints()[:2]))


def test_the_hosts_of_endpoints_in_use_are_known_without_their_ports():
    three_endpoints()
    set_base_url("GLASGOW_DATADISK", "davs://SE.Glasgow.example:1094/data")
    set_base_url("LANCS_DATADISK", "root://[2001:DB8:0::7]:1094//data")
    assert known_hosts() == {"se.glasgow.example", "[2001:db8::7]", "ral"}


def test_a_retired_endpoint_is_not_known_any_more():
    _, _, ral = three_endpoints()
    assert "ral" in known_hosts()
    Endpoint.objects.filter(pk=ral.pk).update(retired_at=timezone.now())
    assert known_hosts() == {"glasgow", "lancs"}
    Endpoint.objects.filter(pk=ral.pk).update(retired_at=None)
    assert "ral" in known_hosts()


def test_the_hosts_of_the_setting_are_known_as_well(settings):
    three_endpoints()
    settings.SONAR_STORAGE_HOSTS = ["pool1.example.org.", "[2001:db8:0::1]"]
    assert known_hosts() == {"glasgow", "lancs", "ral", "pool1.example.org", "[2001:db8::1]"}


def test_an_order_costs_one_small_query_for_them_while_the_registry_stays(
    django_assert_num_queries,
):
    probe = claimed()
    known_hosts()
    with django_assert_num_queries(1):
        order = transfer_request.order_for(probe)
    assert order.known_hosts == {"glasgow", "lancs", "ral"}
    set_base_url("RAL_DATADISK", "fake://elsewhere/data")
    with django_assert_num_queries(2):
        assert "elsewhere" in transfer_request.order_for(probe).known_hosts


def test_while_the_database_is_away_those_known_before_are_used(monkeypatch, caplog):
    three_endpoints()
    before = known_hosts()

    def away() -> str:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(cache, "registry_version", away)
    assert known_hosts() == before
    assert "the connection is lost" in caplog.text


@pytest.mark.usefixtures("real_commits")
def test_no_connection_is_held_while_a_probe_is_carried_out(monkeypatch):
    probe, held = claimed(), list[bool]()

    monkeypatch.setattr(
        probes, "measure", lambda *_: held.append(connection.connection is not None)
    )
    probes.carry_out(probe, Watch())
    assert held == [False]


@pytest.mark.parametrize(
    "wrong",
    ["https://a.example", "a.example:443", "*.example", "a.example/x", "a b", "-a", "::1", "a..b"],
)
def test_what_is_no_host_stops_the_start(monkeypatch, wrong: str):
    monkeypatch.setenv("SONAR_STORAGE_HOSTS", f"good.example.org,{wrong}")
    with pytest.raises(ImproperlyConfigured, match=r"SONAR_STORAGE_HOSTS: .* is not a host like"):
        project.envhosts("SONAR_STORAGE_HOSTS")


def test_hosts_are_read_in_lower_case(monkeypatch):
    monkeypatch.setenv("SONAR_STORAGE_HOSTS", "Pool1.Example.org, 192.0.2.7 ,[2001:DB8::7]")
    assert project.envhosts("SONAR_STORAGE_HOSTS") == [
        "pool1.example.org",
        "192.0.2.7",
        "[2001:db8::7]",
    ]
