"""The engine of containers that a run uses: the one that answers, or one of its own.

Its own listens at a socket in its directory alone, and ends with the run, by its pid.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

START_SECONDS, STOP_SECONDS = 60.0, 60.0
NETWORK = "172.29.0.1/24"


class Engine:
    """Docker, by its command line; ``own`` is its daemon where the run started it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.own: subprocess.Popen[bytes] | None = None
        self.environment = dict(os.environ)

    def start(self) -> None:
        """Find an engine that answers, or start one. RuntimeError if neither goes."""
        if self._answers():
            return
        if not shutil.which("dockerd"):
            raise RuntimeError("No engine answers, and dockerd is not on the PATH.")
        self.environment["DOCKER_HOST"] = f"unix://{self.place}/docker.sock"
        self._launch()

    def _launch(self) -> None:
        command = ["dockerd", "--data-root", f"{self.place}/data", "--bip", NETWORK]
        command += ["--exec-root", f"{self.place}/exec", "--pidfile", f"{self.place}/docker.pid"]
        command += ["--host", self.environment["DOCKER_HOST"]]
        with (self.place / "dockerd.log").open("ab") as log:
            self.own = subprocess.Popen(command, stdout=log, stderr=log, process_group=0)
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.own.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"dockerd did not start: see {self.place}/dockerd.log.")
            time.sleep(0.2)

    def restart(self) -> bool:
        """Stop the engine and start it again; False where it is not ours to stop."""
        if self.own is None:
            return False
        self.stop()
        self._launch()
        return True

    def stop(self) -> None:
        if self.own is not None:
            self.own.terminate()
            self.own.wait(STOP_SECONDS)
            self.own = None

    def _answers(self) -> bool:
        return self.try_to("version", "--format", "{{.Server.Version}}")

    def has(self, image: str) -> bool:
        return self.try_to("image", "inspect", image)

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Run a command of docker; RuntimeError with what it said if it fails."""
        return said(["docker", *arguments], self.environment, stdin)

    def try_to(self, *arguments: str) -> bool:
        """Run a command of docker that may fail; say whether it went well."""
        command = ["docker", *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, check=False)
        return done.returncode == 0


def said(command: list[str], environment: dict[str, str], stdin: str = "") -> str:
    """Run a command; return what it printed. RuntimeError with its errors if it fails."""
    done = subprocess.run(
        command, env=environment, input=stdin, capture_output=True, text=True, check=False
    )
    if done.returncode:
        end = (done.stdout + done.stderr)[-3000:]
        raise RuntimeError(f"{' '.join(command[:6])} ... failed ({done.returncode}):\n{end}")
    return done.stdout
