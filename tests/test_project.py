"""The project as Django sees it."""

import re
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command, get_commands, load_command_class

from sonar import settings

PROJECT = Path(__file__).resolve().parent.parent
# What git writes where two changes touch the same lines, and nobody has chosen.
CONFLICT = re.compile(rb"^(<{7}|\|{7}|>{7})( |$)", re.MULTILINE)


@pytest.mark.django_db
def test_the_migrations_are_those_of_the_models():
    call_command("makemigrations", check=True, dry_run=True, verbosity=3)


def test_results_are_kept_for_days_that_there_are(monkeypatch: pytest.MonkeyPatch):
    """So many days ago must be a time: else each result that comes in was an error."""
    for text in ("0", "36501", "1000000", "9" * 5000, "-1", "4e2", "\u0663"):
        monkeypatch.setenv("SONAR_KEEP_DAYS", text)
        with pytest.raises(ImproperlyConfigured, match=r"is not a whole number from 1 to 36500\."):
            settings.envint("SONAR_KEEP_DAYS", 400, maximum=settings.LONGEST_KEPT_DAYS)


@pytest.mark.parametrize("text", ["CERN", "a b", "c@rn", "x" * 41])
def test_a_vantage_that_no_queue_could_have_is_refused_at_the_start(monkeypatch, text: str):
    monkeypatch.setenv("SONAR_VANTAGE", text)
    with pytest.raises(
        ImproperlyConfigured, match=r"is not allowed\. The name of a vantage point has 1"
    ):
        settings.envvantage("SONAR_VANTAGE")


def test_django_finds_nothing_wrong():
    call_command("check", fail_level="WARNING")


def test_no_command_of_sonar_waits_for_the_checks():
    own = {name: app for name, app in get_commands().items() if app in ("sonar", "matrix")}
    assert {"load_registry", "assess"} <= set(own)
    commands = {name: load_command_class(app, name) for name, app in own.items()}
    assert not {name for name, one in commands.items() if one.requires_system_checks}


def test_every_conflict_of_two_changes_was_resolved():
    files = [*PROJECT.glob("*.*"), *(PROJECT / "docs").rglob("*.*"), *PROJECT.glob(".*.in")]
    for room in ("sonar", "matrix", "templates", "static", "tests"):
        files += (PROJECT / room).rglob("*.*")
    texts = [one for one in files if one.suffix in {".md", ".py", ".html", ".css", ".js", ".yml"}]
    assert len(texts) > 500
    assert [one.name for one in texts if CONFLICT.search(one.read_bytes())] == []
