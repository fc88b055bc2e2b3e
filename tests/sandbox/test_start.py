"""What a start says while it works, and what it does not do twice."""

import io
import os
import re
import time
from pathlib import Path, PurePosixPath

import pytest
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from pytest_django import Settings
from rich.console import Console

from sonar.sandbox import home, run
from sonar.sandbox.run import step
from tests.waiting import wait_for

MANIFEST = {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"}


@pytest.fixture
def files(settings: Settings, tmp_path: Path) -> Path:
    """Return the directory of one static file, to be laid out in a home of its own."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "page.css").write_text("body {}")
    settings.SONAR_HOME = tmp_path
    settings.STATIC_ROOT = tmp_path / "static"
    settings.STATICFILES_DIRS = [source]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STORAGES = settings.STORAGES | {"staticfiles": MANIFEST}
    return source


def test_static_files_are_laid_out_once_and_those_that_changed_anew(
    files: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    def lay_out_anew() -> None:
        assert not home.are_laid_out()
        home.lay_out()
        assert home.are_laid_out()

    lay_out_anew()
    (files / "page.css").write_text("body { color: red }")
    lay_out_anew()
    (files / "new.css").write_text("p {}")
    lay_out_anew()
    (files / "new.css").unlink()
    lay_out_anew()
    settings.STORAGES = settings.STORAGES | {"staticfiles": MANIFEST | {"OPTIONS": {}}}
    lay_out_anew()
    (Path(settings.STATIC_ROOT) / "staticfiles.json").unlink()  # by somebody else
    lay_out_anew()
    monkeypatch.setattr(home, "version", lambda name: "99")  # of a newer library
    assert not home.are_laid_out()


def test_laying_out_that_was_broken_off_begins_anew(files: Path, monkeypatch: pytest.MonkeyPatch):
    def broken_off(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    home.lay_out()
    with monkeypatch.context() as patched:
        patched.setattr(home, "call_command", broken_off)
        with pytest.raises(KeyboardInterrupt):
            home.lay_out()
    assert not home.are_laid_out()


def test_files_that_an_older_sonar_laid_out_meanwhile_are_laid_out_anew(
    files: Path, settings: Settings, tmp_path: Path
):
    """One that did so at each start, and left no note."""
    home.lay_out()
    settings.STATICFILES_DIRS = [tmp_path / "older"]
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "page.css").write_text("body { color: black }")
    later = time.time() + 60
    os.utime(tmp_path / "older" / "page.css", (later, later))
    call_command("collectstatic", interactive=False, verbosity=0)
    settings.STATICFILES_DIRS = [files]
    assert not home.are_laid_out()
    home.lay_out()
    assert home.are_laid_out()
    # Its files were younger than ours.
    assert (Path(settings.STATIC_ROOT) / "page.css").read_text() == "body {}"


def test_files_that_no_page_asks_for_are_not_laid_out():
    """They would be compressed for seconds, as somebody waits for the first page."""
    names = {name for finder in get_finders() for name, _ in finder.list([])}
    apps = {str(PurePosixPath(*PurePosixPath(name).parts[:2])) for name in names if "/" in name}
    assert {"admin/css", "drf_spectacular_sidecar/swagger-ui-dist"} <= apps
    assert not {name for name in apps if "redoc" in name or name.startswith("rest_framework")}


def test_a_long_step_says_again_and_again_that_it_goes_on(monkeypatch: pytest.MonkeyPatch):
    assert run.SAY_EVERY_SECONDS < 3
    monkeypatch.setattr(run, "SAY_EVERY_SECONDS", 0.01)
    said = io.StringIO()
    with step(Console(file=said, width=80), "Starting PostgreSQL"):
        assert wait_for(lambda: said.getvalue().count("\n") >= 4, 120, 0.01)
    lines = said.getvalue().splitlines()
    assert lines[0] == "Starting PostgreSQL ..."
    assert all(re.fullmatch(r"Starting PostgreSQL \.\.\. \d+ s", line) for line in lines[1:])
    count = len(lines)
    time.sleep(0.05)
    assert len(said.getvalue().splitlines()) == count
