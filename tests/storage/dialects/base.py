"""What servers of all dialects share: files, tokens, TLS, refusals on demand, and a journal."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
import time
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tests.storage.dialects.remote import Transfer
from tests.storage.serving import AnyMethod

GUARDED = "/guarded/"
"""Below it a token is wanted; everybody may do everything elsewhere."""
JOURNAL, READY = "journal.jsonl", "ready.json"
PIECE_BYTES = 64 * 1024
SPOILT = re.compile(r"\.(get|put|copy)-([a-z0-9-]+)$")
"""A file named `7.get-503` is answered so when it is asked for by that method."""
LENT_FOR = frozenset({"GET", "HEAD", "PUT"})


@dataclass(frozen=True)
class Settings:
    """What one process is told; ``settings.json`` of its room has it."""

    role: str
    room: str
    host: str
    files: str
    """Directory of the files, which the servers of one storage share."""
    own: str
    """The token that may do everything."""
    lent: str
    """The one that may read, and write a file."""
    beside: str = ""
    """Room of the server to which it leads clients on."""
    leads: dict[str, list[list[str]]] = field(default_factory=dict)
    """How a file of that name, or a method and that name, is answered: the Locations of a redirect,
    then of the one after `?hop=1`, and so on; the last ones for ever."""

    @property
    def place(self) -> Path:
        return Path(self.room)

    def url_beside(self) -> str:
        return str(json.loads((Path(self.beside) / READY).read_text())["url"])


class Journal:
    """What a server was asked and did, a JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")
        self._lock = threading.Lock()

    def note(self, **what: object) -> None:
        with self._lock:
            self._file.write(json.dumps(what) + "\n")
            self._file.flush()


