"""What a start loads: the sandbox only into a database of its own, a real grid from its file."""

import json
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from sonar.models import Endpoint, Mesh, Site, SizeClass
from sonar.sandbox import first_start, topology
from sonar.sandbox.processes import StartError
from tests.sonar.world import NOW, endpoint

pytestmark = pytest.mark.django_db


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory in which sandbox nodes have noted where they listen."""
    base_urls = {
        site.endpoint: f"http://127.0.0.1:{20000 + number}/datadisk"
        for number, site in enumerate(topology.load_sites())
    }
    (tmp_path / "nodes.json").write_text(json.dumps(base_urls))
    return tmp_path


def test_the_sandbox_is_19_simulated_endpoints_and_a_mesh_of_all(directory):
    first_start.load_sandbox_registry(directory)
    assert Endpoint.objects.filter(simulated=True).count() == 19
    assert Mesh.objects.get().intervals.count() == 3
    assert list(SizeClass.objects.values_list("test_bytes", flat=True)) == [10**5, 10**6, 10**7]
    assert first_start.load_sandbox_registry(directory) == (
        "unchanged (endpoints: 19 sandbox nodes, 0 others)"
    )


def test_a_real_grid_gets_no_sandbox(directory):
    endpoint("RAL", base_url="https://storage.example.org/data")
    with pytest.raises(StartError, match="contains RAL_DATADISK and is not a sandbox"):
        first_start.load_sandbox_registry(directory)
    assert Endpoint.objects.count() == 1


def test_what_was_added_to_a_sandbox_and_changed_in_it_outlives_its_restarts(directory):
    first_start.load_sandbox_registry(directory)
    endpoint("RAL", base_url="https://storage.example.org/data")
    Mesh.objects.create(name="beside", mover="http-tpc", mode="push")
    Mesh.objects.filter(name="sandbox").update(priority=9)
    retired, changed, renamed = Endpoint.objects.filter(simulated=True)[:3]
    Endpoint.objects.filter(pk=retired.pk).update(retired_at=NOW)
    Endpoint.objects.filter(pk=changed.pk).update(inbound_cap=1)
    Endpoint.objects.filter(pk=renamed.pk).update(base_url="https://elsewhere.example.org/data")
    Site.objects.filter(pk=changed.site_id).update(country="FR")
    before = rows()
    told = first_start.load_sandbox_registry(directory)
    assert told == "unchanged (endpoints: 19 sandbox nodes, 1 others)"
    assert rows() == before


def rows() -> list[dict[str, object]]:
    return [row for model in (Site, Endpoint, SizeClass, Mesh) for row in model.objects.values()]


def test_nodes_that_listen_elsewhere_now_are_found_there(directory):
    """Two have changed places, one is new where nobody was."""
    first_start.load_sandbox_registry(directory)
    base_urls = json.loads((directory / "nodes.json").read_text())
    one, two, three = list(base_urls)[:3]
    base_urls[one], base_urls[two] = base_urls[two], base_urls[one]
    base_urls[three] = "http://127.0.0.1:30000/datadisk"
    (directory / "nodes.json").write_text(json.dumps(base_urls))
    first_start.load_sandbox_registry(directory)
    assert dict(Endpoint.objects.values_list("name", "base_url")) == base_urls


def test_a_file_that_names_nothing_starts_an_empty_sonar(tmp_path):
    path = tmp_path / "empty.yaml"
    path.write_text("sites: []\n")  # docs/a-grid.md
    assert first_start.load_registry_file(path) == "nothing to do"
    assert not Site.objects.exists()
    assert first_start.what_is_tested() == []


def test_a_bad_registry_file_stops_the_start_with_its_errors(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text("sites: [{name: RAL, tier: 7}]")
    with pytest.raises(StartError, match=r"sites\[0\]\.tier \(line 1\)"):
        first_start.load_registry_file(path)
    with pytest.raises(StartError, match="Cannot read SONAR_REGISTRY"):
        first_start.load_registry_file(tmp_path / "none.yaml")


def test_the_administrator_is_made_once(tmp_path):
    path = first_start.make_administrator(tmp_path)
    assert path
    password = path.read_text().strip()
    assert get_user_model().objects.get().check_password(password)
    assert path.stat().st_mode & 0o077 == 0
    assert first_start.make_administrator(tmp_path) is None
    assert path.read_text().strip() == password
