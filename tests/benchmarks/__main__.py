"""`make bench`: measures the goals of docs/storage.md beside their limits."""

import argparse
import os
import sys
from pathlib import Path

from tests.benchmarks import server
from tests.benchmarks.kept import Kept
from tests.benchmarks.scale import SCALES, Scale

# 0 stands for the limits of memory and of a 304, which have no number, and for mere figures.
NUMBERS = tuple(range(19))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "--scale",
        choices=SCALES,
        default=os.environ.get("SCALE") or "default",
        help="rows and endpoints; goal 3 needs large (100 million results, about 40 GB of disk); "
        "SCALE says it too",
    )
    parser.add_argument(
        "--only",
        type=numbers,
        default=os.environ.get("ONLY") or "",
        metavar="1,2,...",
        help="goals to measure; 0 stands for memory, 304s and the other figures; ONLY says it too",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    parser.add_argument(
        "--home",
        default=os.environ.get("BENCH_HOME"),
        metavar="DIRECTORY",
        help="keep the data here and use it again; BENCH_HOME says it too (default: a temporary "
        "directory)",
    )
    return parser.parse_args()


def numbers(text: str) -> tuple[int, ...]:
    chosen = tuple(int(part) for part in text.split(",") if part.strip()) or NUMBERS
    if not set(chosen) <= set(NUMBERS):
        raise ValueError(text)
    return chosen


def main() -> None:
    chosen = arguments()
    scale: Scale = SCALES[chosen.scale]
    with server.home_directory(chosen.home, scale) as home:
        kept = Kept(home, scale)
        with server.postgres(home, scale) as url:
            measure(scale, home, url, kept, chosen)


def measure(scale: Scale, home: Path, url: str, kept: Kept, chosen: argparse.Namespace) -> None:
    """Make the data and run the chosen goals; Django is set up here, on the database started."""
    import django

    django.setup()
    from tests.benchmarks import report, run
    from tests.benchmarks.bench import Bench
    from tests.benchmarks.prepare import prepare

    about = report.about_machine()
    bench = Bench(scale, home, url, prepare(scale, kept), kept)

    def note() -> None:
        if chosen.json:
            report.write_json(bench, about, chosen.json)

    broken = run.goals(bench, chosen.only, note)
    report.show(bench, about)
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
