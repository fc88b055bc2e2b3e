"""A real PgBouncer in transaction mode, whose few sessions its clients really share."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.db import connections

from sonar.sandbox import embedded, processes
from sonar.settings import databases
from tests.needs import find
from tests.ports import free_port

SESSIONS = 3
# Each transaction gets the session that was not used for longest: what one of them keeps is missed.
CONFIG = """
[databases]
* = host={sockets} user=sonar
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 500
server_round_robin = 1
query_wait_timeout = 120
"""
SAID = {"LIMITS_AT_BEGIN", "DISABLE_SERVER_SIDE_CURSORS", "HOST", "PORT", "OPTIONS"}


@dataclass
class Pooler:
    """A PgBouncer in front of the PostgreSQL with this address, to be killed and started."""

    place: Path
    database_url: str
    sessions: int = SESSIONS

    def __post_init__(self) -> None:
        self.port = free_port()
        sockets = unquote(urlsplit(self.database_url).hostname or "")
        self._config = self.place / "pgbouncer.ini"
        self._config.write_text(
            CONFIG.format(sockets=sockets, port=self.port, sessions=self.sessions)
        )
        self._config.chmod(0o644)

    @property
    def url(self) -> str:
        name = self.database_url.rpartition("/")[2]
        return f"postgresql://sonar@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        command = embedded.as_database_user([find("pgbouncer"), "-q", str(self._config)])
        log = self.place / "pgbouncer.log"
        self.process = processes.start(command, log, processes.plain())
        answers = lambda: embedded.database_answers(self.url)  # noqa: E731
        processes.wait_until(answers, self.process, "PgBouncer", log)

    def kill(self) -> None:
        """Let it die without a word."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        processes.stop(self.process)


@contextmanager
def through(url: str, limits: dict[str, int]) -> Iterator[None]:
    """Let all threads of this process ask the database by this address, a pooler's."""
    settings = connections.settings["default"]
    before = dict(settings)
    there = databases.database("DATABASE_URL", url, 0, limits, transaction_pool=True)
    connections.close_all()
    settings.update({name: there[name] for name in SAID})
    try:
        yield
    finally:
        connections.close_all()
        settings.clear()
        settings.update(before)
