"""What a storage server is to do: WebDAV and third-party copies, as plainly as possible."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.storage.hostile.disk import Content, Disk, file_of
from tests.storage.hostile.wire import LAST_CHUNK, PIECE_BYTES, Head, Peer, chunk, head_of, marker

REMOTE_SECONDS = 60.0


@dataclass(frozen=True)
class Visit:
    """One request of one client, and the files that it is about."""

    peer: Peer
    head: Head
    disk: Disk

    @property
    def file(self) -> Content | None:
        return self.disk.look(self.head.path)


class RemoteError(Exception):
    """The other side of a COPY did not do its part; the text follows ``failure:``."""


async def behave(visit: Visit) -> None:
    """Answer a request as a good server does."""
    known = {"HEAD": look, "GET": get, "PUT": put, "MOVE": move, "COPY": copy}
    known |= {"DELETE": delete, "MKCOL": make_directory, "PROPFIND": describe}
    method = known.get(visit.head.method)
    if method is None:
        await visit.peer.answer(405)
    else:
        await method(visit)


async def look(visit: Visit) -> None:
    file, disk = visit.file, visit.disk
    if file is None:
        status = 200 if disk.is_directory(visit.head.path) else 404
        await visit.peer.send(head_of(status, **{"Content-Length": "0"}))
        return
    headers = {"Content-Length": str(file.bytes), "Digest": f"adler32={file.adler32}"}
    await visit.peer.send(head_of(200, **headers))


async def describe(visit: Visit) -> None:
    is_there = visit.file is not None or visit.disk.is_directory(visit.head.path)
    await visit.peer.answer(207 if is_there else 404)


async def get(visit: Visit) -> None:
    file = visit.file
    if file is None:
        await visit.peer.answer(404)
        return
    await visit.peer.send(head_of(200, **{"Content-Length": str(file.bytes)}))
    await visit.peer.send(file_of(file))


async def put(visit: Visit) -> None:
    content = await Content().take(visit.peer.body(visit.head))
    if content.bytes != visit.head.length:
        return  # the client has gone
    kept = visit.disk.keep(visit.head.path, content)
    await visit.peer.answer(201 if kept else 409)


async def move(visit: Visit) -> None:
    target = urlsplit(visit.head.headers.get("destination", "")).path
    await visit.peer.answer(201 if visit.disk.move(visit.head.path, target) else 404)


async def delete(visit: Visit) -> None:
    await visit.peer.answer(200 if visit.disk.delete(visit.head.path) else 404)


async def make_directory(visit: Visit) -> None:
    await visit.peer.answer(visit.disk.make_directory(visit.head.path))


async def copy(visit: Visit) -> None:
    """Carry a third-party copy out and tell of it: a marker and the verdict."""
    if not await may_begin(visit):
        return
    await begin(visit)
    try:
        content = await carry_out(visit)
    except (RemoteError, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        await visit.peer.send(chunk(f"failure: {error or type(error).__name__}") + LAST_CHUNK)
        return
    await visit.peer.send(chunk(marker(content.bytes)) + chunk("success: Created") + LAST_CHUNK)


async def may_begin(visit: Visit) -> bool:
    """Refuse a COPY whose file or directory is missing here."""
    if "destination" in visit.head.headers:
        if visit.file is not None:
            return True
        await visit.peer.answer(404, "no such file\n")
        return False
    parent = visit.head.path.rpartition("/")[0]
    if visit.disk.is_directory(parent):
        return True
    await visit.peer.answer(409, "no such file or directory\n")
    return False


async def begin(visit: Visit) -> None:
    headers = {"Content-Type": "text/plain", "Transfer-Encoding": "chunked"}
    await visit.peer.send(head_of(201, **headers))


async def carry_out(visit: Visit) -> Content:
    """Make the transfer of a COPY, in either direction; return what was moved."""
    async with asyncio.timeout(REMOTE_SECONDS):
        if "source" in visit.head.headers:
            content = await fetch(visit.head.headers["source"])
            visit.disk.keep(visit.head.path, content)
            return content
        content = visit.file or Content()
        await give(visit.head.headers["destination"], file_of(content))
        return content


async def fetch(url: str) -> Content:
    """Read a file of another server."""
    async with asked(url, "GET", "") as (reader, _):
        left = await read_head(reader)
        content = Content()
        while content.bytes < left and (piece := await reader.read(PIECE_BYTES)):
            content.add(piece)
        if content.bytes != left:
            raise RemoteError(f"Transfer closed with {left - content.bytes} bytes remaining")
        return content


async def give(url: str, data: bytes) -> None:
    """Send a file to another server."""
    async with asked(url, "PUT", f"Content-Length: {len(data)}\r\n") as (reader, writer):
        writer.write(data)
        await writer.drain()
        await read_head(reader)


@asynccontextmanager
async def asked(
    url: str, method: str, headers: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        host = f"Host: {address.netloc}\r\nConnection: close\r\n"
        writer.write(f"{method} {address.path} HTTP/1.1\r\n{host}{headers}\r\n".encode())
        yield reader, writer
    finally:
        writer.close()


async def read_head(reader: asyncio.StreamReader) -> int:
    """Read the head of an answer; return its Content-Length, or raise RemoteError."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = first.split(" ")[1]
    if not status.startswith("2"):
        raise RemoteError(f"Remote side failed with status code {status}")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return int(headers.get("content-length", "0"))
