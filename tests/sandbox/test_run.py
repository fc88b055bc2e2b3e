"""`make run` from start to stop: what a newcomer sees, measured on the real thing."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import psycopg
import pytest
import requests
from django.db import OperationalError
from rich.console import Console
from scipy.stats import spearmanr

from sonar import settings as project
from sonar.sandbox import embedded, past_store, processes, progress
from sonar.sandbox import run as sandbox
from sonar.sandbox.run import PAST, Children, StopRequested, main, start_past, why_it_ends
from sonar.sandbox.topology import ALWAYS_FAILS, load_links
from tests.matrix.responses import words
from tests.ports import free_port
from tests.waiting import wait_for

PROJECT = Path(__file__).resolve().parents[2]
LINKS, ENOUGH = 342, 320
FILL_SECONDS = 300
# Each look asks a machine for answers that is at work already.
LOOK_SECONDS = 2
# From Ctrl-C to the end, whatever endpoints do.
STOP_SECONDS = 15
LOADED = 120  # what a loaded machine adds
CLASSES = ("small", "medium", "large")
# Of tests of all links with a published rate: each takes half a minute, on a busy machine a minute.
ROUNDS = 20
# Where a newcomer looks, what happened on the grid before the first start.
STORIES = {
    "/": r"TAIWAN\S* receives at 0\.\d+×",
    "/?compare=week": r"\d\d (?:links )?slower ?, \d\d faster",
    "/events/": "Cooling failed in the machine room",
    "/causes/": r"TAIWAN\S* receives at (?:\d\d %|0\.\d+×)",
    "/causes/?compare=month": r"TAIWAN\S* receives at \d\d % of its 30-day rate",
    "/sites/TRIUMF-LCG2/": "New network cards in the pool nodes",
    "/links/UKI-SOUTHGRID-RALPP_DATADISK/NDGF-T1_DATADISK/": r"uns at 0\.\d+× .*since",
}
# Of the log-in those that may be set alone; they all go where its secret goes.
OF_THE_WEB = {"SONAR_SECRET_KEY": "planted-" * 8, "SONAR_OIDC_NAME": "Planted"}


class Run:
    """One `make run`: its home, its address, its output."""

    def __init__(self, home: Path, port: int | str, **settings: str) -> None:
        self.home = home
        self.url = f"http://127.0.0.1:{port}"
        self.output = Path(tempfile.mkdtemp(prefix="sonar-run-")) / "out"
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        self.env = kept | {"SONAR_HOME": str(home), "SONAR_PORT": str(port)} | settings
        with self.output.open("wb") as output:
            told = {"stdout": output, "stderr": subprocess.STDOUT}
            launch = [sys.executable, "-m", "sonar.sandbox"]
            self.process = subprocess.Popen(launch, cwd=PROJECT, env=self.env, **told)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.stop(signal.SIGTERM)
        shutil.rmtree(self.output.parent)

    @property
    def said(self) -> str:
        return self.output.read_text()

    def wait_for(self, what: str, done: Callable[[], bool], seconds: float) -> float:
        """Wait until something is so; return after how many seconds it was."""
        began = time.monotonic()
        while not done():
            assert self.process.poll() is None, f"ended while waiting for {what}:\n{self.said}"
            assert time.monotonic() - began < seconds, f"waited too long for {what}:\n{self.said}"
            time.sleep(LOOK_SECONDS)
        return time.monotonic() - began

    def answers(self) -> bool:
        try:
            return requests.get(self.url, timeout=30).ok
        except (requests.ConnectionError, requests.Timeout):
            return False

    def matrix(self, size: str, stat: str = "mean") -> dict[str, Any]:
        """Return what is measured, without what is made up."""
        return self.get("/api/v1/matrix/", size=size, stat=stat, mover="!fake").json()

    def get(self, path: str, **parameters: str) -> Any:
        answer = requests.get(self.url + path, parameters, timeout=120)
        answer.raise_for_status()
        return answer

    def words(self, path: str) -> str:
        return words(self.get(path).text)

    def says(self, path: str, pattern: str) -> bool:
        return re.search(pattern, self.words(path)) is not None

    def failing(self, link: tuple[str, str]) -> int:
        """Count the tests of a link that really failed."""
        ends = {"source_site": link[0], "destination_site": link[1], "mover": "!fake"}
        matrix = self.get("/api/v1/matrix/", **ends).json()
        return sum(map(sum, matrix["cells"]["failed"]))

    def has_past(self) -> bool:
        """Say whether the made-up past is stored and judged."""
        log = self.home / "log" / "past.log"
        return log.exists() and " days evaluated" in log.read_text()

    def has_ended(self, test: str) -> bool:
        return bool(self.get(test.removeprefix(self.url)).json()["ended"])

    def measured(self, size: str) -> int:
        return sum(count > 0 for row in self.matrix(size)["cells"]["ok"] for count in row if count)

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )

    def stop(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        return self.process.wait(STOP_SECONDS + LOADED)

    def processes(self) -> list[str]:
        """The command lines of every process that this run has left."""
        found = []
        for process in psutil.process_iter(["cmdline", "environ"]):
            info = process.info
            inherited = (info["environ"] or {}).get("SONAR_HOME") == str(self.home)
            if inherited or str(self.home) in " ".join(info["cmdline"] or []):
                found.append(" ".join(info["cmdline"] or []))
        return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run") / "home"


@pytest.fixture(scope="module")
def run(home: Path) -> Iterator[Run]:
    with Run(home, free_port(), **OF_THE_WEB) as started:
        yield started


@pytest.fixture(scope="module")
def operator(run: Run) -> Iterator[requests.Session]:
    """Return a session with a token of the administrator."""
    run.wait_for("the page", run.answers, 300)
    done = run.manage("token", "create", "admin", "--scopes=operate", "--name=tests", "--days=1")
    assert done.returncode == 0, done.stderr
    with requests.Session() as session:
        session.headers["Authorization"] = f"Token {done.stdout.strip()}"
        yield session


@pytest.mark.long
def test_the_page_answers_and_the_matrix_fills(run: Run, operator: requests.Session):
    """All classes begin; then the mesh is asked for one alone, as those of others take as long."""
    run.wait_for("tests", lambda: all(map(run.measured, CLASSES)), FILL_SECONDS)
    asked = {"every": {"large": "10m"}}
    assert operator.patch(f"{run.url}/api/v1/meshes/sandbox/", json=asked, timeout=120).ok
    run.wait_for("a full matrix", lambda: "The matrix is full" in run.said, FILL_SECONDS)
    assert run.measured("large") >= ENOUGH
    assert run.matrix("large")["simulated"] is True
    assert "imulated" in run.get("/").text


@pytest.mark.long
def test_the_past_is_made_up_beside_the_first_tests(run: Run):
    """It is half a minute's work for a processor, which many share while other tests run."""
    run.wait_for("the page", run.answers, 300)
    run.wait_for("the past", run.has_past, 390)


