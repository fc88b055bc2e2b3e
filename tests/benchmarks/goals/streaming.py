"""A stream of all results over HTTP, against psql with the same COPY and Django's iterator."""

import http.client
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import orjson

from matrix.api.transfers.views import record
from matrix.store.transfers import TransferSelection
from sonar.models import Transfer
from sonar.notation.result_columns import listed
from sonar.notation.windows import Window
from sonar.records.exporting import copy_of
from sonar.sandbox import embedded
from tests.benchmarks import clients, memory, scale
from tests.benchmarks.answer import DisagreementError
from tests.benchmarks.bench import Bench
from tests.benchmarks.clients import Load
from tests.benchmarks.loopback import Web
from tests.benchmarks.measured import Goal, Spread, ratio

GZIP = {"Accept-Encoding": "gzip"}
READ_BYTES = 1 << 18
# An eighteenth of the data: all of it takes as long by the row.
DAYS = 5
# What Django's iterator is timed with, newest first; the rest of it is reckoned.
PART = 20_000
ROUNDS = 3
GROWTH_LIMIT_MB = 50
PEER_LIMIT = 5
PLAIN, PACKED, COPY = "over HTTP", "over HTTP, gzip", "psql, the same COPY"
PEER = "Django's iterator and json.dumps"
ITERATOR_CHUNK = 2_000
# As streams have it.
SETTINGS = "SET jit = off; SET enable_sort = off; SET max_parallel_workers_per_gather = 0"


@dataclass
class Read:
    """What a client had of a stream: rows (0 if compressed), bytes, seconds to the first."""

    rows: int = 0
    bytes: int = 0
    first: float = 0.0


def goals(bench: Bench, web: Web) -> list[Goal]:
    window = scale.aligned(DAYS)
    agree(bench, web, scale.aligned(1))
    # A process loads the most of its code with its first answer.
    clients.seen(Load([f"{web.url}/api/v1/transfers/"], 16, 0.1 if bench.scale.is_small else 1))
    before = {pid: memory.resident_mb(pid) for pid in web.workers()}
    read: dict[str, Read] = {}
    contestants: dict[str, Callable[[], object]] = {
        PLAIN: lambda: read.update({PLAIN: stream(web, window)}),
        PACKED: lambda: read.update({PACKED: stream(web, window, GZIP)}),
        COPY: lambda: psql_copy(bench.url, window),
    }
    times = bench.contest(
        f"a stream of {DAYS} days of results", contestants, bench.scale.times(ROUNDS)
    )
    growth = max(memory.peak_mb(pid) - at_first for pid, at_first in before.items())
    rows = read[PLAIN].rows
    if rows != rows_of(bench):
        raise DisagreementError(f"{rows} rows came of {rows_of(bench)}")
    for name, one in read.items():
        note_speed(bench, name, rows, one, min(times[name]))
    bench.fact("memory of a web process before the streams", max(before.values()), "MB")
    return [memory_goal(rows, growth), peer_goal(bench, window, rows, times[PLAIN])]


def rows_of(bench: Bench) -> int:
    return sum(map(bench.scale.rows_of_day, range(bench.scale.days - DAYS, bench.scale.days)))


def note_speed(bench: Bench, name: str, rows: int, read: Read, seconds: float) -> None:
    megabytes = read.bytes / 1e6
    note = f"{megabytes / seconds:.0f} MB/s, {megabytes:,.0f} MB in all, fastest round; the first "
    note += f"byte after {1000 * read.first:.1f} ms"
    bench.fact(f"NDJSON {name}", rows / seconds, "rows/s", note)


def memory_goal(rows: int, growth: float) -> Goal:
    text = f"what a web process's memory grew by over streams of {rows:,} rows, peak"
    return Goal.from_spread(11, text, GROWTH_LIMIT_MB, Spread.of([growth]), "MB", at_least=False)


def peer_goal(bench: Bench, window: Window, rows: int, ours: list[float]) -> Goal:
    """Compare with the peer by the row: for all of them it would take many minutes."""
    count = min(PART, rows)
    contestants = {PEER: lambda: sum(map(len, iterator_lines(window, count)))}
    theirs = bench.contest(f"the newest {count:,} of them", contestants, len(ours))[PEER]
    a_row = [one / rows for one in ours]
    a_row_of_theirs = [one / count for one in theirs]
    note = f"a row in {1e6 * min(a_row):.2f} against {1e6 * min(a_row_of_theirs):.1f} us; the "
    note += f"peer without HTTP, by its newest {count:,} rows"
    text = f"NDJSON over HTTP against {PEER}, by the row"
    return Goal.from_spread(11, text, PEER_LIMIT, ratio(a_row_of_theirs, a_row), note=note)


def stream(
    web: Web,
    window: Window,
    headers: dict[str, str] | None = None,
    keep: list[bytes] | None = None,
) -> Read:
    """Read the results of a window as they come; raise RuntimeError if they do not."""
    path = f"/api/v1/transfers/?{urlencode({'format': 'ndjson'} | scale.bounds(window))}"
    own = http.client.HTTPConnection(urlsplit(web.url).netloc, timeout=600)
    began = time.perf_counter()
    own.request("GET", path, headers=headers or {})
    response = own.getresponse()
    if response.status != 200:
        raise RuntimeError(f"{response.status}: {response.read()[:200]!r}")
    read = Read()
    while piece := response.read1(READ_BYTES):
        read.first = read.first or time.perf_counter() - began
        read.bytes += len(piece)
        read.rows += 0 if headers else piece.count(b"\n")
        if keep is not None:
            keep.append(piece)
    own.close()
    return read


def agree(bench: Bench, web: Web, window: Window) -> None:
    """Raise DisagreementError unless all three write the same records."""
    pieces: list[bytes] = []
    rows = stream(web, window, keep=pieces).rows
    ours, target = b"".join(pieces), bench.home / "psql.ndjson"
    psql_copy(bench.url, window, target)
    if ours != target.read_bytes():
        raise DisagreementError("psql writes other lines")
    target.unlink()
    theirs = list(iterator_lines(window, rows))
    if list(map(orjson.loads, ours.splitlines())) != list(map(orjson.loads, theirs)):
        raise DisagreementError("Django's iterator gives other records")


def iterator_lines(window: Window, count: int) -> Iterator[bytes]:
    """Yield the newest results of a window as lines of JSON, as Django's documentation does it."""
    rows = Transfer.objects.filter(
        started_at__gte=window.start, started_at__lt=window.end, state__in=["done", "failed"]
    ).select_related("source", "destination", "profile", "size_class")
    for one in rows.order_by("-started_at", "-id")[:count].iterator(chunk_size=ITERATOR_CHUNK):
        names = {one.source_id: one.source.name, one.destination_id: one.destination.name}
        yield json.dumps(record(one, names, internal=False)).encode() + b"\n"


def psql_copy(url: str, window: Window, target: Path = Path("/dev/null")) -> None:
    """Write the results of a window as lines of JSON into a file, as PostgreSQL alone does it."""
    statement = copy_of(TransferSelection(window).rows([]), listed(internal=False), "ndjson")
    command = [embedded.postgres_binary("psql"), url, "--quiet", "-c", SETTINGS, "-c", statement]
    with target.open("wb") as output:
        subprocess.run(command, check=True, stdout=output)
