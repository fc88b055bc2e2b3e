"""Goal 18: a hundred readers, 50,000 results by REST and 240 ordered tests, all at once.

Everything is real and runs on two cores: PostgreSQL, Redis, beat, control, the worker, storage
nodes, and the web server with as many processes as `make run` starts. A reader looks at a page for
some seconds before the next one is opened, and remembers none.
"""

import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice, permutations
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import requests
from django.core.management import call_command
from django.test import override_settings

from sonar import gunicorn_conf
from sonar.models import Endpoint, Mesh, Token, Transfer
from sonar.people.roles import Role
from sonar.results import sealing
from tests.accounts import account
from tests.benchmarks import clients, data, load, loopback, registry
from tests.benchmarks.clients import Load, Seen
from tests.benchmarks.goals.browser import ALL_KINDS
from tests.benchmarks.in_flight import Known, register, running, start_nodes, wait
from tests.benchmarks.measured import Goal
from tests.benchmarks.prepare import LATER
from tests.benchmarks.scale import SCALES, SEED, Scale

Thing = TypeVar("Thing")
LIMIT_MS = 2000
PATIENCE_SECONDS = 60
# Results are sent as they end elsewhere: of the last hour.
AGE_SECONDS = 3600


@dataclass(frozen=True)
class Size:
    """What was measured before, and what comes.

    ``batches`` of so many results come one each second, and so do ``per_second`` orders.
    """

    past: Scale
    nodes: int
    readers: int
    pause_seconds: float
    batches: int
    batch: int
    orders: int
    per_second: int

    @property
    def results(self) -> int:
        return self.batches * self.batch

    @property
    def seconds(self) -> float:
        return max(self.batches, self.orders / self.per_second)


SIZES = {"small": Size(SCALES["small"], 4, 4, 0.1, 2, 50, 6, 3)}
USUAL = Size(replace(SCALES["default"], rows=1_000_000, days=30), 24, 100, 10.0, 50, 1_000, 240, 4)


def measure(scale: str, home: Path) -> list[Goal]:
    size = SIZES.get(scale, USUAL)
    with override_settings(WHITENOISE_SKIP_COMPRESS_EXTENSIONS=ALL_KINDS):
        call_command("collectstatic", interactive=False, verbosity=0)  # which nobody asks for
    ends = store_past(size.past)
    workers = gunicorn_conf.workers
    with running(home) as children, loopback.sonar(home, {}, workers) as web:
        register(start_nodes(children, home / "nodes", size.nodes, seconds=0.0))
        Endpoint.objects.update(inbound_cap=size.orders, outbound_cap=size.orders)
        return in_crowd(children, web.url, size, ends)


def store_past(past: Scale) -> list[str]:
    """Store what was measured before; return the endpoints, which nobody tests any more."""
    load.load(data.days(past), registry.register(past.endpoints), lambda _: None)
    Mesh.objects.update(enabled=False)
    sealing.seal(LATER)
    load.vacuum("sonar_segment", "sonar_dirtymark", "sonar_transfer")
    return sorted(Endpoint.objects.values_list("name", flat=True))


def in_crowd(children: Known, url: str, size: Size, ends: list[str]) -> list[Goal]:
    before, script = Transfer.objects.count(), Script(f"{url}/api/v1/", token())
    # Nobody is the first one of the day.
    clients.seen(replace(reading(url, size, ends, seconds=0.0), connections=gunicorn_conf.workers))
    began = time.monotonic()
    with ThreadPoolExecutor(2) as threads:
        sent = threads.submit(script.send, batches(size, ends))
        ordered = threads.submit(script.order, size)
        seen = clients.seen(reading(url, size, ends, size.seconds))
    ids = [*sent.result(), *ordered.result()]
    wait(children, lambda: Transfer.objects.count() >= before + len(ids))
    return [pages(size, seen), stored(size, ids, before, time.monotonic() - began)]


def reading(url: str, size: Size, ends: list[str], seconds: float) -> Load:
    """Return what readers open in turn, each beginning at another page."""
    source, destination = ends[:2]
    site = source.partition("_")[0]
    paths = [
        "/",
        "/?window=24h",
        "/table/",
        f"/sites/{site}/",
        f"/links/{source}/{destination}/",
        "/cells/",
        "/causes/",
        "/events/",
        "/incidents/",
        "/api/v1/matrix/",
        "/api/v1/links/",
    ]
    urls = [f"{url}{path}" for path in paths]
    pause = size.pause_seconds if seconds else 0.0
    gzip = {"Accept-Encoding": "gzip"}
    return Load(urls, size.readers, seconds, gzip, pause_seconds=pause)