@pytest.mark.long
def test_a_newcomer_sees_stories_on_all_pages(run: Run):
    """Those that go on are measured, too."""
    run.wait_for("the past", run.has_past, 390)
    for path, saying in STORIES.items():
        run.wait_for(f"{saying} on {path}", partial(run.says, path, saying), 300)
        said = run.words(path)
        assert "are demo data, which only show what weeks of tests look like." in said, said
    assert "mix tests with" not in run.words("/?size=large")
    assert run.failing(ALWAYS_FAILS) > 0


@pytest.mark.long
def test_measured_rates_are_those_that_were_published(run: Run, operator: requests.Session):
    """A machine that is at something else makes tests slow and never fast: the best of each counts.

    Their links are tested again until that is so, not when it is their turn minutes later.
    """
    run.wait_for("a full matrix", lambda: "The matrix is full" in run.said, 300)
    for _ in range(ROUNDS):
        if likeness(run) > 0.9:
            break
        for test in [order(operator, run, *link) for link in published_rates()]:
            run.wait_for("the tests ordered", partial(run.has_ended, test), 300)
    assert likeness(run) > 0.9


def order(operator: requests.Session, run: Run, source: str, destination: str) -> str:
    """Order a large test of a link; return where it says how far it is."""
    asked = {"source": source, "destination": destination, "sizes": ["large"]}
    answer = operator.post(f"{run.url}/api/v1/probes/", json=asked, timeout=120)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["probes"][0]["url"])


