"""What is installed is what was chosen: files by their hashes, images by a digest or a reason."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sonar.movers.catalogue import MOVERS, Program

PROJECT = Path(__file__).resolve().parent.parent
# What people write, and what `make lock` makes of it.
LOCKS = {".requirements.in": "requirements.txt", ".requirements-dev.in": "requirements-dev.txt"}
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def read(path: str) -> str:
    return (PROJECT / path).read_text(encoding="utf-8")


def logical_lines(path: str) -> Iterator[str]:
    """Yield the lines of a requirements file as pip reads them: joined, without comments."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", read(path), flags=re.MULTILINE))
    yield from filter(None, map(str.strip, joined.splitlines()))


@dataclass(frozen=True)
class Locked:
    """What a line of a lock asks for, and the hashes of the files that may be it."""

    asked: Requirement
    hashes: tuple[str, ...]


def locked(path: str) -> dict[str, Locked]:
    found = {}
    for line in logical_lines(path):
        asked = Requirement(line.partition("--hash")[0])
        found[canonicalize_name(asked.name)] = Locked(asked, tuple(HASH.findall(line)))
    return found


def chosen(path: str) -> list[Requirement]:
    """Return what a list of ours asks for, with those that it takes in."""
    found = []
    for line in logical_lines(path):
        option, _, value = line.partition(" ")
        if option == "-r":
            found += chosen(value)
        elif option != "-c":
            found.append(Requirement(line))
    return found


def brought_along(asked: list[Requirement]) -> set[str]:
    """Name these and all that they need here, as the installed libraries themselves say."""
    seen: set[tuple[str, str]] = set()
    ahead = [(one, extra) for one in asked for extra in ("", *one.extras) if applies(one)]
    while ahead:
        one, extra = ahead.pop()
        name = canonicalize_name(one.name)
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        needed = map(Requirement, metadata.requires(name) or [])
        ahead += [(each, x) for each in needed if applies(each, extra) for x in ("", *each.extras)]
    return {name for name, _ in seen}


def applies(one: Requirement, extra: str = "") -> bool:
    return one.marker is None or one.marker.evaluate({"extra": extra})


@pytest.mark.parametrize(("path", "lock"), LOCKS.items())
def test_a_lock_has_what_was_chosen_and_what_that_brings_along_with_one_version_and_its_hashes(
    path: str, lock: str
) -> None:
    """Run `make lock` after a change of what was chosen."""
    found = locked(lock)
    assert len(found) > 50
    for name, one in found.items():
        assert re.fullmatch(r"==[\w.]+", str(one.asked.specifier)), name
        assert one.hashes, name
    for one in chosen(path):
        assert found[canonicalize_name(one.name)].asked.specifier == one.specifier, one.name
    here = {name for name, one in found.items() if applies(one.asked)}
    assert here == brought_along(chosen(path))


def test_the_tests_run_with_what_sonar_runs_with() -> None:
    tests = locked("requirements-dev.txt")
    for name, one in locked("requirements.txt").items():
        assert (tests[name].asked, tests[name].hashes) == (one.asked, one.hashes)


def test_no_requirements_file_names_a_host_or_a_path() -> None:
    for path in (*LOCKS, *LOCKS.values()):
        assert re.findall(r"\S*://\S*|--(?!hash)\S+|(?<!\w)/\w\S*", read(path)) == [], path


def test_nothing_is_installed_without_its_hash() -> None:
    for path in ("Makefile", "Dockerfile"):
        installs = re.findall(r"\bpip .*\binstall (?:.*\\\n)*.*", read(path))
        assert installs
        assert [line for line in installs if "--require-hashes" not in line] == []


def test_the_image_has_the_programs_of_all_movers() -> None:
    needs = [need for mover in MOVERS for need in mover.needs if isinstance(need, Program)]
    assert {need.debian for need in needs} <= set(read("Dockerfile").split())


def images() -> set[str]:
    """Name every image that Sonar is built of or runs beside, as it is without an .env."""
    found = re.findall(r"^ARG \w+_IMAGE=(\S+)", read("Dockerfile"), re.MULTILINE)
    found += re.findall(r"\$\{\w+_IMAGE:-(\S+)\}", read("docker-compose.yml"))
    return set(found)


def test_every_image_can_be_pinned_from_outside() -> None:
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?", read("Dockerfile"), re.MULTILINE)
    ours = {"scratch", *(stage for _, stage in stages)}
    named = [image for image, _ in stages if image not in ours]
    named += re.findall(r"^\s+(?:image|\w+_IMAGE): (\S+)", read("docker-compose.yml"), re.MULTILINE)
    named = [one for one in named if not one.startswith("sonar-")]
    assert len(named) == 7
    assert [one for one in named if not re.match(r"\$\{\w+_IMAGE[:}]", one)] == []


def test_every_image_has_a_digest_or_a_reason() -> None:
    reasons = re.findall(r"^- `(\S+:\S+)`: \w+", read("docs/dependencies.md"), re.MULTILINE)
    by_tag = {image for image in images() if not re.search(r"@sha256:[0-9a-f]{64}$", image)}
    assert set(reasons) == by_tag
    assert len(images()) == 4
