"""Errors of results are for all readers: of the whole registry, as it is now."""

from base64 import b64encode
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from sonar.credentials.redacted import without_tokens
from sonar.models import Endpoint, Leftover, Probe, Site, Transfer
from sonar.movers.base import MoverError, Where
from sonar.movers.measure import Outcome
from sonar.movers.watch import Seen
from sonar.registry import redacted
from sonar.results import endings
from sonar.work import cleanup
from tests.sonar.world import claimed, ordered, three_endpoints

pytestmark = pytest.mark.django_db


def endpoint(name: str, base_url: str) -> Endpoint:
    site, _ = Site.objects.get_or_create(name="Somewhere")
    return Endpoint.objects.create(name=name, site=site, base_url=base_url)


def test_hosts_of_the_whole_registry_are_hidden_not_only_those_of_the_ends():
    glasgow = endpoint("GLASGOW_DATADISK", "davs://glasgow.example:1094/data")
    ral = endpoint("RAL_DATADISK", "davs://webdav.ral.example:1094/disk")
    endpoint("DESY_DATADISK", "https://door.desy.example/pnfs")
    error = "HEAD glasgow.example:1094/data/x: 307 to https://door.desy.example/pnfs/x"
    shown = "HEAD GLASGOW_DATADISK/x: 307 to DESY_DATADISK/x"
    assert redacted.for_all(error, (glasgow, ral)) == shown


def test_of_two_endpoints_on_a_server_that_of_the_test_is_meant():
    disk = endpoint("RAL_DATADISK", "davs://webdav.ral.example:1094/disk")
    scratch = endpoint("RAL_SCRATCHDISK", "davs://webdav.ral.example:1094/scratch")
    error = "told of webdav.ral.example:1094: Could not connect"
    assert redacted.for_all(error, [disk]) == "told of RAL_DATADISK: Could not connect"
    assert redacted.for_all(error, [scratch]) == "told of RAL_SCRATCHDISK: Could not connect"
    assert redacted.for_all(error) == "told of [server]: Could not connect"


def test_a_change_of_the_registry_counts_at_once():
    error = "told of old.example and new.example"
    one = endpoint("RAL_DATADISK", "https://old.example/disk")
    assert redacted.for_all(error) == "told of RAL_DATADISK and new.example"
    Endpoint.objects.filter(id=one.id).update(base_url="https://new.example/disk")
    assert redacted.for_all(error) == "told of old.example and RAL_DATADISK"


def test_a_retired_endpoint_is_hidden_as_well():
    endpoint("RAL_DATADISK", "https://old.example/disk")
    Endpoint.objects.update(retired_at="2026-11-20T12:00:00Z")
    assert redacted.for_all("no route to old.example") == "no route to RAL_DATADISK"


def test_the_registry_is_read_once_and_no_error_costs_nothing(django_assert_num_queries):
    endpoint("RAL_DATADISK", "https://old.example/disk")
    redacted.for_all("no route to old.example")
    with django_assert_num_queries(1):
        redacted.for_all("no route to old.example")
    with django_assert_num_queries(0):
        assert redacted.for_all("") == ""


TOKEN = "kQ7vT2mZx9LpR4wBn8Hs3Yd6Fj1GcVa5Ue0"


@pytest.fixture
def credential(settings: Settings, tmp_path: Path) -> str:
    settings.SONAR_CREDENTIALS_DIR = tmp_path
    (tmp_path / "somebody").write_text(f"{TOKEN}\n")
    (tmp_path / "a-directory").mkdir()
    return TOKEN


def test_the_token_of_an_endpoint_that_is_no_end_of_the_test_is_hidden(credential: str):
    """Its copies gave it to this server, once."""
    assert redacted.for_all(f"400 for {credential}") == "400 for ***"
    assert without_tokens(b64encode(credential.encode()).decode()) == "***"


def test_connections_that_a_server_tells_are_kept_without_tokens(credential: str, probe: Probe):
    told = (f"tcp:[::1]:1094 {credential}", f"tcp:{'1' * 5000}")
    error = MoverError(Where.SOURCE, f"GET https://lancs.example/x: {credential}")
    seen = Seen(remote_connections=told)
    assert endings.end_probe(probe, Outcome(None, error, None, 1.0, seen=seen))
    kept = Transfer.objects.get()
    assert kept.remote_connections == ["tcp:[::1]:1094 ***", f"tcp:{'1' * 196}"]
    assert kept.error.endswith(": ***")


def test_leftovers_are_kept_without_tokens(credential: str, probe: Probe):
    why = f"DELETE: 500 {credential[:20]} ..."
    for place in cleanup.places_of(probe):
        cleanup.keep([cleanup.left_behind(place, "fake", why, timezone.now())])
    assert set(Leftover.objects.values_list("error", flat=True)) == {"DELETE: 500 *** ..."}


@pytest.fixture
def probe() -> Probe:
    return claimed(ordered(*three_endpoints()[:2]))
