"""docs/examples/README.md: everything in it is run, and prints what stands there."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.conftest import EXAMPLES
from tests.examples.test_push_results import HEADER, line

README = (EXAMPLES / "README.md").read_text(encoding="utf-8")
ADDRESS = "https://sonar.example.org"
WITH_IDS = HEADER.replace("source,", "id,source,", 1)


@pytest.fixture
def desk(url: str, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with the scripts and what the page takes for granted."""
    for script in EXAMPLES.glob("*.py"):
        shutil.copy(script, tmp_path)
    (tmp_path / "token").write_text(token)
    numbered = (f"6f1c9a52-8f0e-4a4e-9d0c-2b7f3c1d5e6{one},{line(one)}" for one in range(3))
    (tmp_path / "results.csv").write_text(WITH_IDS + "".join(numbered))
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "today.csv").write_text(
        HEADER + line(10) + line(11) + line(12, source="NOWHERE")
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def played(block: str, url: str) -> str:
    """Run the commands of a block in one shell; return what its terminal would show."""
    commands = [one[2:] for one in block.splitlines() if one.startswith("$ ")]
    script = "".join(
        f"code=$?; printf '%s\\n' '$ {one}'; (exit $code)\n{one.replace(ADDRESS, url)}\n"
        for one in commands
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = subprocess.run(
        ["bash"],
        input=script,
        env={"PATH": path, "SONAR_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=True,
    )
    return shell.stdout


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(blocks("console"))))
def test_a_terminal_shows_what_the_page_shows(desk: Path, url: str, number: int) -> None:
    block = blocks("console")[number]
    assert played(block, url) == block


def test_python_answers_what_the_page_answers(desk: Path, url: str) -> None:
    lines = "\n".join(blocks("python")).replace(ADDRESS, url)
    session = doctest.DocTestParser().get_doctest(lines, {}, "README", None, 0)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(session, out=told.append)
    assert told == []
    assert runner.tries > 10


def test_the_page_names_every_script() -> None:
    assert set(re.findall(r"\]\((\w+\.py)\)", README)) == {
        path.name for path in EXAMPLES.glob("*.py")
    }
