"""PostgreSQL in two containers: the first is killed, the second takes over, and Sonar goes on."""

import time
from functools import partial
from pathlib import Path

from tests.containers.compose import Compose, until

STANDBY = Path(__file__).with_name("standby.yml")
LET_IN = "echo host replication all all scram-sha-256 >>/var/lib/postgresql/data/pg_hba.conf"
FOLLOWING = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
PLANNED = "SELECT seen_at FROM sonar_signoflife WHERE name = 'planner'"
RESULTS = "SELECT id FROM sonar_transfer ORDER BY id"
LONGEST_SECONDS = 120.0


def prepare(compose: Compose) -> None:
    """Start the second one, and all processes anew with the addresses of both."""
    compose.run("exec", "-T", "postgres", "bash", "-c", LET_IN)
    compose.sql("SELECT pg_reload_conf()")
    compose.add(STANDBY)
    compose.run("up", "--detach", "--no-build")
    until(lambda: compose.sql(FOLLOWING) == "1", "the second PostgreSQL follows the first")
    until(compose.are_healthy, "all are healthy with both")


def fail_over(compose: Compose) -> None:
    """Kill the first and promote the second; say how long it took until all of Sonar went on."""
    second = partial(compose.sql, service="standby")
    before = set(second(RESULTS).split())
    (first,) = compose.containers("postgres")
    compose.engine.run("kill", first)
    began = time.monotonic()
    second("SELECT pg_promote(true, 60)")
    planned, results = second(PLANNED), set(second(RESULTS).split())
    if before - results:
        raise RuntimeError("Results that the second one had are gone.")
    print(f"  the second one takes over: {time.monotonic() - began:.0f} s after the first's death")
    for what, done in (
        ("a plan", lambda: second(PLANNED) > planned),
        ("a new result", lambda: set(second(RESULTS).split()) - results),
        ("/readyz says that all works", compose.is_ready),
    ):
        until(done, what, LONGEST_SECONDS)
        print(
            f"  {what}: {time.monotonic() - began:.0f} s after it; {len(results)} results are kept"
        )
