"""Which servers an endpoint's own may lead tests to: what may be declared, and what is refused."""

from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import connection

from sonar import settings as project
from sonar.models import Credential, Endpoint, Probe, RefusedRedirect
from sonar.movers.base import MoverError, Where
from sonar.movers.measure import Outcome
from sonar.movers.watch import Watch
from sonar.notation import data_hosts
from sonar.registry import redacted
from sonar.registry.file.loading import load
from sonar.registry.file.reading import RegistryError
from sonar.work import probes, refused_redirects, transfer_request
from tests.sonar import world
from tests.sonar.world import NOW, endpoint, three_endpoints

GOOD = [
    "st-048.cern.example",
    "st-*.cern.example",
    "*.echo.stfc.example",
    "*-disk.pool.example:8443",
    "st-*.cern.example:20000-25000",
    "localhost",
    "192.0.2.7",
    "192.0.2.0/24:20000-25000",
    "10.7.0.0/16",
    "[2001:db8::7]:1094",
    "[2001:db8::/32]",
]
WRONG = [
    "",
    "https://st-048.cern.example",
    "st-048.cern.example/path",
    "ST-048.cern.example",
    "*",
    "*.example",
    "st-*.example",
    "st-*-*.cern.example",
    "x.*.cern.example",
    "cern.*",
    "st-048.cern.example:0",
    "st-048.cern.example:65536",
    "st-048.cern.example:9-8",
    "10.0.0.0/8",
    "192.0.2.7/24",
    "2001:db8::7",
    "[2001:db8::/31]",
    "[192.0.2.7",
    "169.254.169.254",
    "169.254.0.0/16",
    "0xa9fea9fe",
    "[fe80::1]",
    "0.0.0.0",
    "a..b",
    "a b",
    "x" * 256,
]


@pytest.mark.parametrize("text", GOOD)
def test_what_names_servers_is_taken(text: str):
    assert data_hosts.problem(text) == ""


@pytest.mark.parametrize("text", WRONG)
def test_what_could_be_anybody_is_refused_with_a_sentence(text: str):
    assert data_hosts.problem(text) == data_hosts.SENTENCE


@pytest.mark.parametrize(
    ("servers", "suggested"),
    [
        (["st-048-bba.cern.example:8443", "st-112.cern.example:8443"], ["st-*.cern.example:8443"]),
        (["st-048.cern.example:8443", "eos.cern.example:9001"], None),
        (["pool1.example:20001"], ["pool1.example:20001"]),
        (["192.0.2.7:20001", "[2001:db8::7]:1094"], None),
        ([f"p-{n}.dc.example:2000{n}" for n in (1, 7, 4)], ["p-*.dc.example:20001-20007"]),
    ],
)
def test_what_would_allow_a_server_is_suggested(servers: list[str], suggested: list[str] | None):
    found = data_hosts.suggestions(servers)
    assert suggested is None or found == suggested
    declared = data_hosts.data_hosts(tuple(found))
    assert len(declared) == len(found)
    for host, _, port in (server.rpartition(":") for server in servers):
        assert data_hosts.are_covered(declared, host, int(port))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("SONAR_STORAGE_HOSTS", "declare “data_hosts” for the endpoints"),
        ("SONAR_SITE", "The setting SONAR_SITE is now called SONAR_HOSTNAME."),
        ("PAGES", "The setting PAGES is now called SONAR_URL."),
        ("SONAR_CLEAN_SECONDS", "is now called SONAR_CLEANUP_SECONDS."),
        ("SONAR_SEAL_SECONDS", "is now called SONAR_COMPACTION_SECONDS."),
        ("SONAR_SWEEP_SECONDS", "is now called SONAR_RECOVERY_SECONDS."),
    ],
)
def test_a_former_setting_stops_the_start(monkeypatch, name: str, sentence: str):
    monkeypatch.setenv(name, "pool1.example.org")
    with pytest.raises(ImproperlyConfigured, match=sentence):
        project.refuse_retired_settings()


# In the registry


@pytest.mark.django_db
def test_an_endpoint_keeps_what_may_be_declared_and_nothing_else():
    glasgow = endpoint("GLASGOW", data_hosts=GOOD)
    glasgow.full_clean()
    glasgow.data_hosts = ["st-*.example"]
    with pytest.raises(ValidationError, match="A data host is a lower-case host name"):
        glasgow.full_clean()


FILE = """
sites: [{name: RAL}]
endpoints: [{name: RAL_DISK, site: RAL, base_url: "https://ral.example/data", data_hosts: %s}]
"""


