"""How one transfer between sandbox nodes goes: drawn from its link, paced on the wall clock."""

import asyncio
import math
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

from yarl import URL

from sonar.sandbox.topology import SCALE, Link, Pair

CHUNK_SECONDS = 0.1
"""Time for one chunk: 100 slow transfers at once cost 1,000 wake-ups a second."""
CHUNK_BYTES = range(1 << 14, 1 << 18)
UNSEEN_SECONDS = 0.002
"""Time of a COPY before and after the part that this process sees, when all is quiet."""


class TransferError(Exception):
    """A transfer that failed; the text is what follows ``failure:``."""


@dataclass(frozen=True)
class Course:
    """How one transfer will go; without arguments as fast as it can, to its end."""

    setup_seconds: float = 0.0
    bytes_per_second: float = math.inf
    refusal: str = ""
    breaks_at: float = 1.0
    """The share of the file after which the connection is lost."""


class Draws:
    """Draws the courses of transfers, in a sequence of its own for each link and seed."""

    REFUSALS = (
        'Remote side failed with status code 403; error message: "permission denied "',
        'Remote side failed with status code 503; error message: "too many transfers "',
    )

    def __init__(self, links: Mapping[Pair, Link], seed: int) -> None:
        self._links = links
        self._seed = seed
        self._randoms: dict[Pair, random.Random] = {}

    def next(self, source: str, destination: str) -> Course:
        """Return the course of the next transfer of this link; an unknown link knows no limits."""
        pair = (source, destination)
        if pair not in self._links:
            return Course()
        if pair not in self._randoms:
            self._randoms[pair] = random.Random(f"{self._seed} {source} {destination}")  # noqa: S311
        link, draws = self._links[pair], self._randoms[pair]
        sigma = math.sqrt(math.log1p(link.spread**2))
        factor = draws.lognormvariate(-(sigma**2) / 2, sigma)
        fails, breaks = draws.random() < link.failure_rate, draws.random() < 0.5
        refusal, breaks_at = draws.choice(self.REFUSALS), draws.uniform(0.1, 0.9)
        # The factor is of the whole transfer, so that the mean of single rates is the link's.
        return Course(
            setup_seconds=link.setup_seconds / SCALE / factor,
            bytes_per_second=link.bandwidth_mb_s * 1e6 * factor,
            refusal=refusal if fails and not breaks else "",
            breaks_at=breaks_at if fails and breaks else 1.0,
        )


class Flow:
    """The bytes of one transfer on their way, and what its markers tell of them.

    Every chunk has its time on the wall clock, counted from the arrival of the COPY, so that
    what a request costs, or a late wake-up, is made up for by the next chunk.
    """

    def __init__(self, course: Course, remote: str) -> None:
        loop = asyncio.get_running_loop()
        self.bytes = 0
        self.left_bytes = 0
        self.reached = loop.create_future()
        self._course = course
        self._started = loop.time() - UNSEEN_SECONDS
        self._remote = URL(remote)

    def reach(self) -> None:
        if not self.reached.done():
            self.reached.set_result(None)

    async def data(
        self, read: Callable[[int], Awaitable[bytes]], size: int | None
    ) -> AsyncIterator[bytes]:
        """Yield what ``read`` returns, each chunk when it is due; None is a size not known."""
        self.reach()
        await self._due()
        if self._course.refusal:
            raise TransferError(self._course.refusal)
        self.left_bytes = size or 0
        last = sys.maxsize if size is None else int(size * self._course.breaks_at)
        fitting = min(self._course.bytes_per_second * CHUNK_SECONDS, CHUNK_BYTES.stop)
        chunk_bytes = max(int(fitting), CHUNK_BYTES.start)
        while data := await read(min(chunk_bytes, last - self.bytes)):
            self.bytes += len(data)
            await self._due()
            self.left_bytes -= len(data)
            yield data
        if size is not None and self.left_bytes:
            raise TransferError(closed_early(self.left_bytes))

    async def _due(self) -> None:
        transferring = self.bytes / self._course.bytes_per_second
        due = self._started + self._course.setup_seconds + transferring
        delay = due - asyncio.get_running_loop().time()
        if delay > 0:
            await asyncio.sleep(delay)

    def marker(self) -> bytes:
        """Return a performance marker as XRootD writes it."""
        lines = [
            "Perf Marker",
            f"Timestamp: {int(time.time())}",
            "Stripe Index: 0",
            f"Stripe Bytes Transferred: {self.bytes}",
            "Total Stripe Count: 1",
            "End",
        ]
        if self.reached.done():
            lines.insert(-1, f"RemoteConnections: tcp:{self._remote.host}:{self._remote.port}")
        return "".join(f"{line}\n" for line in lines).encode()


def closed_early(left_bytes: int) -> str:
    return f"Transfer closed with {left_bytes} bytes remaining to read"
