"""docker-compose.yml hands on every setting, to those that need it; docs/containers.md says how
all of it was tried on a real engine."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sonar import settings as project
from tests.test_docs import first_cells

PROJECT = Path(__file__).resolve().parent.parent
COMPOSE = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
# What it decides itself: addresses within it, and places that it mounts or that are in the image.
FIXED = {"DATABASE_URL", "REDIS_URL", "SONAR_CREDENTIALS_DIR", "PROMETHEUS_MULTIPROC_DIR"}
# Of `make run`, or said on the command line.
ELSEWHERE = {"PORT", "SONAR_HOME", "SONAR_PAST", "SONAR_REGISTRY", "SONAR_FIREFLIES_LISTEN"}
WITHOUT_DEFAULT = {"SONAR_SECRET_KEY"}
LOG_IN = r"SONAR_(OIDC_\w+|LOGIN_ROLES|X509_PROXIES|PASSWORDS)"


def handed_to(*names: str) -> dict[str, str | None]:
    return {
        setting: value
        for name in names or OURS
        for setting, value in OURS[name]["environment"].items()
    }


def test_every_setting_reaches_the_containers_and_has_the_default_of_sonar_if_not_set_outside():
    documented = first_cells("docs/settings.md") - ELSEWHERE
    named = {name.removesuffix("_FILE") for name in handed_to()}
    assert named - {"PROMETHEUS_MULTIPROC_DIR"} == documented
    given = {name for name, value in handed_to().items() if value is not None}
    assert given == FIXED | WITHOUT_DEFAULT
    common = set(COMPOSE["x-sonar"]["environment"])
    for name in OURS:
        assert common <= set(handed_to(name)), name


def test_what_is_of_the_log_in_and_the_limits_of_the_web_goes_to_the_web_alone():
    others = handed_to(*(set(OURS) - {"web"}))
    of_the_web = {name for name in handed_to("web") if re.fullmatch(LOG_IN, name)}
    assert len(of_the_web) > 10
    assert not (of_the_web | {"SONAR_STATEMENT_SECONDS"}) & set(others)
    assert {name for name in others if name.startswith("SONAR_IDLE")} == {"SONAR_IDLE_SECONDS"}


def test_the_user_of_the_image_owns_what_is_mounted_and_the_database_is_ready_once_it_listens():
    (number,) = re.findall(r"useradd --uid (\d+)", (PROJECT / "Dockerfile").read_text())
    (mounted,) = OURS["web"]["tmpfs"]
    assert mounted == f"/run/sonar/metrics:uid={number},gid={number}"
    # While it is first made, a server runs that listens at a socket alone.
    assert SERVICES["postgres"]["healthcheck"]["test"][-2:] == ["-h", "127.0.0.1"]


def test_a_list_that_is_empty_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ("", "  "):
        monkeypatch.setenv("SONAR_ALLOWED_HOSTS", given)
        assert project.envlist("SONAR_ALLOWED_HOSTS", "localhost,::1") == ["localhost", "::1"]
