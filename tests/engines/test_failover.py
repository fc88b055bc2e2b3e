"""PostgreSQL with two hosts: the primary dies, its replica takes over, and all goes on."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from sonar.database.base import DatabaseWrapper
from sonar.sandbox import embedded, processes
from sonar.settings import databases
from tests import template
from tests.storage.workers import BEAT, worker
from tests.waiting import wait_for

pytestmark = pytest.mark.long

PLANNED = "SELECT seen_at FROM sonar_signoflife WHERE name = 'plan' AND seen_at > %s"
LONGEST_SECONDS = 90


class Pair:
    """A PostgreSQL and a hot standby of it, each at a socket in a directory of its own."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self.place = place
        self.sockets = [stack.enter_context(embedded.socket_directory()) for _ in range(2)]
        template.copy_to(place / "primary")
        self._start(stack, 0, "primary")
        standby = place / "standby"
        copy = [embedded.postgres_binary("pg_basebackup"), "-D", str(standby), "-U", "sonar"]
        copy += ["-h", str(self.sockets[0]), "--write-recovery-conf", "--checkpoint=fast"]
        place.chmod(0o777)
        subprocess.run(embedded.as_database_user(copy), check=True, env=processes.plain())
        self._start(stack, 1, "standby")

    def _start(self, stack: ExitStack, number: int, name: str) -> None:
        log = self.place / f"{name}.log"
        stack.enter_context(embedded.postgres(self.place / name, self.sockets[number], log))

    def url(self, *numbers: int, more: str = "") -> str:
        hosts = ",".join(quote(str(self.sockets[number]), safe="") for number in numbers)
        return f"postgresql://sonar@{hosts}/{template.NAME}{more}"

    @property
    def both(self) -> str:
        return self.url(0, 1, more="?target_session_attrs=read-write")

    def fail_over(self) -> None:
        """Let the primary die without a word, and the other one take its place."""
        pid = int((self.place / "primary" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        with psycopg.connect(self.url(1), autocommit=True) as session:
            session.execute("SELECT pg_promote(true, 60)")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(tmp_path, stack)


def planned_after(pair: Pair, moment: datetime) -> bool:
    try:
        with psycopg.connect(pair.both) as session:
            return session.execute(PLANNED, [moment]).fetchone() is not None
    except psycopg.OperationalError:
        return False


def now(pair: Pair) -> datetime:
    with psycopg.connect(pair.both) as session:
        return session.execute("SELECT clock_timestamp()").fetchone()[0]  # type: ignore[index]


def test_beat_workers_and_the_pool_of_the_web_go_on_after_a_failover(
    pair: Pair, tmp_path: Path
) -> None:
    found = databases.database("DATABASE_URL", pair.both, 2, {}, transaction_pool=False)
    web = DatabaseWrapper({"TIME_ZONE": None, "CONN_MAX_AGE": 0, "AUTOCOMMIT": True} | found, "web")
    env = os.environ | {"DATABASE_URL": pair.both, "SONAR_PLAN_SECONDS": "1"}
    beat = [*BEAT, "--schedule", str(tmp_path / "schedule")]
    log = tmp_path / "celery.log"
    running = [processes.start(each, log, env) for each in (worker("control", 2), beat)]
    try:
        began = now(pair)
        assert wait_for(lambda: planned_after(pair, began), LONGEST_SECONDS), processes.tail(log)
        before = place_of(web)
        pair.fail_over()
        died = now(pair)
        assert wait_for(lambda: planned_after(pair, died), LONGEST_SECONDS), processes.tail(log)
        assert place_of(web) != before
        assert [process.poll() for process in running] == [None, None]
    finally:
        web.close_pool()
        processes.stop_together(running)


def place_of(web: DatabaseWrapper) -> str:
    """Return where the server listens that a connection of the pool leads to."""
    assert web.pool
    web.pool.open()
    with web.pool.connection() as session:
        (place,) = session.execute("SHOW unix_socket_directories").fetchone() or ("",)
    return str(place)
