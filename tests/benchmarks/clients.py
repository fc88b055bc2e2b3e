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
from itertools import chain, cycle
from urllib.parse import urlsplit

PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Load:
    """A closed loop: each connection asks for the next address when it has its answer.

    ``known``: a client remembers the ETag of each address, and says so when it asks again.
    """

    urls: Sequence[str]
    connections: int
    seconds: float
    headers: dict[str, str] = field(default_factory=dict)
    known: bool = False


@dataclass(frozen=True)
class Seen:
    """What the clients of a load saw; milliseconds of one answer, and their own CPU seconds."""

    answers: int
    not_modified: int
    seconds: float
    median: float
    p95: float
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
            f"p95 {self.p95:.1f} ms, median {self.median:.1f}, longest {self.longest:.0f}; "
            f"{size:,.3g} kB an answer; the clients took {cores:.2f} of a core"
        )


@dataclass(frozen=True)
class Answer:
    milliseconds: float
    status: int
    bytes: int


def ask(load: Load, until: float) -> Iterator[Answer]:
    """Ask on one connection until the time is over, and for each address once at least.

    A client that remembers ETags shows one of each at least. Raise RuntimeError for an error.
    """
    least = len(load.urls) * (1 + load.known)
    own = http.client.HTTPConnection(urlsplit(load.urls[0]).netloc, timeout=PATIENCE_SECONDS)
    tags: dict[str, str] = {}
    for number, url in enumerate(cycle(load.urls)):
        started = time.perf_counter()
        if number >= least and started > until:
            return
        known = {"If-None-Match": tags[url]} if url in tags else {}
        own.request("GET", url, headers=load.headers | known)
        response = own.getresponse()
        body = response.read()
        if response.status not in (200, 304):
            raise RuntimeError(f"{response.status}: {body[:200]!r}")
        if load.known:
            tags[url] = response.headers["ETag"]
        yield Answer(1000 * (time.perf_counter() - started), response.status, len(body))


def put_on(load: Load) -> Seen:
    began, cpu = time.perf_counter(), time.process_time()
    until = began + load.seconds
    with ThreadPoolExecutor(load.connections) as threads:
        of_each = threads.map(lambda _: list(ask(load, until)), range(load.connections))
        answers = list(chain.from_iterable(of_each))
    milliseconds = sorted(one.milliseconds for one in answers)
    return Seen(
        answers=len(answers),
        not_modified=sum(one.status == 304 for one in answers),
        seconds=time.perf_counter() - began,
        median=statistics.median(milliseconds),
        p95=milliseconds[95 * (len(milliseconds) - 1) // 100],
        longest=milliseconds[-1],
        bytes=sum(one.bytes for one in answers),
        cpu_seconds=time.process_time() - cpu,
    )


def seen(load: Load) -> Seen:
    """Put this load on a server from another process."""
    command = [sys.executable, "-m", "tests.benchmarks.clients", json.dumps(asdict(load))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Seen(**json.loads(done.stdout))


if __name__ == "__main__":
    print(json.dumps(asdict(put_on(Load(**json.loads(sys.argv[1]))))))
