"""Goal 15: fifty transfers by programs in flight in one worker process, and their memory in all.

By one mover, and by all in turn. The servers are real: two XRootD servers and two GridFTP servers,
which hold each copy midway.
"""

from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks import held
from tests.benchmarks.in_flight import Known
from tests.benchmarks.measured import Goal, Spread

LIMIT_MB = 400
FIFTY, FEW = 50, 3


def measure(scale: str, home: Path) -> list[Goal]:
    count = FEW if scale == "small" else FIFTY
    alone = [{mover: count} for mover in held.COPIES]
    with held.grid() as grid:
        return [goal(grid, home, counts) for counts in (shared_out(count), *alone)]


def shared_out(count: int) -> dict[str, int]:
    """Return as many of each mover as are that count together, one more or less."""
    movers = list(held.COPIES)
    return {mover: len(range(n, count, len(movers))) for n, mover in enumerate(movers)}


def goal(grid: held.Grid, home: Path, counts: Mapping[str, int]) -> Goal:
    children = Known(home / "log")
    try:
        worker = start_worker(children, sum(counts.values()))
        together, alone = held.measure(grid, worker, counts)
    finally:
        children.stop()
    copies = ", ".join(f"{count} by {mover}" for mover, count in counts.items())
    text = f"memory of one worker and its programs with {copies} in flight"
    copying = sum(min(count, held.AT_ONCE.get(mover, count)) for mover, count in counts.items())
    each = (together - alone) / copying
    waiting = sum(max(count - held.AT_ONCE.get(mover, count), 0) for mover, count in counts.items())
    turns = f"; {waiting} waited for their turn" if waiting else ""
    note = f"the worker {alone:.0f} MB, each copy {each:.1f} MB; all ended well{turns}"
    spread = Spread.of([together])
    return Goal.from_spread(15, text, LIMIT_MB, spread, "MB", at_least=False, note=note)


def start_worker(children: Known, threads: int) -> int:
    options = ["--pool=threads", "-c", str(threads)]
    worker = ["sonar", "worker", *options, "-Q", "transfers"]
    return children.start("worker", *worker).pid
