"""`make containers`: docker-compose.yml as it is written, on a real engine (docs/containers.md).

Each step says what it saw and how long that took. Whatever happens, the containers, networks and
volumes of the run go in the end, and the engine that it started. SONAR_CONTAINERS names the
directory that keeps the images for the next run.
"""

import os
import signal
import ssl
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_urlsafe

from tests.containers import failover, images, storage
from tests.containers.compose import SERVICES, Compose, until
from tests.containers.engine import Engine
from tests.containers.older import oldest, take_out
from tests.ports import free_port

PLACE = Path(os.environ.get("SONAR_CONTAINERS") or "/var/tmp/sonar-containers")
# Bytes that an image may have.
LIMITS = {"sonar-web": 250_000_000, "sonar-worker": 400_000_000}
WITH_PULSE = ("worker", "control", "cleanup", "beat")
LINKS = "/api/v1/links/?window=1h&size=small"
CELLS = "matrix/?window=24h&size=small&format=csv"
RESULTS = "transfers/?window=24h&format=csv"
OLDER = "0030"
BOTH = {"A_DATADISK to B_DATADISK", "B_DATADISK to A_DATADISK"}
# Of each result, what every version has.
KEPT = "SELECT id, state, started_at, seconds, bytes FROM sonar_transfer ORDER BY id"
TOOLS = ("--profile=tools",)
# Of the image: it writes backups.
USER = 1000


@contextmanager
def step(what: str) -> Iterator[None]:
    began = time.monotonic()
    print(f"{what} ...", flush=True)
    yield
    print(f"{what}: {time.monotonic() - began:.1f} s", flush=True)


def build(compose: Compose) -> None:
    """Build the images of all roles; RuntimeError for one that is too large."""
    compose.run("build", "web", "worker")
    compose.run(*TOOLS, "build", "tools")
    for name, limit in LIMITS.items():
        size = int(compose.engine.run("image", "inspect", "-f", "{{.Size}}", f"{name}:0.5"))
        print(f"  {name}: {size / 1e6:.1f} MB, of {limit / 1e6:.0f} MB")
        if size >= limit:
            raise RuntimeError(f"{name} is too large.")


def come_up(compose: Compose, *profiles: str) -> None:
    compose.run(*(f"--profile={name}" for name in profiles), "up", "--detach", "--no-build")
    until(compose.are_healthy, "all containers are healthy", 180)


def measured(compose: Compose) -> set[str]:
    """Return the links that were measured and verified, as the database has them."""
    found = compose.sql(
        "SELECT DISTINCT source.name || ' to ' || destination.name FROM sonar_transfer "
        "JOIN sonar_endpoint source ON source.id = source_id "
        "JOIN sonar_endpoint destination ON destination.id = destination_id WHERE state = 'done'"
    )
    return set(found.splitlines())


def measure(compose: Compose) -> None:
    """Load a registry and wait for results of both directions."""
    print("  " + compose.manage("load_registry", "-", stdin=storage.REGISTRY).replace("\n", "; "))
    until(lambda: measured(compose) == BOTH, "both links are measured", 180)


def through_tls(compose: Compose, port: int) -> None:
    """Ask for the links and a report through the proxy, with the authority that it made."""
    (container,) = compose.containers("proxy")
    root = "/data/caddy/pki/authorities/local/root.crt"
    trusted = ssl.create_default_context(cadata=compose.engine.run("exec", container, "cat", root))
    with urllib.request.urlopen(f"https://localhost:{port}{LINKS}", context=trusted) as answer:
        body = answer.read().decode()
    if "A_DATADISK" not in body or "Strict-Transport-Security" not in answer.headers:
        raise RuntimeError(f"The proxy gave no links, or not by https: {body[:200]}")
    week = f"{datetime.now(UTC) - timedelta(weeks=1):/api/v1/reports/%G-W%V/?format=pdf}"
    with urllib.request.urlopen(f"https://localhost:{port}{week}", context=trusted) as answer:
        paper = answer.read()
    if not paper.startswith(b"%PDF-"):
        raise RuntimeError(f"{week} gave no PDF: {paper[:200]!r}")
    print(f"  the links, and a report of {len(paper) / 1e3:.0f} kB as PDF")


def scale(compose: Compose, workers: int) -> None:
    compose.run("up", "--detach", "--no-build", "--no-recreate", "--scale", f"worker={workers}")
    living = (
        "SELECT count(*) FROM sonar_signoflife WHERE name LIKE 'transfers@%' "
        "AND seen_at > now() - interval '20 s'"
    )
    until(lambda: compose.sql(living) == str(workers), f"{workers} workers live", 90)


def kill_each(compose: Compose) -> None:
    """Kill the first process of each container: the engine starts it again."""
    for service in SERVICES:
        container = compose.containers(service)[0]
        before = compose.first_process(container)
        os.kill(before, signal.SIGKILL)
        until(lambda c=container, b=before: compose.first_process(c) not in (0, b), service)
        seconds = until(compose.are_healthy, f"all are healthy after {service} was killed", 120)
        print(f"  {service} killed: all healthy after {seconds:.0f} s")


def stop_each(compose: Compose) -> None:
    """Stop what has a pulse, and the pages: they become unhealthy, and healthy again."""
    for service in (*WITH_PULSE, "web"):
        container = compose.containers(service)[0]
        process = compose.first_process(container)
        os.kill(process, signal.SIGSTOP)
        try:
            seconds = until(
                lambda s=service: "running unhealthy" in compose.health(s), f"{service} hangs"
            )
        finally:
            os.kill(process, signal.SIGCONT)
        until(lambda s=service: compose.are_healthy(s), f"{service} goes on")
        print(f"  {service} stopped: unhealthy after {seconds:.0f} s")


