"""SONAR_HOME: where one Sonar on this machine keeps its data, held by one `make run`."""

from __future__ import annotations

import contextlib
import fcntl
import json
import secrets
from collections.abc import Iterator
from pathlib import Path

from sonar.notation import whole_files
from sonar.sandbox.processes import StartError


def make(home: Path) -> None:
    """Make the directory and what every start needs in it."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (home / "log").mkdir(exist_ok=True)
    except OSError as error:
        raise StartError(
            f"Sonar cannot keep its data in {home} ({error.strerror}): set SONAR_HOME."
        ) from error
    secret_key = home / "secret-key"
    if not (secret_key.is_file() and secret_key.read_text().strip()):
        write_private(secret_key, secrets.token_urlsafe(50))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all; StartError if it cannot."""
    try:
        with whole_files.written(path) as file:
            file.write(f"{text}\n".encode())
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}.") from error


@contextlib.contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Hold the directory for this run."""
    try:
        lock = (home / "lock").open("a+")
    except OSError as error:
        raise StartError(f"{home} belongs to somebody else: set SONAR_HOME.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartError(
                f"Sonar already runs in {home}: stop it first, or set SONAR_HOME to another place."
            ) from None
        yield


@contextlib.contextmanager
def noted_services(home: Path, database_url: str, redis_url: str) -> Iterator[None]:
    """Let `manage.py` in another terminal find the services, for as long as they run."""
    path = home / "services.json"
    write_private(path, json.dumps({"database_url": database_url, "redis_url": redis_url}))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
