"""A mover as docs/extending.md has it: a module, and a description that all else reads."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sonar import scheduler
from sonar.models import Mesh, Probe, Schedule, Transfer
from sonar.movers import catalogue, loading
from sonar.movers.catalogue import MoverDescription
from sonar.registry import file
from sonar.work import probes
from tests.recipes import Tree, block
from tests.sonar.world import NOW

pytestmark = pytest.mark.django_db

PROJECT = Path(__file__).resolve().parents[2]
RECIPE = "A transfer tool"
DISK: MoverDescription = eval(block(RECIPE, "sonar/movers/catalogue.py"), vars(catalogue))


@pytest.fixture(autouse=True)
def _disk(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Follow the recipe for the time of a test; who got the mover by its name forgets it after."""
    Tree(tmp_path_factory.mktemp("recipe"), monkeypatch).module(RECIPE, "sonar/movers/disk.py")
    monkeypatch.setattr(catalogue, "MOVERS", (*catalogue.MOVERS, DISK))
    yield
    loading.loaded_from.cache_clear()


def registry(directory: Path, **changes: object) -> str:
    """A registry file with two endpoints on this disk, and a mesh that the mover obeys."""
    mesh = {"mover": "disk", "mode": "push", "streams": 1} | changes
    settings = "".join(f"    {name}: {value}\n" for name, value in mesh.items())
    return f"""
sites: [{{name: GLASGOW}}, {{name: RAL}}]
endpoints:
  - {{name: GLASGOW_DISK, site: GLASGOW, base_url: "ftp://here{directory}/glasgow"}}
  - {{name: RAL_DISK, site: RAL, base_url: "ftp://here{directory}/ral"}}
meshes:
  - name: disks
    sources: [GLASGOW_DISK]
    destinations: [RAL_DISK]
    every: {{small: 1h}}
{settings}"""


def test_a_new_mover_is_registered_scheduled_and_measures(tmp_path):
    file.load(registry(tmp_path))
    (due,) = scheduler.claim_due(NOW)
    probes.run(due)
    transfer = Transfer.objects.get()
    assert (transfer.state, transfer.error) == ("done", "")
    assert (transfer.profile.mover, transfer.profile.mode) == ("disk", "push")
    assert transfer.bytes == 20_000_000
    assert transfer.seconds > 0
    assert transfer.verified
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert left == ["20000000"]  # the source file stays, the destination file does not


@pytest.mark.parametrize(
    ("changes", "place", "sentence"),
    [
        (
            {"mode": "pull"},
            "mode",
            "The transfer tool disk does not support mode pull: “mode” must be push.",
        ),
        (
            {"streams": 4},
            "streams",
            "The transfer tool disk cannot set the number of streams: “streams” must be 1.",
        ),
        (
            {"tcp_buffer_bytes": 65536},
            "tcp_buffer_bytes",
            "The transfer tool disk cannot set TCP buffers: “tcp_buffer_bytes” must be left empty.",
        ),
        (
            {"mover": "fake", "mode": "pull"},
            "mover",
            "fake supports the URL scheme fake, not those of",
        ),
        (
            {"mover": "tape"},
            "mover",
            "'tape' is not a transfer tool: use http-tpc, xrootd, gfal2,",
        ),
    ],
)
def test_what_a_new_mover_does_not_obey_is_refused(
    tmp_path, changes: dict[str, object], place: str, sentence: str
):
    with pytest.raises(file.RegistryError) as caught:
        file.load(registry(tmp_path, **changes))
    assert f"meshes[0].{place} " in str(caught.value)
    assert sentence in str(caught.value)
    assert not Mesh.objects.exists()


def test_what_is_ordered_and_not_obeyed_is_refused(tmp_path):
    file.load(registry(tmp_path))
    mesh = Mesh.objects.get()
    (source,), (destination,) = mesh.sources.all(), mesh.destinations.all()
    size_class = mesh.intervals.get().size_class
    wish = scheduler.ProbeRequest(source, destination, size_class, "disk", "pull", 2)
    with pytest.raises(scheduler.RefusedError) as caught:
        scheduler.order_all([wish, wish], NOW)
    assert caught.value.errors == {
        "mode": ["The transfer tool disk does not support mode pull: “mode” must be push."],
        "streams": [
            "The transfer tool disk cannot set the number of streams: “streams” must be 1."
        ],
    }
    assert not Probe.objects.exists()


def test_a_mesh_of_every_endpoint_means_those_of_the_new_mover_too(tmp_path):
    text = registry(tmp_path).replace("[GLASGOW_DISK]", "all").replace("[RAL_DISK]", "all")
    file.load(text)
    scheduler.follow_registry(NOW)
    assert Schedule.objects.count() == 2


def test_a_worker_without_the_program_says_so_in_its_result(tmp_path, monkeypatch):
    file.load(registry(tmp_path))
    (due,) = scheduler.claim_due(NOW)
    monkeypatch.setenv("PATH", str(tmp_path))
    probes.run(due)
    transfer = Transfer.objects.get()
    assert (transfer.state, transfer.error_where) == ("failed", "control")
    assert transfer.error == (
        "the transfer tool disk cannot run on this worker: the program cp (Debian package "
        "coreutils) is not on "
        "the PATH"
    )


@pytest.mark.long
def test_pages_and_api_name_a_new_mover_without_loading_it():
    program = """
from sonar.movers import catalogue
from dataclasses import replace
fake = catalogue.describe("fake")
catalogue.MOVERS += (replace(fake, name="disk", path="sonar.movers.disk:DiskMover"),)
import django, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "sonar.settings"
django.setup()
from matrix.answers.ordering.probe_requests import ALLOWED, OrderedTests
from matrix.api.registry.meshes import NewMesh
assert OrderedTests.model_json_schema()["properties"]["mover"]["enum"][-1] == "disk"
assert "disk" in NewMesh.model_json_schema()["properties"]["mover"]["pattern"]
assert ALLOWED["mover"].endswith("fake or disk"), ALLOWED["mover"]
assert "sonar.movers.disk" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, cwd=PROJECT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_test_whose_mover_was_taken_away_meanwhile_ends_with_a_sentence(tmp_path, monkeypatch):
    file.load(registry(tmp_path))
    (due,) = scheduler.claim_due(NOW)
    monkeypatch.setattr(catalogue, "MOVERS", catalogue.MOVERS[:-1])
    probes.run(due)
    transfer = Transfer.objects.get()
    assert (transfer.state, transfer.error_where) == ("failed", "control")
    assert (
        transfer.error
        == f"there is no transfer tool 'disk'; allowed: {', '.join(catalogue.names())}"
    )
