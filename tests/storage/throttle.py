"""A TCP proxy that lets bytes through at a chosen pace, so that a transfer can be caught midway."""

import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from itertools import count

PIECE_BYTES = 32 * 1024
MADE_UP_SECONDS = 0.08
"""What a piece may be late, for want of a processor say, and the next ones may make up for."""


class Pace:
    """How fast bytes may go: each piece has its time on the clock, so that delays do not add up."""

    def __init__(self, bytes_per_second: float) -> None:
        self._pace, self._free_at = bytes_per_second, 0.0
        self._lock = threading.Lock()

    def wait(self, size: int) -> None:
        with self._lock:
            self._free_at = (
                max(self._free_at, time.monotonic() - MADE_UP_SECONDS) + size / self._pace
            )
            until = self._free_at
        time.sleep(max(until - time.monotonic(), 0.0))


class Throttle:
    """Listens on a loopback port and passes every connection on to another one."""

    def __init__(self, target_port: int, bytes_per_second: float, *, shared: bool = False) -> None:
        """Let each connection have the pace in each direction, or all have it together."""
        self._target, self._bytes_per_second = target_port, bytes_per_second
        self._shared = Pace(bytes_per_second) if shared else None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._closed, self._opening = False, threading.Lock()
        self.hurries = False
        """Whether bytes go as fast as they can for now."""
        self.moved: Counter[int] = Counter()
        """Bytes by connection, numbered as they came, both ways together."""
        self._numbers = count()
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._join(near)

    def _join(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            near.close()
            return
        with self._opening:
            self._sockets += [near, far]
            if self._closed:  # after the connection was taken, and before it was known of
                self._shut()
        number = next(self._numbers)
        for ends in ((near, far), (far, near)):
            threading.Thread(target=self._pass_on, args=(*ends, number), daemon=True).start()

    def _pass_on(self, reader: socket.socket, writer: socket.socket, number: int) -> None:
        pace = self._shared or Pace(self._bytes_per_second)
        with suppress(OSError):
            while piece := reader.recv(PIECE_BYTES):
                writer.sendall(piece)
                self.moved[number] += len(piece)
                if not self.hurries:
                    pace.wait(len(piece))
        for sock in (reader, writer):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with self._opening:
            self._closed = True
            self._shut()

    def _shut(self) -> None:
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
