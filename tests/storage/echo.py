"""A storage server that tells all it knows: `python -m tests.storage.echo --directory DIR`.

Every port is an endpoint that does its work but for one thing, in which it repeats the tokens
that it was sent on any port, where it and a stranger are, in one way of writing.
"""

import argparse
import asyncio
import json
import socket
import sys
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.storage.hostile import decent
from tests.storage.hostile.decent import Visit
from tests.storage.hostile.disk import Disk
from tests.storage.hostile.wire import LAST_CHUNK, Head, Peer, chunk, head_of

HOST, BASE = "127.0.0.77", "planted-base"
# Registered as well, and met by nobody.
STRANGER = "webdav.planted-host.example"
STRANGERS_PORT = 38765
DECENT = "decent"
SECRETS = ("authorization", "transferheaderauthorization")
# What lets in whoever is led to a URL with it: EOS, XRootD, doors of dCache, and others.
CAPABILITIES = {
    "cap.sym": "Zt6Hb2Vq9Wm4Kx1Rs7Pd3Lf8Yn5Gc0Ju",
    "authz": "Xf3Mc8Tq1Zd6Wr9Bk4Hv7Np2Ls5Jy0Ge",
    "dcache-http-uuid": "Pm9Rk2Yw5Cv8Tb1Nz4Dx7Hq3Fs6Lg0Ja",
    "access_token": "Gd4Sy7Bn1Xt8Vh3Lr6Jq9Mw2Kc5Zp0Fu",
}
PIECE = 9


def in_pieces(text: str, divided_by: str) -> str:
    return divided_by.join(text[at : at + PIECE] for at in range(0, len(text), PIECE))


