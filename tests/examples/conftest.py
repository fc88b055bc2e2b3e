"""The scripts of docs/examples, run as their users run them, against a live Sonar."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sonar_client
from django.contrib.auth.models import User
from pytest_django.live_server_helper import LiveServer

from sonar.people import roles, tokens
from sonar.people.roles import Role
from tests.conditions import stored_condition
from tests.examples.road import Road
from tests.matrix import world
from tests.matrix.world import HOUR, World

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
MINUTE = timedelta(minutes=1)

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def result(**fields: object) -> dict[str, Any]:
    """Return the record of a result that is done, with an id of its own."""
    plain = {
        "id": str(uuid.uuid4()),
        "source": "RAL_DATADISK",
        "destination": "Glasgow_DATADISK",
        "started_at": "2026-11-20T03:00:00Z",
        "seconds": 412.5,
        "bytes": 2_000_000_000,
        "state": "done",
        "mover": "fts",
        "ip_version": 6,
    }
    return plain | fields


@pytest.fixture
def known_world(real_commits: None, at_noon: None) -> World:
    """Glasgow to RAL is fast, DESY's are slow, failing, or long ago."""
    found = world.make()
    ral, glasgow, desy, scratch = found.endpoints
    with world.transfers() as some:
        for minutes, rate in enumerate((40.0, 50.0, 66.0), start=20):
            some.add(glasgow, ral, rate, ago=minutes * MINUTE)
            some.add(desy, ral, rate / 20, ago=minutes * MINUTE)
            some.add(glasgow, desy, None, ago=minutes * MINUTE)
        some.add(scratch, ral, 30.0, ago=5 * HOUR)
        some.add(ral, glasgow, 25.0, ago=10 * MINUTE, size="small")
    stored_condition("failing", source=glasgow, destination=desy)
    return found


@pytest.fixture
def url(known_world: World, live_server: LiveServer) -> str:
    return str(live_server.url)


@pytest.fixture
def road(url: str) -> Iterator[Road]:
    """Return a way to the server on which things happen."""
    with Road(url) as way:
        yield way


@pytest.fixture
def token(known_world: World) -> str:
    """Return the token of an operator, for everything."""
    user = User.objects.create_user("shifter")
    roles.give(user, Role.OPERATOR)
    return tokens.create(user, "scripts", ["read", "ingest", "operate"], 90)[1]


@pytest.fixture
def token_file(token: str, tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(token + "\n")
    return path


@pytest.fixture
def run(url: str, token: str) -> Run:
    """Run a script of docs/examples with SONAR_URL set; its output never has the token."""

    def run_it(
        script: str, *arguments: object, stdin: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        done = subprocess.run(
            [sys.executable, EXAMPLES / script, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            env={**kept, "SONAR_URL": url, **environment},
            check=False,
        )
        assert token not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run_it


@dataclass(frozen=True)
class Said:
    returncode: int
    stdout: str
    stderr: str


Say = Callable[..., Said]


@pytest.fixture
def act(url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Run a script in this process, which saves the second that its start takes."""
    monkeypatch.setenv("SONAR_URL", url)

    def act_it(script: ModuleType, *words: object, stdin: str = "", **environment: str) -> Said:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", [script.__name__, *map(str, words)])
            patch.setattr(sys, "stdin", StringIO(stdin))
            for name, value in environment.items():
                patch.setenv(name, value)
            try:
                code = script.main()
            except SystemExit as end:
                code = int(str(end.code))
        told = capsys.readouterr()
        assert environment.get("SONAR_TOKEN", "no token") not in told.out + told.err
        return Said(code, told.out, told.err)

    return act_it


@pytest.fixture
def say(act: Say) -> Say:
    """Run a command of the client in this process."""
    return partial(act, sonar_client)