def published_rates() -> dict[tuple[str, str], float]:
    return {
        (f"{link.source}_DATADISK", f"{link.destination}_DATADISK"): link.large_mb_s
        for link in load_links()
        if link.basis == "published"
    }


def likeness(run: Run) -> float:
    """Return the rank correlation of the rates that are published and those of the matrix."""
    matrix = run.matrix("large", "max")
    sources, destinations = (
        {one["name"]: place for place, one in enumerate(matrix[side])}
        for side in ("sources", "destinations")
    )
    measured = {
        (source, destination): matrix["cells"]["value"][sources[source]][destinations[destination]]
        for source, destination in published_rates()
    }
    pairs = [(rate, measured[link]) for link, rate in published_rates().items() if measured[link]]
    assert len(pairs) >= 85
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)


@pytest.mark.long
def test_secrets_of_the_web_are_in_no_other_environment(run: Run):
    run.wait_for("the page", run.answers, 300)
    found = {}
    for process in psutil.Process(run.process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # a backend of PostgreSQL whose client has gone
            found[" ".join(process.cmdline())] = process.environ()
    having = {command for command, env in found.items() if OF_THE_WEB.keys() & env.keys()}
    assert having == {command for command in found if "gunicorn" in command}
    having = {command for command, env in found.items() if "DATABASE_URL" in env}
    users = ("gunicorn", "-m sonar ", "sonar.sandbox.make_past")
    assert having == {command for command in found if any(one in command for one in users)}
    programs = (
        "postgres",
        "redis",
        "sonar.sandbox.nodes",
        "sonar worker",
        "sonar beat",
        "gunicorn",
    )
    assert all(any(one in command for command in found) for one in programs)


@pytest.mark.long
def test_static_files_are_served_compressed_and_cacheable(run: Run):
    pages = [requests.get(run.url + path, timeout=120) for path in ("/", "/api/v1/docs/")]
    pages.append(logged_in_to_admin(run))
    assert all(page.ok for page in pages)
    files = set(re.findall(r'(?:src|href)="([^"]+\.(?:js|css))"', "".join(p.text for p in pages)))
    for part in ("plotly", "swagger", "css/sonar", "css/admin"):
        assert any(part in path for path in files), part
    for path, encoding in product(files, ("gzip", "br")):
        answer = requests.get(
            run.url + path, headers={"Accept-Encoding": encoding}, timeout=120, stream=True
        )
        # The smallest ones are sent as they are.
        assert answer.headers.get("Content-Encoding", encoding) == encoding
        assert "immutable" in answer.headers["Cache-Control"]


@pytest.mark.long
def test_a_command_in_another_terminal_finds_the_services(run: Run):
    done = run.manage("probe", "UKI-LT2-QMUL_DATADISK", "RAL-LCG2_DATADISK", "small")
    assert done.returncode == 0, done.stderr
    assert "MB/s (http-tpc pull, 1 stream, IPv4, simulated link)" in done.stdout


@pytest.mark.long
def test_the_administrator_can_log_in_with_the_password_of_the_file(run: Run):
    path = run.home / "admin-password"
    assert path.read_text().strip() not in run.said
    assert str(path) in run.said
    assert path.stat().st_mode & 0o077 == 0
    assert "Administration" in logged_in_to_admin(run).text


def logged_in_to_admin(run: Run) -> requests.Response:
    """Log in with the password of the file, to the first page of the administration."""
    password = (run.home / "admin-password").read_text().strip()
    with requests.Session() as session:
        url = f"{run.url}/admin/login/"
        session.get(url, timeout=120)
        form = {"username": "admin", "password": password, "next": "/admin/"}
        form["csrfmiddlewaretoken"] = session.cookies["csrftoken"]
        return session.post(url, form, headers={"Referer": url}, timeout=120)


@pytest.mark.long
def test_a_second_sonar_in_the_same_home_is_refused(run: Run):
    with Run(run.home, free_port()) as second:
        assert second.process.wait(180) == 1
        assert second.said.startswith(f"Sonar already runs in {run.home}")


def test_what_keeps_it_from_starting_is_one_sentence(tmp_path: Path):
    (tmp_path / "file").write_text("")
    home, no_home = tmp_path / "home", tmp_path / "file" / "home"
    no_services = {"DATABASE_URL": "postgresql://sonar@127.0.0.1:1/none", "REDIS_URL": "redis://no"}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        busy = listener.getsockname()[1]
        for place, port, services, sentence in (
            (
                home,
                busy,
                {},
                f"Sonar cannot listen on port {busy} (Address already in use). Choose another "
                "port, for example `make run SONAR_PORT=8042`.",
            ),
            (
                no_home,
                free_port(),
                {},
                f"Sonar cannot store its data in {no_home} (Not a directory). Set SONAR_HOME.",
            ),
            (home, "http", {}, "SONAR_PORT='http' is not a whole number of 1 or more."),
            (home, free_port(), no_services, "The database is not responding: connection failed"),
        ):
            with Run(place, port, **services) as run:
                assert run.process.wait(180) == 1
                assert "Traceback" not in run.said
                said = run.said.strip()
                assert sentence in said if services else sentence == said


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_either_signal_ends_a_run_well(how: signal.Signals, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sonar.sandbox.run.run", lambda _console: signal.raise_signal(how))
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(how, lambda *_: pytest.fail("nobody listens to the signal"))
    try:
        assert main() == 0
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@pytest.mark.parametrize(
    ("url", "below", "led"),
    [
        ("", None, "http://127.0.0.1:{}"),
        ("https://sonar.example.org", None, ""),
        ("", "/sonar", ""),
    ],
)
def test_messages_lead_to_the_pages_that_it_serves(
    url: str, below: str | None, led: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    port = free_port()
    own = {"SONAR_HOME": tmp_path, "SONAR_PORT": port, "SONAR_URL": url, "FORCE_SCRIPT_NAME": below}
    for name, value in own.items():
        monkeypatch.setattr(project, name, value)
    monkeypatch.setenv("SONAR_URL", "")
    monkeypatch.setattr("sonar.sandbox.run.start_services", Mock(side_effect=StopRequested))
    with pytest.raises(StopRequested):
        sandbox.run(Console(file=io.StringIO()))
    assert os.environ["SONAR_URL"] == led.format(port)


SILENT = ("SILENT0", "SILENT1", "SILENT2")
CAPS = {"inbound_cap": 2, "outbound_cap": 2}
HANGING = 6
"""So many of their tests are under way when something ends."""
UNDER_WAY = """
SELECT probe.id FROM sonar_probe probe
JOIN sonar_endpoint endpoint ON endpoint.id IN (source_id, destination_id)
WHERE probe.state = 'running' AND endpoint.name = ANY (%s)
"""


def hanging(run: Run) -> set[Any]:
    """Return the tests under way whose endpoints never answer."""
    services = json.loads((run.home / "services.json").read_text())
    with psycopg.connect(services["database_url"]) as connection:
        return {row[0] for row in connection.execute(UNDER_WAY, [list(SILENT)])}


def wait_until_tests_hang(run: Run) -> None:
    run.wait_for("tests that hang", lambda: len(hanging(run)) >= HANGING, 180)


@dataclass(frozen=True)
class Stopped:
    """How a run ended, what it left and had said, and which of its tests hung at that time."""

    code: int
    left: list[str]
    said: str
    hung: set[Any]
    copies: dict[bool, Path]
    """Its home as it was then, twice."""


@pytest.fixture(scope="module")
def stopped(
    run: Run, operator: requests.Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stopped]:
    """Stop the run while tests hang at endpoints that take connections and never answer."""
    endpoints = f"{run.url}/api/v1/endpoints/"
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        for name in SILENT:
            added = {"name": name, "site": "RAL-LCG2", "base_url": f"{url}/{name}"} | CAPS
            assert operator.post(endpoints, json=added, timeout=120).status_code == 201
        node = f"{endpoints}RAL-LCG2_DATADISK/"
        assert operator.patch(node, json={"inbound_cap": 3}, timeout=120).ok
        wait_until_tests_hang(run)
        hung = hanging(run)
        code, left = run.stop(signal.SIGINT), run.processes()
        copies = {stopping: tmp_path_factory.mktemp("copy") / "home" for stopping in (False, True)}
        for copy in copies.values():
            # With their owners: PostgreSQL's directory is its own user's.
            subprocess.run(["cp", "-a", run.home, copy], check=True)
        yield Stopped(code, left, run.said, hung, copies)


@pytest.mark.long
def test_it_stops_in_time_though_endpoints_never_answer_and_loses_nothing(
    stopped: Stopped, home: Path
):
    assert (stopped.code, stopped.left) == (0, [])
    log = (home / "log" / "worker.log").read_text()
    assert "Traceback" not in log
    with (
        embedded.socket_directory() as sockets,
        embedded.postgres(home / "postgres", sockets, home / "again.log") as url,
        psycopg.connect(url) as connection,
    ):
        states = dict(connection.execute("SELECT id, state FROM sonar_probe").fetchall())
        lost = connection.execute("SELECT count(*) FROM sonar_transfer WHERE state = 'lost'")
        assert lost.fetchone() == (0,)
    assert {states.get(test) for test in stopped.hung} == {"queued"}
    assert "running" not in states.values()


@pytest.mark.long
@pytest.mark.parametrize("stopping", [False, True])
def test_nothing_outlives_a_killed_start_though_no_endpoint_answers(
    stopped: Stopped, stopping: bool
):
    """Also when it was told to stop before: a second signal must not keep workers."""
    soon = {"SONAR_RECOVERY_SECONDS": "1", "SONAR_RESEND_SECONDS": "5"}
    with Run(stopped.copies[stopping], free_port(), **soon) as killed:
        killed.wait_for("the pages", lambda: "Sonar is at" in killed.said, 300)
        wait_until_tests_hang(killed)
        if stopping:
            killed.process.send_signal(signal.SIGTERM)
            killed.wait_for("the stop", lambda: "Stopping" in killed.said, 180)
        killed.process.kill()
        killed.process.wait()
        wait_for(lambda: not killed.processes(), STOP_SECONDS + LOADED)
        assert killed.processes() == []


@pytest.mark.long
def test_it_starts_again_with_its_data_and_says_at_once_why_it_ends(stopped: Stopped, home: Path):
    """Where it ends by itself: its PostgreSQL is gone."""
    assert "Generating demo results" in stopped.said
    password = (home / "admin-password").read_text()
    with Run(home, free_port()) as again:
        again.wait_for("the workers", lambda: "Sonar is at" in again.said, 180)
        assert again.measured("large") >= ENOUGH
        assert "Generating demo results" not in again.said
        assert "static files" not in again.said  # to compress them anew takes seconds
        assert (home / "admin-password").read_text() == password
        endpoints = f"{again.url}/api/v1/endpoints/"
        assert requests.get(f"{endpoints}SILENT0/", timeout=120).json()["simulated"] is False
        assert (
            requests.get(f"{endpoints}RAL-LCG2_DATADISK/", timeout=120).json()["inbound_cap"] == 3
        )
        os.kill(int((home / "postgres" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        assert again.process.wait(STOP_SECONDS + LOADED) == 1
        log = home / "log" / "postgres.log"
        why = f"PostgreSQL ended unexpectedly (SIGKILL). Last lines of its log, {log}:"
        assert again.said.index(why) < again.said.index("Stopping")
        assert "Traceback" not in again.said
        assert again.processes() == []


def test_a_missing_server_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(embedded.shutil, "which", lambda *args, **kwargs: None)
    with pytest.raises(
        processes.StartError,
        match=r"^redis-server is neither .* set REDIS_URL to a running server\.$",
    ):
        embedded.redis_binary()
    monkeypatch.setattr(embedded, "find_spec", lambda name: None)
    with pytest.raises(
        processes.StartError, match=r"no PostgreSQL .* Set DATABASE_URL to a running server\.$"
    ):
        embedded.postgres_binary("postgres")


def test_a_first_start_that_is_broken_off_does_not_spoil_the_next(tmp_path: Path, monkeypatch):
    """Ctrl-C while the database is made, as the launcher sees it."""

    def broken_off(command: list[str], **_: object) -> None:
        directory = Path(command[command.index("-D") + 1])
        (directory / "PG_VERSION").write_text("16")
        raise KeyboardInterrupt

    tmp_path.chmod(0o755)
    data = tmp_path / "postgres"
    with monkeypatch.context() as patched:
        patched.setattr(embedded.subprocess, "run", broken_off)
        with pytest.raises(KeyboardInterrupt):
            embedded.make_cluster(data)
    assert not data.exists()
    with (
        embedded.socket_directory() as sockets,
        embedded.postgres(data, sockets, tmp_path / "log") as url,
    ):
        assert embedded.database_answers(url)


@pytest.fixture
def children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Children:
    """The processes of a run in this process, whose signals stay as they are."""
    monkeypatch.setattr("sonar.sandbox.run._ignore_signals", lambda: None)
    return Children(tmp_path, Console(file=io.StringIO(), width=200))


def ended(code: object, log: Path) -> subprocess.Popen[bytes]:
    """Return a process that has ended so."""
    process = processes.start([sys.executable, "-c", f"raise SystemExit({code!r})"], log)
    process.wait(180)
    return process


def test_a_process_that_ends_by_itself_is_named_with_its_log_and_first_who_others_need(
    children: Children, tmp_path: Path
):
    said = io.StringIO()
    for name in ("Redis", "beat"):
        log = tmp_path / f"{name}.log"
        children.watch(name, ended(f"{name} full", log), log)
    with pytest.raises(processes.StartError), why_it_ends(children, Console(file=said, width=200)):
        children.check()
    assert said.getvalue() == (
        "Redis ended unexpectedly (exit code 1). "
        f"Last lines of its log, {tmp_path / 'Redis.log'}:\n"
        "Redis full\n"
    )


@pytest.mark.parametrize(
    ("wanted", "registry", "missing", "made"),
    [
        (True, "", True, True),
        (False, "", True, False),
        (True, "grid.yaml", True, False),
        (True, "", False, False),
    ],
)
def test_a_past_is_made_for_a_new_sandbox_unless_it_is_not_wanted(
    monkeypatch: pytest.MonkeyPatch, wanted: bool, registry: str, missing: bool, made: bool
):
    monkeypatch.setattr(project, "SONAR_PAST", wanted)
    monkeypatch.setattr(project, "SONAR_REGISTRY", registry)
    monkeypatch.setattr(past_store, "is_missing", lambda _now: missing)
    children, said = Mock(), io.StringIO()
    start_past(children, Console(file=said, width=200))
    assert children.start.called == ("Generating demo results" in said.getvalue()) == made


def test_a_past_may_end_once_it_is_made_and_not_before(children: Children, tmp_path: Path):
    log = tmp_path / "past.log"
    children.watch(PAST, ended(0, log), log)
    children.check()
    children.watch(PAST, ended(1, log), log)
    with pytest.raises(processes.StartError, match="past ended"):
        children.check()


def test_progress_waits_for_a_database_that_is_away_and_says_so(monkeypatch: pytest.MonkeyPatch):
    """A server that DATABASE_URL names may come back; our own, once it ended, ends the run."""

    def away(*_: object) -> None:
        raise OperationalError("terminating connection")

    monkeypatch.setattr(progress, "of_each_class", away)
    said = io.StringIO()
    assert progress.look(lambda: None, Console(file=said, width=200)) is None
    assert said.getvalue().strip() == progress.AWAY


def test_a_service_that_does_not_start_shows_its_last_words(tmp_path: Path):
    log = tmp_path / "x.log"
    with pytest.raises(processes.StartError, match=r"X did not start(?s:.*)no disk"):
        processes.wait_until(lambda: False, ended("no disk", log), "X", log)
