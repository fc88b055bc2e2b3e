"""Endpoints that one host alone reaches: measured, cleaned and checked by the worker there."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sonar.sandbox import embedded
from sonar.scheduler import dispatch
from tests.lab.enclosure import RefusedError
from tests.lab.hosts import SETTINGS, Campus
from tests.needs import lacks, needs
from tests.waiting import SOON, wait_for

pytestmark = pytest.mark.long

INSIDE = "source_id IN (SELECT id FROM sonar_endpoint WHERE vantage <> '')"
WAITS = "skipped_because = 'vantage'"
LEFT = "sonar/incoming/left"
LEAVE = """
    INSERT INTO sonar_leftover (endpoint_id, path, mover, since, next_try, tries, error)
    SELECT id, %(path)s, 'http-tpc', now(), now(), 0, '' FROM sonar_endpoint WHERE name = 'IN0'
"""
CHECK = """
    INSERT INTO sonar_endpointcheck (endpoint_id, run, requested_at, steps)
    SELECT id, %(run)s, now(), '[]' FROM sonar_endpoint WHERE name = 'IN0'
"""
CHECKED = """
    SELECT step ->> 'state', step ->> 'seen'
    FROM sonar_endpointcheck, jsonb_array_elements(steps) step
    WHERE ended_at IS NOT NULL AND step ->> 'name' IN ('write', 'delete')
"""


def registry_of(campus: Campus) -> dict[str, Any]:
    """Test two servers inside against each other, and two made-up endpoints, every second."""
    inside = [f"{server.url}/base" for server in campus.servers]
    urls = {f"IN{number}": url for number, url in enumerate(inside)}
    urls |= {f"OUT{number}": f"fake://out{number}/data" for number in range(2)}
    endpoints = [
        {"name": name, "site": "SITE", "base_url": url}
        | ({"vantage": campus.VANTAGE} if name.startswith("IN") else {})
        for name, url in urls.items()
    ]
    ends = {name: [each for each in urls if each.startswith(name)] for name in ("IN", "OUT")}
    return {
        "size_classes": [{"name": "small", "from_bytes": 0, "test_bytes": 100_000}],
        "sites": [{"name": "SITE"}],
        "endpoints": endpoints,
        "meshes": [
            {"name": name, "every": {"small": "1s"}, "mover": mover}
            | {"sources": ends[name], "destinations": ends[name]}
            for name, mover in (("IN", "http-tpc"), ("OUT", "fake"))
        ],
    }


@pytest.fixture
def campus(tmp_path: Path) -> Iterator[Campus]:
    needs("xrootd", "openssl", "ip", "unshare", "nsenter", "setpriv")
    with ExitStack() as stack:
        sockets = stack.enter_context(embedded.socket_directory())
        try:
            made = Campus(tmp_path, sockets)
        except RefusedError as error:
            lacks(f"needs a machine that lets root have {error}")
        stack.callback(made.close)
        made.start_services(SETTINGS)
        made.load(registry_of(made))
        made.start_workers({}, {})
        yield made


def planned_until(campus: Campus, holds: Callable[[], bool]) -> bool:
    """Plan again and again, until something holds."""

    def look() -> bool:
        campus.send("plan", "control")
        return holds()

    return wait_for(look, SOON, pause=0.5)


def measured(campus: Campus, where: str = INSIDE) -> bool:
    before = campus.count("sonar_transfer", where)
    return planned_until(campus, lambda: campus.count("sonar_transfer", where) > before + 2)


def test_who_reaches_an_endpoint_alone_tests_cleans_and_checks_it(
    campus: Campus, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert measured(campus), campus.logs("campus", "worker")[-4000:]
    left = campus.servers[0].make_directory("base/sonar/incoming") / "left"
    left.write_text("left")
    campus.ask(LEAVE, path=LEFT)
    campus.send("clean_up", "cleanup")
    assert wait_for(lambda: not campus.count("sonar_leftover") and not left.exists(), SOON)
    run = uuid4()
    campus.ask(CHECK, run=run)
    monkeypatch.setattr(dispatch.app.conf, "broker_write_url", campus.queue.url)
    dispatch.send_check(run, campus.VANTAGE)
    assert wait_for(lambda: bool(campus.ask(CHECKED)), SOON), campus.logs("campus")[-4000:]
    assert {state for state, _ in campus.ask(CHECKED)} == {"fine"}, campus.ask(CHECKED)
    here, there = campus.logs("worker"), campus.logs("campus")
    assert "Task sonar.tasks.check_endpoint[" in there
    assert "Task sonar.tasks.check_endpoint[" not in here

    campus.running["campus"].send_signal(signal.SIGSTOP)
    assert planned_until(campus, lambda: campus.count("sonar_schedule", WAITS) > 0)
    count = campus.count("sonar_transfer", INSIDE)
    assert measured(campus, where=f"NOT {INSIDE}")
    assert campus.count("sonar_transfer", INSIDE) == count
    campus.running["campus"].send_signal(signal.SIGCONT)
    assert measured(campus), campus.logs("campus")[-4000:]
    assert campus.ask("SELECT DISTINCT state, error FROM sonar_transfer") == [("done", "")]
    assert wait_for(lambda: not campus.count("sonar_probe"), SOON)
    assert wait_for(lambda: campus.files_left() == [], SOON)
    assert "Traceback" not in campus.logs("campus", "worker")
