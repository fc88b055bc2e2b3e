"""SONAR_HOME: where one Sonar on this machine keeps its data, held by one `make run`."""

import contextlib
import fcntl
import hashlib
import json
import secrets
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

from sonar.notation import whole_files
from sonar.sandbox.processes import StartError


def stamp() -> str:
    """Return what changes with every file to lay out, and with what lays them out. Takes 10 ms."""
    makers = [f"{name} {version(name)}" for name in ("django", "whitenoise", "brotli")]
    files = []
    for finder in get_finders():
        for name, storage in finder.list([]):
            about = Path(storage.path(name)).stat()
            files.append(f"{name} {about.st_size} {about.st_mtime_ns}")
    lines = [*makers, repr(settings.STORAGES["staticfiles"]), *sorted(files)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def are_laid_out() -> bool:
    """Say whether nothing has changed since they were laid out, to the end.

    Neither what is to be laid out, nor the names that were given: an older Sonar in the same place
    gives its own, and leaves the note alone.
    """
    note = _note()
    return note.is_file() and note.read_text() == f"{stamp()} {_names_given()}"


def lay_out() -> None:
    """Copy, name and compress them: five seconds, most of them brotli's."""
    of_these = stamp()
    _note().unlink(missing_ok=True)
    # Otherwise those that another version has put there stay, if they are younger than ours.
    call_command("collectstatic", clear=True, interactive=False, verbosity=0)
    _note().write_text(f"{of_these} {_names_given()}")


def _names_given() -> str:
    """Return what changes with the manifest, from which pages take the names of files."""
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    return hashlib.sha256(manifest.read_bytes()).hexdigest() if manifest.is_file() else "none"


def _note() -> Path:
    return Path(settings.SONAR_HOME) / "static.stamp"


def make(home: Path) -> None:
    """Make the directory and what every start needs in it."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (home / "log").mkdir(exist_ok=True)
    except OSError as error:
        raise StartError(
            f"Sonar cannot store its data in {home} ({error.strerror}). Set SONAR_HOME."
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
        raise StartError(f"Cannot write {path}: {error.strerror}.") from error


@contextlib.contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Hold the directory for this run."""
    try:
        lock = (home / "lock").open("a+")
    except OSError as error:
        raise StartError(f"{home} belongs to another user. Set SONAR_HOME.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartError(
                f"Sonar already runs in {home}. Stop it, or set SONAR_HOME to another directory."
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
