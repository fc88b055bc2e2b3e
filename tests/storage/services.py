"""An own PostgreSQL and Redis, as safe as real ones, to be stopped, crashed and filled."""

import os
import signal
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psycopg
import redis

from sonar.sandbox import embedded
from tests import template

PATIENCE = "-c statement_timeout=60s"


class Database:
    """An own PostgreSQL, as safe against a crash as a real one, to be stopped and started."""

    def __init__(self, place: Path, sockets: Path, *options: str) -> None:
        self.data, self._sockets, self._log = place / "postgres", sockets, place / "postgres.log"
        self._options = options
        self._running: AbstractContextManager[str] | None = None
        self.url = ""

    def start(self) -> None:
        """Start it, with all tables the first time."""
        if not self.data.exists():
            template.copy_to(self.data)
        self._running = embedded.postgres(self.data, self._sockets, self._log, *self._options)
        self.url = template.with_tables(self._running.__enter__())

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT breaks sessions off and writes all, SIGQUIT is a crash."""
        if self._running is not None:
            if (noted := self.data / "postmaster.pid").is_file():
                os.kill(int(noted.read_text().split()[0]), how)
            self._running.__exit__(None, None, None)
            self._running = None

    def revive(self) -> None:
        """Start it again if it has ended by itself, as it does without room on its disk."""
        if not embedded.database_answers(self.url):
            self.stop(signal.SIGQUIT)
            self.start()

    def ask(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True, options=PATIENCE) as connection:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []


class Queue:
    """An own Redis, to be emptied, filled, killed and restarted."""

    def __init__(self, place: Path, sockets: Path) -> None:
        self._place, self._sockets = place, sockets
        self._running: AbstractContextManager[str] | None = None
        self.url = ""

    def start(self) -> None:
        place = self._place
        self._running = embedded.redis_server(place / "redis", self._sockets, place / "redis.log")
        self.url = self._running.__enter__()

    def stop(self) -> None:
        if self._running is not None:
            self._running.__exit__(None, None, None)
            self._running = None

    def kill(self) -> None:
        """Let it die without a word; what it held since its last snapshot is gone."""
        with redis.Redis.from_url(self.url) as client:
            pid = int(client.info("server")["process_id"])
        os.kill(pid, signal.SIGKILL)
        self.stop()

    def empty(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def limit(self, size_bytes: int) -> None:
        """Let it take no more than this; 0 is no limit."""
        with redis.Redis.from_url(self.url) as client:
            client.config_set("maxmemory", size_bytes)
