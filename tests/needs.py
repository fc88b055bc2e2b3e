"""Programs that tests need beyond Python, as a pytest plugin.

Tests see only the programs of a bare Debian (its required packages, and those that the README asks
for), whatever else this machine has. `needs` makes all programs visible to the test or fixture that
calls it, and to everything that uses that fixture. So a test that starts a program without saying
so fails on every machine, not only where the program is missing.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

ALL_PROGRAMS = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
PACKAGES = {
    name: packages.split()
    for name, packages in re.findall(
        r"^([^#\n]+): (.+)", Path(__file__).with_name("programs.txt").read_text(), re.MULTILINE
    )
}
ASKED_FOR = ("git", "make", "python3")
"""By the README."""
OWN_MOUNTS = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount"]
"""What goes before a command that mounts something which only it sees."""

_search_path = ALL_PROGRAMS
"""What tests have that need no programs."""
_test = ""
"""The one that runs."""
_needed = False
"""Whether the fixture that is being set up, or the test, has asked for a program."""
_with_programs = set[tuple[str, str]]()
"""Fixtures that need programs, by name and by the place that they are known in."""
_skipped: list[str] = []


def needs(*programs: str) -> None:
    """Skip the running test if a program is missing; in CI a missing program is a failure."""
    global _needed  # noqa: PLW0603
    if unknown := sorted({*programs} - {*PACKAGES}):
        raise LookupError(f"tests/programs.txt does not say which package has {unknown}")
    missing = [name for name in programs if shutil.which(name, path=ALL_PROGRAMS) is None]
    if missing:
        lacks(f"needs {', '.join(missing)}")
    _needed = True
    os.environ["PATH"] = ALL_PROGRAMS


def find(program: str) -> str:
    """Return the path of a program, or skip as `needs` does."""
    needs(program)
    return shutil.which(program) or ""


def needs_mounts() -> None:
    """Skip the running test where this machine does not let it have mounts of its own."""
    needs("unshare", "mount")
    command = [*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    if tried.returncode:
        lacks(f"needs a machine that lets root have mounts of its own: {tried.stderr.strip()}")


def lacks(reason: str) -> NoReturn:
    """Skip the running test, or fail it in CI, for what this machine does not have."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def hide_programs(place: Path) -> None:
    """Let tests see only links to the programs of a bare Debian, in a new directory."""
    global _search_path  # noqa: PLW0603
    if shutil.which("dpkg-query") is None:
        return
    listed = _ask_dpkg("-W", "-f=${Priority} ${Package}\n")
    required = [line.split()[1] for line in listed if line.startswith("required ")]
    listed = _ask_dpkg("-L", *required)
    files = {os.path.realpath(line) for line in listed if "bin/" in line}
    place.mkdir()
    for directory in ALL_PROGRAMS.split(os.pathsep):
        for file in os.scandir(directory) if Path(directory).is_dir() else ():
            link = place / file.name
            is_bare = file.name in ASKED_FOR or os.path.realpath(file) in files
            if is_bare and not link.is_symlink():
                link.symlink_to(file.path)
    _search_path = os.environ["PATH"] = str(place)


def _ask_dpkg(*arguments: str) -> list[str]:
    answer = subprocess.run(["dpkg-query", *arguments], capture_output=True, text=True, check=False)
    return answer.stdout.splitlines()


def _any_needs(fixtures: Iterable[str]) -> bool:
    return any(name in fixtures and _test.startswith(place) for name, place in _with_programs)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any],
) -> Generator[None, object, object]:
    """Show programs to a fixture if one that it uses needs them; note that a fixture does.

    They stay visible until the test is over: threads of the fixture may still look for them.
    """
    global _needed  # noqa: PLW0603
    before, _needed = _needed, _any_needs(fixturedef.argnames)
    if _needed:
        os.environ["PATH"] = ALL_PROGRAMS
    try:
        return (yield)
    finally:
        if _needed:
            _with_programs.add((fixturedef.argname, fixturedef.baseid))
        _needed = _needed or before


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Hide programs, except from a test that has a fixture that needs them."""
    global _test, _needed
    _test, _needed = item.nodeid, False
    # Threads of a fixture that is there already look for them meanwhile.
    is_known = _any_needs(getattr(item, "fixturenames", ()))
    os.environ["PATH"] = ALL_PROGRAMS if is_known else _search_path
    yield
    request = getattr(item, "_request", None)  # knows those that fixtures asked for by name, too
    if request is not None and _any_needs(request.fixturenames):
        os.environ["PATH"] = ALL_PROGRAMS


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """Let fixtures end with the programs that they began with."""
    os.environ["PATH"] = ALL_PROGRAMS


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        _skipped.append(str(report.longrepr[2]).removeprefix("Skipped: "))


def pytest_sessionfinish() -> None:
    """Add why tests were skipped to the file that the lanes of the Makefile share."""
    if path := os.environ.get("SKIPPED"):
        with Path(path).open("a") as file:
            file.writelines(f"{' '.join(reason.split())}\n" for reason in _skipped)


def summary(reasons: Sequence[str]) -> str:
    """Say in a line how many tests were skipped, and what to install for them on Debian."""
    packages, others = set[str](), Counter[str]()
    for reason in reasons:
        names = reason.partition(":")[0].removeprefix("needs ").split(", ")
        if all(name in PACKAGES for name in names):
            packages.update(package for name in names for package in PACKAGES[name])
        else:
            others[reason] += 1
    number = len(reasons)
    words = ["1 test was skipped." if number == 1 else f"{number} tests were skipped."]
    if packages:
        installable = number - others.total()
        which = "it" if number == 1 else "them" if not others else f"{installable} of them"
        words.append(f"To run {which}: apt-get install {' '.join(sorted(packages))} (on Debian).")
    words += [f"{count} of them: {reason}." for reason, count in others.most_common()]
    return " ".join(words)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    if path.exists() and (reasons := path.read_text().splitlines()):
        print(summary(reasons))
