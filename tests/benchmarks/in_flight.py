"""Goal 8: 500 transfers in flight in one small worker process, and 50 a second through it.

Everything is real and runs on two cores: PostgreSQL, Redis, beat, control, the worker with its
movers, and storage nodes that copy files of 1 MB over HTTP third-party copy.
"""

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from rich.console import Console

from sonar.models import Endpoint, Mesh, MeshInterval, Probe, Site, SizeClass, Transfer
from sonar.sandbox import nodes, processes
from sonar.sandbox.run import NODES, Children, start_workers
from tests.benchmarks.measured import Goal, Spread
from tests.benchmarks.memory import peak_mb, resident_mb

MB = 10**6
DAY = 86_400
LOOK_SECONDS = 0.5
PATIENCE_SECONDS = 300.0
LIMIT_MB, LIMIT_PER_SECOND, LIMIT_MS = 150, 120, 6
HELD = "memory of one worker process with {held} transfers in flight"
BUSY = "transfers of 1 MB through one worker, all servers on the same two cores"
COST = "processor time of the worker for each of them"


@dataclass(frozen=True)
class Size:
    """How many slow transfers to hold, of how many seconds; how long to count fast ones.

    There are more links between the ``nodes`` than are held. ``cap`` is of each node in the
    second part, in each direction.
    """

    nodes: int
    held: int
    slow_seconds: float
    cap: int
    windows: int
    window_seconds: float


SIZES = {"small": Size(6, 20, 12.0, 4, 1, 1.0)}
USUAL = Size(24, 500, 25.0, 8, 6, 5.0)


class Known(Children):
    """Children that can be asked for by name."""

    def __init__(self, logs: Path) -> None:
        super().__init__(logs, Console(quiet=True))
        self.by_name: dict[str, Popen[bytes]] = {}

    def start(self, name: str, *arguments: str) -> Popen[bytes]:
        self.by_name[name] = super().start(name, *arguments)
        return self.by_name[name]


def measure(scale: str, home: Path) -> list[Goal]:
    size = SIZES.get(scale, USUAL)
    with running(home) as children:
        serve(children, home, size.nodes, size.slow_seconds)
        order(every=DAY, cap=size.held)
        memory = held(children, size)
        serve(children, home, size.nodes, seconds=0.0)
        order(every=1, cap=size.cap)
        return [memory, *busy(children, size)]


@contextlib.contextmanager
def running(home: Path) -> Iterator[Known]:
    """Run worker, control and beat, as `make run` does."""
    children = Known(home / "log")
    try:
        start_workers(children, home)
        yield children
    finally:
        children.stop()


def serve(children: Known, home: Path, count: int, seconds: float) -> None:
    """Run these nodes in place of those before; nothing is ordered yet, and there is no result."""
    Mesh.objects.update(enabled=False)
    if before := children.by_name.get(NODES):
        processes.stop(before)
    Probe.objects.all().delete()
    Transfer.objects.all().delete()
    register(start_nodes(children, home / "nodes", count, seconds))


def start_nodes(children: Known, directory: Path, count: int, seconds: float) -> dict[str, str]:
    """Start the storage nodes; return their base URLs once they listen."""
    (directory / "nodes.json").unlink(missing_ok=True)
    options = [f"--directory={directory}", f"--nodes={count}", f"--seconds={seconds}"]
    process = children.start(NODES, "tests.benchmarks.storage", *options)
    noted = (directory / "nodes.json").is_file
    processes.wait_until(noted, process, "The storage nodes", children.log(NODES))
    return nodes.load_base_urls(directory)


def register(base_urls: dict[str, str]) -> None:
    """Register the nodes and one mesh of all their links, for files of 1 MB."""
    SizeClass.objects.filter(name="small").update(test_bytes=MB)
    site, _ = Site.objects.get_or_create(name="BENCHMARK", cloud="UK", tier=2)
    for name, base_url in base_urls.items():
        Endpoint.objects.update_or_create(name=name, defaults={"site": site, "base_url": base_url})
    mesh, _ = Mesh.objects.get_or_create(name="benchmark", defaults={"enabled": False})
    small = SizeClass.objects.get(name="small")
    MeshInterval.objects.get_or_create(mesh=mesh, size_class=small, every_seconds=DAY)


def order(every: int, cap: int) -> None:
    """Let the planner begin."""
    Endpoint.objects.update(inbound_cap=cap, outbound_cap=cap)
    MeshInterval.objects.update(every_seconds=every)
    Mesh.objects.update(enabled=True)


def held(children: Known, size: Size) -> Goal:
    """Fill the worker, take its memory, and see all that it held come to a good end."""
    in_flight = Probe.objects.filter(state="running", progress_bytes__gt=0)
    wait(children, lambda: in_flight.count() >= size.held)
    worker = children.by_name["worker"].pid
    peak, now = peak_mb(worker), resident_mb(worker)
    wait(children, lambda: results() >= size.held)
    peak = max(peak, peak_mb(worker))
    note = f"{now:.0f} MB while all moved; {results()} ended, none failed"
    spread = Spread(peak, now, peak, 1)
    text = HELD.format(held=size.held)
    return Goal.from_spread(8, text, LIMIT_MB, spread, "MB", at_least=False, note=note)


def busy(children: Known, size: Size) -> list[Goal]:
    """Count what ends in windows one after the other, after a first one that fills the queue."""
    wait(children, lambda: results() >= size.nodes * size.cap)
    rates, costs = [], []
    for _ in range(size.windows):
        before, began = results(), processor_seconds(children)
        rates.append(per_second(children, size.window_seconds))
        ended, used = results() - before, processor_seconds(children)
        costs.append({name: 1000 * (used[name] - began[name]) / ended for name in used})
    worker = [cost["worker"] for cost in costs]
    others = {name: statistics.median(one[name] for one in costs) for name in costs[0]}
    memory = resident_mb(children.by_name["worker"].pid)
    note = f"{size.windows} windows of {size.window_seconds:g} s; the worker took {memory:.0f} MB"
    beside = ", ".join(f"{name} {ms:.1f}" for name, ms in others.items() if name != "worker")
    cost = Spread.of(worker)
    return [
        Goal.from_spread(8, BUSY, LIMIT_PER_SECOND, Spread.of(rates), "/s", note=note),
        Goal.from_spread(8, COST, LIMIT_MS, cost, "ms", at_least=False, note=f"beside it {beside}"),
    ]


def per_second(children: Known, seconds: float) -> float:
    """Return how many end in a second, in so many seconds and until one has ended."""
    began, before = time.monotonic(), results()
    time.sleep(seconds)
    wait(children, lambda: results() > before)
    return (results() - before) / (time.monotonic() - began)


def results() -> int:
    """Count the transfers that are done; raise an error if one has failed."""
    if failed := Transfer.objects.exclude(state="done").first():
        raise RuntimeError(f"{failed}: {failed.error}")
    return Transfer.objects.count()


def wait(children: Known, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not ready():
        children.check()
        if time.monotonic() > deadline:
            probes, done = Probe.objects.count(), Transfer.objects.count()
            raise RuntimeError(f"not ready in {PATIENCE_SECONDS:g} s: {probes=}, {done=}")
        time.sleep(LOOK_SECONDS)


def processor_seconds(children: Known) -> dict[str, float]:
    """Return the processor time that each child has used, which others' load does not change."""
    return {name: used(process.pid) for name, process in children.by_name.items()}


def used(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = int(fields[11]), int(fields[12])
    return (user + system) / os.sysconf("SC_CLK_TCK")
