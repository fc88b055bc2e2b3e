"""`make accuracy`: writes how often causes are named right into docs/diagnosis.md and as JSON."""

from __future__ import annotations

import multiprocessing
import sys

from tests.accuracy import report
from tests.accuracy.grids import Grid
from tests.accuracy.plan import tasks
from tests.accuracy.trials import Figure, Question
from tests.accuracy.trials import figure as figure_of


def work(task: tuple[Question, Grid, float, int]) -> Figure:
    return figure_of(*task)


def main() -> int:
    every, figures = list(tasks()), []
    with multiprocessing.Pool() as pool:
        for figure in pool.imap_unordered(work, every):
            figures.append(figure)
            print(f"{len(figures)} of {len(every)}: {report.line(figure)}", flush=True)
    report.write(figures)
    verdicts = report.verdicts(figures)
    print(*verdicts, sep="\n")
    return int(any(verdict.endswith("NOT met") for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
