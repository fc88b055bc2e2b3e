"""Goal 6: results through the door, marks and all, against bulk_create of the same rows."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import islice
from os import environ
from uuid import UUID

import numpy as np
from django.db import connection, models

from sonar.models import Transfer
from sonar.results import store
from sonar.results.store import Result
from tests.benchmarks import data, server, year
from tests.benchmarks.bench import Bench
from tests.benchmarks.copy_rows import ERROR, WHERE, WORKER, Ids
from tests.benchmarks.databases import another
from tests.benchmarks.measured import Contestant, Goal, Spread, of_the_fastest, ratio
from tests.benchmarks.scale import SEED

BATCH = 1_000
BATCHES_PER_ROUND = 10
FILES = 5
# As dense as ten million in ninety days: a batch touches the hours that a live one would.
BATCH_US = 13 * 60 * 10**6
# A month without other results: both tables begin empty.
MONTH = datetime(2020, 1, 1, tzinfo=UTC)
AFTERWARDS = MONTH + timedelta(days=70)
SONAR, IMPORT, BULK_CREATE = "Sonar, own tests", "Sonar, imports", "Django bulk_create"

# The usual way to store: bulk_create into an ordinary table with the same columns.
PLAIN_TABLE = "peer_plain"
MAKE_PLAIN = f"""
    DROP TABLE IF EXISTS {PLAIN_TABLE};
    CREATE TABLE {PLAIN_TABLE} (LIKE sonar_transfer INCLUDING ALL);
"""


def goal_6(bench: Bench) -> list[Goal]:
    each = bench.scale.times(BATCHES_PER_ROUND)
    count = (bench.scale.rounds + 1) * each
    batches = list(islice(stream(bench.ids, bench.scale.endpoints), 2 * count))
    make_plain_table()
    try:
        seconds = bench.contest(
            f"{each} batches of {BATCH:,} results, each committed",
            contestants(batches, each),
        )
    finally:
        drop_plain_table()
        store.drop_expired(AFTERWARDS, 1)
    rate = BATCH * each / np.median(seconds[SONAR])
    text = "ingest with dirty marks against bulk_create, batches of 1,000"
    note = f"{of_the_fastest(seconds[BULK_CREATE], seconds[SONAR])}; {rate:,.0f} results/s"
    imports = ratio(seconds[BULK_CREATE], seconds[IMPORT])
    about = "the same for imports, which look for each id in every month"
    return [
        Goal.from_spread(6, text, 4, ratio(seconds[BULK_CREATE], seconds[SONAR]), note=note),
        Goal.from_spread(6, about, 4, imports),
        *files_into_a_year(bench),
    ]


def files_into_a_year(bench: Bench) -> list[Goal]:
    """Import files by the command into a year of results; then copy the same rows, and no more."""
    with (
        another(bench, "year", bench.scale.name) as url,
        bench.at_work("Importing files into a year of results"),
    ):
        files = str(bench.scale.times(FILES))
        arguments = [bench.scale.name, str(bench.home / "new.csv"), files]
        found = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.year", *arguments],
            check=True,
            env={**environ, **server.environment(bench.home, url)},
            stdout=subprocess.PIPE,
        )
    seconds: dict[str, list[float]] = json.loads(found.stdout)
    text = "import_results into a year of kept results, checks included"
    count = bench.scale.rows // year.SHARE
    note = f"{count:,} results a file, {bench.scale.rows:,} kept in {year.DAYS} days"
    rates = Spread.of([count / second for second in seconds["imports"]])
    bare, marked = seconds["bare"], seconds["with triggers"]
    to_bare = Spread.of([second / float(np.median(bare)) for second in seconds["imports"]])
    said = (
        f"the copy {count / np.median(bare):,.0f} rows/s, "
        f"with the triggers {count / np.median(marked):,.0f}"
    )
    about = "its time against a bare COPY of the same rows, which checks nothing and marks nothing"
    return [
        Goal.from_spread(6, text, 120_000, rates, "rows/s", note=note),
        Goal.from_spread(6, about, 3, to_bare, at_least=False, note=said),
    ]


def contestants(batches: list[list[Result]], each: int) -> dict[str, Contestant]:
    """Return who stores ``each`` next batches of the same rows; objects are made beforehand."""
    model = plain_model()
    half = len(batches) // 2
    ours, imported = iter(batches[:half]), iter(batches[half:])
    theirs = iter([[model(**asdict(one)) for one in batch] for batch in batches[:half]])

    def store_new() -> None:
        for batch in islice(ours, each):
            store.store(batch, ids_are_new=True)

    def look_and_store() -> None:
        for batch in islice(imported, each):
            store.store(batch)

    def bulk_create() -> None:
        for objects in islice(theirs, each):
            model._default_manager.bulk_create(objects, batch_size=len(objects))

    return {SONAR: store_new, IMPORT: look_and_store, BULK_CREATE: bulk_create}


def stream(ids: Ids, endpoints: int) -> Iterator[list[Result]]:
    """Make batches of results, each a few minutes after the one before."""
    rng = np.random.default_rng(SEED)
    usual = data.usual_rates(endpoints)
    start = data.unix_us(MONTH)
    while True:
        rows = data.drawn(rng, start + np.sort(rng.integers(0, BATCH_US, BATCH)), usual)
        yield [result(row, ids, rng) for row in rows]
        start += BATCH_US


def result(row: np.void, ids: Ids, rng: np.random.Generator) -> Result:
    failed = bool(row["failed"])
    return Result(
        id=UUID(bytes=rng.bytes(16), version=4),
        source_id=int(ids.endpoints[row["source"]]),
        destination_id=int(ids.endpoints[row["destination"]]),
        size_class_id=int(ids.size_classes[row["size_class"]]),
        profile_id=int(ids.profiles[row["profile"]]),
        state="failed" if failed else "done",
        started_at=datetime.fromtimestamp(row["started_us"] / 1e6, UTC),
        seconds=float(row["seconds"]),
        bytes=int(row["bytes"]),
        error=ERROR.decode() if failed else "",
        error_where=WHERE.decode() if failed else "",
        worker=WORKER.decode(),
    )


def plain_model() -> type[models.Model]:
    """Return a model with the fields of Transfer over a table of its own."""
    meta = type("Meta", (), {"managed": False, "db_table": PLAIN_TABLE, "app_label": "sonar"})
    fields = {one.name: one.clone() for one in Transfer._meta.concrete_fields}
    return type("PlainTransfer", (models.Model,), {**fields, "Meta": meta, "__module__": __name__})


def make_plain_table() -> None:
    """Make the table: columns, checks, primary key and indexes as those of the store."""
    with connection.cursor() as cursor:
        cursor.execute(MAKE_PLAIN)


def drop_plain_table() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {PLAIN_TABLE}")
