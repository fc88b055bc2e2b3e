"""`make run`: everything that a first look at Sonar needs, started, watched and stopped."""

import importlib
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from subprocess import Popen
from types import FrameType

import django
import urllib3
from django.db import OperationalError
from django.utils import timezone
from rich.console import Console

from sonar import settings as project
from sonar.sandbox import embedded, home, processes
from sonar.sandbox.processes import StartError

SAY_EVERY_SECONDS = 2.0


@contextmanager
def step(console: Console, activity: str) -> Iterator[None]:
    """Say what begins, and every two seconds that it still goes on: nobody waits in silence."""
    console.print(f"{activity} ...")
    over, began = threading.Event(), time.monotonic()

    def say() -> None:
        while not over.wait(SAY_EVERY_SECONDS):
            console.print(f"{activity} ... {time.monotonic() - began:.0f} s")

    voice = threading.Thread(target=say, daemon=True)
    voice.start()
    try:
        yield
    finally:
        over.set()
        voice.join()


# A slow reader must not hold the end up.
WEB_STOP_SECONDS = "5"
NODES, WEB, PAST = "nodes", "web", "past"
SENDERS = ("worker", "control", "cleanup", "beat")
# Others find nothing of Sonar's.
ENVIRONMENTS = {
    **dict.fromkeys(SENDERS, processes.of_sender),
    WEB: processes.of_web,
    PAST: processes.of_sender,
}
# The sandbox's links are local: it plans often, so that the matrix fills while one watches.
SANDBOX_PLAN_SECONDS = "1"


class StopRequested(Exception):
    """Somebody pressed Ctrl-C or sent SIGTERM."""


def _request_stop(number: int, frame: FrameType | None) -> None:
    _ignore_signals()
    raise StopRequested


def _ignore_signals() -> None:
    """Let no signal, or no second one, cut the tidying short."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


class Children:
    """The processes of one run: started in order, watched together, stopped at once.

    But storage nodes last, as who stops tidies up there. PostgreSQL and Redis are only watched:
    they outlive the others, and whoever started them stops them.
    """

    def __init__(self, logs: Path, console: Console) -> None:
        self._logs = logs
        self._console = console
        self._running: dict[str, Popen[bytes]] = {}
        self._watched: dict[str, tuple[Popen[bytes], Path]] = {}

    def start(self, name: str, *arguments: str) -> Popen[bytes]:
        """Run a Python module; its output goes to the log of this name."""
        command = [sys.executable, "-m", *arguments]
        environment = ENVIRONMENTS.get(name, processes.plain)
        process = processes.start(command, self.log(name), env=environment())
        self._running[name] = process
        self.watch(name, process, self.log(name))
        return process

    def watch(self, name: str, process: Popen[bytes], log: Path) -> None:
        self._watched[name] = process, log

    def stop(self) -> None:
        """End all of them, as soon as workers have handed back what they run."""
        nodes = self._running.pop(NODES, None)
        seconds = project.SONAR_STOP_SECONDS + project.LAST_WORDS_SECONDS + 1
        with step(self._console, "Stopping"):
            processes.stop_together([*self._running.values()], seconds=seconds)
            if nodes:
                processes.stop(nodes)

    def log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def check(self) -> None:
        """Raise StartError if one of them has ended by itself, but for the past, once it is made.

        PostgreSQL and Redis come first: others may have ended because they had.
        """
        for name, (process, log) in self._watched.items():
            if process.poll() is not None and (name, process.returncode) != (PAST, 0):
                raise StartError(
                    f"{name} ended unexpectedly ({processes.how_it_ended(process)}). Last "
                    f"lines of its log, {log}:\n{processes.tail(log)}"
                )


def check_port(port: int) -> None:
    """Raise StartError if the web could not listen there."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StartError(
                f"Sonar cannot listen on port {port} ({reason}). "
                "Choose another port, for example `make run SONAR_PORT=8042`."
            ) from error


def start_services(stack: ExitStack, children: Children, place: Path, console: Console) -> None:
    """Start what DATABASE_URL and REDIS_URL do not name, and point the settings at it."""
    sockets = stack.enter_context(embedded.socket_directory())
    watch = children.watch
    if project.OWN_DATABASE:
        log = children.log("postgres")
        database = embedded.postgres(place / "postgres", sockets, log, watch=watch)
        with step(console, "Starting PostgreSQL"):
            os.environ["DATABASE_URL"] = stack.enter_context(database)
    if project.OWN_REDIS:
        log = children.log("redis")
        queue = embedded.redis_server(place / "redis", sockets, log, watch=watch)
        with step(console, "Starting Redis"):
            os.environ["REDIS_URL"] = stack.enter_context(queue)
    # Let the settings be what the environment says now, in each of their modules.
    for name in [name for name in sys.modules if name.startswith("sonar.settings.")]:
        del sys.modules[name]
    importlib.reload(project)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonar.settings")
    django.setup()


