"""PostgreSQL with two hosts: the primary dies, its replica takes over, and all goes on."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import psycopg
import pytest

from sonar.database.base import DatabaseWrapper
from sonar.sandbox import processes
from sonar.settings import databases
from tests.engines.pair import Pair
from tests.storage.workers import BEAT, worker
from tests.waiting import wait_for

pytestmark = pytest.mark.long

PLANNED = "SELECT seen_at FROM sonar_signoflife WHERE name = 'planner' AND seen_at > %s"
LONGEST_SECONDS = 180


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