def restart_engine(compose: Compose) -> None:
    if not compose.engine.restart():
        print("  not done: the engine is not one of this run")
        return
    until(compose.are_healthy, "all are healthy after the engine was restarted", 120)


def matrix(compose: Compose) -> list[str]:
    """Return the cells of the matrix and all results, as the pages' API writes them."""
    return [compose.get(f"/api/v1/{path}") for path in (CELLS, RESULTS)]


def move_to(first: Compose, second: Compose) -> None:
    """Bring an installation that an older version made up to date, then the first one's rows."""
    second.run("up", "--detach", "--no-build", "postgres", "redis")
    until(lambda: second.are_healthy("postgres", "redis"), "its database is there")
    second.run("run", "--rm", "migrate", "python", "manage.py", "migrate", "sonar", OLDER)
    come_up(second)
    print(f"  a database of migration {OLDER} was brought up to date")
    first.run("stop", "worker", "control", "cleanup", "beat")
    second.run("stop", "web", "worker", "control", "cleanup", "beat")
    command = (*TOOLS, "run", "--rm", "-T", "tools")
    first.run(*command, "backup", "--force", "/backup/first.backup")
    second.run(*command, "restore", "--replace", "--yes", "/backup/first.backup")
    second.run("start", "web")
    until(lambda: second.are_healthy("web"), "the second's pages answer")
    if matrix(first) != matrix(second):
        raise RuntimeError("The second installation does not give the same matrix and results.")
    lines = matrix(second)[1].count("\n") - 1
    print(f"  both give the same matrix and the same {lines} results, byte by byte")


def measured_by_older(place: Path, older: Compose) -> str:
    """Start an older version as its own file says, and let it measure; return its results."""
    first = Compose(older.engine, older.project, older.environment, place)
    first.run("up", "--detach", "--build")
    storage.start(first)
    until(lambda: responds(first), "its tables are there", 180)
    first.manage("load_registry", "-", stdin=storage.REGISTRY)
    until(lambda: measured(first) == BOTH, "both links are measured", 180)
    first.run("stop", "beat", "control", "worker")
    results = first.sql(KEPT)
    first.run("stop")
    return results


def responds(compose: Compose) -> bool:
    try:
        return compose.sql(KEPT) == ""
    except RuntimeError:
        return False


def upgrade(commit: str, older: Compose) -> None:
    """Let today's images go on with the volumes of an older version, and show its results."""
    results = measured_by_older(take_out(commit, PLACE), older)
    come_up(older)
    now = set(older.sql(KEPT).splitlines())
    shown = older.get(f"/api/v1/{RESULTS}")
    ids = [line.partition("|")[0] for line in results.splitlines()]
    if missing := [one for one in ids if one not in shown] or set(results.splitlines()) - now:
        raise RuntimeError(f"Results of {commit[:8]} are gone, or are others: {missing}")
    until(lambda: len(older.sql(KEPT).splitlines()) > len(now), "it goes on measuring")
    print(f"  {commit[:8]}: its {len(ids)} results are kept and shown, and new ones follow")


def place_of_backups() -> str:
    place = PLACE / "backup"
    place.mkdir(exist_ok=True)
    os.chown(place, USER, USER)
    return str(place)


def run(engine: Engine, port: int) -> None:
    tls = {"SONAR_HTTPS": "true", "SONAR_PROXIES": "1", "SONAR_HTTPS_LISTEN": f"127.0.0.1:{port}"}
    backups = {"SONAR_BACKUP": place_of_backups()}
    tls |= {"SONAR_HTTP_LISTEN": f"127.0.0.1:{free_port()}", "SONAR_PLAN_SECONDS": "2"}
    first = Compose(engine, "sonar-try-1", tls | backups | {"SONAR_PORT": str(free_port())})
    second = Compose(engine, "sonar-try-2", backups | {"SONAR_PORT": str(free_port())})
    keys = {name: token_urlsafe(50) for name in ("SONAR_SECRET_KEY", "POSTGRES_PASSWORD")}
    # An older version, which the third one begins as, calls the port PORT.
    ports = dict.fromkeys(("SONAR_PORT", "PORT"), str(free_port()))
    third = Compose(engine, "sonar-try-3", keys | ports)
    try:
        with step("Images of Debian's packages"):
            images.make_all(engine, PLACE)
        with step("Building"):
            build(first)
        with step("Starting"):
            come_up(first, "proxy")
        with step("Measuring two links between XRootD servers"):
            storage.start(first)
            measure(first)
        with step("Asking through the proxy, by TLS"):
            through_tls(first, port)
        with step("Three workers"):
            scale(first, 3)
        with step("Killing each container"):
            kill_each(first)
        with step("Stopping each process"):
            stop_each(first)
        with step("Restarting the engine"):
            restart_engine(first)
        with step("Moving to a second installation"):
            move_to(first, second)
            put_away(first, second)
        with step("Upgrading the volumes of the oldest version"):
            if commit := oldest():
                upgrade(commit, third)
            else:
                print("  not done: this is no whole clone")
                come_up(third)
                storage.start(third)
                measure(third)
        with step("Failing PostgreSQL over"):
            failover.prepare(third)
            failover.fail_over(third)
    finally:
        put_away(first, second, third)


def put_away(*installations: Compose) -> None:
    storage.remove(installations[0])
    for one in installations:
        one.down()


def leave(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    signal.signal(signal.SIGTERM, leave)
    PLACE.mkdir(parents=True, exist_ok=True)
    engine = Engine(PLACE)
    try:
        engine.start()
        run(engine, free_port())
    except (RuntimeError, OSError) as error:
        sys.exit(f"{error}")
    finally:
        engine.stop()


if __name__ == "__main__":
    main()
