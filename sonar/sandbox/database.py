"""`python -m sonar.sandbox.database COMMAND`: a command on the database of `make run` alone.

For what must not happen while Sonar runs, as a restore (docs/deployment.md).
"""

import os
import signal
import subprocess
import sys

from sonar import settings as project
from sonar.sandbox import embedded, home
from sonar.sandbox.processes import StartError

USAGE = "Usage: python -m sonar.sandbox.database manage.py restore FILE"


def main(command: list[str]) -> int:
    """Run a command of Python's meanwhile; return its exit code."""
    if not command:
        raise StartError(USAGE)
    if not project.OWN_DATABASE:
        raise StartError("DATABASE_URL is set. Run the command directly, without this wrapper.")
    # Ctrl-C is for the command; this one ends PostgreSQL once that has ended.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    place = project.SONAR_HOME
    home.make(place)
    log = place / "log" / "postgres.log"
    with (
        home.only_one(place),
        embedded.socket_directory() as sockets,
        embedded.postgres(place / "postgres", sockets, log) as url,
    ):
        env = os.environ | {"DATABASE_URL": url}
        env.setdefault("REDIS_URL", project.REDIS_URL)
        return subprocess.run([sys.executable, *command], env=env, check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except StartError as error:
        sys.exit(str(error))