class Dialect(AnyMethod):
    """WebDAV as all three speak it; a dialect changes what it does in another way."""

    protocol_version = "HTTP/1.1"
    software = "test"
    received_bytes = 0
    """The kernel takes no more from a client that nobody reads; 0 for its own limit."""
    settings: Settings
    journal: Journal

    def version_string(self) -> str:
        return self.software

    def handle_expect_100(self) -> bool:
        """Ask for a body only when it is wanted: a redirect takes none."""
        return True

    @property
    def name(self) -> str:
        """The decoded path that is asked for."""
        return unquote(urlsplit(self.path).path).replace("//", "/")

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}

    def file(self, name: str = "") -> Path:
        parts = (part for part in (name or self.name).split("/") if part not in ("", ".."))
        return Path(self.settings.files).joinpath(*parts)

    def serve(self) -> None:
        self.journal.note(method=self.command, target=self.path, headers=list(self.headers.items()))
        if (locations := self.led_astray()) is not None:
            self.hang_up_after_unread_body()
            self.redirect(302 if self.command == "GET" else 307, *locations)
        elif (status := self.refusal()) is not None:
            self.hang_up_after_unread_body()
            self.answer(*status) if status[0] else self.break_off()
        else:
            getattr(self, f"on_{self.command.lower()}", self.on_others)()

    def led_astray(self) -> list[str] | None:
        name, leads = self.name.rpartition("/")[2], self.settings.leads
        steps = leads.get(name, leads.get(f"{self.command} {name}"))
        if steps is None:
            return None
        hop = int(self.query.get("hop", "0"))
        locations = steps[min(hop, len(steps) - 1)]
        return [one.format(path=self.name, hop=hop + 1) for one in locations]

    def refusal(self) -> tuple[int, dict[str, str], bytes] | None:
        """Return how a request is refused at once; status 0 breaks the connection off."""
        if spoilt := SPOILT.search(self.name):
            method, how = spoilt.groups()
            if method == self.command.lower() and (how.isdecimal() or how == "breaks"):
                return int(how) if how.isdecimal() else 0, {}, b"asked for\n"
        if not self.may():
            return 401, {"WWW-Authenticate": "Bearer"}, b"no token that is known here\n"
        return None

    def spoil(self) -> str:
        """Return what is to go wrong with this request later on, empty for nothing."""
        spoilt = SPOILT.search(self.name)
        return spoilt[2] if spoilt and spoilt[1] == self.command.lower() else ""

    def may(self) -> bool:
        if not self.name.startswith(GUARDED):
            return True
        kind, _, token = self.headers.get("Authorization", "").partition(" ")
        allowed = token == self.settings.own
        return kind == "Bearer" and (
            allowed or (token == self.settings.lent and self.command in LENT_FOR)
        )

    def hang_up_after_unread_body(self) -> None:
        if self.headers.get("Content-Length", "0") != "0":
            self.close_connection = True

    def break_off(self) -> None:
        self.close_connection = True

    def redirect(self, status: int, *locations: str) -> None:
        self.send_response(status)
        for location in locations:
            self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer(self, status: int, *rest: object, **more: object) -> None:
        """Say that the connection ends where it does."""
        headers = dict(rest[0]) if rest else {}  # type: ignore[call-overload]
        if self.close_connection:
            headers["Connection"] = "close"
        super().answer(status, headers, *rest[1:], **more)  # type: ignore[arg-type]

    def on_others(self) -> None:
        self.answer(405)

    def on_head(self) -> None:
        file = self.file()
        if file.is_dir():
            self.answer(200, {"Content-Length": "0"})
        elif file.is_file():
            self.answer(200, {"Content-Length": str(file.stat().st_size)} | self.digest(file))
        else:
            self.answer(404)

    def digest(self, file: Path) -> dict[str, str]:
        """Return the checksum of a file, but of one whose name says that there is none."""
        if "no-digest" in file.name:
            return {}
        return {"Digest": f"adler32={checksum(str(file), file.stat().st_mtime_ns)}"}

    def on_get(self) -> None:
        file = self.file()
        if not file.is_file():
            self.answer(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(file.stat().st_size))
        self.end_headers()
        with file.open("rb") as content:
            while piece := content.read(PIECE_BYTES):
                self.wfile.write(piece)

    def on_put(self) -> None:
        if not self.file().parent.is_dir():
            self.refuse_body(409, "Parent resource does not exist\n")
            return
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        self.file().write_bytes(self.body())
        self.answer(201)

    def refuse_body(self, status: int, text: str) -> None:
        self.hang_up_after_unread_body()
        self.answer(status, {}, text.encode())

    def on_move(self) -> None:
        target = self.file(urlsplit(self.headers["Destination"]).path)
        if not self.file().is_file():
            self.answer(404)
        elif not target.parent.is_dir():
            self.answer(409)
        else:
            self.file().replace(target)
            self.answer(201)

    def on_delete(self) -> None:
        found = self.file().is_file()
        if found:
            self.file().unlink()
        self.answer(204 if found else 404)

    def on_mkcol(self) -> None:
        place = self.file()
        if place.exists():
            self.answer(405)
        elif not place.parent.is_dir():
            self.answer(409)
        else:
            place.mkdir()
            self.answer(201)

    def begin(self, status: int, **headers: str) -> None:
        """Begin an answer of chunks."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, text: str) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text.encode()), text.encode()))

    def note_copied(self, transfer: Transfer, began: float, queued: float = 0.0) -> None:
        """Note of a copy that succeeded how long bytes moved, and it took in all."""
        whole = time.monotonic() - began
        if not transfer.error:
            times = {"moving": transfer.seconds, "whole": whole, "queued": queued}
            self.journal.note(copied=self.name, **times)


@lru_cache(maxsize=1000)
def checksum(path: str, _changed: int) -> str:
    return f"{zlib.adler32(Path(path).read_bytes()):08x}"


def serve(handler: type[Dialect], settings: Settings) -> None:
    """Serve over TLS until the process is ended; ``ready.json`` says where."""
    handler.settings, handler.journal = settings, Journal(settings.place / JOURNAL)
    server = ThreadingHTTPServer((settings.host, 0), handler, bind_and_activate=False)
    server.daemon_threads, server.request_queue_size = True, 128
    if handler.received_bytes:
        server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, handler.received_bytes)
    server.server_bind()
    server.server_activate()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(settings.place / "host.pem")
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    tell_ready(settings.place, url=f"https://{settings.host}:{server.server_port}")
    server.serve_forever()


def tell_ready(room: Path, **what: object) -> None:
    complete = room / f"{READY}.new"
    complete.write_text(json.dumps(what | {"at": time.time()}))
    complete.replace(room / READY)
