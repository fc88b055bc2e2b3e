"""Figures beside the goals: cold caches, 304s, whole grids, disk, sealing, memory."""

import statistics
from datetime import datetime, timedelta
from functools import partial

from django.db import connection

from matrix.store import segment_columns
from sonar.models import DirtyMark
from sonar.models.version import Level
from sonar.notation.windows import Window
from sonar.results import sealing
from tests.benchmarks import loopback, memory, product, scale, server
from tests.benchmarks.bench import SIZE, Bench
from tests.benchmarks.measured import Goal, Spread, one_time
from tests.benchmarks.prepare import LATER

DAYS = (1, 7, 30)
MEMORY_LIMIT_MB = 800
NOT_MODIFIED_LIMIT_MS = 5
REQUESTS = 50
SEALED_DAYS = 5
HOUR = timedelta(hours=1)
SIZES = """
    SELECT 'rows of results', sum(pg_table_size(child.oid))
    FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
    WHERE inhparent = 'sonar_transfer'::regclass
    UNION ALL
    SELECT 'their indexes', sum(pg_indexes_size(child.oid))
    FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
    WHERE inhparent = 'sonar_transfer'::regclass
    UNION ALL
    SELECT level || ' segments, payload alone', sum(octet_length(keys) + octet_length(offsets)
        + octet_length(sizes) + octet_length(profiles) + octet_length(links)
        + octet_length(lasts))
    FROM sonar_segment GROUP BY level
"""


def all_of_them(bench: Bench) -> list[Goal]:
    for days in DAYS:
        cold_and_warm(bench, scale.aligned(days), days)
        whole_grids(bench, scale.aligned(days), days)
    disk(bench)
    sealing_times(bench)
    prepared(bench)
    return [*peak_memory(bench), not_modified(bench)]


def cold_and_warm(bench: Bench, window: Window, days: int) -> None:
    """The columns in this process, or only in PostgreSQL's own cache."""

    def cold() -> None:
        segment_columns.CACHE.clear()
        product.exact(SIZE, window)

    contestants = {"warm": lambda: product.exact(SIZE, window), "cold": cold}
    # One after the other in each round: the cold one leaves the columns to the warm one.
    bench.contest(f"{days} d, columns in the process's cache or not", contestants)


def whole_grids(bench: Bench, window: Window, days: int) -> None:
    stats = ("mean", "median", "throughput", "success")
    contestants = {stat: partial(product.grid, SIZE, window, stat) for stat in stats}
    bench.contest(f"{days} d, whole grid.build by stat", contestants)


def disk(bench: Bench) -> None:
    with connection.cursor() as cursor:
        cursor.execute(SIZES)
        sizes = dict(cursor.fetchall())
    # When they had just been made: sealing again leaves space for the next ones.
    sizes["segments with their table and index"] = bench.kept.figures("segments")["bytes"]
    for name, size in sizes.items():
        bench.fact(f"disk, {name}", float(size) / bench.scale.rows, "MB per million results")


def sealing_times(bench: Bench) -> None:
    """Seal days again: an hour alone, an hour and its day, and the whole day."""
    seal = partial(sealing.seal_day, bench.size_class_id)
    hours, late, whole = [], [], []
    for number in range(1, SEALED_DAYS + 1):
        day = scale.END - timedelta(days=number)
        noon = day + 12 * HOUR
        mark(bench.size_class_id, noon)
        hours.append(one_time(partial(seal, day, noon + HOUR + sealing.GRACE)))
        mark(bench.size_class_id, noon)
        late.append(one_time(partial(seal, day, LATER)))
        whole.append(one_time(partial(seal, day, LATER, everything=True)))
    results = bench.scale.rows / bench.scale.days / 3
    for name, seconds, note in (
        ("sealing an hour that is over", hours, f"{results / 24:,.0f} results"),
        ("sealing an hour and its day after a late result", late, f"{results:,.0f} results"),
        ("sealing a day and all its hours", whole, f"{results:,.0f} results, 25 segments"),
    ):
        bench.fact(name, 1000 * statistics.median(seconds), "ms", note)


def mark(size_class_id: int, hour: datetime) -> None:
    DirtyMark.objects.create(size_class_id=size_class_id, level=Level.HOUR, start=hour)


def prepared(bench: Bench) -> None:
    """Repeat what the preparation measured, in this run or in the one that kept the data."""
    for stage, what in (("rows", "loading with indexes"), ("segments", "rebuilding segments")):
        figures = bench.kept.figures(stage)
        bench.fact(what, figures["rows"] / figures["seconds"], "results/s")
    peers = bench.kept.figures("peers")["rows"]
    bench.fact(
        "results that PostgreSQL's slim table and DuckDB hold", peers, f"of {bench.scale.rows:,}"
    )


def peak_memory(bench: Bench) -> list[Goal]:
    """A 30-day query at 1,000 endpoints stays below 800 MB."""
    variables = server.environment(bench.home, bench.url)
    goals = []
    for what in product.HEAVY:
        with bench.at_work(f"Peak memory of 30 d, {what}"):
            figures = memory.measured(what, 30, variables)
        spread = Spread.of([figures["peak_mb"]])
        note = f"{figures['before_mb']:.0f} MB before; {bench.scale.links:,} links"
        text = f"peak memory of a fresh process, 30 d, {what}"
        goals.append(
            Goal.from_spread(0, text, MEMORY_LIMIT_MB, spread, "MB", at_least=False, note=note)
        )
    return goals


def not_modified(bench: Bench) -> Goal:
    """A matrix request that changes nothing is a 304 in less than 5 ms."""
    query = {"size": SIZE} | scale.bounds(scale.aligned(30))
    with loopback.sonar(bench.home, server.environment(bench.home, bench.url)) as web:
        headers = {"If-None-Match": web.get("/api/v1/matrix/", query).headers["ETag"]}
        answers = [web.get("/api/v1/matrix/", query, headers).status]
        seconds = [
            one_time(lambda: answers.append(web.get("/api/v1/matrix/", query, headers).status))
            for _ in range(REQUESTS)
        ]
    if set(answers) != {304}:
        raise RuntimeError(f"expected a 304 each time, not {sorted(set(answers))}")
    spread = Spread.of([1000 * one for one in seconds])
    text = "a matrix request that changes nothing, 304 over HTTP"
    limit = NOT_MODIFIED_LIMIT_MS
    return Goal.from_spread(0, text, limit, spread, "ms", at_least=False, note="30 d, gunicorn")
