"""docs/movers.md: the examples for a laptop are typed as they stand there, with a real Sonar."""

import os
import re
import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from sonar.movers.catalogue import MOVERS
from tests.needs import needs
from tests.programs import terminal
from tests.programs.terminal import PAGE, Terminal
from tests.storage.xrootd import make_room

EXAMPLES = terminal.examples()
SET_UP = EXAMPLES.pop("")
MAKE_RUN = re.compile(r"^\$ make run SONAR_REGISTRY=(\S+)$", re.MULTILINE)


@pytest.fixture
def room(real_commits: None) -> Iterator[Path]:
    """Follow the set-up of all examples; tests/sandbox/test_run.py starts a whole `make run`."""
    needs("xrootd", "globus-gridftp-server", "openssl", "setpriv")
    directory = make_room()
    try:
        registry, commands = terminal.blocks(SET_UP, directory)
        Path(registry.file).write_text(registry.text)
        loaded = MAKE_RUN.search(commands.text)
        assert loaded, "the page does not say how Sonar is started"
        call_command("load_registry", loaded[1], stdout=StringIO())
        yield directory
    finally:
        shutil.rmtree(directory)


@pytest.fixture
def desk(room: Path) -> terminal.Desk:
    """Return where commands are typed: they find the services of this test's Sonar."""
    url = os.environ["DATABASE_URL"].rpartition("/")[0]
    services = {
        "DATABASE_URL": f"{url}/{connection.settings_dict['NAME']}",
        "REDIS_URL": os.environ["REDIS_URL"],
        "SONAR_HOME": str(room / "sonar"),
    }
    return terminal.Desk(room / "desk", services)


@pytest.fixture
def servers(room: Path) -> Iterator[Terminal]:
    shell = Terminal(room)
    yield shell
    shell.close()


@pytest.mark.long
@pytest.mark.parametrize("title", EXAMPLES)
def test_an_example_shows_what_the_page_shows(
    room: Path, desk: terminal.Desk, servers: Terminal, title: str
):
    text, typed = terminal.on_free_ports(EXAMPLES[title]), False
    for block in terminal.blocks(text, room):
        if block.language == "sh":
            servers.type(block.text)
            typed = True
        elif block.language == "yaml":
            Path(block.file).write_text(block.text)
        else:
            if typed:
                servers.wait_for_servers(text)
            shown = desk.played(block.text)
            assert terminal.without_figures(shown) == terminal.without_figures(block.text)
    servers.end("kill $(jobs -p)")
    assert "`kill $(jobs -p)`" in SET_UP


def test_each_mover_has_an_example():
    movers = set(re.findall(r"^\$ .*--mover (\S+)", PAGE, re.MULTILINE))
    assert movers == {mover.name for mover in MOVERS if not mover.simulated}
