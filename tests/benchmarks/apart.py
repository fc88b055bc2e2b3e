"""Goals that are measured by a program of their own, on servers of their own.

`python -m tests.benchmarks.apart NUMBER` measures one by hand.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path

import django

from sonar.sandbox import embedded
from tests import template
from tests.benchmarks import server
from tests.benchmarks.measured import Goal
from tests.benchmarks.scale import SCALES

CORES = 2
MANY_IN_FLIGHT = {
    "SONAR_IN_FLIGHT": "500",
    "SONAR_PLAN_SECONDS": "1",
    "SONAR_DATABASE_POOL": "8",
}


@dataclass(frozen=True)
class Program:
    """A benchmark that is a program.

    ``measure`` names the module whose ``measure(scale, home)`` gives the goals; it is loaded
    once Django is set up. ``options`` are settings of PostgreSQL, ``environment`` of Sonar.
    """

    measure: str
    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


# By the number of their goal.
PROGRAMS = {
    8: Program("in_flight", environment=MANY_IN_FLIGHT),
    # Memory for the schedule and its indexes (1 GB), as such a database would be given.
    9: Program(
        "ticks", options=("shared_buffers=2GB", "max_wal_size=8GB", "jit=off", "autovacuum=off")
    ),
    15: Program("in_programs", environment={"SONAR_IN_FLIGHT": "50"}),
    17: Program("in_incidents", options=("max_wal_size=8GB", "jit=off", "autovacuum=off")),
    16: Program("in_service", environment=MANY_IN_FLIGHT),
    18: Program("in_crowd", options=("shared_buffers=1GB", "max_wal_size=4GB")),
}

COMMAND = [sys.executable, "-m", "tests.benchmarks.apart"]
# What is measured at once: memory does not depend on who else is at work.
TOGETHER = ((8,), (9,), (17,), (18,), (15, 16))


def run(numbers: Sequence[int], scale: str) -> list[Goal]:
    """Measure goals side by side in children, so that each has its own settings and memory."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.NamedTemporaryFile(suffix=".json")) for _ in numbers]
        children = [
            subprocess.Popen([*COMMAND, str(number), "--scale", scale, "--json", file.name])
            for number, file in zip(numbers, files, strict=True)
        ]
        if any([child.wait() for child in children]):  # noqa: C419 - each is waited for
            raise RuntimeError(f"one of goals {numbers} broke")
        return [Goal(**one) for file in files for one in json.loads(Path(file.name).read_text())]


def main() -> None:
    """Be that child, or what somebody has started by hand."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.apart", description=__doc__)
    parser.add_argument("number", type=int, choices=PROGRAMS, help="of the goal")
    parser.add_argument("--scale", choices=SCALES, default="default", help="small is for a look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the goals to a file")
    chosen = parser.parse_args()
    program = PROGRAMS[chosen.number]
    keep_to_two_cores()
    with servers(program.options) as home:
        os.environ |= program.environment
        django.setup()
        module = import_module(f"tests.benchmarks.{program.measure}")
        goals: list[Goal] = module.measure(chosen.scale, home)
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(goal) for goal in goals]))
    else:
        print(*map(in_words, goals), sep="\n")


def in_words(goal: Goal) -> str:
    relation, met = "at least" if goal.at_least else "at most", "met" if goal.met else "NOT met"
    spread = f"({goal.minimum:.4g} to {goal.maximum:.4g})" if goal.minimum is not None else ""
    return (
        f"goal {goal.number}: {goal.text}: {goal.value:.4g} {goal.unit} {spread}, "
        f"{relation} {goal.limit:g}: {met}; {goal.note}"
    )


def keep_to_two_cores() -> None:
    """Let this process, and whatever it starts, use two cores at most."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


@contextlib.contextmanager
def servers(options: Sequence[str]) -> Iterator[Path]:
    """Run a PostgreSQL with empty tables and a Redis, and point the settings at them.

    Gives their directory.
    """
    with server.temporary_directory() as home, embedded.socket_directory() as sockets:
        (home / "static").mkdir()
        template.copy_to(home / "postgres")
        database = embedded.postgres(home / "postgres", sockets, home / "pg.log", *options)
        with database as url, embedded.redis_server(home / "redis", sockets, home / "r.log") as q:
            os.environ |= server.environment(home, template.with_tables(url), redis=q)
            yield home


if __name__ == "__main__":
    main()
