"""Goal 17: what people are called for among a million links, in three size classes.

Four weeks of a test of each link and class a day stand in segments, as much as is looked at; one
destination is slow, and one source fails. The first evaluation reads all of it, those that follow
what is new. What is kept has the room that it has by default.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from uuid import UUID

import numpy as np
from django.db import connection

from matrix.assessment import assessing
from matrix.statistics.cells.standing import USUAL_DAYS
from sonar.alerting import incidents
from sonar.models import Incident, SizeClass
from sonar.models.version import Level
from sonar.notation.units import MB
from sonar.results import sealing, segments, store
from sonar.results.segments import Columns
from tests.benchmarks import registry
from tests.benchmarks.answer import DisagreementError
from tests.benchmarks.copy_rows import Ids
from tests.benchmarks.measured import Goal, Spread
from tests.benchmarks.memory import peak_mb
from tests.benchmarks.scale import SEED

FULL = "evaluation of {links:,} links x 3 classes"
MEMORY = "memory of the process that does so"
NEXT = "evaluation of 2,000 new results beside them"
CHILD = "import django; django.setup(); from tests.benchmarks.in_incidents import main; main()"
ENDPOINTS = {"small": 20}
MOST_ENDPOINTS, NEW_RESULTS, ROUNDS = 1000, 2000, 3
SPREAD, FAULT_DAYS, FACTOR = 0.3, 3, 3.0
DAY_MS = 86_400_000
NOW = datetime.now(UTC).replace(hour=6, minute=0, second=0, microsecond=0)
MIDNIGHT = NOW.replace(hour=0)


def measure(scale: str, home: Path) -> list[Goal]:
    endpoints = ENDPOINTS.get(scale, MOST_ENDPOINTS)
    ids = registry.register(endpoints, now=NOW)
    for number, size_class in enumerate(SizeClass.objects.order_by("from_bytes")):
        fill(ids, number, size_class.id)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE) sonar_segment, sonar_schedule")
    # A process of its own, as the worker's is: what was made here is not its memory.
    command = [sys.executable, "-c", CHILD]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures = json.loads(done.stdout)
    check(ids)
    text = FULL.format(links=endpoints * (endpoints - 1))
    return [
        Goal.from_spread(
            17,
            name,
            limit,
            Spread.of(figures[key]),
            unit,
            at_least=False,
            note=figures["notes"][key],
        )
        for name, limit, key, unit in (
            (text, 30, "full", "s"),
            (MEMORY, 1000, "memory", "MB"),
            (NEXT, 2, "following", "s"),
        )
    ]


def main() -> None:
    """Evaluate all, and then what is new, some times; print what it took as JSON."""
    full, following = [timed(NOW)], list[tuple[float, float]]()
    for number in range(1, ROUNDS + 1):
        add(registry.known_ids(), number)
        following.append(timed(NOW + timedelta(minutes=number)))
    columns = {"full": zip(*full, strict=True), "following": zip(*following, strict=True)}
    figures, notes = {"memory": [peak_mb()]}, {"memory": ""}
    for key, (seconds, processor) in columns.items():
        figures[key] = [*seconds]
        # Seconds say little where others keep the cores busy.
        notes[key] = f"{median(processor):.3g} s of processor time, load {os.getloadavg()[0]:.0f}"
    print(json.dumps(figures | {"notes": notes}))


def timed(now: datetime) -> tuple[float, float]:
    """Return the seconds of an evaluation, and those of the processor."""
    began, used = time.perf_counter(), time.process_time()
    assessing.assess(now)
    incidents.follow(now)
    return time.perf_counter() - began, time.process_time() - used


def fill(ids: Ids, number: int, size_class: int) -> None:
    """Seal a test of each link for each of the days before today."""
    for back in range(USUAL_DAYS, 0, -1):
        day = MIDNIGHT - timedelta(days=back)
        columns = day_of(ids, np.random.default_rng([SEED, number, back]), back)
        sealing._write(size_class, [(Level.DAY, day, columns)])


def day_of(ids: Ids, rng: np.random.Generator, back: int) -> Columns:
    """Return the results of a day, of which the first destination is slow and a source fails."""
    source, destination = (each.astype(np.uint64) for each in pairs(ids))
    rates = 20 * MB * rng.lognormal(0.0, SPREAD, len(source)).astype(np.float32)
    if back <= FAULT_DAYS:
        rates[destination == ids.endpoints[0]] /= FACTOR
        rates[source == ids.endpoints[1]] = -1
    links = (source << np.uint64(48)) + (destination << np.uint64(32))
    keys = np.sort(links + rates.view(np.uint32).astype(np.uint64))
    offsets = rng.integers(0, DAY_MS, len(keys), dtype=np.uint32)
    sizes = np.full(len(keys), 20 * MB)
    profiles = np.full(len(keys), ids.profiles[0], dtype=np.uint16)
    return Columns(keys, offsets, sizes, profiles, *segments.newest(keys, offsets))


def pairs(ids: Ids) -> Iterator[np.ndarray]:
    """Return the sources and the destinations of all links."""
    ends = np.indices((len(ids.endpoints),) * 2).reshape(2, -1)
    return (ids.endpoints[each[ends[0] != ends[1]]] for each in ends)


def check(ids: Ids) -> None:
    """See that both faults are named, and nothing else."""
    named = {(row.scope, row.source_id, row.destination_id) for row in Incident.objects.all()}
    slow, failing = (int(each) for each in ids.endpoints[:2])
    if named != {("destination", None, slow), ("source", failing, None)}:
        raise DisagreementError(f"incidents are {sorted(map(str, named))}")


def add(ids: Ids, number: int) -> None:
    """Store some results of links of the third endpoint, as workers do."""
    rng = np.random.default_rng([SEED, 10**6, number])
    size_class = SizeClass.objects.earliest("from_bytes")
    moment = NOW + timedelta(minutes=number - 1)
    store.make_months([moment])
    store.store(
        store.Result(
            id=rng_uuid(rng),
            source_id=int(ids.endpoints[2]),
            destination_id=int(ids.endpoints[3 + at % (len(ids.endpoints) - 3)]),
            size_class_id=size_class.id,
            profile_id=int(ids.profiles[0]),
            state="done",
            started_at=moment + timedelta(milliseconds=at),
            seconds=1.0,
            bytes=size_class.test_bytes,
        )
        for at in range(NEW_RESULTS)
    )


def rng_uuid(rng: np.random.Generator) -> UUID:
    return UUID(bytes=rng.bytes(16), version=4)
