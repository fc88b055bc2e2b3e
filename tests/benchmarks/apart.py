"""Goals that are measured by a program of their own, on servers of their own."""

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
from tests.benchmarks.measured import Goal
from tests.benchmarks.scale import SCALES

CORES = 2


@dataclass(frozen=True)
class Program:
    """A benchmark that is a program.

    ``measure`` names the module whose ``measure(scale, home)`` gives the goals; it is loaded
    once Django is set up. ``options`` are settings of PostgreSQL, ``environment`` of Sonar.
    """

    name: str
    about: str | None
    measure: str
    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, scale: str) -> list[Goal]:
        """Run it as a child, so that it has its own settings and memory."""
        with tempfile.NamedTemporaryFile(suffix=".json") as found:
            command = [sys.executable, "-m", self.name, "--scale", scale, "--json", found.name]
            subprocess.run(command, check=True)
            return [Goal(**one) for one in json.loads(Path(found.name).read_text())]

    def main(self) -> None:
        """Be that child, or what somebody has started by hand."""
        chosen = arguments(self)
        keep_to_two_cores()
        with servers(self.options) as home:
            os.environ |= self.environment
            django.setup()
            goals: list[Goal] = import_module(self.measure).measure(chosen.scale, home)
        if chosen.json:
            chosen.json.write_text(json.dumps([asdict(goal) for goal in goals]))
        else:
            print(*map(in_words, goals), sep="\n")


def arguments(program: Program) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {program.name}", description=program.about)
    parser.add_argument("--scale", choices=SCALES, default="default", help="small is for a look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the goals to a file")
    return parser.parse_args()


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
    with (
        tempfile.TemporaryDirectory(prefix="sonar-bench-") as name,
        embedded.socket_directory() as sockets,
    ):
        home = Path(name)
        home.chmod(0o755)  # PostgreSQL may run as another user
        (home / "static").mkdir()
        template.copy_to(home / "postgres")
        database = embedded.postgres(home / "postgres", sockets, home / "pg.log", *options)
        with database as url, embedded.redis_server(home / "redis", sockets, home / "r.log") as q:
            os.environ |= {
                "DJANGO_SETTINGS_MODULE": "sonar.settings",
                "SONAR_HOME": str(home),
                "SONAR_SECRET_KEY": "only-for-benchmarks",
                "DATABASE_URL": template.with_tables(url),
                "REDIS_URL": q,
            }
            yield home
