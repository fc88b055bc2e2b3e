"""A whole Sonar for long runs: own services, workers as `make run` starts them, storage of both
kinds. Everything ends with the program, and everything it wrote lies in one directory."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import urllib3
import yaml

from sonar.sandbox import processes, run, topology
from tests.ports import free_port
from tests.storage.hostile.served import Hostile
from tests.storage.ledger import HELD, JOURNAL, QUIET
from tests.storage.nodes import Nodes
from tests.storage.services import Database, Queue

ANSWER_SECONDS = 30
"""How long a page may take."""


class Commands:
    """Notes how `make run` starts its workers and the beat, so that they are started alike."""

    def __init__(self, place: Path) -> None:
        self.of: dict[str, list[str]] = {}
        run.start_workers(self, place)  # type: ignore[arg-type]

    def start(self, name: str, *arguments: str) -> None:
        self.of[name] = [sys.executable, "-m", *arguments]


class Grid:
    """One Sonar, its storage, and what was done to them."""

    def __init__(self, place: Path, sockets: Path, data: Path, *options: str) -> None:
        self.place = place
        self.database = Database(data, sockets, *options)
        self.queue = Queue(place, sockets)
        self.nodes, self.hostile = Nodes(place / "nodes"), Hostile(place / "hostile")
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.names: dict[str, str] = {}
        self.killed: set[str] = set()
        self.env: dict[str, str] = {}
        self.web_port = 0
        self._commands: dict[str, list[str]] = {}

    def start_services(self, settings: Mapping[str, str]) -> None:
        """Start PostgreSQL, which has the tables, and Redis."""
        self.database.start()
        self.queue.start()
        self.env = os.environ | settings
        self.env |= {"DATABASE_URL": self.database.url, "REDIS_URL": self.queue.url}
        self.env |= {"SONAR_HOME": str(self.place), "DJANGO_SETTINGS_MODULE": "sonar.settings"}
        self.env |= {"SONAR_SECRET_KEY": "only-for-tests"}
        self.database.ask(JOURNAL)

    def load(self, registry: Mapping[str, Any]) -> None:
        file = self.place / "registry.yaml"
        file.write_text(yaml.safe_dump(dict(registry)))
        self.manage("load_registry", str(file))

    def start_workers(self, several: Mapping[str, int], options: Mapping[str, str]) -> None:
        """Start what `make run` starts; of some kinds several, with some options of their own."""
        self._commands = self.commands()
        for kind, command in self._commands.items():
            for option, value in options.items():
                kind_of, _, name = option.partition(" ")
                if kind == kind_of:
                    put_option(command, name, value)
            for number in range(several.get(kind, 1)):
                self.start_process(f"{kind}{number or ''}")

    def commands(self) -> dict[str, list[str]]:
        """Return how each kind of Celery process is started."""
        return Commands(self.place).of

    def start_process(self, name: str) -> None:
        """Start a Celery process; PostgreSQL knows each start by a name of its own."""
        command = list(self._commands[name.rstrip("0123456789")])
        put_option(command, "-n", f"{name}@%h")
        put_option(command, "--schedule", str(self.place / f"schedule-{name}"))
        number = len(list(self.place.glob(f"{name}-*.log")))
        self.names[name] = f"{name}-{number}"
        env = self.env | {"PGAPPNAME": self.names[name]}
        log = self.place / f"{self.names[name]}.log"
        self.running[name] = processes.start(command, log, env)

    def start_web(self) -> None:
        """Start the pages, on a port of their own."""
        self.web_port = free_port()
        command = [sys.executable, "-m", "gunicorn", "--config=python:sonar.gunicorn_conf"]
        command += ["--workers=1", "--threads=4", "--bind", f"127.0.0.1:{self.web_port}"]
        env = self.env | {"DJANGO_SETTINGS_MODULE": "tests.storage.plain_static"}
        self.running["web"] = processes.start(command, self.place / "web-0.log", env)

    def get(self, path: str) -> urllib3.BaseHTTPResponse:
        url = f"http://127.0.0.1:{self.web_port}{path}"
        return urllib3.request("GET", url, timeout=ANSWER_SECONDS, retries=False)

    def is_ready(self) -> bool:
        """Say whether all parts work; a web that does not answer yet is no error."""
        try:
            return self.get("/readyz").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def named(self, kind: str) -> list[str]:
        """Return the processes of a kind."""
        return [name for name in self.running if name.rstrip("0123456789") == kind]

    def kill(self, name: str) -> None:
        """Kill a process as the kernel does that has no memory left, and start it again."""
        self.running[name].kill()
        self.running[name].wait()
        self.killed.add(self.names[name])
        self.start_process(name)

    def bury(self) -> None:
        """Let the deadlines of what killed workers held pass: minutes are long for a test."""
        self.ask(f"UPDATE sonar_probe SET deadline = now() WHERE deadline > now() AND {HELD}")

    def manage(self, *arguments: str) -> str:
        return self.python("manage.py", *arguments)

    def python(self, *arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=self.env, check=True, stdout=subprocess.PIPE)
        return done.stdout.decode()

    def ask(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Ask the database; %(killed)s stands for the names of the killed processes."""
        return self.database.ask(sql, killed=list(self.killed), **values)

    def count(self, table: str, condition: str = "true") -> int:
        return int(self.ask(f"SELECT count(*) FROM {table} WHERE {condition}")[0][0])

    def make_due(self, mesh: str, spread: bool = True) -> None:
        """Make each test of a mesh due at its own moment of its interval, the same each time."""
        share = "(schedule.id * 7919 %% 1000) / 1000.0" if spread else "0"
        self.ask(
            f"UPDATE sonar_schedule schedule SET next_due = now() + {share} * every_seconds "
            "* interval '1 second' FROM sonar_mesh mesh "
            "WHERE mesh.id = mesh_id AND mesh.name = %(mesh)s",
            mesh=mesh,
        )
        loud = "UPDATE sonar_mesh SET quiet_from = NULL, quiet_until = NULL"
        self.ask(f"{loud} WHERE name = %(mesh)s", mesh=mesh)

    def plan_no_more(self) -> None:
        """Let no mesh test anything until it is made due."""
        self.ask(QUIET)

    def leave_alone_no_more(self) -> None:
        """Let files that could not be deleted be tried at once: their pauses grow to hours."""
        soon = "UPDATE sonar_leftover SET next_try = now(), tries = 0"
        self.ask(f"{soon} WHERE next_try > now() + interval '15 s'")

    def logs(self, *kinds: str) -> str:
        paths = [path for kind in kinds for path in sorted(self.place.glob(f"{kind}*-*.log"))]
        return "\n".join(path.read_text(errors="replace") for path in paths)

    def close(self) -> None:
        """End everything, by pid, storage last."""
        for process in reversed(self.running.values()):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
            processes.stop(process, signal.SIGKILL)
        self.nodes.close()
        self.hostile.close()
        self.queue.stop()
        self.database.stop()
        shutil.rmtree(self.database.data, ignore_errors=True)


