"""The catalogue of movers: what it says is true, and who reads it loads no protocol."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sonar.credentials.rules import PASSIVE_AND_ACTIVE
from sonar.models.mesh import Mode
from sonar.models.registry import BASE_URL, BASE_URL_SENTENCE
from sonar.movers import catalogue, loading
from sonar.movers.base import MoverError, Order
from sonar.movers.catalogue import (
    MOVERS,
    PARAMETERS,
    MoverDescription,
    Program,
    PythonPackage,
    describe,
    kept,
    names,
)
from sonar.notation.addresses import PROTOCOLS

PROJECT = Path(__file__).resolve().parents[2]
# Modules of the package that are of no protocol: what all movers and their callers share.
SHARED = {
    "loading",
    *("base", "catalogue", "content", "measure", "messages", "mover", "network", "spans"),
    *("needs", "tcp_info", "unexpected", "watch"),
}

every_mover = pytest.mark.parametrize("mover", MOVERS, ids=lambda mover: mover.name)


@every_mover
def test_what_a_mover_obeys_is_what_there_is_to_ask_for(mover: MoverDescription):
    assert mover.modes
    assert set(mover.modes) <= set(Mode.values) == set(PASSIVE_AND_ACTIVE)
    assert mover.parameters <= set(PARAMETERS)
    assert set(PARAMETERS) <= set(Order.__dataclass_fields__)
    assert re.fullmatch(r"[a-z0-9-]{1,20}", mover.name)


@every_mover
def test_the_schemes_of_a_mover_are_those_that_a_base_url_may_have(mover: MoverDescription):
    assert mover.schemes
    for scheme in mover.schemes:
        assert re.match(BASE_URL, f"{scheme}://storage.example.org/data"), scheme
        assert re.search(rf"\b{scheme}\b", BASE_URL_SENTENCE), scheme


def test_a_base_url_may_have_the_scheme_of_every_protocol():
    for scheme in PROTOCOLS:
        assert re.match(BASE_URL, f"{scheme}://storage.example.org/data"), scheme


@every_mover
@pytest.mark.usefixtures("every_program")
def test_a_mover_is_found_where_it_is_said_to_be(mover: MoverDescription, settings):
    settings.SONAR_NETWORK_ENDPOINT = "RAL_NET"
    found = loading.load(mover)
    assert f"{type(found).__module__}:{type(found).__name__}" == mover.path
    assert loading.load(mover) is found
    assert callable(found.move)
    assert hasattr(found, "files") != mover.of_network


def loaded_after(program: str) -> set[str]:
    """Return the modules of `sonar.movers` that a process has loaded which did this."""
    show = "\nimport sys\nprint(*(name for name in sys.modules if 'sonar.movers.' in name))"
    done = subprocess.run(
        [sys.executable, "-c", program + show],
        check=False,
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return {name.removeprefix("sonar.movers.") for name in done.stdout.split()}


DJANGO = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "sonar.settings"
import django
django.setup()
"""


# The web asks an issuer within the deadlines of movers (sonar.people.issuer).
DEADLINES = {"http", "http.deadlines", "http.peers", "file_address"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "needed"),
    [
        ("import sonar.movers.catalogue, sonar.movers.loading", SHARED),
        (f"{DJANGO}import sonar.urls, matrix.urls, sonar.registry.file", SHARED | DEADLINES),
    ],
    ids=["movers", "web"],
)
def test_who_does_not_move_a_file_loads_no_protocol(program: str, needed: set[str]):
    assert loaded_after(program) <= needed


def test_a_mover_is_loaded_when_it_is_used_and_the_others_are_not():
    program = "from sonar.movers import catalogue, loading\nloading.load(catalogue.kept('fake'))"
    loaded = loaded_after(program)
    assert "fake" in loaded
    assert loaded <= SHARED | {"fake"}


def test_what_a_worker_lacks_is_said_in_words(monkeypatch, tmp_path):
    assert PythonPackage("urllib3").missing() == ""
    assert PythonPackage("no_such_package").missing() == (
        "the Python package no_such_package is not installed"
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    program = Program("xrdcp", "xrootd-client")
    assert (
        program.missing() == "the program xrdcp (Debian package xrootd-client) is not on the PATH"
    )
    (tmp_path / "xrdcp").write_text("#!/bin/sh\n")
    (tmp_path / "xrdcp").chmod(0o755)
    assert program.missing() == ""


def test_a_mover_that_lacks_something_is_not_begun(monkeypatch):
    needs = (PythonPackage("no_such_package"), PythonPackage("nor_this"))
    crippled = MoverDescription("crippled", "", "x:Y", frozenset({"ftp"}), ("pull",), needs=needs)
    monkeypatch.setattr(catalogue, "MOVERS", (*MOVERS, crippled))
    with pytest.raises(MoverError) as caught:
        loading.load(crippled)
    assert str(caught.value) == (
        "the transfer tool crippled cannot run on this worker: the Python package "
        "no_such_package is not "
        "installed, the Python package nor_this is not installed"
    )
    assert (caught.value.where, caught.value.permanent) == ("control", True)


@pytest.mark.parametrize("mover", ["http-tpc", "fake"])
def test_the_first_movers_obey_what_was_accepted_before_they_were_described(mover: str):
    for mode in Mode.values:
        assert catalogue.kept(mover).refusals(mode, streams=64) == {}


def test_more_streams_than_a_mover_can_be_told_are_refused():
    assert catalogue.kept("xrootd").refusals("pull", streams=15) == {}
    assert catalogue.kept("xrootd").refusals("pull", streams=16) == {
        "streams": "The transfer tool xrootd uses at most 15 streams: “streams” must be from 1 "
        "to 15."
    }


def test_every_mover_bears_the_name_it_is_found_by():
    assert [describe(name).name for name in names()] == names()
    assert sorted(set(names())) == sorted(names())


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(MoverError, match=f"'ftp'; allowed: {', '.join(names())}"):
        loading.load(kept("ftp"))
