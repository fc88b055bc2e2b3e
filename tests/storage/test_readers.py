"""Six readers of every page and call, beside tests that begin, run and end, and rows that come
and go: no answer is an error of the server, and no number in one is negative or missing.

With real processes. tests/test_one_moment.py finds without luck what reads twice.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count, cycle
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import requests
import yaml
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from tests import numbers
from tests.rights_samples import SAMPLES
from tests.storage.live import Sonar, answers

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("READERS_SECONDS") or 0)
LONGEST_SECONDS = 120
READERS = 6
# Between two requests, so that machines that test other things meanwhile have time for those.
PAUSE_SECONDS = 0.5
STREAMS = [f"/api/v1/transfers/?format={form}" for form in ("csv", "ndjson")]
ADMIN = [f"/admin/sonar/{name}/" for name in ("endpoint", "site", "downtime", "probe", "transfer")]
SITES = {"RAL": "RAL_DATADISK", "DESY": "DESY_DATADISK", "Glasgow": "Glasgow_DATADISK"}
SIZES = {"small": (0, 1000), "medium": (10_000, 20_000), "large": (100_000, 200_000)}
PASSWORD = "correct-horse-battery"
READY = "/readyz"


@dataclass
class Grid:
    """A running Sonar, what is read there, and what an operator's script does to it."""

    sonar: Sonar
    token: str
    # No script opens an incident, and nobody subscribes: readers are told that there is none.
    names: dict[str, str] = field(
        default_factory=lambda: dict.fromkeys(("incident", "list", "mine"), "1")
    )
    guest: int = 0

    def call(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Token {self.token}"}
        url = f"http://127.0.0.1:{self.sonar.port}/api/v1/{path}"
        response = requests.request(method, url, headers=headers, json=body, timeout=120)
        # What has begun meanwhile is not cancelled, and the planner may be busy.
        assert response.status_code in (200, 201, 202, 204, 404, 409, 503), response.text
        return response.json() if response.content else {}

    def order(self, chance: random.Random) -> None:
        """Order tests of a link, and cancel one that has not begun; one more is read about."""
        source, destination = chance.sample(sorted(SITES.values()), 2)
        ends = {"source": source, "destination": destination}
        body = {**ends, "sizes": ["small"], "mover": "fake", "count": 10}
        ordered = self.call("POST", "probes/", body).get("probes", [])
        if ordered:
            self.names["probe"] = self.names["transfer"] = ordered[0]["id"]
            self.call("DELETE", f"probes/{ordered[-1]['id']}/")

    def vary(self, chance: random.Random) -> None:
        source, destination = chance.sample(sorted(SITES.values()), 2)
        ends = {"source": source, "destination": destination}
        body = {**ends, "variable": "mode", "size": "small", "mover": "fake"}
        self.names["sweep"] = self.call("POST", "sweeps/", body).get(
            "id", self.names.get("sweep", "")
        )

    def receive(self) -> None:
        """Register an endpoint with all that belongs to it, and let the one before go."""
        self.leave(self.guest)
        name, site = f"GUEST{self.guest + 1}", f"Guest{self.guest + 1}"
        self.call("POST", "sites/", {"name": site})
        body = {"name": name, "site": site, "base_url": f"fake://{site}.example/data"}
        self.call("POST", "endpoints/", body)
        ends = {"source": name, "destination": "RAL_DATADISK"}
        self.call("POST", "probes/", {**ends, "sizes": ["small"], "mover": "fake", "count": 3})
        start = datetime.now(UTC) + timedelta(hours=1)
        times = {"starts_at": start.isoformat(), "ends_at": (start + timedelta(1)).isoformat()}
        down = self.call("POST", "downtimes/", {"endpoint": name, "reason": "disks", **times})
        note = self.call("POST", "annotations/", {"site": site, "text": "a note", "public": True})
        alias = self.call("POST", "aliases/", {"kind": "rse", "name": f"RSE-{name}", "site": site})
        self.names |= {"downtime": str(down["id"]), "note": str(note["id"])}
        self.names["alias"] = str(alias["id"])
        self.guest += 1

    def leave(self, number: int) -> None:
        if number:
            self.call("PATCH", f"endpoints/GUEST{number}/", {"retired": True})
            self.call("DELETE", f"downtimes/{self.names['downtime']}/")
            self.call("DELETE", f"annotations/{self.names['note']}/")
            self.call("DELETE", f"aliases/{self.names['alias']}/")

    def paths(self) -> list[str]:
        """Return what there is to read, by the routes of the table of rights."""
        samples = [sample.path for (_, method), sample in SAMPLES.items() if method == "GET"]
        samples += [
            path.replace("RAL_DATADISK", "{guest}").replace("/RAL/", "/{site}/") for path in samples
        ]
        return [*dict.fromkeys([*samples, *STREAMS, *ADMIN])]


@dataclass
class Reader:
    """Somebody who reads everything again and again, and what was wrong with it."""

    grid: Grid
    session: requests.Session
    paths: list[str]
    answered: Counter[int] = field(default_factory=Counter)
    wrong: list[tuple[str, list[str]]] = field(default_factory=list)

    def read(self, path: str) -> None:
        names = self.grid.names | {
            "guest": f"GUEST{self.grid.guest}",
            "site": f"Guest{self.grid.guest}",
        }
        address = path.format_map(names)
        response = self.session.get(
            f"http://127.0.0.1:{self.grid.sonar.port}{address}", timeout=120, allow_redirects=False
        )
        self.answered[response.status_code] += 1
        media_type = response.headers.get("Content-Type", "").partition(";")[0]
        status = 200 if address == READY else response.status_code
        if found := numbers.wrong(status, media_type, response.content):
            self.wrong.append((address, found[:3]))

    def read_until(self, over: Event) -> None:
        for path in cycle(self.paths):
            if over.wait(PAUSE_SECONDS):
                return
            self.read(path)


def patient_session() -> requests.Session:
    """Return a session that asks once more where the server has just closed an idle connection.

    As browsers do; a crash of the server shows in what it says, and in the second answer.
    """
    session = requests.Session()
    retries = Retry(total=1, connect=0, read=1, status=0, redirect=0, allowed_methods=["GET"])
    session.mount("http://", HTTPAdapter(max_retries=retries))
    return session


PREPARE = """
import sys
import django
django.setup()
from django.core.management import call_command
call_command("load_registry", sys.argv[1])
call_command("createsuperuser", interactive=False, username="operator", email="a@example.org")
call_command("token", "create", "operator", "--scopes=read,operate", "--name=script")
"""


def prepare(sonar: Sonar) -> str:
    """Load the registry and make an administrator; return a token of theirs."""
    command = [sys.executable, "-c", PREPARE, str(registry(sonar.place))]
    env = sonar.env | {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.split()[-1]


def registry(place: Path) -> Path:
    file = place / "registry.yaml"
    caps = {"inbound_cap": 2, "outbound_cap": 2}
    told = {
        "size_classes": [
            {"name": name, "from_bytes": start, "test_bytes": size, "timeout_seconds": 60}
            for name, (start, size) in SIZES.items()
        ],
        "sites": [{"name": site} for site in (*SITES, "Empty")],
        "endpoints": [
            {"name": name, "site": site, "base_url": f"fake://{site}.example/data", **caps}
            for site, name in SITES.items()
        ],
        "meshes": [
            {
                "name": "everything",
                "mover": "fake",
                "sources": [*SITES.values()],
                "destinations": [*SITES.values()],
                "every": {"medium": "2s", "large": "5s"},
            }
        ],
        "criteria_sets": [
            {"name": "DDT", "size": "large", "period_hours": 1, "least_tests": 1, "least_mb_s": 1}
        ],
    }
    file.write_text(yaml.safe_dump(told))
    return file


@pytest.fixture
def grid(sonar: Sonar) -> Grid:
    token = prepare(sonar)
    sonar.wait_for(lambda: answers(sonar), 120)
    sonar.start_senders()
    sonar.wait_until(set(), 120)
    return Grid(sonar, token)


def logged_in(sonar: Sonar) -> requests.Session:
    """Return a session of who sees everything."""
    session, url = patient_session(), f"http://127.0.0.1:{sonar.port}/login/"
    session.get(url, timeout=120)
    form = {"username": "operator", "password": PASSWORD}
    form |= {"csrfmiddlewaretoken": session.cookies["csrftoken"]}
    response = session.post(url, form, timeout=120, allow_redirects=False)
    assert response.status_code == 302, response.text
    return session


@contextmanager
def beside(*works: Callable[[Event], None]) -> Iterator[Event]:
    """Let others work until the block ends, and raise what one of them raised."""
    over = Event()
    with ThreadPoolExecutor(len(works)) as threads:
        under_way = [threads.submit(work, over) for work in works]
        try:
            yield over
        finally:
            over.set()
    for each in under_way:
        each.result()


def readers_of(grid: Grid) -> list[Reader]:
    """Return readers that begin at different places: three who are logged in, three not."""
    found, paths = [], grid.paths()
    for number in range(READERS):
        at = number * len(paths) // READERS
        session = logged_in(grid.sonar) if number % 2 else patient_session()
        found.append(Reader(grid, session, paths[at:] + paths[:at]))
    return found


def have_seen(readers: list[Reader], seconds: float) -> bool:
    """Say whether all have read up to where the next one began, or have had time enough."""
    share = len(readers[0].paths) // READERS + 1
    all_read = all(reader.answered.total() >= share for reader in readers)
    return seconds > SECONDS and (all_read or seconds > SECONDS + LONGEST_SECONDS)


def test_every_page_and_call_is_right_while_tests_run_and_rows_come_and_go(grid: Grid):
    chance, turns = random.Random(2011), count()
    grid.vary(chance)
    grid.receive()
    grid.order(chance)
    readers = readers_of(grid)
    with beside(*(reader.read_until for reader in readers)) as over:
        began = time.monotonic()
        while not (over.wait(0.5) or have_seen(readers, time.monotonic() - began)):
            turn = next(turns)
            grid.order(chance)
            if turn % 5 == 0:
                grid.vary(chance)
                grid.receive()
    answered = sum((reader.answered for reader in readers), Counter[int]())
    print(f"{answered.total()} answers, by status: {dict(answered)}")
    assert [each for reader in readers for each in reader.wrong] == []
    assert answered[200] > len(grid.paths()) // 2
    assert {status for status in answered if status >= 400} <= {401, 403, 404, 503}
    ended = grid.call("GET", "status/")["results_last_hour"]
    assert ended["done"] > 20, (ended, grid.sonar.words())
