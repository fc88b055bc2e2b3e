"""The units of docs/systemd, started as systemd would start them, at the paths of a test."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sonar.sandbox import processes
from tests.waiting import wait_for

PROJECT = Path(__file__).resolve().parent.parent
UNITS = PROJECT / "docs" / "systemd"
COMMON = "sonar-.service.d/10-common.conf"


def on_this_machine(text: str, place: Path) -> str:
    """Return a unit, a script or a command with the paths of a test in the place of a server's."""
    programs = Path(sys.executable).parent
    for path, other in (
        (r"/opt/sonar/\.venv/bin", programs),
        (r"(?<= )\.venv/bin", programs),
        ("/opt/sonar(?![a-z-])", PROJECT),
        ("/etc/sonar", place / "etc" / "sonar"),
        ("/etc/systemd", place / "etc" / "systemd"),
        ("/var/lib/sonar", place / "home"),
        ("/run/sonar-metrics", place / "metrics"),
        ("/usr/local/bin", place / "bin"),
    ):
        text = re.sub(path, str(other), text)
    return text


def values(text: str, name: str) -> list[str]:
    """Return what a unit says under a name, in its order."""
    return re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)


class Service:
    """One service, with its socket on which it says how it is."""

    def __init__(self, unit: str, place: Path, instance: str = "") -> None:
        texts = [(UNITS / name).read_text() for name in (COMMON, unit)]
        credentials = str(place / "etc" / "sonar")
        text = on_this_machine("\n".join(texts), place)
        # As systemd reads them: its own specifiers, then what it is to leave alone.
        for specifier, value in (("%d", credentials), ("%i", instance), ("%%", "%")):
            text = text.replace(specifier, value)
        self.name, self.text, self.place = unit, text, place
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        address = place / f"{unit}.notify"
        self._socket.bind(str(address))
        self._socket.setblocking(False)
        self.env = environment(text) | {"NOTIFY_SOCKET": str(address)}
        self.heard: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, env: Mapping[str, str]) -> list[str]:
        (line,) = values(self.text, "ExecStart")
        replaced = re.sub(r"\$\{(\w+)\}", lambda found: env[found[1]], line)
        return shlex.split(replaced)

    def start(self, **replaced: str) -> None:
        """Run its command; ``replaced`` are environment variables that systemd does not set."""
        command = [
            part.replace(":8000", f":{replaced.get('SONAR_PORT')}")
            for part in self.command(self.env)
        ]
        self.process = processes.start(command, self.log, self.env | replaced)

    @property
    def log(self) -> Path:
        return self.place / f"{self.name}.log"

    def says(self, text: str, after: str = "", seconds: float = 180) -> bool:
        """Wait until it has said so, after something else that it has said."""

        def heard() -> bool:
            self.hear()
            begin = self.heard.index(after) if after in self.heard else 0
            return text in self.heard[begin:] and after in ("", *self.heard)

        return wait_for(heard, seconds, pause=0.05)

    def hear(self) -> None:
        """Take what it has said by now."""
        with suppress(BlockingIOError):
            while True:
                self.heard += self._socket.recv(4096).decode().splitlines()

    def stop(self) -> int:
        """Stop it as systemd does, within the time that its unit gives it; return its exit code."""
        assert self.process is not None
        self.process.terminate()
        (seconds,) = values(self.text, "TimeoutStopSec")
        return self.process.wait(float(seconds))

    def close(self) -> None:
        self._socket.close()
        if self.process is not None:
            processes.stop(self.process)


def environment(text: str) -> dict[str, str]:
    """Return what a service finds in its environment: a file comes after what the unit says."""
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env |= dict(line.split("=", 1) for line in values(text, "Environment"))
    for path in values(text, "EnvironmentFile"):
        lines = [line for line in Path(path).read_text().splitlines() if re.match(r"\w+=", line)]
        env |= {
            name: shlex.split(value)[0] for name, value in (line.split("=", 1) for line in lines)
        }
    return env


def systemd_analyze(*arguments: str, units: Path) -> subprocess.CompletedProcess[str]:
    """Ask Debian's systemd about units in a directory; it starts nothing."""
    program = shutil.which("systemd-analyze")
    assert program
    return subprocess.run(
        [program, *arguments],
        env={"PATH": os.environ["PATH"], "SYSTEMD_UNIT_PATH": f"{units}:"},
        capture_output=True,
        text=True,
        check=False,
    )
