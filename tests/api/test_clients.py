"""Clients that programs make of the description: they read every answer, and write."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import aiopenapi3
import attrs
import httpx2
import pytest
from django.utils import timezone
from pydantic import BaseModel
from pytest_django.live_server_helper import LiveServer

from matrix.api import about
from sonar.models import Endpoint, Mesh, Probe
from tests.api import scene
from tests.api.scene import Scene
from tests.matrix.world import NOW

Json = dict[str, Any]
MADE = "client_made_of_the_schema"
ENDS = {"source": "RAL_DATADISK", "destination": "Glasgow_DATADISK"}
NEEDED = {**ENDS, "mesh": "everything"}
NEW = {
    "name": "RAL_TAPE",
    "site": "RAL",
    "label": "TAPE",
    "base_url": "https://tape.example.org/data",
}


@dataclass(frozen=True)
class Sonar:
    """A running one with something of everything, and where its description is."""

    url: str
    scene: Scene
    schema: Json
    path: Path

    @property
    def token(self) -> str:
        return self.scene.tokens["administrator"]

    def reading(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield for each GET its tag, its id, and the parameters that it cannot be without."""
        for path, methods in self.schema["paths"].items():
            call = methods.get("get")
            if call is None:
                continue
            known = dict.fromkeys(("name", "id", "period"), self.place(path)) | NEEDED
            needed = [one["name"] for one in call.get("parameters", []) if one.get("required")]
            yield call["tags"][0], call["operationId"], {name: known[name] for name in needed}

    def place(self, path: str) -> str:
        return self.scene.places.get(path.partition("{")[0], "")


@pytest.fixture
def sonar(
    real_commits: None, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Sonar:
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    made = scene.make()
    few = Endpoint.objects.filter(name__startswith="DESY")
    Mesh.objects.create(name="of-a-few").sources.set(few)
    about.document.cache_clear()
    described = json.loads(about.document(about.sizes()))
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(described | {"servers": [{"url": live_server.url}]}))
    return Sonar(live_server.url, made, described, path)


@pytest.fixture
def generated(
    sonar: Sonar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    """The package that openapi-python-client makes, as its users have it."""
    generate(sonar.path, tmp_path / "client")
    monkeypatch.syspath_prepend(str(tmp_path / "client"))
    yield import_module(MADE)
    for name in [name for name in sys.modules if name.partition(".")[0] == MADE]:
        del sys.modules[name]


def generate(described: Path, home: Path) -> None:
    home.mkdir()
    config = home / "config.yml"
    config.write_text("post_hooks: []\n")
    words = f"generate --path {described} --meta none --config {config} --fail-on-warning "
    words += f"--output-path {home / MADE}"
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *words.split()],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def call(tag: str, operation: str) -> ModuleType:
    return import_module(f"{MADE}.api.{tag}.{operation}")


@pytest.mark.long
def test_a_client_of_openapi_python_client_reads_every_answer_with_types_and_writes(
    sonar, generated
):
    client = generated.AuthenticatedClient(sonar.url, sonar.token, prefix="Token")
    reads_every_answer(client, sonar)
    reads_with_types(client)
    orders_a_test_and_registers_an_endpoint(client)


def reads_every_answer(client: Any, sonar: Sonar) -> None:
    read = set()
    for tag, operation, needed in sonar.reading():
        response = call(tag, operation).sync_detailed(client=client, **needed)
        assert response.status_code == 200, (operation, response.content)
        assert attrs.has(type(response.parsed)), (operation, response.parsed)
        told = same(json.loads(json.dumps(response.parsed.to_dict())))
        assert told == same(json.loads(response.content)), operation
        read.add(operation)
    assert {"get_meshes", "get_links", "get_matrix", "get_probes_id", "get_status"} <= read


def same(value: Any) -> Any:
    """Write times in one way: a client reads them, and writes them its own way."""
    if isinstance(value, dict):
        return {name: same(one) for name, one in value.items()}
    if isinstance(value, list):
        return [same(one) for one in value]
    if isinstance(value, str) and re.match(r"20\d\d-\d\d-\d\dT", value):
        return datetime.fromisoformat(value).astimezone(UTC)
    return value


def reads_with_types(client: Any) -> None:
    meshes = {one.name: one for one in call("registry", "get_meshes").sync(client=client).meshes}
    assert meshes["everything"].sources == "all"
    assert meshes["of-a-few"].sources == ["DESY_DATADISK", "DESY_SCRATCHDISK"]
    found = call("results", "get_links").sync(
        client=client,
        source_endpoint=["RAL_DATADISK"],
        size="small",
        max_age="7d",
        ordering="-large.last_ok",
    )
    large = found.links[0]["large"]
    assert large.state == "measured"
    assert isinstance(large.last_ok, datetime)
    cells = call("results", "get_matrix").sync(client=client, max_age="6h").cells
    assert {state for row in cells.state for state in row} >= {"not_applicable", "down"}


def orders_a_test_and_registers_an_endpoint(client: Any) -> None:
    models = import_module(f"{MADE}.models")
    wanted = models.OrderedTests(**ENDS, sizes=["small"], count=2)
    ordered = call("operation", "post_probes").sync(client=client, body=wanted)
    assert [one.size for one in ordered.probes] == ["small", "small"]
    assert {one.id for one in ordered.probes} <= set(Probe.objects.values_list("id", flat=True))
    made = call("registry", "post_endpoints").sync(client=client, body=models.NewEndpoint(**NEW))
    assert (made.name, made.base_url) == ("RAL_TAPE", NEW["base_url"])
    refused = call("registry", "post_endpoints").sync(client=client, body=models.NewEndpoint(**NEW))
    assert isinstance(refused, models.Error)
    assert refused.errors["name"] == ["The value of “name” is already used by another endpoint."]


@pytest.mark.long
def test_a_client_of_aiopenapi3_reads_every_answer_and_writes(sonar):
    """It checks each answer against the description before it hands it over."""
    client = aiopenapi3.OpenAPI.load_file(
        "http://127.0.0.1/",
        Path(sonar.path.name),
        loader=aiopenapi3.FileSystemLoader(sonar.path.parent),
        session_factory=httpx2.Client,
    )
    client.authenticate(token=f"Token {sonar.token}")
    for _, operation, needed in sonar.reading():
        read = client.createRequest(operation)(parameters=needed)
        assert isinstance(read, BaseModel), operation
    meshes = client._.get_meshes().model_dump()["meshes"]
    assert {one["name"]: one["sources"] for one in meshes} == {
        "everything": "all",
        "of-a-few": ["DESY_DATADISK", "DESY_SCRATCHDISK"],
    }
    order = client._.post_probes(data={**ENDS, "sizes": ["small"], "count": 2})
    assert [one.size for one in order.probes] == ["small", "small"]
    made = client._.post_endpoints(data=NEW)
    assert (made.name, made.base_url) == ("RAL_TAPE", NEW["base_url"])
