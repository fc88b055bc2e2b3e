"""Peak memory of a query: each in a fresh process, which prints what it saw as JSON.

`python -m tests.benchmarks.memory WHAT DAYS`, on the database that its environment names.
"""

import json
import subprocess
import sys
from os import environ
from pathlib import Path

import django

from tests.benchmarks.scale import aligned


def peak_mb(pid: int | str = "self") -> float:
    """Return the most memory that a process has had resident.

    Not getrusage: a child's ru_maxrss begins with what its parent had when it started it.
    """
    return told_mb("VmHWM:", f"/proc/{pid}/status")


def resident_mb(pid: int | str = "self") -> float:
    return told_mb("VmRSS:", f"/proc/{pid}/status")


def own_mb(pid: int) -> float:
    """Return the memory of a process; what it shares with others counts by its part of it."""
    return told_mb("Pss:", f"/proc/{pid}/smaps_rollup")


def told_mb(name: str, path: str) -> float:
    line = next(line for line in Path(path).read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024 / 1e6


def main(what: str, days: int) -> None:
    django.setup()
    from tests.benchmarks import product
    from tests.benchmarks.bench import SIZE

    before = peak_mb()
    product.HEAVY[what](SIZE, aligned(days))
    print(json.dumps({"before_mb": before, "peak_mb": peak_mb()}))


def measured(what: str, days: int, variables: dict[str, str]) -> dict[str, float]:
    """Run a query in a process of its own; return its memory when Sonar is loaded, and at most."""
    command = [sys.executable, "-m", "tests.benchmarks.memory", what, str(days)]
    environment = {**environ, **variables}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
