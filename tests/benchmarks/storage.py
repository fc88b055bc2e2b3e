"""The storage nodes of the flight benchmark: fast ones, or ones that take their time."""

import argparse
import asyncio
import signal
from itertools import permutations
from pathlib import Path

from sonar.sandbox import node, nodes
from sonar.sandbox.topology import Link

MARKER_SECONDS = 5.0
"""As XRootD sends them; the sandbox's own pace is for transfers of seconds."""


def names(count: int) -> list[str]:
    return [f"NODE{number:02d}_DATADISK" for number in range(count)]


def link(source: str, destination: str, seconds: float) -> Link:
    """Return a link that needs this long for 1 MB, without a rest."""
    return Link(source, destination, 1 / seconds, 0.0, 0.0, 0.0, 0.0, "benchmark")


async def serve(directory: Path, endpoints: list[str], seconds: float) -> None:
    """Serve the endpoints until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    pairs = permutations(endpoints, 2) if seconds else ()
    links = {pair: link(*pair, seconds) for pair in pairs}
    async with nodes.listening(directory, links, endpoints):
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.storage", description=__doc__)
    parser.add_argument("--directory", type=Path, required=True, help="where the files are kept")
    parser.add_argument("--nodes", type=int, required=True, help="how many endpoints")
    parser.add_argument("--seconds", type=float, default=0.0, help="for 1 MB; 0: no limit")
    chosen = parser.parse_args()
    node.MARKER_SECONDS = MARKER_SECONDS
    asyncio.run(serve(chosen.directory, names(chosen.nodes), chosen.seconds))


if __name__ == "__main__":
    main()
