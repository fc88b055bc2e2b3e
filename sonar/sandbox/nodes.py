"""All storage nodes of the sandbox in one process: ``python -m sonar.sandbox.nodes``."""

import argparse
import asyncio
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from sonar.sandbox.flow import CHUNK_BYTES, Draws
from sonar.sandbox.node import BASE_PATH, Files, Node
from sonar.sandbox.topology import Link, Pair, load_links, load_sites

HOST = "127.0.0.1"
# What docker-compose.yml calls the container with the nodes.
CONTAINER = "demo"
ANY = "0.0.0.0"  # noqa: S104 - within the network of the containers
BASE_URL = rf"^http://({HOST}|{CONTAINER}):[0-9]+/{BASE_PATH}$"
SEED = 2011
GOODBYE_SECONDS = 0.1
CONNECT_SECONDS = 10.0


def load_base_urls(directory: Path) -> dict[str, str]:
    """Return the base URL of each endpoint, by its name, as the last start recorded them.

    FileNotFoundError if no sandbox was ever started in this directory.
    """
    base_urls: dict[str, str] = json.loads((directory / "nodes.json").read_text())
    return base_urls


@asynccontextmanager
async def listening(
    directory: Path,
    links: Mapping[Pair, Link],
    endpoints: Sequence[str],
    seed: int = SEED,
    host: str = HOST,
) -> AsyncIterator[dict[str, str]]:
    """Serve the endpoints from files below ``directory``; yield their base URLs by name.

    ``links`` are keyed by the names of two endpoints. By another ``host`` than this machine's
    loopback they are reached from elsewhere, and listen at all addresses. ``nodes.json`` is
    there, and complete, once this has been entered.
    """
    directory.mkdir(parents=True, exist_ok=True)
    previous: dict[str, int] = {}
    with suppress(FileNotFoundError, ValueError):
        urls = load_base_urls(directory)
        previous = {endpoint: URL(base_url).port or 0 for endpoint, base_url in urls.items()}
    bound = HOST if host == HOST else ANY
    sockets = {endpoint: _socket(bound, previous.get(endpoint, 0)) for endpoint in endpoints}
    ports = {sock.getsockname()[1]: endpoint for endpoint, sock in sockets.items()}
    base_urls = {endpoint: f"http://{host}:{port}/{BASE_PATH}" for port, endpoint in ports.items()}
    draws = Draws(links, seed)

    def client_socket(address: tuple[Any, ...]) -> socket.socket:
        return _small(socket.socket(*address[:3]))

    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, socket_factory=client_socket),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                auto_decompress=False,
                read_bufsize=CHUNK_BYTES.stop,
            )
        )
        runners: list[web.AppRunner] = []

        async def stop() -> None:
            await asyncio.gather(*(runner.cleanup() for runner in runners))

        stack.push_async_callback(stop)
        for endpoint, sock in sockets.items():
            node = Node(endpoint, Files(directory, endpoint), draws, ports, session)
            runner = web.AppRunner(
                node.application(),
                access_log=None,
                handler_cancellation=True,
                shutdown_timeout=GOODBYE_SECONDS,
            )
            await runner.setup()
            await web.SockSite(runner, sock).start()
            runners.append(runner)
        complete = directory / "nodes.json.new"
        complete.write_text(json.dumps(base_urls, indent=2) + "\n")
        complete.replace(directory / "nodes.json")
        yield base_urls


def _socket(host: str, port: int) -> socket.socket:
    """Bind this port, or another one if it is taken."""
    sock = _small(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError:
        sock.bind((host, 0))
    return sock


def _small(sock: socket.socket) -> socket.socket:
    """Keep the kernel from holding a whole test file: it is the receiver who sets the pace."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, CHUNK_BYTES.stop)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK_BYTES.stop)
    return sock


async def run(directory: Path, seed: int, host: str) -> None:
    """Serve the whole grid until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    endpoints = {site.name: site.endpoint for site in load_sites()}
    links = {(endpoints[link.source], endpoints[link.destination]): link for link in load_links()}
    async with listening(directory, links, list(endpoints.values()), seed, host) as base_urls:
        sys.stdout.write(f"{len(base_urls)} storage nodes listen on {host}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sonar.sandbox.nodes", description=__doc__)
    parser.add_argument(
        "--directory", type=Path, required=True, help="directory for the files of the nodes"
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, help="seed of the random rates and failures"
    )
    parser.add_argument(
        "--host", default=HOST, help="host name of the nodes (default: %(default)s)"
    )
    options = parser.parse_args()
    asyncio.run(run(options.directory, options.seed, options.host))


if __name__ == "__main__":
    main()
