"""Clients that ask for addresses again and again, in a process of their own.

`python -m tests.benchmarks.clients LOAD`, with a Load as JSON, prints what it saw as JSON.
"""

import http.client
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import chain, cycle, islice
from urllib.parse import urlsplit

PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Load:
    """A closed loop: each connection asks for the next address when it has its answer.

    ``known``: a client remembers the ETag of each address, and says so when it asks again.
    ``pause_seconds``: as long each waits before it asks again, and at first some part of it.
    """

    urls: Sequence[str]
    connections: int
    seconds: float
    headers: dict[str, str] = field(default_factory=dict)
    known: bool = False
    pause_seconds: float = 0.0


@dataclass(frozen=True)
class Seen:
    """What the clients of a load saw; milliseconds of one answer, and their own CPU seconds."""

    answers: int
    not_modified: int
    seconds: float
    median: float
    p95: float
    p99: float
    longest: float
    bytes: int
    cpu_seconds: float

    @property
    def per_second(self) -> float:
        return self.answers / self.seconds

    def words(self) -> str:
        """Say what stands beside the number of answers a second."""
        cores = self.cpu_seconds / self.seconds
        size = self.bytes / self.answers / 1000
        return (
            f"p95 {self.p95:.1f} ms, p99 {self.p99:.1f}, median {self.median:.1f}, longest "
            f"{self.longest:.0f}; "
            f"{size:,.3g} kB an answer; the clients took {cores:.2f} of a core"
        )


@dataclass(frozen=True)
class Answer:
    milliseconds: float
    status: int
    bytes: int


def ask(load: Load, number_of_client: int, until: float) -> Iterator[Answer]:
    """Ask on one connection until the time is over, and for each address once at least.

    Each client begins with another address. One that pauses ends when the time is over.

    A client that remembers ETags shows one of each at least. Raise RuntimeError for an error.
    """
    least = 0 if load.pause_seconds else len(load.urls) * (1 + load.known)
    own = http.client.HTTPConnection(urlsplit(load.urls[0]).netloc, timeout=PATIENCE_SECONDS)
    tags: dict[str, str] = {}
    time.sleep(load.pause_seconds * number_of_client / load.connections)
    for number, url in enumerate(islice(cycle(load.urls), number_of_client, None)):
        started = time.perf_counter()
        if number >= least and started > until:
            return
        known = {"If-None-Match": tags[url]} if url in tags else {}
        own.request("GET", url, headers=load.headers | known)
        response = own.getresponse()
        body = response.read()
        if response.status not in (200, 304):
            raise RuntimeError(f"{url}: {response.status}: {body[:200]!r}")
        if load.known:
            tags[url] = response.headers["ETag"]
        yield Answer(1000 * (time.perf_counter() - started), response.status, len(body))
        if load.pause_seconds:
            own.close()  # a server waits for no one as long as a reader looks at a page
            time.sleep(load.pause_seconds)


def put_on(load: Load) -> Seen:
    began, cpu = time.perf_counter(), time.process_time()
    until = began + load.seconds
    clients = range(load.connections)
    with ThreadPoolExecutor(load.connections) as threads:
        of_each = threads.map(lambda number: list(ask(load, number, until)), clients)
        answers = list(chain.from_iterable(of_each))
    milliseconds = sorted(one.milliseconds for one in answers)
    return Seen(
        answers=len(answers),
        not_modified=sum(one.status == 304 for one in answers),
        seconds=time.perf_counter() - began,
        median=statistics.median(milliseconds),
        p95=percentile(milliseconds, 95),
        p99=percentile(milliseconds, 99),
        longest=milliseconds[-1],
        bytes=sum(one.bytes for one in answers),
        cpu_seconds=time.process_time() - cpu,
    )


def percentile(ordered: list[float], percent: int) -> float:
    """Return the one that so many of a hundred are not above, of figures in order."""
    return ordered[percent * (len(ordered) - 1) // 100]


def seen(load: Load) -> Seen:
    """Put this load on a server from another process."""
    command = [sys.executable, "-m", "tests.benchmarks.clients", json.dumps(asdict(load))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Seen(**json.loads(done.stdout))


if __name__ == "__main__":
    print(json.dumps(asdict(put_on(Load(**json.loads(sys.argv[1]))))))