def pages(size: Size, seen: Seen) -> Goal:
    text = (
        f"99 of 100 pages of {size.readers} readers, one every {size.pause_seconds:g} s, with "
        f"{size.results:,} results by REST and {size.orders} tests beside them"
    )
    note = f"{seen.answers:,} pages, none an error; {seen.words()}"
    return Goal(18, text, LIMIT_MS, seen.p99, "ms", at_least=False, note=note)


def stored(size: Size, ids: list[str], before: int, seconds: float) -> Goal:
    """See that each is there, once, and that nothing else is."""
    of_these = Transfer.objects.filter(id__in=ids)
    found = of_these.values("id").distinct().count()
    if (of_these.count(), Transfer.objects.count()) != (found, before + found):
        raise RuntimeError(f"stored twice, or by nobody: {found} of {len(ids)}")
    if failed := of_these.filter(worker__gt="").exclude(state="done").first():
        raise RuntimeError(f"{failed}: {failed.error}")
    text, note = "of these results and tests, in the store", f"the last one after {seconds:.0f} s"
    return Goal(18, text, size.results + size.orders, found, "", note=note)


def token() -> str:
    """Return the token of an operator's script."""
    scopes = list(Token.Scope)
    made = Token.objects.create(user=account(Role.OPERATOR), name="in-crowd", scopes=scopes)
    return str(made[1])


def batches(size: Size, ends: list[str]) -> Iterator[list[dict[str, object]]]:
    """Yield lists of results as `POST transfers/` takes them."""
    rng = np.random.default_rng(SEED)
    now, usual = datetime.now(UTC), data.usual_rates(len(ends))
    for _ in range(size.batches):
        ages = np.sort(rng.integers(0, AGE_SECONDS * 10**6, size.batch))
        rows = data.drawn(rng, data.unix_us(now) - ages, usual)
        yield [
            {
                "id": str(uuid.UUID(bytes=rng.bytes(16), version=4)),
                "source": ends[row["source"]],
                "destination": ends[row["destination"]],
                "started_at": (now - timedelta(microseconds=int(age))).isoformat(),
                "seconds": float(row["seconds"]),
                "bytes": int(row["bytes"]),
                "state": "done",
                "mover": "fts",
            }
            for row, age in zip(rows, ages, strict=True)
        ]


class Script:
    """A program with a token that writes, a call each second or more; an error ends it."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Token {key}"}

    def send(self, lists: Iterable[list[dict[str, object]]]) -> list[str]:
        """Send a list of results each second; return their ids."""
        ids = []
        for results in each(1.0, lists):
            said = self._post("transfers/", results)
            if said["accepted"] != len(results):
                raise RuntimeError(f"{said} of {len(results)}")
            ids += [str(one["id"]) for one in results]
        return ids

    def order(self, size: Size) -> list[str]:
        """Order tests between the storage nodes that run, one by one; return their ids."""
        names = Endpoint.objects.filter(site__name="BENCHMARK").values_list("name", flat=True)
        links = islice(cycle(permutations(sorted(names), 2)), size.orders)
        ids = []
        for source, destination in each(1 / size.per_second, links):
            ends = {"source": source, "destination": destination}
            said = self._post("probes/", {**ends, "sizes": ["small"], "mover": "http-tpc"})
            ids += [str(one["id"]) for one in said["probes"]]
        return ids

    def _post(self, path: str, body: Any) -> Any:
        url = f"{self._url}{path}"
        said = requests.post(url, json=body, headers=self._headers, timeout=PATIENCE_SECONDS)
        if not said.ok:
            raise RuntimeError(f"{said.status_code}: {said.text[:200]}")
        return said.json()


def each(seconds: float, things: Iterable[Thing]) -> Iterator[Thing]:
    """Yield one after the other, so many seconds apart; late ones at once."""
    began = time.monotonic()
    for number, thing in enumerate(things):
        time.sleep(max(0.0, began + number * seconds - time.monotonic()))
        yield thing
