"""Goal 16: 500 transfers of FTS3 in flight in one small worker process that asks rarely.

Everything is real and runs on two cores, but the FTS3 server, which is the one of the tests: it
keeps each job in its queue for a while, and then lets a storage node fetch the file.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from sonar.models import Mesh, Probe
from tests.benchmarks.in_flight import (
    DAY,
    Known,
    order,
    processor_seconds,
    results,
    running,
    serve,
    wait,
)
from tests.benchmarks.measured import Goal, Spread
from tests.benchmarks.memory import own_mb, peak_mb
from tests.ports import free_port

HELD = "memory of one worker process with {held} jobs waiting at FTS3"
POLLS = "requests per second to FTS3 while {held} jobs wait"
LIMIT_MB = 200
POLLS_PER_SECOND = 1.7
"""Five requests, of 100 jobs each, every three seconds."""


@dataclass(frozen=True)
class Size:
    """How many jobs to hold between so many nodes, for how long; over which time to count polls."""

    nodes: int
    held: int
    queue_seconds: float
    window_seconds: float


SIZES = {"small": Size(6, 20, 12.0, 3.0)}
USUAL = Size(24, 500, 60.0, 15.0)


def measure(scale: str, home: Path) -> list[Goal]:
    size, port = SIZES.get(scale, USUAL), free_port()
    with running(home) as children:
        serve(children, home, size.nodes, seconds=0.0)
        options = [f"--port={port}", f"--queue={size.queue_seconds}"]
        children.start("fts", "tests.storage.fts", *options)
        url = f"http://127.0.0.1:{port}"
        wait(children, lambda: heard(url) is not None)
        Mesh.objects.update(mover="fts3", service=url)
        order(every=DAY, cap=size.held)
        return held(children, size, url)


def heard(url: str) -> dict[str, int] | None:
    """Return how many requests the server has had of each method; None if it is not there yet."""
    try:
        answer: Any = urllib3.request("GET", f"{url}/heard", retries=False).json()
    except urllib3.exceptions.HTTPError:
        return None
    return dict(answer)


def held(children: Known, size: Size, url: str) -> list[Goal]:
    """Fill the worker, count its polls, and see all that it held come to a good end."""
    wait(children, lambda: (heard(url) or {}).get("POST", 0) >= size.held)
    worker = children.by_name["worker"].pid
    polls, used = polls_per_second(url, size, children)
    shares = [own_mb(worker)]
    waiting = Probe.objects.filter(state="running").count()

    def all_ended() -> bool:
        shares.append(own_mb(worker))
        return results() >= size.held

    wait(children, all_ended)
    note = (
        f"{shares[0]:.0f} MB while {waiting} waited; {results()} ended, none failed; with what "
        f"other processes share {peak_mb(worker):.0f} MB"
    )
    peak = Spread(max(shares), min(shares), max(shares), len(shares))
    text = HELD.format(held=size.held)
    memory = Goal.from_spread(16, text, LIMIT_MB, peak, "MB", at_least=False, note=note)
    cost = f"{1000 * used / size.window_seconds:.1f} ms of processor per second in the worker"
    rate = Spread.of([polls])
    text = POLLS.format(held=size.held)
    asks = Goal.from_spread(16, text, POLLS_PER_SECOND, rate, "/s", at_least=False, note=cost)
    return [memory, asks]


def polls_per_second(url: str, size: Size, children: Known) -> tuple[float, float]:
    """Return how often the server is asked while nothing else happens, and what that costs."""
    before, began, used = heard(url) or {}, time.monotonic(), processor_seconds(children)
    time.sleep(size.window_seconds)
    asked = sum((heard(url) or {}).values()) - sum(before.values())
    seconds = time.monotonic() - began
    return asked / seconds, processor_seconds(children)["worker"] - used["worker"]
