"""Workers killed, PostgreSQL restarted and crashed, Redis emptied and restarted, the clock an hour
ahead and back, all under load:
every probe that was ever made becomes one transfer, and only what a killed worker held is lost."""

import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import pytest

from sonar.sandbox import embedded
from tests.needs import needs
from tests.storage.clock import Clock, stepped
from tests.storage.grid import Grid
from tests.storage.ledger import COUNTS, HELD, LONG_AGO, MATRIX_COUNTS, NOT_ONE_TRANSFER
from tests.storage.workers import LONGEST_SECONDS
from tests.waiting import wait_for

pytestmark = pytest.mark.long

SEED = 2011
TROUBLES = [
    *["kill late", "crash", "empty", "kill", "kill control", "kill cleanup"],
    *["empty and kill", "restart", "restart queue"],
]
# Before any process is new: one that starts after a jump of the clock knows of none.
FIRST_TROUBLES = ["step clock"]
# No kill comes after these, which could be taken for the reason of a loss.
LAST_TROUBLES = ["crash", "restart"]
PAUSES = 0.2, 1.0  # seconds of peace before a trouble
AWAY = 0.5, 1.5  # seconds that PostgreSQL stays away
AHEAD_SECONDS, SWEEPS_SECONDS = 3600, 3  # how far the clock is ahead, and for how long at least
LOAD = 6  # transfers that run when a trouble comes
SITES = (  # the link from LANCS to CAM always fails, others now and then
    "UKI-NORTHGRID-LANCS-HEP",
    "UKI-SOUTHGRID-CAM-HEP",
    "TAIWAN-LCG2",
    "UKI-NORTHGRID-SHEF-HEP",
    "RAL-LCG2",
)
CLASSES = {"small": (0, 100_000), "medium": (1_000_000, 3_000_000), "large": (10**7, 10**7)}

WORKERS = ["worker", "worker1"]
SETTINGS = {
    "SONAR_CLEANUP_SECONDS": "1",
    "SONAR_PLAN_SECONDS": "1",
    "SONAR_RECOVERY_SECONDS": "1",
    "SONAR_RESEND_SECONDS": "2",
    "SONAR_IN_FLIGHT": "24",
    "SONAR_COMPACTION_SECONDS": "1",
}

# A pool waits by itself for a database that restarts; without one the first try fails at once.
POOLS = {"control": "4", "cleanup": "4", "worker": "4", "worker1": "0", "beat": "0"}

REBUILD = """
import django
django.setup()
from contextlib import redirect_stdout
from io import StringIO
from django.core.management import call_command
with redirect_stdout(StringIO()):
    call_command("rebuild_segments")
"""
UNDER_WAY = f"state = 'running' AND started_at > now() - interval '3 s' AND NOT {HELD}"
BEGUN_AHEAD = "started_at > now() - interval '30 minutes'"
RUN_BY = "SELECT state, process FROM sonar_transfer JOIN run USING (id)"
RAN_THROUGH = """
SELECT state, run.process FROM sonar_transfer JOIN run USING (id) JOIN journal gone USING (id)
WHERE run.since < %(start)s AND gone.event = 'gone' AND gone.at > %(end)s
AND run.process <> ALL (%(killed)s)
"""


class Sonar(Grid):
    """All processes of one Sonar, and what was done to them."""

    def __init__(self, place: Path, sockets: Path, clock: Clock) -> None:
        super().__init__(place, sockets, place)
        self.clock = clock
        self.outages: list[tuple[datetime, datetime]] = []
        self.left_behind = 0
        self.random = random.Random(SEED)

    def start(self) -> None:
        """Start everything on an empty database and five storage nodes."""
        self.start_services(SETTINGS)
        self.load(registry_of(self.nodes.start().base_urls))
        self.start_workers({"worker": len(WORKERS)}, {"worker -c": "8"})

    def start_process(self, name: str) -> None:
        self.env["SONAR_DATABASE_POOL"] = POOLS[name]
        super().start_process(name)

    def kill_late(self) -> None:
        """Kill a worker whose file has arrived and is not deleted yet."""
        before = set(self.nodes.arrived())
        self.wait_for(lambda: self.has_killed_holder(before), pause=0.004)

    def has_killed_holder(self, before: set[Path]) -> bool:
        if not set(self.nodes.arrived()) - before:
            return False
        for name in WORKERS:
            self.running[name].send_signal(signal.SIGSTOP)
        ids = [UUID(path.name.partition(".")[0]) for path in set(self.nodes.arrived()) - before]
        held = self.ask("SELECT process FROM run WHERE id = ANY (%(ids)s)", ids=ids)
        holders = [name for name in WORKERS if (self.names[name],) in held]
        for name in WORKERS:
            self.running[name].send_signal(signal.SIGCONT)
        for name in holders[:1]:
            self.kill(name)
            self.left_behind += 1
        return bool(holders)

    def take_away_database(self, how: signal.Signals) -> None:
        began = datetime.now(UTC)
        self.database.stop(how)
        time.sleep(self.random.uniform(*AWAY))
        self.outages.append((began, datetime.now(UTC)))
        self.database.start()

    def step_clock(self) -> None:
        """Let it jump forward, be swept by and tested by, and jump back."""
        self.clock.step_to(AHEAD_SECONDS)
        time.sleep(SWEEPS_SECONDS)
        self.wait_for(lambda: self.count("sonar_transfer", BEGUN_AHEAD) > 0)
        self.clock.step_to(0)

    def suffer(self, trouble: str) -> None:
        """Let one trouble come over this Sonar, at some moment under load."""
        self.wait_for(lambda: self.count("sonar_probe", UNDER_WAY) >= LOAD)
        time.sleep(self.random.uniform(*PAUSES))
        if trouble in {"empty", "empty and kill"}:
            self.queue.empty()
        if trouble in {"kill", "empty and kill"}:
            self.kill(self.random.choice(WORKERS))
        if trouble == "kill late":
            self.kill_late()
        if trouble in {"kill control", "kill cleanup"}:
            self.kill(trouble.removeprefix("kill "))
        if trouble in {"crash", "restart"}:
            self.take_away_database(signal.SIGQUIT if trouble == "crash" else signal.SIGINT)
        if trouble == "step clock":
            self.step_clock()
        if trouble == "restart queue":
            self.queue.stop()
            self.queue.start()
        self.bury()

    def come_to_rest(self) -> None:
        """Plan no more and let all probes end; those of whom nobody speaks as lost."""
        self.wait_for(self.is_over)
        self.ask("UPDATE sonar_probe SET deadline = now() WHERE state = 'running'")
        self.wait_for(self.is_over)
        self.ask("UPDATE sonar_leftover SET next_try = now(), tries = 0")
        self.wait_for(lambda: self.ask("SELECT path FROM sonar_leftover") == [])

    def is_over(self) -> bool:
        """Let no mesh test anything; return whether nothing is scheduled and all probes ended."""
        self.ask("UPDATE sonar_mesh SET enabled = false WHERE enabled")
        return not self.count("sonar_schedule") and not self.count("sonar_probe")

    def wait_for(self, done: Callable[[], bool], pause: float = 0.2) -> None:
        """Wait until something holds; the tests say what it means if it never does."""
        wait_for(done, LONGEST_SECONDS, pause)