def put_option(command: list[str], option: str, value: str) -> None:
    """Change the value of an option where a command has it."""
    if option in command:
        command[command.index(option) + 1] = value


def end_in_order() -> None:
    """Let SIGTERM and Ctrl-C end this program as an error does: everything is put away."""

    def leave(number: int, _: object) -> None:
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, leave)


def good_registry(nodes: Nodes) -> dict[str, Any]:
    """Register the sandbox as `make run` does: 19 sites, one mesh of all links."""
    registry = topology.registry(nodes.base_urls)
    names = [one["name"] for one in registry["endpoints"]]
    meshes = [mesh | {"sources": names, "destinations": names} for mesh in registry["meshes"]]
    return registry | {"meshes": meshes}


def with_hostile(
    registry: dict[str, Any], hostile: Hostile, partners: Iterable[str], **mesh: Any
) -> dict[str, Any]:
    """Return a registry with the hostile endpoints too, and meshes of them with some good ones."""
    names = [end.name for end in hostile.ends]
    caps = {"inbound_cap": topology.CAP, "outbound_cap": topology.CAP}
    good = list(partners)
    return registry | {
        "sites": [*registry["sites"], *({"name": f"HOSTILE-{name}"} for name in names)],
        "endpoints": [
            *registry["endpoints"],
            *(
                {"name": end.name, "site": f"HOSTILE-{end.name}", "base_url": end.base_url} | caps
                for end in hostile.ends
            ),
        ],
        "meshes": [
            *registry["meshes"],
            {"name": "to-hostile", "sources": good, "destinations": names} | mesh,
            {"name": "from-hostile", "sources": names, "destinations": good} | mesh,
        ],
    }
