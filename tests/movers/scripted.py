"""A server that says, on a loopback port, exactly what a test tells it to."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Script = Callable[[socket.socket], None]

STARTED = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"


class Scripted:
    """Accepts connections and plays a script on each, once its request head has come."""

    lacks_files = False

    def __init__(self, play: Script, host: str = "127.0.0.1", port: int = 0) -> None:
        self._play, self._host = play, host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family)
        self.requests: list[str] = []
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while head := self._head(connection):
                if self.lacks_files and head.startswith("HEAD "):
                    status("404 Not Found")(connection)
                    continue
                self.requests.append(head)
                self._play(connection)

    @staticmethod
    def _head(connection: socket.socket) -> str:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(65536)
            if not piece:
                return ""
            head += piece
        return head.decode("latin-1")

    def close(self) -> None:
        for sock in [self._listener, *self._open]:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


class Copying(Scripted):
    """One that has no file yet, and says so who asks with HEAD; of that nothing is kept."""

    lacks_files = True


@contextmanager
def copying(play: Script, host: str = "127.0.0.1", port: int = 0) -> Iterator[Scripted]:
    server = Copying(play, host, port)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def scripted(play: Script, host: str = "127.0.0.1", port: int = 0) -> Iterator[Scripted]:
    server = Scripted(play, host, port)
    try:
        yield server
    finally:
        server.close()


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def marker(moved: int) -> bytes:
    return b"Perf Marker\nStripe Index: 0\nStripe Bytes Transferred: %d\nEnd\n" % moved


def says(*pieces: bytes, pause: float = 0.0) -> Script:
    """Send the pieces, with a pause after each, and then hang up."""

    def play(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        connection.shutdown(socket.SHUT_RDWR)

    return play


def goes_on(first: bytes, again: bytes, pause: float) -> Script:
    """Send the first piece, then another one for ever."""

    def play(connection: socket.socket) -> None:
        connection.sendall(first)
        while True:
            time.sleep(pause)
            connection.sendall(again)

    return play


def status(line: str, text: str = "") -> Script:
    """Answer with a status, an optional text, and keep the connection."""
    body = text.encode()
    head = f"HTTP/1.1 {line}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    return lambda connection: connection.sendall(head + body)


def take_body(connection: socket.socket, head: str, size: int) -> None:
    """Read the body of a request, whose beginning may have come with its head."""
    left = size - len(head.partition("\r\n\r\n")[2])
    while left > 0 and (piece := connection.recv(left)):
        left -= len(piece)