def registry_of(base_urls: dict[str, str]) -> dict[str, Any]:
    """Describe the chosen sites, every link tested every second with a small file."""
    classes = [
        {"name": name, "from_bytes": start, "test_bytes": size, "timeout_seconds": 60}
        for name, (start, size) in CLASSES.items()
    ]
    names = {site: f"{site}_DATADISK" for site in SITES}
    caps = {"inbound_cap": 8, "outbound_cap": 8}
    return {
        "size_classes": classes,
        "sites": [{"name": site} for site in SITES],
        "endpoints": [
            {"name": name, "site": site, "base_url": base_urls[name], **caps}
            for site, name in names.items()
        ],
        "meshes": [{"name": "all", "every": {"small": "1s", "medium": "2s"}}],
    }


@pytest.fixture(scope="module")
def sonar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sonar]:
    """Return a Sonar that has been through all troubles and has come to rest."""
    with ExitStack() as stack:
        needs("gcc")
        place = Path(stack.enter_context(TemporaryDirectory(prefix="sonar-clock-")))
        place.chmod(0o755)  # PostgreSQL runs as another user
        clock = stack.enter_context(stepped(place))
        sockets = stack.enter_context(embedded.socket_directory())
        one = Sonar(tmp_path_factory.mktemp("survival"), sockets, clock)
        stack.callback(one.close)
        one.start()
        troubles = TROUBLES.copy()
        one.random.shuffle(troubles)
        for trouble in FIRST_TROUBLES + troubles + LAST_TROUBLES:
            one.suffer(trouble)
        one.come_to_rest()
        yield one


def test_every_probe_became_one_transfer(sonar: Sonar):
    assert sonar.ask("SELECT id, state, worker FROM sonar_probe") == []
    assert sonar.ask(NOT_ONE_TRANSFER) == []
    ((made, ended),) = sonar.ask(
        "SELECT (SELECT count(DISTINCT id) FROM journal), (SELECT count(*) FROM sonar_transfer)"
    )
    assert made == ended > 50


def test_only_what_a_killed_worker_held_is_lost(sonar: Sonar):
    ended = sonar.ask(RUN_BY)
    lost = {process for state, process in ended if state == "lost"}
    assert lost
    assert lost <= sonar.killed


def test_what_ran_when_the_database_went_away_is_recorded(sonar: Sonar):
    states = [
        state
        for start, end in sonar.outages
        for state, _ in sonar.ask(RAN_THROUGH, start=start, end=end)
    ]
    assert len(states) >= LOAD
    assert set(states) <= {"done", "failed"}


def test_no_file_is_left_at_the_nodes(sonar: Sonar):
    assert sonar.ask("SELECT path, error FROM sonar_leftover") == []
    assert sonar.nodes.files_left() == []
    assert sonar.left_behind, "no worker was killed while it had a file there"
    assert len([*sonar.nodes.directory.rglob("source/*")]) == 2 * len(SITES)


def test_the_matrix_counts_every_result_once_from_segments_and_rows(sonar: Sonar):
    sonar.ask("SELECT sonar_make_month(now() - interval '1 day')")  # on the first of a month
    sonar.ask(LONG_AGO, half=UUID(int=2**127))
    counted = sonar.python("-c", REBUILD + MATRIX_COUNTS).splitlines()
    assert sonar.ask("SELECT count(*) FROM sonar_segment") != [(0,)]
    expected = sonar.ask(COUNTS)
    assert counted == [" ".join(map(str, row)) for row in expected]


def test_what_was_not_killed_has_lived_through_it(sonar: Sonar):
    ended = [name for name, process in sonar.running.items() if process.poll() is not None]
    assert ended == []


def test_no_transfer_task_has_ended_in_a_traceback(sonar: Sonar):
    assert "raised unexpected" not in sonar.logs("worker")
