"""`python -m tests.storage.long_run --minutes 5`: fifty hostile endpoints among nineteen good ones.

First the good ones alone, then all: do the good links keep their tests, and the planner its time?
Everything is on loopback; see docs/endurance.md.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sonar.sandbox import embedded
from tests.storage.grid import Grid, end_in_order, good_registry, with_hostile
from tests.storage.report import Row, table
from tests.waiting import wait_for

GOOD, HOSTILE = "sandbox", ("to-hostile", "from-hostile")
SETTINGS = {"SONAR_PLAN_SECONDS": "1", "SONAR_DATABASE_POOL": "8"}  # as `make run` has them
LATEST_SECONDS = 30
SHARE_KEPT = 0.9
REST_SECONDS = 120.0
WATCHED = ("planner", "compaction")
AGES = """
SELECT name, extract(epoch FROM now() - seen_at)::float FROM sonar_signoflife WHERE kind = 'task'
"""
ENDED = """
SELECT state, count(*) FROM sonar_transfer JOIN sonar_profile profile ON profile.id = profile_id
JOIN sonar_mesh mesh ON mesh.id = mesh_id WHERE mesh.name = %(mesh)s GROUP BY state
"""


@dataclass
class Phase:
    """What was seen in one stretch of time."""

    seconds: float = 0.0
    ended: Counter[str] = field(default_factory=Counter)
    oldest: dict[str, float] = field(default_factory=dict)
    """The greatest age of each task of the beat, in seconds."""
    late: Counter[str] = field(default_factory=Counter)
    """Samples in which a task was older than LATEST_SECONDS."""
    samples: int = 0

    def note(self, ages: dict[str, float]) -> None:
        self.samples += 1
        for name, age in ages.items():
            self.oldest[name] = max(age, self.oldest.get(name, 0.0))
            self.late[name] += age > LATEST_SECONDS

    @property
    def per_minute(self) -> float:
        """Return how many tests of good links ended in a minute, well or as failed."""
        return (self.ended["done"] + self.ended["failed"]) / self.seconds * 60


def tell(text: str) -> None:
    print(text, flush=True)


@contextmanager
def grid_of(endpoints: int, settings: dict[str, str], ways: list[str]) -> Iterator[Grid]:
    """Give a grid with its storage, its registry and its workers, on an empty database."""
    with ExitStack() as stack:
        place = Path(tempfile.mkdtemp(prefix="sonar-long-run-"))
        stack.callback(shutil.rmtree, place, ignore_errors=True)
        place.chmod(0o755)
        grid = Grid(place, stack.enter_context(embedded.socket_directory()), place)
        stack.callback(grid.close)
        grid.start_services(SETTINGS | settings)
        grid.nodes.start()
        grid.hostile.start(ways, endpoints)
        registry = good_registry(grid.nodes)
        good = [one["name"] for one in registry["endpoints"]]
        grid.load(with_hostile(registry, grid.hostile, good, every={"small": "5m"}, enabled=False))
        grid.start_workers({}, {})
        yield grid


def set_enabled(grid: Grid, *, hostile: bool) -> None:
    """Let the planner test with the hostile endpoints, or not."""
    sql = "UPDATE sonar_mesh SET enabled = %(hostile)s WHERE name = ANY (%(meshes)s)"
    grid.ask(sql, hostile=hostile, meshes=list(HOSTILE))


def counted(grid: Grid) -> Counter[str]:
    return Counter(dict(grid.ask(ENDED, mesh=GOOD)))


def watch(grid: Grid, seconds: float, say: Callable[[str], None] = tell) -> Phase:
    """Look at the ages of planner and compaction each second, and count what ends meanwhile."""
    phase, before, began = Phase(), counted(grid), time.monotonic()
    while phase.seconds < seconds:
        phase.note(dict(grid.ask(AGES)))
        if phase.samples % 30 == 0:
            ages = ", ".join(f"{name} {phase.oldest.get(name, 0):.0f} s" for name in WATCHED)
            open_probes = grid.count("sonar_probe")
            say(f"{phase.seconds:4.0f} s: {open_probes} tests open, oldest so far: {ages}")
        time.sleep(1)
        phase.seconds = time.monotonic() - began
    phase.ended = counted(grid) - before
    return phase


def rows_of(grid: Grid, alone: Phase, beside: Phase) -> list[Row]:
    """Say what was measured beside what is wanted."""
    share = beside.per_minute / alone.per_minute if alone.per_minute else 0.0
    rows = [
        Row("good links alone: tests ended per minute", f"{alone.per_minute:.0f}"),
        Row("beside hostile endpoints", f"{beside.per_minute:.0f}"),
        Row("share kept", f"{share:.0%}", f">= {SHARE_KEPT:.0%}", share >= SHARE_KEPT),
        Row("of these done / failed", f"{beside.ended['done']} / {beside.ended['failed']}"),
    ]
    for name in WATCHED:
        age = beside.oldest.get(name, float("inf"))
        text = f"{age:.1f} s ({beside.late[name]} of {beside.samples} samples late)"
        rows.append(Row(f"oldest {name}", text, f"<= {LATEST_SECONDS} s", age <= LATEST_SECONDS))
    left = len(grid.nodes.files_left())
    rows += [
        Row("leftovers remembered", grid.count("sonar_leftover")),
        Row("open circuits", grid.count("sonar_circuit", "next_test_at IS NOT NULL")),
        Row("most memory of the hostile server", f"{grid.hostile.memory_bytes / 1e6:.0f} MB"),
        Row("files left at good nodes once all is quiet", left, "0", not left),
    ]
    return rows


def come_to_rest(grid: Grid, seconds: float) -> None:
    """Plan no more, and give what runs and what cleans some time."""
    set_enabled(grid, hostile=False)

    def quiet() -> bool:
        grid.plan_no_more()
        return not grid.count("sonar_probe") and not grid.nodes.files_left()

    wait_for(quiet, seconds, pause=1)


def start_planning(grid: Grid, *, hostile: bool) -> None:
    """Begin a phase: each test falls due at the same moment of it as in the others."""
    set_enabled(grid, hostile=hostile)
    of_hostile = "mesh_id IN (SELECT id FROM sonar_mesh WHERE name = 'to-hostile')"
    wait_for(lambda: bool(grid.count("sonar_schedule", of_hostile)) == hostile, 60)
    for mesh in (GOOD, *HOSTILE):
        grid.make_due(mesh)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storage.long_run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help="with hostile endpoints")
    parser.add_argument("--alone", type=float, help="minutes without; at most 5, if not given")
    parser.add_argument("--endpoints", type=int, default=50, help="hostile ones")
    parser.add_argument("--in-flight", type=int, default=100, help="SONAR_IN_FLIGHT")
    options = parser.parse_args()
    end_in_order()
    alone_minutes = options.alone or min(options.minutes, 5)
    settings = {"SONAR_IN_FLIGHT": str(options.in_flight)}
    with grid_of(options.endpoints, settings, []) as grid:
        wait_for(lambda: grid.count("sonar_schedule") > 0, 60)
        come_to_rest(grid, REST_SECONDS)
        tell(f"The good links alone, {alone_minutes:g} minutes:")
        start_planning(grid, hostile=False)
        alone = watch(grid, alone_minutes * 60)
        come_to_rest(grid, REST_SECONDS)
        print(
            f"Beside {options.endpoints} hostile endpoints, {options.minutes:g} minutes:",
            flush=True,
        )
        start_planning(grid, hostile=True)
        beside = watch(grid, options.minutes * 60)
        come_to_rest(grid, REST_SECONDS)
        rows = rows_of(grid, alone, beside)
    print(table(rows))
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
