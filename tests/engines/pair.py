"""A PostgreSQL and a streaming replica of it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg

from sonar.sandbox import embedded, processes
from tests import template

LONGEST_SECONDS = 120
NAMES = "primary", "standby"
# What a replica has to replay waits for no reader.
OPTIONS = (), ("max_standby_streaming_delay=0",)


class Pair:
    """A PostgreSQL and a hot standby of it, each at a socket in a directory of its own."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self.place = place
        self.sockets = [stack.enter_context(embedded.socket_directory()) for _ in range(2)]
        template.copy_to(place / "primary")
        self._stack = stack
        self.start(0)
        copy = [
            embedded.postgres_binary("pg_basebackup"),
            "-D",
            str(place / NAMES[1]),
            "-U",
            "sonar",
        ]
        copy += ["-h", str(self.sockets[0]), "--write-recovery-conf", "--checkpoint=fast"]
        place.chmod(0o777)
        subprocess.run(embedded.as_database_user(copy), check=True, env=processes.plain())
        self.start(1)

    def start(self, number: int) -> None:
        name = NAMES[number]
        log = self.place / f"{name}.log"
        running = embedded.postgres(self.place / name, self.sockets[number], log, *OPTIONS[number])
        self._stack.enter_context(running)

    def kill(self, number: int) -> None:
        """Let one die without a word, and wait until none of its processes answers any more."""
        pid = int((self.place / NAMES[number] / "postmaster.pid").read_text().split()[0])
        answering = psutil.Process(pid).children()
        os.kill(pid, signal.SIGQUIT)
        _, left = psutil.wait_procs(answering, LONGEST_SECONDS)
        assert not left, left

    @contextmanager
    def without(self, number: int) -> Iterator[None]:
        """Let one be dead meanwhile."""
        self.kill(number)
        try:
            yield
        finally:
            self.start(number)

    def ask(self, number: int, *statements: str) -> Any:
        """Return the first value that the last of the statements gives at one of them."""
        with psycopg.connect(self.url(number), autocommit=True) as session:
            for statement in statements:
                cursor = session.execute(statement)
            return (cursor.fetchone() or [None])[0] if cursor.description else None

    def url(self, *numbers: int, more: str = "") -> str:
        hosts = ",".join(quote(str(self.sockets[number]), safe="") for number in numbers)
        return f"postgresql://sonar@{hosts}/{template.NAME}{more}"

    @property
    def both(self) -> str:
        return self.url(0, 1, more="?target_session_attrs=read-write")

    def fail_over(self) -> None:
        """Let the primary die without a word, and the other one take its place."""
        self.kill(0)
        self.ask(1, "SELECT pg_promote(true, 60)")
