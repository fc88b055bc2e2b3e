"""What a mesh sends and what its tests lack are said once, the same wherever they are shown."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from rich.console import Console

from sonar import scheduler
from sonar.models import Credential, Endpoint, Mesh, Schedule
from sonar.obstacles import credential_states
from sonar.people.roles import Role
from sonar.registry import mesh_size
from sonar.sandbox import first_start, home, run
from tests.accounts import account, logged_in
from tests.html import Page
from tests.matrix.world import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]
GRID = """\
sites: [{name: OWN-A}, {name: OWN-B}]
credentials: [{name: b, hosts: [b.example]}]
endpoints:
  - {name: OWN-A_DISK, site: OWN-A, base_url: "https://a.example/data"}
  - {name: OWN-B_DISK, site: OWN-B, base_url: "https://b.example/data", credential: b}
  - {name: OWN-C_DISK, site: OWN-B, base_url: "https://c.example/data"}
meshes:
  - {name: own, mover: http-tpc, every: {small: 2m, large: 10m}, quiet_hours: "05:00-21:00"}
"""


@pytest.fixture
def grid(tmp_path: Path) -> str:
    """Load it; return what the command said."""
    path, out = tmp_path / "grid.yaml", StringIO()
    path.write_text(GRID)
    call_command("load_registry", str(path), stdout=out)
    return out.getvalue()


def words(client: Client, path: str) -> str:
    return Page(client.get(path).content.decode()).words


def test_what_a_mesh_sends_is_one_figure(grid: str) -> None:
    operator = logged_in(account(Role.OPERATOR))
    said = operator.get("/api/v1/meshes/own/").json()
    # 8 of 24 hours are open; no cap and no budget holds back anything.
    assert said["tests_per_day"] == pytest.approx(6 * (8 * 30 + 8 * 6), rel=0.02)
    assert said["in_words"].endswith("GB a day, at most 6 tests at once")
    line = f"mesh own: {said['in_words']}"
    assert line in grid.splitlines()
    assert line in first_start.what_is_tested()
    tests = f"{said['tests_per_day']:.0f}"
    for path in ("/meshes/", "/meshes/own/", "/meshes/own/change/", "/operations/"):
        assert tests in "".join(words(operator, path).split()), path
    for path in ("/meshes/own/", "/meshes/own/change/"):
        peak = "at most 6 tests at once with 12 GB of files in total; total rate 300 MB/s if each"
        assert peak in words(operator, path)


def test_a_start_prints_what_each_mesh_sends(
    grid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_start, "make_tables", lambda: None)
    monkeypatch.setattr(home, "are_laid_out", lambda: True)
    monkeypatch.setattr(run.project, "SONAR_REGISTRY", str(tmp_path / "grid.yaml"))
    out = StringIO()
    console = Console(file=out, width=200)
    run.prepare(run.Children(tmp_path, console), tmp_path, console)
    assert mesh_size.lines(["own"])[0] in out.getvalue().splitlines()


def fails() -> None:
    use = credential_states.CredentialUse(
        Credential.objects.get().pk, Endpoint.objects.get(name="OWN-B_DISK").pk, "own"
    )
    trouble = credential_states.CredentialProblem("its file is empty", holds=True)
    credential_states.record_failure(use, trouble, NOW)
    Endpoint.objects.filter(name="OWN-B_DISK").update(lend_credential=True)


def is_not_for_its_host() -> None:
    Credential.objects.update(hosts=["elsewhere.example"])


def is_needed_by_a_service() -> None:
    Credential.objects.create(name="fts", hosts=["fts.example"])
    Endpoint.objects.filter(name="OWN-B_DISK").update(lend_credential=True)
    service = {"service": "https://fts.example", "service_credential": "fts"}
    body = service | {"mover": "fts3", "destinations": ["OWN-B_DISK"]}
    operator = logged_in(account(Role.OPERATOR, name="server"))
    answer = operator.patch("/api/v1/meshes/own/", body, content_type="application/json")
    assert answer.status_code == 200, answer.content


@pytest.mark.parametrize(
    ("lack", "sentence", "is_advised"),
    [
        (
            list,
            "OWN-B_DISK delegates no credential, but OWN-A_DISK needs one to read there: "
            "set “lend_credential” to delegate its own credential, or set "
            "“credential_lent”.",
            True,
        ),
        (
            is_not_for_its_host,
            "The credential of OWN-B_DISK is not valid for the host and port of its base "
            "URL. Administrators set the hosts for which a credential is valid.",
            True,
        ),
        (
            is_needed_by_a_service,
            "OWN-A_DISK has no credential, but the service needs one: add a credential and "
            "delegate it.",
            True,
        ),
        (
            fails,
            "The credential of OWN-B_DISK does not work, so tests that need it are waiting.",
            False,
        ),
    ],
    ids=["not lent", "for another host", "none", "does not work"],
)
def test_the_reason_of_a_waiting_test_names_what_lacks(
    lack: Callable[[], object], sentence: str, is_advised: bool, grid: str
) -> None:
    if lack is list:
        assert sentence in grid
    lack()
    Mesh.objects.update(quiet_from=None, quiet_until=None)
    scheduler.claim_due(NOW)
    Schedule.objects.update(next_due=NOW)
    operator = logged_in(account(Role.OPERATOR))
    waiting = {row["reason"]: row for row in operator.get("/api/v1/status/").json()["waiting"]}
    assert waiting["credential"]["tests"] > 0
    assert sentence in waiting["credential"]["because"]
    planned = operator.get("/api/v1/sites/OWN-B/").json()["planned"]
    assert sentence in planned["because"]["credential"]
    for path in ("/operations/", "/sites/OWN-B/"):
        assert sentence in words(operator, path), path
    held = Schedule.objects.filter(skipped_because="credential").order_by("id")
    about = {(row.source.name, row.destination.name) for row in held}
    links = [words(operator, f"/links/{source}/{destination}/") for source, destination in about]
    assert any(f"because of credential ({sentence.rstrip('.')})" in link for link in links)
    if is_advised:
        assert any(sentence in line for line in first_start.what_is_tested())
        kept = operator.patch("/api/v1/meshes/own/", {"priority": 6}, "application/json").json()
        assert sentence in kept["notice"]