WRITTEN: dict[str, Callable[[str], str]] = {
    "plain": str,
    "other-case": str.swapcase,
    "escaped": lambda text: "".join(f"%{ord(one):02X}" for one in text),
    "escaped-twice": lambda text: "".join(f"%25{ord(one):02x}" for one in text),
    "json": lambda text: json.dumps({"told": text, "in": [text]}),
    "json-escaped": lambda text: "".join(f"\\u{ord(one):04x}" for one in text),
    "base64": lambda text: b64encode(text.encode()).decode(),
    "base64-for-urls": lambda text: urlsafe_b64encode(f"I heard {text}".encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "lines": lambda text: in_pieces(text, "\n "),
    "spaced": " ".join,
    "in-a-url": lambda text: f"https://{text}@elsewhere.example/?access_token={text}",
}


class Echo:
    """What the ports have heard; each answer begins with another part of it."""

    def __init__(self) -> None:
        self.heard: dict[str, None] = {}
        self._told = 0

    def hear(self, head: Head) -> None:
        for name in SECRETS:
            if value := head.headers.get(name):
                self.heard[value.removeprefix("Bearer ")] = None

    def words(self, port: int, write: Callable[[str], str], head: Head) -> str:
        """Return all that is known, as it is written here; as errors are cut, in turn.

        What was in the query of this request is known as well, but nobody else would tell it.
        """
        shown = [value for _, value in parse_qsl(urlsplit(head.target).query)]
        here = [f"{HOST}:{port}/{BASE}", f"{STRANGER}:{STRANGERS_PORT}", HOST, f"port {port}"]
        parts = [*self.heard, *shown, *here]
        self._told += 1
        turn = self._told % len(parts)
        return " ".join(write(one) for one in [*parts[turn:], *parts[:turn]])


Tell = Callable[[Visit, str], Awaitable[None]]


def flat(words: str) -> str:
    return words.replace("\n", " ")


async def in_everything(visit: Visit, words: str) -> None:
    """Refuse with a reason, headers and a body of words."""
    said = flat(words)
    names = dict.fromkeys(("X-Why", "ETag", "Digest", "Server", "WWW-Authenticate"), said)
    head = head_of(500, **names, **{"Content-Length": str(len(words.encode()))})
    await visit.peer.send(head.replace("Internal Server Error", said, 1) + words)


async def in_the_status_line(visit: Visit, words: str) -> None:
    await visit.peer.send(f"HTTP/1.1 {flat(words)}\r\nContent-Length: 0\r\n\r\n")


async def in_a_broken_header(visit: Visit, words: str) -> None:
    await visit.peer.send(
        f"HTTP/1.1 200 OK\r\n{flat(words)}\r\nContent-Length: {flat(words)}\r\n\r\n"
    )


async def in_a_location(visit: Visit, words: str) -> None:
    """Redirect to where words are, also to what is no URL."""
    place = f"http://{STRANGER}:{STRANGERS_PORT}/" if "[" not in words else "http://[::1/%zz"
    await visit.peer.answer(307, words, Location=place + flat(words))


async def in_a_refused_redirect(visit: Visit, words: str) -> None:
    """Lead to a stranger by a URL that would let anyone in."""
    place = f"http://{STRANGER}:{STRANGERS_PORT}{urlsplit(visit.head.target).path}"
    await visit.peer.answer(307, words, Location=f"{place}?{urlencode(CAPABILITIES)}")


async def in_a_followed_redirect(visit: Visit, words: str) -> None:
    """Lead on by such a URL, and repeat it to who comes by it."""
    place = urlsplit(visit.head.target)
    if place.query:
        await in_everything(visit, words)
        return
    await visit.peer.answer(307, Location=f"{place.path}?{urlencode(CAPABILITIES)}")


async def in_a_refusal(visit: Visit, words: str) -> None:
    await visit.peer.answer(403, words)


async def in_a_failure(visit: Visit, words: str) -> None:
    await decent.begin(visit)
    await visit.peer.send(chunk(f"failure: could not connect to {flat(words)}\n") + LAST_CHUNK)


async def in_markers(visit: Visit, words: str) -> None:
    """Tell of connections and of a success of words, and move nothing."""
    said = flat(words)
    marker = f"Perf Marker\nStripe Index: 0\nStripe Bytes Transferred: 1\nRemoteConnections: {said}"
    await decent.begin(visit)
    await visit.peer.send(chunk(f"{marker},tcp:[{HOST}]:1\nEnd\nsuccess: {said}\n") + LAST_CHUNK)


async def in_a_digest(visit: Visit, words: str) -> None:
    """Let a file be there, and have words for its checksum."""
    if "want-digest" not in visit.head.headers or not visit.head.is_of_incoming:
        await decent.behave(visit)
        return
    await visit.peer.send(head_of(418, Digest=f"adler32={flat(words)}", ETag=flat(words)))


ALL = frozenset({"HEAD", "GET", "PUT", "COPY", "MOVE", "DELETE", "MKCOL"})
COPY = frozenset({"COPY"})
WRITING = COPY | {"PUT"}
ACCOUNT: dict[str, tuple[frozenset[str], Tell]] = {
    "everything": (ALL, in_everything),
    "status-line": (ALL, in_the_status_line),
    "header": (ALL, in_a_broken_header),
    "location": (ALL, in_a_location),
    "led-astray": (WRITING, in_a_refused_redirect),
    "led-on": (WRITING, in_a_followed_redirect),
    "refusal": (COPY, in_a_refusal),
    "failure": (COPY, in_a_failure),
    "markers": (COPY, in_markers),
    "digest": (frozenset({"HEAD"}), in_a_digest),
    "cleaning": (frozenset({"DELETE"}), in_a_refusal),
}


class Endpoint:
    """One port, which tells in one place of its answers, in one way of writing."""

    def __init__(self, place: str, writing: str, root: Path, echo: Echo) -> None:
        self.name = DECENT if not place else f"{place}.{writing}"
        self._methods, self._tell = ACCOUNT.get(place, (frozenset(), in_a_refusal))
        self._write, self._echo, self._disk = WRITTEN[writing], echo, Disk(root / self.name)
        (root / self.name / BASE).mkdir(exist_ok=True)
        self._sock = socket.create_server((HOST, 0), backlog=128)
        self._sock.setblocking(False)
        self.port = int(self._sock.getsockname()[1])

    async def serve(self) -> None:
        loop, visits = asyncio.get_running_loop(), set[asyncio.Task[None]]()
        while True:
            near, _ = await loop.sock_accept(self._sock)
            near.setblocking(False)
            task = loop.create_task(self._visit(Peer(near)))
            visits.add(task)
            task.add_done_callback(visits.discard)

    async def _visit(self, peer: Peer) -> None:
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                while head := await peer.head():
                    self._echo.hear(head)
                    visit = Visit(peer, head, self._disk)
                    if head.method not in self._methods:
                        await decent.behave(visit)
                        continue
                    await self._tell(visit, self._echo.words(self.port, self._write, head))
                    return  # a body that was not read must not look like the next request
        finally:
            peer.close()


async def serve(directory: Path) -> None:
    echo, files = Echo(), directory / "files"
    ends = [Endpoint("", "plain", files, echo)]
    ends += [Endpoint(place, writing, files, echo) for place in ACCOUNT for writing in WRITTEN]
    complete = directory / "echo.new"
    complete.write_text(json.dumps({one.name: one.port for one in ends}))
    complete.replace(directory / "echo.json")
    await asyncio.gather(*(one.serve() for one in ends))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storage.echo", description=__doc__)
    parser.add_argument("--directory", type=Path, required=True, help="of files and echo.json")
    asyncio.run(serve(parser.parse_args().directory.resolve()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
