"""A server that nobody is to ask: it notes who connects, and what comes, on many ports.

It listens on every address of loopback, and takes whatever it is told for granted.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path

from tests.storage.dialects.base import JOURNAL, Journal, Settings, tell_ready

FIRST_BYTE_OF_TLS = b"\x16"
ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
SECONDS = 2.0


def serve(settings: Settings, ports: int) -> None:
    journal = Journal(settings.place / JOURNAL)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(settings.place / "host.pem")
    selector = selectors.DefaultSelector()
    listening = [socket.create_server(("", 0), backlog=64) for _ in range(ports)]
    for one in listening:
        selector.register(one, selectors.EVENT_READ)
    tell_ready(Path(settings.room), url="", ports=[one.getsockname()[1] for one in listening])
    while True:
        for key, _ in selector.select():
            met, _ = key.fileobj.accept()  # type: ignore[union-attr]
            journal.note(connected=met.getsockname()[1], to=met.getsockname()[0])
            threading.Thread(target=hear, args=(met, context, journal), daemon=True).start()


def hear(met: socket.socket, context: ssl.SSLContext, journal: Journal) -> None:
    """Note the whole of what is said, and be content with it."""
    port, heard = met.getsockname()[1], b""
    met.settimeout(SECONDS)
    with suppress(OSError):
        is_tls = met.recv(1, socket.MSG_PEEK) == FIRST_BYTE_OF_TLS
        with context.wrap_socket(met, server_side=True) if is_tls else met as sock:
            while b"\r\n\r\n" not in heard and (piece := sock.recv(65536)):
                heard += piece
            journal.note(port=port, heard=heard.decode("latin-1"))
            sock.sendall(ANSWER)
