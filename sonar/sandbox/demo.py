"""The sandbox in a container (docs/containers.md): ``python -m sonar.sandbox.demo``.

Storage nodes, their registry and their past, for a Sonar whose other processes run elsewhere.
"""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import django
from django.conf import settings
from django.utils import timezone

from sonar.processes.heartbeat_file import HeartbeatFile
from sonar.sandbox import processes
from sonar.sandbox.nodes import CONTAINER
from sonar.sandbox.processes import StartError

BEAT_SECONDS = 2
STALE_SECONDS = 30


def serve(nodes: subprocess.Popen[bytes]) -> None:
    """Beat as long as the nodes run; raise StartError once they have ended."""
    heartbeat = HeartbeatFile(settings.SONAR_HEARTBEAT_FILE, STALE_SECONDS)
    while nodes.poll() is None:
        heartbeat.beat()
        time.sleep(BEAT_SECONDS)
    raise StartError(f"The storage nodes have ended ({processes.how_it_ended(nodes)}).")


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonar.settings")
    django.setup()
    directory = settings.SONAR_HOME / "sandbox"
    directory.mkdir(exist_ok=True)
    try:
        log = directory / "nodes.log"
        command = [sys.executable, "-m", "sonar.sandbox.nodes", "--host", CONTAINER]
        begin = partial(processes.start, [*command, "--directory", str(directory)], log)
        noted = directory / "nodes.json"
        nodes = processes.start_noting(noted, begin, "The storage nodes", log)
        try:
            from sonar.sandbox import first_start, past_store

            changes = first_start.load_sandbox_registry(directory).replace("\n", "; ")
            sys.stdout.write(f"Registry: {changes}\n")
            if settings.SONAR_PAST and past_store.is_missing(timezone.now()):
                # Nobody tests before this is done.
                past_store.make(wait_seconds=0)
            serve(nodes)
        finally:
            processes.stop(nodes)
    except StartError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
