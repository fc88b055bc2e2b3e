"""One Sonar by docker-compose.yml as it is written: a project of Compose, v1 or v2."""

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.containers.engine import Engine, said

PROJECT = Path(__file__).resolve().parents[2]
# Those that run all the time.
SERVICES = ("postgres", "redis", "web", "worker", "control", "cleanup", "beat")


class Compose:
    """A project: its containers, and what is asked of them."""

    def __init__(
        self, engine: Engine, project: str, settings: Mapping[str, str], place: Path = PROJECT
    ) -> None:
        """Take docker-compose.yml of a directory, by default of this version."""
        self.engine, self.project = engine, project
        self.environment = engine.environment | dict(settings)
        self._command = [*program(engine), "--project-name", project]
        self._command += ["--project-directory", str(place)]
        self.add(place / "docker-compose.yml")

    def add(self, file: Path) -> None:
        """Read a file after those before; it changes and adds."""
        self._command += ["-f", str(file)]

    def run(self, *arguments: str, stdin: str = "") -> str:
        return said([*self._command, *arguments], self.environment, stdin)

    def manage(self, *arguments: str, stdin: str = "") -> str:
        return self.run("exec", "-T", "web", "python", "manage.py", *arguments, stdin=stdin)

    def sql(self, statement: str, service: str = "postgres") -> str:
        command = ("exec", "-T", service, "psql", "-U", "sonar", "-h", "/run/postgresql")
        return self.run(*command, "-d", "sonar", "-Atc", statement).strip()

    def containers(self, service: str) -> list[str]:
        """Return those of a service that run; both versions of Compose give them these labels."""
        label = "label=com.docker.compose"
        return self.engine.run(
            *("ps", "--quiet", "--filter", f"{label}.project={self.project}"),
            *("--filter", f"{label}.service={service}", "--filter", f"{label}.oneoff=False"),
        ).split()

    def inspect(self, container: str, form: str) -> str:
        return self.engine.run("inspect", "--format", form, container).strip()

    def health(self, service: str) -> set[str]:
        """Return the states of health of the containers of a service."""
        form = "{{.State.Status}} {{.State.Health.Status}}"
        return {self.inspect(one, form) for one in self.containers(service)}

    def are_healthy(self, *services: str) -> bool:
        return all(self.health(one) == {"running healthy"} for one in services or SERVICES)

    def first_process(self, container: str) -> int:
        return int(self.inspect(container, "{{.State.Pid}}"))

    def get(self, path: str) -> str:
        """Ask the pages as a proxy does, in their own container, which nobody else need reach."""
        script = (
            "import urllib.request as u, sys\n"
            "request = u.Request('http://127.0.0.1:8000' + sys.argv[1])\n"
            "request.add_header('Host', 'localhost')\n"
            "request.add_header('X-Forwarded-Proto', 'https')\n"
            "sys.stdout.write(u.urlopen(request, timeout=30).read().decode())"
        )
        return self.run("exec", "-T", "web", "python", "-c", script, path)

    def is_ready(self) -> bool:
        """Say whether all parts work, as /readyz does."""
        try:
            return '"ready": true' in self.get("/readyz")
        except RuntimeError:
            return False

    def down(self) -> None:
        profiles = [f"--profile={name}" for name in ("proxy", "demo", "fireflies", "tools")]
        self.run(*profiles, "down", "--volumes", "--remove-orphans", "--timeout", "5")


def program(engine: Engine) -> list[str]:
    """Return the command of Compose: v2 where Docker has it, else v1."""
    version = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    if version.returncode == 0:
        return ["docker", "compose"]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    raise RuntimeError("Neither `docker compose` nor docker-compose is there.")


def until(done: Callable[[], object], what: str, seconds: float = 120.0) -> float:
    """Wait until something is so; return how long. RuntimeError if it does not come to be."""
    began = time.monotonic()
    while not done():
        if time.monotonic() - began > seconds:
            raise RuntimeError(f"Not within {seconds:.0f} s: {what}.")
        time.sleep(0.5)
    return time.monotonic() - began
