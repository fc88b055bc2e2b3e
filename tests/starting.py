"""Databases that Sonar cannot work with: what starts there ends and says why; /readyz says so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client

from sonar.database import tables
from tests.ports import free_port

PROJECT = Path(__file__).resolve().parent.parent
LONGEST_SECONDS = 120.0

CELERY = ["-m", "sonar"]
# Of two workers that end at once, gunicorn counts the second as a crash of its own.
CONFIG = "--config=python:sonar.gunicorn_conf"
WEB = ["-m", "gunicorn", CONFIG, "--bind=127.0.0.1:0", "--workers=1"]
WORKER = [*CELERY, "worker", "--pool=solo"]
BEAT = [*CELERY, "beat", "--pidfile=", "--scheduler=celery.beat:Scheduler"]
MIGRATE = ["manage.py", "migrate"]
# Of checks only those of a database: the others, which pages pass, take two seconds.
LOOK = ["manage.py", "check", "--database=default", "--tag=database"]
RUN = ["-m", "sonar.sandbox"]


def all_end_with(sentence: str, address: str, home: Path, commands: list[list[str]]) -> None:
    """Start all of these on a database, side by side; none may go on, or show a traceback."""
    env = os.environ | {
        "DATABASE_URL": address,
        "SONAR_HOME": str(home),
        "SONAR_PORT": str(free_port()),
    }
    started = [
        subprocess.Popen(
            [sys.executable, *command],
            cwd=PROJECT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command in commands
    ]
    try:
        outputs = [process.communicate(timeout=LONGEST_SECONDS)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    for command, process, output in zip(commands, started, outputs, strict=True):
        assert sentence in " ".join(output.split()), (command, output)
        assert "Traceback" not in output, (command, output)
        assert process.returncode not in (0, None), command


def readyz_says(sentence: str, name: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the database of this name be that of a process which answers already."""
    there = tables.quickly() | {"dbname": name}
    monkeypatch.setattr(tables, "quickly", lambda: there)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"]["database"] == {"ok": False, "detail": sentence}
