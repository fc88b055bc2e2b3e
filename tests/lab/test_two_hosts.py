"""Workers on another host than the planner: the link between them may go for a minute."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from sonar.sandbox import embedded
from tests.lab.enclosure import RefusedError, run
from tests.lab.hosts import NEAR, SETTINGS, FarHost, TwoHosts
from tests.needs import lacks, needs
from tests.storage.ledger import MADE, NOT_ONE_TRANSFER, STATES
from tests.waiting import wait_for

pytestmark = pytest.mark.long

LOAD = 4  # tests that run when the plug is pulled
AWAY_SECONDS = 60
BACK_SECONDS = 120
PLAN_SECONDS = 30
SITES = ("UKI-SOUTHGRID-CAM-HEP", "TAIWAN-LCG2", "UKI-NORTHGRID-SHEF-HEP", "RAL-LCG2")
CLASSES = {"small": (0, 100_000), "large": (10**7, 10**7)}
RUNNING = "state = 'running'"
PLANNED = "SELECT extract(epoch FROM now() - seen_at) FROM sonar_signoflife WHERE name = 'planner'"


def registry_of(base_urls: dict[str, str]) -> dict[str, Any]:
    """Test every link of four sites every second; a test may wait for the link to come back."""
    classes = [
        {"name": name, "from_bytes": start, "test_bytes": size, "timeout_seconds": 600}
        for name, (start, size) in CLASSES.items()
    ]
    return {
        "size_classes": classes,
        "sites": [{"name": site} for site in SITES],
        "endpoints": [
            {"name": site, "site": site, "base_url": base_urls[f"{site}_DATADISK"]}
            for site in SITES
        ],
        "meshes": [{"name": "all", "every": {"small": "1s", "large": "3s"}}],
    }


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[TwoHosts]:
    needs("ip", "unshare", "nsenter", "setpriv")
    with ExitStack() as stack:
        sockets = stack.enter_context(embedded.socket_directory())
        try:
            made = TwoHosts(tmp_path, sockets)
        except RefusedError as error:
            lacks(f"needs a machine that lets root have {error}")
        stack.callback(made.close)
        made.start_services(SETTINGS)
        made.load(registry_of(made.nodes.start().base_urls))
        made.start_workers({}, {"worker -c": "8"})
        made.start_web()
        assert wait_for(made.is_ready, BACK_SECONDS), made.logs("web", "worker")
        yield made


def test_a_host_takes_its_wire_with_it_whoever_still_holds_its_network() -> None:
    needs("ip", "unshare", "nsenter", "setpriv")
    try:
        far = FarHost()
    except RefusedError as error:
        lacks(f"needs a machine that lets root have {error}")
    with subprocess.Popen([*far.inside(), "sleep", "infinity"]) as holding:
        try:
            # nsenter has joined the network as it becomes this program.
            assert wait_for(lambda: psutil.Process(holding.pid).name() == "sleep", BACK_SECONDS)
            assert "near" in run(["ip", "-brief", "link"])
            far.close()
            assert "near" not in run(["ip", "-brief", "link"])
        finally:
            holding.kill()


def pages_answer(hosts: TwoHosts, until: float) -> list[int]:
    """Ask for a page each second; return what was answered other than 200."""
    wrong = []
    while time.monotonic() < until:
        wrong += [status for status in (hosts.get("/").status,) if status != 200]
        assert hosts.ask(PLANNED)[0][0] < PLAN_SECONDS
        time.sleep(1)
    return wrong


def has_connections(far: FarHost) -> bool:
    return any(end.startswith(NEAR) for end in far.connections())


def is_over(hosts: TwoHosts) -> bool:
    hosts.ask("UPDATE sonar_mesh SET enabled = false WHERE enabled")
    hosts.leave_alone_no_more()
    tables = ("sonar_schedule", "sonar_probe", "sonar_leftover")
    return not any(hosts.count(table) for table in tables)


def test_a_minute_without_the_link_loses_and_doubles_nothing(hosts: TwoHosts) -> None:
    assert wait_for(lambda: hosts.count("sonar_probe", RUNNING) >= LOAD, BACK_SECONDS)
    hosts.far.plug(connected=False)
    assert pages_answer(hosts, time.monotonic() + AWAY_SECONDS) == []
    assert "transfers" in hosts.get("/readyz").data.decode()
    # Nobody waits for a host that says nothing: the kernel would, for a quarter of an hour. One
    # that is asked something just before its silence is noticed is waited for once more.
    assert wait_for(lambda: not has_connections(hosts.far), BACK_SECONDS)
    measured = hosts.count("sonar_transfer")
    hosts.far.plug(connected=True)
    assert wait_for(hosts.is_ready, BACK_SECONDS), hosts.logs("worker")[-4000:]
    assert wait_for(lambda: hosts.count("sonar_transfer") > measured + LOAD, BACK_SECONDS)
    assert wait_for(lambda: is_over(hosts), BACK_SECONDS)
    made, states = hosts.ask(MADE)[0][0], dict(hosts.ask(STATES))
    assert hosts.ask(NOT_ONE_TRANSFER) == []
    assert made == sum(states.values()) > 2 * LOAD
    assert "lost" not in states, states
    assert hosts.nodes.files_left() == []
    assert "Traceback" not in hosts.logs("worker", "cleanup", "control", "beat", "web")
