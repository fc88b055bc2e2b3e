"""Programs that tests need are declared, hidden from all other tests, and named at the end."""

import os
import shutil
from pathlib import Path

import pytest

from sonar.movers.catalogue import MOVERS, Program
from tests import needs as module
from tests.needs import ALL_PROGRAMS, PACKAGES, needs, summary

PROJECT = Path(__file__).resolve().parent.parent
on_debian = pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="needs Debian's dpkg")


@pytest.fixture(scope="session")
def started() -> str:
    needs("mount")
    return os.environ["PATH"]


@pytest.fixture(scope="session")
def built_on_it(started: str) -> str:
    return os.environ["PATH"]


@pytest.fixture
def used(built_on_it: str) -> str:
    assert os.environ["PATH"] == built_on_it
    return os.environ["PATH"]


@pytest.mark.parametrize("time", ["first", "second"])
def test_all_programs_are_there_for_a_test_whose_fixture_needs_one(time: str, used: str) -> None:
    assert os.environ["PATH"] == used == ALL_PROGRAMS


@pytest.fixture
def later() -> str:
    return os.environ["PATH"]


def test_programs_stay_visible_for_threads_of_a_fixture(started: str, later: str) -> None:
    assert later == os.environ["PATH"] == started


@on_debian
def test_other_tests_see_those_of_a_bare_debian() -> None:
    assert all(shutil.which(name) for name in ("sh", "git", "make", "setpriv", "mount", "awk"))
    bare = {"mount", "util-linux", "e2fsprogs"}
    more = [name for name, packages in PACKAGES.items() if not bare & {*packages}]
    assert [name for name in (*more, "gdb", "node") if shutil.which(name)] == []
    needs("mount")
    assert os.environ["PATH"] == ALL_PROGRAMS


def test_a_program_without_a_package_is_refused_before_it_is_looked_for() -> None:
    with pytest.raises(LookupError, match=r"does not say which package has \['frob'\]"):
        needs("mount", "frob")


def test_a_missing_program_is_a_skip_and_a_failure_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ALL_PROGRAMS", "/nowhere")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"needs mount, ip$"):
        needs("mount", "ip")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"needs mount, ip$"):
        needs("mount", "ip")


def test_one_line_says_what_to_install_for_what_was_skipped() -> None:
    lab = "needs a machine that lets root have mounts of its own: unshare: Operation not permitted"
    reasons = ["needs ip, ss", "needs iperf3", lab, lab, "needs Pango: no library", lab]
    assert summary(reasons) == (
        "6 tests were skipped. To run 3 of them: apt-get install fonts-dejavu-core iperf3 iproute2 "
        f"libharfbuzz-subset0 libpangoft2-1.0-0 (on Debian). 3 of them: {lab}."
    )
    assert summary(["needs curl"]) == (
        "1 test was skipped. To run it: apt-get install curl (on Debian)."
    )


def test_the_programs_of_movers_are_of_the_packages_that_movers_say() -> None:
    needed = [need for mover in MOVERS for need in mover.needs if isinstance(need, Program)]
    assert {need.debian in PACKAGES[need.name] for need in needed} == {True}


def test_ci_and_the_readme_read_the_list() -> None:
    for path in (".ci/run", "README.md"):
        text = (PROJECT / path).read_text()
        assert "$(sed '/^#/d; s/.*: //' tests/programs.txt)" in text
        assert not {"xrootd-server", "iperf3", "chromium", "icinga2-bin"} & {*text.split()}
