"""Makes the data of a scale, or finds it kept: rows, segments, and the peers' own table."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.core.management import call_command
from django.db import connection
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from sonar.results import sealing
from tests.benchmarks import data, load, registry
from tests.benchmarks.copy_rows import Ids
from tests.benchmarks.kept import Kept
from tests.benchmarks.peers import postgres
from tests.benchmarks.scale import END, Scale

# The peers get the rows that any window of 30 days here asks for.
PEER_DAYS = 31
# At this size the peers' table would be as large as the disk: they get those days only.
ALL_DAYS_UP_TO = 20_000_000
LATER = END + timedelta(days=1)

console = Console(stderr=True)


def prepare(scale: Scale, kept: Kept) -> Ids:
    """Make what is missing; the database runs and the settings point at it."""
    call_command("migrate", verbosity=0)
    if not kept.has("rows"):
        kept.note("rows", store_rows(scale))
    if not kept.has("segments"):
        kept.note("segments", seal_all(scale))
    if not kept.has("peers"):
        kept.note("peers", copy_for_peers(scale))
    return registry.known_ids()


def store_rows(scale: Scale) -> dict[str, float]:
    ids = registry.register(scale.endpoints)
    began = time.perf_counter()
    with bar("Loading results", scale.rows) as (progress, task):
        load.load(data.days(scale), ids, lambda count: progress.update(task, advance=count))
    return {"rows": scale.rows, "seconds": time.perf_counter() - began}


def seal_all(scale: Scale) -> dict[str, float]:
    """Build every segment, as `manage.py rebuild_segments` does."""
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE sonar_segment")  # of an earlier run: its space counts for disk
    began = time.perf_counter()
    days = sealing.filled_days(scale.start, LATER)
    written = 0
    with bar("Sealing days", len(days)) as (progress, task):
        for size_class_id, day in days:
            written += sealing.seal_day(size_class_id, day, LATER, everything=True)
            progress.update(task, advance=1)
    seconds = time.perf_counter() - began
    load.vacuum("sonar_segment", "sonar_dirtymark")
    size = one_number("SELECT pg_total_relation_size('sonar_segment')")
    return {"rows": scale.rows, "segments": written, "seconds": seconds, "bytes": size}


def copy_for_peers(scale: Scale) -> dict[str, float]:
    start = scale.start
    if scale.rows > ALL_DAYS_UP_TO:
        start = END - timedelta(days=PEER_DAYS)
    began = time.perf_counter()
    with console.status("Copying the rows for the peers, with a covering index"):
        postgres.make(start)
    rows = one_number("SELECT count(*) FROM peer_transfer")
    return {"rows": rows, "seconds": time.perf_counter() - began}


def one_number(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.fetchone()[0])


@contextmanager
def bar(what: str, total: float) -> Iterator[tuple[Progress, TaskID]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        yield progress, progress.add_task(what, total=total)
