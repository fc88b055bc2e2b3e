"""`python -m tests.storage.hostile --directory DIR`: serve until SIGTERM; SIGUSR1 reforms all."""

import argparse
import asyncio
import json
import signal
import socket
import sys
from contextlib import closing, suppress
from pathlib import Path

from tests.storage.hostile import decent
from tests.storage.hostile.decent import Visit
from tests.storage.hostile.disk import Disk
from tests.storage.hostile.served import GUESTS
from tests.storage.hostile.ways import WAYS, Way
from tests.storage.hostile.wire import Head, Peer

HOST, STRANGER, BASE = "127.0.0.1", "127.0.0.2", "base"
MOST_CONNECTIONS = 2000
"""One more is closed at once: a server of tests must not eat its machine."""
RECEIVED_BYTES = 16 * 1024
"""The kernel takes no more from a client that nobody reads."""


def listening(host: str, port: int = 0) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
    sock.setblocking(False)
    sock.bind((host, port))
    sock.listen(128)
    return sock


class Endpoint:
    """One port that misbehaves in one way."""

    def __init__(self, name: str, way: Way, root: Path) -> None:
        self.name, self.way, self.disk = name, way, Disk(root)
        (root / BASE).mkdir(exist_ok=True)
        self.reformed = False
        self.visits: set[asyncio.Task[None]] = set()
        self._sock, self._strangers = listening(HOST), None
        while way.stranger and self._strangers is None:
            try:
                self._strangers = listening(STRANGER, self._sock.getsockname()[1])
            except OSError:  # somebody has that port already
                self._sock.close()
                self._sock = listening(HOST)

    @property
    def base_url(self) -> str:
        return f"{self.way.scheme}://{HOST}:{self._sock.getsockname()[1]}/{BASE}"

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            near, _ = await loop.sock_accept(self._sock)
            near.setblocking(False)
            if len(self.visits) >= MOST_CONNECTIONS:
                near.close()
                continue
            task = loop.create_task(self._visit(Peer(near)))
            self.visits.add(task)
            task.add_done_callback(self.visits.discard)

    async def serve_strangers(self, noted: Path) -> None:
        """Note whoever is led to the stranger, with all that he says, and welcome him."""
        loop = asyncio.get_running_loop()
        while self._strangers:
            near, _ = await loop.sock_accept(self._strangers)
            near.setblocking(False)
            peer = Peer(near)
            with suppress(OSError), closing(peer):
                head = await peer.head()
                with noted.open("a") as lines:
                    lines.write(f"{self.name} {head}\n")
                await peer.answer(200, "stranger-words\n")

    async def _visit(self, peer: Peer) -> None:
        try:
            with suppress(OSError, TimeoutError, decent.RemoteError, asyncio.IncompleteReadError):
                await self._answer(peer)
        finally:
            peer.close()

    async def _answer(self, peer: Peer) -> None:
        if self.way.at_once and not self.reformed:
            await self.way.act(Visit(peer, Head("", "/"), self.disk))
            return
        while head := await peer.head():
            visit = Visit(peer, head, self.disk)
            if self.way.applies(visit) and not self.reformed:
                await self.way.act(visit)
                if self.way.harmless:  # it does not hang up either
                    continue
                return
            await decent.behave(visit)

    def reform(self) -> None:
        """Be a good server from now on; who waits is hung up on."""
        self.reformed = True
        for visit in self.visits:
            visit.cancel()


async def serve(endpoints: list[Endpoint], noted: Path) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, lambda: [one.reform() for one in endpoints])
    serving = [loop.create_task(endpoint.serve()) for endpoint in endpoints]
    guests = noted.with_name(GUESTS)
    guests.touch()
    serving += [loop.create_task(endpoint.serve_strangers(guests)) for endpoint in endpoints]
    complete = noted.with_suffix(".new")
    complete.write_text(json.dumps({one.name: [one.way.name, one.base_url] for one in endpoints}))
    complete.replace(noted)
    await stop.wait()
    for task in [*serving, *(visit for one in endpoints for visit in one.visits)]:
        task.cancel()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storage.hostile", description=__doc__)
    parser.add_argument("--directory", type=Path, required=True, help="of files and hostile.json")
    parser.add_argument("--ways", help="names with commas between; all, if not given")
    parser.add_argument("--endpoints", type=int, help="how many; as many as ways, if not given")
    options = parser.parse_args()
    names = options.ways.split(",") if options.ways else list(WAYS)
    if unknown := sorted(set(names) - set(WAYS)):
        parser.error(f"--ways: {', '.join(unknown)} is none; there are {', '.join(WAYS)}")
    ways = [WAYS[names[number % len(names)]] for number in range(options.endpoints or len(names))]
    directory = options.directory.resolve()
    endpoints = [
        Endpoint(name, way, directory / "files" / name)
        for number, way in enumerate(ways)
        for name in [f"{way.name}-{number // len(names)}" if number >= len(names) else way.name]
    ]
    asyncio.run(serve(endpoints, directory / "hostile.json"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
