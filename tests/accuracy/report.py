"""The accuracy table: Markdown between two marks of docs/diagnosis.md, and docs/accuracy.json."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from tests.accuracy.plan import GOALS, GRIDS, NOISES, QUESTIONS, Goal
from tests.accuracy.trials import Figure, Question

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
PAGE, NUMBERS = DOCS / "diagnosis.md", DOCS / "accuracy.json"
BEGIN, END = "<!-- accuracy: make accuracy -->", "<!-- end of accuracy -->"
COMPARED = "<!-- compared: make accuracy -->", "<!-- end of compared -->"
Figures = dict[tuple[str, str, float], Figure]


def write(figures: Iterable[Figure]) -> None:
    by_key = keyed(figures)
    rows = [asdict(by_key[key]) for key in sorted(by_key)]
    NUMBERS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(drawn_into(page, by_key.values()), encoding="utf-8")


def kept() -> list[Figure]:
    """Return the figures of the file."""
    return [Figure(**row) for row in json.loads(NUMBERS.read_text(encoding="utf-8"))]


def drawn_into(page: str, figures: Iterable[Figure]) -> str:
    """Return the page with the tables between their marks."""
    by_key = keyed(figures)
    parts = [*(table(by_key, noise) for noise in NOISES), "\n".join(goal_rows(by_key))]
    return between((BEGIN, END), page, "\n\n".join(parts))


def write_compared(table: str) -> None:
    """Write the table of comparisons between its marks."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(between(COMPARED, page, table), encoding="utf-8")


def between(marks: tuple[str, str], page: str, text: str) -> str:
    """Return a page with a text between two marks of it."""
    begin, end = marks
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}"


def keyed(figures: Iterable[Figure]) -> Figures:
    return {(figure.question, figure.grid, figure.noise): figure for figure in figures}


def table(figures: Figures, noise: float) -> str:
    """Return what was named right at a noise, a row for each fault."""
    rows = [
        f"| noise ×{noise:g} | " + " | ".join(grid.name for grid in GRIDS) + " |",
        "| --- |" + " ---: |" * len(GRIDS),
    ]
    for question in QUESTIONS:
        shares = [cell(question, figures.get((question.name, grid.name, noise))) for grid in GRIDS]
        rows.append(f"| {question.name} | " + " | ".join(shares) + " |")
    return "\n".join(rows)


def cell(question: Question, figure: Figure | None) -> str:
    """Return a share of right names, or of false alarms in percent."""
    if figure is None:
        return "–"
    return f"{1 - figure.share:.1%} false" if question.silent else f"{figure.share:.3f}"


def goal_rows(figures: Figures) -> Iterator[str]:
    yield "| goal | grids | noise | least | met |"
    yield "| --- | --- | --- | ---: | --- |"
    for goal in GOALS:
        least = min((figure.share for figure in goal.figures(figures)), default=float("nan"))
        grids = "; ".join(grid.name for grid in goal.grids) if goal.grids != GRIDS else "all"
        noises = ", ".join(f"×{noise:g}" for noise in goal.noises)
        yield f"| {goal.text} | {grids} | {noises} | {least:.3f} | {verdict(goal, figures)} |"


def line(figure: Figure) -> str:
    """Return a figure in words."""
    return (
        f"{figure.question} on {figure.grid} at noise ×{figure.noise:g}: "
        f"{figure.share:.3f} of {figure.trials}"
    )


def verdicts(figures: Iterable[Figure]) -> list[str]:
    """Return a line for each figure that has a goal."""
    by_key = keyed(figures)
    return [
        f"{line(figure)}, at least {goal.share:g}: "
        f"{'met' if figure.share >= goal.share else 'NOT met'}"
        for goal in GOALS
        for figure in goal.figures(by_key)
    ]


def verdict(goal: Goal, figures: Figures) -> str:
    missed = [figure for figure in goal.figures(figures) if figure.share < goal.share]
    if not missed:
        return "yes"
    return "not " + ", ".join(f"{figure.grid} ×{figure.noise:g}" for figure in missed)
