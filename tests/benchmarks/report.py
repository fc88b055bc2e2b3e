"""What a run has found, for people and as JSON."""

import json
import os
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from django.db import connection
from rich.table import Table

from tests.benchmarks.bench import Bench, Contest
from tests.benchmarks.measured import Goal, Spread, figure, wide_console

WORDS = {True: "[green]met[/]", False: "[red]NOT met[/]", None: "not measured"}
# The goals are about a grid: on small data all are fast, and only the answers are looked at.
TOO_SMALL = "small"
LIBRARIES = ("django", "djangorestframework", "psycopg", "numpy", "orjson", "duckdb", "gunicorn")
SETTINGS: tuple[str, ...] = ("shared_buffers", "work_mem", "jit", "max_parallel_workers_per_gather")
SETTINGS += ("fsync", "synchronous_commit", "autovacuum")


def about_machine() -> dict[str, str]:
    """Say on what a run was measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.machine()}",
        "load": f"{os.getloadavg()[0]:.1f} when the run began",
        "Python": platform.python_version(),
        "PostgreSQL": about_postgres(),
        "libraries": ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
    }


def about_postgres() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        found = [str(cursor.fetchone()[0])]
        for name in SETTINGS:
            cursor.execute(f"SHOW {name}")
            found.append(f"{name} {cursor.fetchone()[0]}")
    return ", ".join(found)


def show(bench: Bench, machine: dict[str, str]) -> None:
    console = wide_console()
    for name, value in machine.items():
        console.print(f"{name}: {value}", highlight=False)
    scale = bench.scale
    console.print(
        f"scale {scale.name}: {scale.rows:,} results of {scale.links:,} links over {scale.days} "
        f"days, 3 classes; contestants in turn, {scale.rounds} rounds unless said otherwise",
        highlight=False,
    )
    console.print(
        contests(bench.contests),
        facts(bench),
        goals(bench.goals, judged=bench.scale.name != TOO_SMALL),
    )


def goals(found: list[Goal], *, judged: bool) -> Table:
    table = Table("goal", "", "limit", "median", "range", "", "note", title="Goals")
    for goal in found:
        bound = "at least" if goal.at_least else "at most"
        table.add_row(
            str(goal.number),
            goal.text,
            f"{bound} {goal.limit:g} {goal.unit}",
            "" if goal.value is None else f"{figure(goal.value)} {goal.unit}",
            extremes(goal.minimum, goal.maximum),
            WORDS[goal.met] if judged else "not judged: small data",
            goal.note,
        )
    return table


def contests(found: list[Contest]) -> Table:
    table = Table("contest", "contestant", "median ms", "range", "rounds", title="Contests")
    for contest in found:
        title = contest.title
        for name, spread in contest.milliseconds.items():
            table.add_row(title, name, *cells(spread))
            title = ""
        table.add_section()
    return table


def cells(spread: Spread) -> tuple[str, str, str]:
    range_of = extremes(spread.minimum, spread.maximum)
    return figure(spread.median), range_of, str(spread.rounds)


def facts(bench: Bench) -> Table:
    table = Table("besides", "", "note", title="Figures without a limit")
    for fact in bench.facts:
        table.add_row(fact.name, f"{figure(fact.value)} {fact.unit}", fact.note)
    return table


def extremes(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{figure(low)} - {figure(high)}"


def write_json(bench: Bench, machine: dict[str, str], path: Path) -> None:
    found = {
        "machine": machine,
        "scale": asdict(bench.scale),
        "goals": [
            {**asdict(goal), "met": goal.met if bench.scale.name != TOO_SMALL else None}
            for goal in bench.goals
        ],
        "contests": [asdict(contest) for contest in bench.contests],
        "facts": [asdict(fact) for fact in bench.facts],
    }
    path.write_text(json.dumps(found, indent=1) + "\n")
