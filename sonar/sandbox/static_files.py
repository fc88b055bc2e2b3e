"""Static files laid out for the web server: compressed anew only when they have changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command


def stamp() -> str:
    """Return what changes with every file to lay out, and with what lays them out. Takes 10 ms."""
    makers = [f"{name} {version(name)}" for name in ("django", "whitenoise", "brotli")]
    lines = [*makers, repr(settings.STORAGES["staticfiles"]), *sorted(_files())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _files() -> Iterator[str]:
    for finder in get_finders():
        for name, storage in finder.list([]):
            about = Path(storage.path(name)).stat()
            yield f"{name} {about.st_size} {about.st_mtime_ns}"


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