@pytest.mark.django_db
def test_a_registry_file_declares_them_and_leaves_them_where_it_says_nothing():
    load(FILE % '["st-*.ral.example:8443"]')
    ral = Endpoint.objects.get()
    assert ral.data_hosts == ["st-*.ral.example:8443"]
    changes = load(FILE.replace(", data_hosts: %s", ""))
    assert changes.changed == {}
    with pytest.raises(RegistryError, match=r"endpoints.*data_hosts"):
        load(FILE % '["*.example"]')
    load(FILE % "[]")
    ral.refresh_from_db()
    assert ral.data_hosts == []


@pytest.mark.django_db
def test_an_order_says_them_and_whether_the_token_goes_along(tmp_path, settings):
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    (tmp_path / "glasgow").write_text("a-token")
    own = Credential.objects.create(name="glasgow", hosts=["glasgow"])
    names = ["disk-*.glasgow.example"]
    glasgow = endpoint("GLASGOW", credential=own, lend_credential=True, data_hosts=names)
    lancs = endpoint("LANCS")
    for goes_along in (False, True):
        Credential.objects.update(to_data_hosts=goes_along)
        probe = world.claimed(world.queued(glasgow, lancs))
        order = transfer_request.order_for(probe)
        probe.delete()
        (declared,) = order.source.data_hosts
        assert declared.covers("disk-7.glasgow.example", 8443)
        assert order.source.token_goes_along == goes_along
        assert (order.destination.data_hosts, order.destination.token_goes_along) == ((), False)


# What was refused


def refused(probe: Probe, server: str, where: Where = Where.DESTINATION) -> Outcome:
    error = MoverError(where, "the server redirects: not followed", permanent=True)
    error.refused_server = server
    return Outcome(None, error, None, 1.0)


def kept() -> list[tuple[str, str, int]]:
    rows = RefusedRedirect.objects.order_by("endpoint__name", "server")
    return list(rows.values_list("endpoint__name", "server", "times"))


@pytest.mark.django_db
def test_where_tests_were_led_in_vain_is_counted_by_endpoint_and_server():
    glasgow, lancs, _ = three_endpoints()
    for where, server in (
        (Where.DESTINATION, "st-1.lancs.example:8443"),
        (Where.DESTINATION, "st-1.lancs.example:8443"),
        (Where.DESTINATION, "st-2.lancs.example:8443"),
        (Where.SOURCE, "st-1.glasgow.example:8443"),
        (Where.SOURCE, ""),
    ):
        probe = world.claimed(world.queued(glasgow, lancs))
        probes.record(probe, refused(probe, server, where))
    assert kept() == [
        ("GLASGOW_DATADISK", "st-1.glasgow.example:8443", 1),
        ("LANCS_DATADISK", "st-1.lancs.example:8443", 2),
        ("LANCS_DATADISK", "st-2.lancs.example:8443", 1),
    ]


@pytest.mark.django_db
def test_the_oldest_are_forgotten_where_there_are_too_many():
    glasgow, lancs, _ = three_endpoints()
    refused_redirects.note(lancs, "st-1.lancs.example:1", NOW)
    for number in range(refused_redirects.MOST_KEPT + 1):
        later = NOW + timedelta(seconds=number)
        refused_redirects.note(glasgow, f"st-{number}.glasgow.example:1", later)
    names = [server for _, server, _ in kept()]
    assert len(names) == refused_redirects.MOST_KEPT + 1
    assert "st-0.glasgow.example:1" not in names


# What readers see


@pytest.mark.django_db
def test_no_declared_server_is_named_in_an_error():
    names = ["st-*.cern.example:8443", "disk7.cern.example"]
    glasgow = endpoint("GLASGOW", base_url="https://eos.cern.example/data", data_hosts=names)
    text = "403: st-048.cern.example:8443 and disk7.cern.example refuse, cern.example does not"
    told = redacted.for_all(text, [glasgow])
    assert told == "403: [server] and [server] refuse, cern.example does not"


@pytest.mark.usefixtures("real_commits")
def test_no_connection_is_held_while_a_probe_is_carried_out(monkeypatch):
    probe = world.claimed(world.ordered(*three_endpoints()[:2]))
    held = list[bool]()
    monkeypatch.setattr(
        probes, "measure", lambda *_: held.append(connection.connection is not None)
    )
    probes.carry_out(probe, Watch())
    assert held == [False]
