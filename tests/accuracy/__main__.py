"""`make accuracy`: writes how often causes are named right into docs/diagnosis.md and as JSON.

With `--seed` other than 1, it only prints: thresholds are tuned on such seeds, not on that of the
tables.
"""

import argparse
import multiprocessing
import sys

from tests.accuracy import compared, report
from tests.accuracy.grids import Grid
from tests.accuracy.plan import tasks
from tests.accuracy.trials import SEED, Figure, Question
from tests.accuracy.trials import figure as figure_of


def work(task: tuple[Question, Grid, float, int, int]) -> Figure:
    return figure_of(*task)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, help="as many as there are cores, if not given")
    args = parser.parse_args()
    seed = args.seed
    every, figures = [(*task, seed) for task in tasks()], []
    with multiprocessing.Pool(args.processes) as pool:
        for figure in pool.imap_unordered(work, every):
            figures.append(figure)
            print(f"{len(figures)} of {len(every)}: {report.line(figure)}", flush=True)
    if seed == SEED:
        report.write(figures)
        report.write_compared(compared.table())
    verdicts = report.verdicts(figures)
    print(*verdicts, sep="\n")
    return int(any(verdict.endswith("NOT met") for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
