"""Real iperf3 servers on free loopback ports, each with its own log of what it measured."""

from __future__ import annotations

import json
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.ports import free_port
from tests.waiting import wait_for

START_SECONDS = 120.0


class Iperf3Server:
    """One server, which serves one client at a time, as they do."""

    def __init__(self, room: Path) -> None:
        self.port = free_port()
        self.log = room / f"iperf3-{self.port}.json"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"iperf3://127.0.0.1:{self.port}"

    def start(self) -> Iperf3Server:
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [
                    *("iperf3", "--server", "--bind", "127.0.0.1", "--port", str(self.port)),
                    *("--json", "--forceflush"),
                ],
                stdout=out,
                stderr=out,
            )
        assert wait_for(self.is_listening, START_SECONDS, 0.02), self.log.read_text()
        return self

    def is_listening(self) -> bool:
        """Say whether it does, without a connection, which it would take for a client."""
        local = f"0100007F:{self.port:04X} 00000000:0000 0A"
        return local in Path("/proc/net/tcp").read_text()

    def signal(self, number: signal.Signals) -> None:
        if self.process:
            self.process.send_signal(number)

    def tests(self) -> list[dict[str, Any]]:
        """Return what it said of the tests that it has served, oldest first."""
        text, tests = self.log.read_text().strip(), []
        while text:
            try:
                test, length = json.JSONDecoder().raw_decode(text)
            except ValueError:  # the last one is being written
                break
            tests.append(test)
            text = text[length:].strip()
        return tests

    def close(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()


def clients_of(url: str) -> list[psutil.Process]:
    """Return the clients that run towards a server, and what started them."""
    port = url.rpartition(":")[2]
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if {"iperf3", port} <= set(process.info["cmdline"] or [])
        and "--server" not in process.info["cmdline"]
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


@contextmanager
def reset_once(port: int, then: Callable[[], object]) -> Iterator[None]:
    """Reset the first connection to a port and leave it to ``then``, as a server between tests."""

    def serve() -> None:
        with listener:
            client, _ = listener.accept()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        then()

    listener = socket.create_server(("127.0.0.1", port))
    # Who never comes keeps no process from its end.
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield
    thread.join()


class Silence:
    """A server that takes connections and never says a word."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"iperf3://127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        self._socket.close()


class Pulses:
    """Lets a server work a part of the time until bytes have moved, then rest for long, once.

    In some beats no machine moves all of a test's bytes, so that it takes that long at least.
    """

    WORKS, RESTS, RESTS_LONG = 0.02, 0.2, 2.2

    def __init__(self, server: Iperf3Server) -> None:
        self.has_moved = threading.Event()
        self._server, self._over = server, threading.Event()
        self._thread = threading.Thread(target=self._beat)

    def __enter__(self) -> Pulses:
        self._thread.start()
        return self

    def _beat(self) -> None:
        while not (self._over.is_set() or self.has_moved.is_set()):
            self._rest(self.RESTS)
            self._over.wait(self.WORKS)
        self._rest(self.RESTS_LONG)

    def _rest(self, seconds: float) -> None:
        self._server.signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._server.signal(signal.SIGCONT)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
