"""The examples of docs/movers.md, typed as a person would: servers in a terminal of their own."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from sonar.notation.units import THIN_SPACE
from tests.ports import free_port
from tests.storage.xrootd import SERVER_USER, takes_connections
from tests.waiting import wait_for

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "docs" / "movers.md").read_text(encoding="utf-8")
DIRECTORY = "/tmp/laptop"
BLOCK = re.compile(r"(?:`(\S+)`:\n\n)?```(sh|yaml|console)\n(.*?)```", re.DOTALL)
PORT = re.compile(r"\b127\.0\.0\.1:([0-9]+)")
FIGURE = re.compile(
    # Short times are in milliseconds.
    rf"[0-9.,{THIN_SPACE}]+ m?s(?=: )|[0-9.,{THIN_SPACE}]+(?= [kMG]?B/s)"
    # What has arrived when a test of the network ends.
    r"|[0-9.,]+(?= [kMG]B in .*\(iperf3 )"
)
SERVER_SECONDS = 120.0
COMMAND_SECONDS = 300.0


class Block(NamedTuple):
    """What stands between fences; ``file`` is where a block of YAML is saved."""

    file: str
    language: str
    text: str


def examples() -> dict[str, str]:
    """Return the page's examples by their titles; the set-up of all stands at the empty one."""
    _, _, below = PAGE.partition("\n## On a laptop\n")
    first, *others = below.partition("\n## ")[0].split("\n### ")
    return {"": first} | {one.partition("\n")[0]: one for one in others}


def on_free_ports(text: str) -> str:
    """Let the servers of an example listen elsewhere, as somebody may be at their ports."""
    for port in set(PORT.findall(text)):
        text = re.sub(rf"\b{port}\b", str(free_port()), text)
    return text


def blocks(text: str, room: Path) -> list[Block]:
    """Return the blocks of an example, with this directory for the one of the page."""
    return [Block(*match) for match in BLOCK.findall(text.replace(DIRECTORY, str(room)))]


def without_figures(text: str) -> str:
    """Leave out what is measured: it differs from machine to machine."""
    return FIGURE.sub("#", text)


class Terminal:
    """A shell of an ordinary user, with the servers that are started in it."""

    def __init__(self, room: Path) -> None:
        user = ("setpriv", f"--reuid={SERVER_USER}", f"--regid={SERVER_USER}", "--clear-groups")
        self.log = room / "terminal.log"
        with self.log.open("wb") as output:
            self.shell = subprocess.Popen(
                [*(user if os.getuid() == 0 else ()), "bash"],
                cwd=room,
                env={"PATH": os.environ["PATH"]},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def type(self, text: str) -> None:
        self.shell.stdin.write(text.encode())
        self.shell.stdin.flush()

    def wait_for_servers(self, text: str) -> None:
        """Wait until each server that an example names answers."""
        ports = {int(port) for port in PORT.findall(text)}

        def all_answer() -> bool:
            return all(takes_connections("127.0.0.1", port) for port in ports)

        assert wait_for(all_answer, SERVER_SECONDS), self.log.read_text()

    def end(self, command: str) -> None:
        """End the servers as the page says, and see that nothing goes on."""
        try:
            self.type(f"{command}; wait; exit\n")
            assert self.shell.wait(SERVER_SECONDS) == 0
        finally:
            self.close()

    def close(self) -> None:
        """Leave no process behind, however a test ended."""
        if self.shell.poll() is None:
            os.killpg(self.shell.pid, signal.SIGKILL)
            self.shell.wait()


class Desk:
    """Where commands are typed; it looks like the directory of the project."""

    def __init__(self, place: Path, variables: dict[str, str]) -> None:
        place.mkdir()
        (place / ".venv").symlink_to(sys.prefix)
        for name in ("manage.py", "tests"):
            (place / name).symlink_to(PROJECT / name)
        self.place = place
        self.variables = {"PATH": os.environ["PATH"], **variables}

    def played(self, block: str) -> str:
        """Run the commands of a block in one shell; return what its terminal would show."""
        commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
        script = "".join(f"printf '%s\\n' '$ {command}'\n{command}\n" for command in commands)
        done = subprocess.run(
            ["bash"],
            input=script,
            cwd=self.place,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        # What a bar of progress leaves is an empty line.
        return "".join(line for line in done.stdout.splitlines(keepends=True) if line.strip())
