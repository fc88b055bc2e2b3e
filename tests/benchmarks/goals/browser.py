"""Goal 10: the matrix in Chromium, from the response to the first cells, and under the pointer.

A size that is not that of the run's data gets a database of its own, with one result a link.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from django.core.management import call_command
from django.test import override_settings

from tests.benchmarks import chromium, loopback, scale, server
from tests.benchmarks.bench import SIZE, Bench
from tests.benchmarks.chromium import Seen
from tests.benchmarks.databases import another
from tests.benchmarks.measured import Goal, Spread

# Endpoints -> milliseconds from the end of the response to the first cells on the screen.
CELLS_LIMITS_MS = {200: 300, 1_000: 600}
HOVER_LIMIT_MS = 20
DRAG_LIMIT_MS = 200
DAYS = 1
ROUNDS = 5
ALL_KINDS = ("css", "js", "json", "map", "svg", "txt")


def goal_10(bench: Bench) -> list[Goal]:
    sizes = list(CELLS_LIMITS_MS)
    if bench.scale.is_small:
        sizes = [bench.scale.endpoints]
    if not chromium.installed():
        note = "chromium is not on the PATH"
        return [Goal(10, f"{size} x {size}", 0, None, note=note) for size in sizes]
    with override_settings(**layout(bench)):
        call_command("collectstatic", interactive=False, verbosity=0)
    return [goal for size in sizes for goal in goals_of(bench, size)]


def layout(bench: Bench) -> dict[str, Any]:
    """Return settings for static files: a smoke test does not compress what it asks for once."""
    return {"WHITENOISE_SKIP_COMPRESS_EXTENSIONS": ALL_KINDS} if bench.scale.is_small else {}


def goals_of(bench: Bench, endpoints: int) -> list[Goal]:
    seen = looked_at(bench, endpoints)
    matrix = f"{endpoints:,} x {endpoints:,} cells"
    besides(bench, matrix, seen)
    first = Spread.of([one.first for one in seen])
    moves = Spread.of([move for one in seen for move in one.moves])
    # Of smaller ones, in a smoke test, the limit of the next larger size.
    limit = CELLS_LIMITS_MS.get(endpoints, min(CELLS_LIMITS_MS.values()))
    about = "response to first cells, empty caches"
    goals = [
        goal(f"{matrix}, {about}", limit, first, f"{len(seen)} loads"),
        goal(f"{matrix}, pointer to next frame", HOVER_LIMIT_MS, moves, f"{moves.rounds} moves"),
    ]
    steps = Spread.of([step for one in seen for step in one.steps])
    about = "an hour of a drag over the strip of time to its picture"
    return [*goals, goal(f"{matrix}, {about}", DRAG_LIMIT_MS, steps, f"{steps.rounds} hours")]


def goal(text: str, limit: float, spread: Spread, note: str) -> Goal:
    return Goal.from_spread(10, text, limit, spread, "ms", at_least=False, note=note)


def besides(bench: Bench, matrix: str, seen: list[Seen]) -> None:
    """Note what the issue sets no number for."""
    figures: dict[str, Callable[[Seen], float]] = {
        "response to the whole picture": lambda one: one.picture,
        "response to numbers under the pointer": lambda one: one.cells,
        "longest task while loading": lambda one: one.longest_task,
        "longest task while pointing (50 ms or more)": lambda one: one.longest_task_hovering,
    }
    for what, figure in figures.items():
        spread = Spread.of([figure(one) for one in seen])
        bench.fact(f"{matrix}, {what}", spread.median, "ms", f"at most {spread.maximum:.0f} ms")


def looked_at(bench: Bench, endpoints: int) -> list[Seen]:
    """Look at the matrix of the last day several times, after once for the server's caches.

    Each time colours begin at another rate, as the server keeps answers. In a smoke test, whose
    figures nobody reads, once is enough.
    """
    query = {"size": SIZE} | scale.bounds(scale.aligned(DAYS))
    rounds = bench.scale.times(ROUNDS)
    with database(bench, endpoints) as url, bench.at_work(f"{endpoints} endpoints in Chromium"):
        environment = server.environment(bench.home, url)
        with loopback.sonar(bench.home, environment) as web, chromium.running() as browser:
            questions = [query | {"low": f"{number / 1000}"} for number in range(1, rounds + 2)]
            first, *others = [f"{web.url}/?{urlencode(question)}" for question in questions]
            if not bench.scale.is_small:
                chromium.see(browser, first)
            return [chromium.see(browser, address) for address in others]


@contextmanager
def database(bench: Bench, endpoints: int) -> Iterator[str]:
    if endpoints == bench.scale.endpoints:
        yield bench.url
        return
    with another(bench, "every_cell", endpoints) as url:
        yield url
