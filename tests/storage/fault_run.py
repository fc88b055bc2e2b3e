"""`python -m tests.storage.fault_run --probes 5000`: faults of every kind, and hostile storage.

At the end each probe that was ever made must be one transfer, none two, and no file be left.
Everything is on loopback; see docs/endurance.md.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from sonar.sandbox import embedded
from tests.storage import ledger
from tests.storage.clock import Clock, stepped
from tests.storage.faults import (
    DISK_MB,
    FAULTS,
    STORAGE_MB,
    Faults,
    give_back_disk,
    own_disk,
)
from tests.storage.grid import Grid, end_in_order, good_registry, with_hostile
from tests.storage.lookout import Lookout
from tests.storage.nodes import Nodes
from tests.storage.report import Row, table
from tests.waiting import wait_for

WAYS = [  # those that hold files, hang, or lie about it
    "never-answers",
    "success-then-silence",
    "success-before-anything-moved",
    "verify-hangs",
    "delete-hangs",
    "delete-fails",
    "put-is-never-read",
    "put-lies",
    "move-hangs",
    "copy-hangs",
    "drips-a-body",
    "get-breaks-off",
]
SETTINGS = {
    "SONAR_PLAN_SECONDS": "1",
    "SONAR_RECOVERY_SECONDS": "1",
    "SONAR_RESEND_SECONDS": "3",
    "SONAR_COMPACTION_SECONDS": "1",
    "SONAR_CLEANUP_SECONDS": "4",
    "SONAR_HEARTBEAT_SECONDS": "2",
    "SONAR_DATABASE_POOL": "4",
    "SONAR_RATE_ANONYMOUS": "off",
}
SEVERAL = {"beat": 2, "control": 2, "worker": 3, "cleanup": 2}
CLASSES = {"small": (0, 100_000), "medium": (1_000_000, 3_000_000), "large": (10**7, 10**7)}
TIMEOUT_SECONDS = 20
CAPS = 8
PAUSES = 2.0, 6.0  # seconds between faults
GOES_ON = 5
"""So many new probes show that planning goes on."""
STANDSTILL_SECONDS = 120.0
"""Without hands, work goes on within two minutes."""
LATEST_PLAN_SECONDS = 30.0
CONNECTIONS = 80
PARTNERS = 4
"""Good endpoints that hostile ones are tested with."""
START_SECONDS = 60.0
REST_SECONDS = 600.0


def registry_of(grid: Grid, every: str) -> dict[str, Any]:
    """Describe small tests of all links of the sandbox, and some with hostile ends."""
    registry = good_registry(grid.nodes)
    registry["size_classes"] = [
        {"name": name, "from_bytes": start, "test_bytes": size, "timeout_seconds": TIMEOUT_SECONDS}
        for name, (start, size) in CLASSES.items()
    ]
    caps = {"inbound_cap": CAPS, "outbound_cap": CAPS}
    registry["endpoints"] = [one | caps for one in registry["endpoints"]]
    (mesh,) = registry["meshes"]
    registry["meshes"] = [mesh | {"every": {"small": every, "medium": "60s"}}]
    partners = mesh["sources"][:PARTNERS]
    return with_hostile(registry, grid.hostile, partners, every={"small": "20s"})


@contextmanager
def faulty_grid(seed: int, in_flight: int, every: str, ways: list[str]) -> Iterator[Faults]:
    """Give a grid at work and what may happen to it; everything ends with this."""
    with ExitStack() as stack:
        place = Path(tempfile.mkdtemp(prefix="sonar-fault-run-"))
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        place.chmod(0o755)
        clock = clock_of_all(place, stack)
        disk = disk_of("PostgreSQL", place / "disk", DISK_MB, stack)
        storage = disk_of("the storage nodes", place / "storage", STORAGE_MB, stack)
        sockets = stack.enter_context(embedded.socket_directory())
        grid = Grid(place, sockets, disk or place, f"max_connections={CONNECTIONS}")
        grid.nodes = Nodes((storage or place) / "nodes")
        stack.callback(grid.close)
        grid.start_services(SETTINGS | {"SONAR_IN_FLIGHT": str(in_flight)})
        grid.nodes.start()
        grid.hostile.start(ways)
        grid.load(registry_of(grid, every))
        grid.start_workers(SEVERAL, {"worker -c": str(in_flight // 2)})
        grid.start_web()
        if not wait_for(grid.is_ready, START_SECONDS):
            raise SystemExit(f"The pages did not start:\n{grid.logs('web')[-2000:]}")
        yield Faults(grid, random.Random(seed), disk, storage, clock)


def clock_of_all(place: Path, stack: ExitStack) -> Clock | None:
    """Give all processes that start from now on a clock that jumps, or say why there is none."""
    if shutil.which("gcc") is None:
        print("The clock does not jump: there is no gcc.")
        return None
    return stack.enter_context(stepped(place))


def disk_of(whose: str, place: Path, size_mb: int, stack: ExitStack) -> Path | None:
    """Give a disk of its own, or say why there is none."""
    if why_not := own_disk(place, size_mb):
        print(f"The disk of {whose} is not filled: {why_not}")
        return None
    stack.callback(give_back_disk, place)
    return place


def run_through(faults: Faults, probes: int, seconds: float) -> None:
    """Let fault after fault happen until so many probes were made, or the time is over."""
    grid, deck, until = faults.grid, list[str](), time.monotonic() + seconds
    wait_for(lambda: grid.count("sonar_probe", "state = 'running'") > 0, START_SECONDS)
    while (made := probes_made(grid)) < probes and time.monotonic() < until:
        if not deck:
            deck = list(FAULTS)
            faults.random.shuffle(deck)
        name = deck.pop()
        print(f"{made:6d} probes made; {name}", flush=True)
        faults.happen(name)
        time.sleep(faults.random.uniform(*PAUSES))
        see_recovery(faults, name)


def probes_made(grid: Grid) -> int:
    return int(grid.ask(ledger.MADE)[0][0])


def see_recovery(faults: Faults, name: str) -> None:
    """Wait until work goes on after a fault, and note how long that took at most."""
    grid, began = faults.grid, time.monotonic()
    enough = probes_made(grid) + GOES_ON
    wait_for(lambda: probes_made(grid) >= enough, STANDSTILL_SECONDS)
    faults.standstills.append((time.monotonic() - began, name))


def come_to_rest(faults: Faults) -> bool:
    """Let all storage behave, plan no more, and wait until all has ended and was cleaned."""
    grid = faults.grid
    grid.hostile.reform()
    began = time.monotonic()
    said = 0

    def quiet() -> bool:
        nonlocal said
        grid.plan_no_more()
        grid.leave_alone_no_more()
        left = grid.count("sonar_probe"), grid.count("sonar_leftover")
        if time.monotonic() - began > 10 * said:
            said += 1
            print(f"at rest soon: {left[0]} probes open, {left[1]} files to delete", flush=True)
        return not any(left)

    return wait_for(quiet, REST_SECONDS, pause=2)


def rows_of(faults: Faults, seen: Lookout, rested: bool) -> list[Row]:
    """Say what became of all probes."""
    grid = faults.grid
    wait_for(lambda: not files_left(grid), 30)
    ((made,),) = grid.ask(ledger.MADE)
    ((stored, ids),) = grid.ask("SELECT count(*), count(DISTINCT id) FROM sonar_transfer")
    not_one = grid.ask(ledger.NOT_ONE_TRANSFER)
    states = ", ".join(f"{count} {state}" for state, count in grid.ask(ledger.STATES))
    happened = ", ".join(f"{count} x {name}" for name, count in sorted(faults.counts.items()))
    ended = [name for name, process in grid.running.items() if process.poll() is not None]
    good, bad = len(grid.nodes.files_left()), len(grid.hostile.files_left())
    counts, shown = matrix_counts(grid)
    longest = max(faults.standstills, default=(0.0, "none"))
    tracebacks = grid.logs("worker", "control", "cleanup").count("raised unexpected")
    return [
        Row("faults", happened),
        Row("probes made", made),
        Row("transfers", f"{stored} ({states})", str(made), stored == made),
        Row("probes without exactly one transfer", len(not_one), "0", not not_one),
        Row("transfers stored twice", stored - ids, "0", stored == ids),
        Row(
            "longest until work went on",
            f"{longest[0]:.0f} s, after {longest[1]}",
            f"< {STANDSTILL_SECONDS:.0f} s",
            longest[0] < STANDSTILL_SECONDS,
        ),
        Row(
            "oldest last plan",
            f"{seen.oldest_plan:.0f} s",
            f"<= {LATEST_PLAN_SECONDS:.0f} s",
            seen.oldest_plan <= LATEST_PLAN_SECONDS,
        ),
        Row("pages", ", ".join(f"{n} x {status}" for status, n in sorted(seen.answered.items()))),
        Row(
            "pages that failed",
            ", ".join(seen.wrong()) or "none",
            "none, and some that answer",
            bool(seen.answered) and not seen.wrong(),
        ),
        Row("slowest page", f"{seen.slowest:.1f} s"),
        Row("taken from a worker that stood still", faults.frozen_lost),
        Row("all ended and cleaned", "yes" if rested else "no", "yes", rested),
        Row("files left at good nodes", good, "0", not good),
        Row("files left at hostile ones", bad, "0", not bad),
        Row("matrix", "; ".join(shown), "; ".join(counts), shown == counts),
        Row("processes that ended by themselves", ", ".join(ended) or "none", "none", not ended),
        Row("tasks that ended in a traceback", tracebacks, "0", not tracebacks),
    ]


def files_left(grid: Grid) -> list[Path]:
    return grid.nodes.files_left() + grid.hostile.files_left()


def matrix_counts(grid: Grid) -> tuple[list[str], list[str]]:
    """Count by plain SQL and by the matrix, half of the results from segments; as lines."""
    for name in grid.running:
        grid.running[name].send_signal(signal.SIGTERM)
    grid.ask(ledger.LONG_AGO, half=UUID(int=2**127))
    grid.manage("rebuild_segments")
    counts = [" ".join(map(str, row)) for row in grid.ask(ledger.COUNTS)]
    return counts, grid.python("-c", ledger.MATRIX_COUNTS).splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storage.fault_run", description=__doc__)
    parser.add_argument("--probes", type=int, default=5000, help="how many are made at least")
    parser.add_argument("--minutes", type=float, default=40, help="after which no more are made")
    parser.add_argument("--seed", type=int, default=2011, help="of the faults")
    parser.add_argument("--in-flight", type=int, default=48, help="SONAR_IN_FLIGHT")
    parser.add_argument("--every", default="30s", help="how often each link has a small test")
    options = parser.parse_args()
    end_in_order()
    with faulty_grid(options.seed, options.in_flight, options.every, WAYS) as faults:
        with Lookout(faults.grid) as seen:
            run_through(faults, options.probes, options.minutes * 60)
        rested = come_to_rest(faults)
        rows = rows_of(faults, seen, rested)
    print(table(rows))
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