def start_workers(children: Children, place: Path) -> None:
    """Start workers for transfers, control and clean-up, and the scheduler (Celery beat)."""
    worker = ["sonar", "worker", "--pool=threads", "--loglevel=WARNING"]
    in_flight = str(project.SONAR_IN_FLIGHT)
    children.start("worker", *worker, "-Q", "transfers", "-n", "transfers@%h", "-c", in_flight)
    children.start("control", *worker, "-Q", "control", "-n", "control@%h", "-c", "3")
    children.start("cleanup", *worker, "-Q", "cleanup", "-n", "cleanup@%h", "-c", "2")
    beat = ["sonar", "beat", "--loglevel=WARNING", "--pidfile="]
    children.start("beat", *beat, "--schedule", str(place / "beat-schedule"))


def start_web(children: Children, port: int) -> str:
    """Start the web server; give its URL once the matrix is served."""
    url = f"http://127.0.0.1:{port}/"
    web = ["gunicorn", "--config", "python:sonar.gunicorn_conf", "--bind", f"127.0.0.1:{port}"]
    web += ["--graceful-timeout", WEB_STOP_SECONDS]
    process = children.start(WEB, *web)

    def answers() -> bool:
        children.check()
        try:
            return urllib3.request("GET", url, timeout=5, retries=False).status < 500
        except urllib3.exceptions.HTTPError:
            return False

    processes.wait_until(answers, process, "The web server", children.log(WEB))
    return url


def prepare(children: Children, place: Path, console: Console) -> None:
    """Make what is missing: tables, static files, the administrator, the registry."""
    from sonar.sandbox import first_start

    with step(console, "Migrating the database"):
        first_start.make_tables()
    if not home.are_laid_out():
        with step(console, "Collecting static files"):
            home.lay_out()
    if password_file := first_start.make_administrator(place):
        console.print(
            f"Administrator: {first_start.ADMINISTRATOR}; the password is in {password_file}"
        )
    if project.SONAR_REGISTRY:
        with step(console, "Loading the registry"):
            changes = first_start.load_registry_file(Path(project.SONAR_REGISTRY))
    else:
        with step(console, "Starting the storage nodes of the sandbox"):
            directory, log = place / "sandbox", children.log(NODES)
            start = [NODES, "sonar.sandbox.nodes", "--directory", str(directory)]
            begin = partial(children.start, *start)
            processes.start_noting(directory / "nodes.json", begin, "The sandbox nodes", log)
            os.environ.setdefault("SONAR_PLAN_SECONDS", SANDBOX_PLAN_SECONDS)
            changes = first_start.load_sandbox_registry(directory)
    for line in ["Registry:", *changes.splitlines(), *first_start.what_is_tested()]:
        console.print(line, markup=False)


def start_past(children: Children, console: Console) -> None:
    from sonar.sandbox import past_store

    is_wanted = project.SONAR_PAST and not project.SONAR_REGISTRY
    if is_wanted and past_store.is_missing(timezone.now()):
        children.start(PAST, "sonar.sandbox.make_past")
        console.print(
            "Generating demo results for the past five weeks as a baseline. "
            "Set SONAR_PAST=0 to skip this."
        )


@contextmanager
def why_it_ends(children: Children, console: Console) -> Iterator[None]:
    """Say why a run ends before it stops everything, which takes some seconds."""
    try:
        try:
            yield
        except OperationalError as error:
            children.check()
            why = " ".join(str(error).split())
            raise StartError(f"The database is not responding: {why}") from error
    except StartError as error:
        _ignore_signals()
        console.print(str(error), style="bold red", markup=False)
        raise


def run(console: Console) -> None:
    """Start everything, show progress, and stop everything when a signal comes or one ends."""
    place = project.SONAR_HOME
    children = Children(place / "log", console)
    with ExitStack() as stack, why_it_ends(children, console):
        home.make(place)
        stack.enter_context(home.only_one(place))
        check_port(project.SONAR_PORT)
        if not (project.SONAR_URL or project.FORCE_SCRIPT_NAME):
            # Messages lead to the pages that it serves; below a SONAR_PATH a proxy serves them.
            os.environ["SONAR_URL"] = f"http://127.0.0.1:{project.SONAR_PORT}"
        stack.callback(console.print, f"Sonar has stopped. Its data is kept in {place}.")
        start_services(stack, children, place, console)
        stack.callback(children.stop)
        prepare(children, place, console)
        stack.enter_context(home.noted_services(place, project.DATABASE_URL, project.REDIS_URL))
        # The web processes count requests together, from zero at each start.
        metrics = place / "metrics"
        shutil.rmtree(metrics, ignore_errors=True)
        metrics.mkdir()
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
        start_workers(children, place)
        with step(console, "Starting the workers and the web server"):
            url = start_web(children, project.SONAR_PORT)
        console.print(f"Sonar is at {url}   (Ctrl-C stops it; logs are in {place / 'log'})")
        start_past(children, console)
        from sonar.sandbox import progress

        progress.watch(children.check, console)


def main() -> int:
    console = Console(highlight=False, soft_wrap=True)
    signal.signal(signal.SIGTERM, _request_stop)
    signal.signal(signal.SIGINT, _request_stop)
    try:
        run(console)
    except StopRequested:
        return 0
    except StartError:
        return 1
    return 0
