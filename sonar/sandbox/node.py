"""One storage node of the sandbox: an endpoint that speaks HTTP, WebDAV and HTTP-TPC.

Files are real, on disk below its own directory, and so are the transfers between nodes; only their
speed and their troubles are those of a link of ``topology``, applied by the side that does a COPY.
What the wire looks like follows XRootD 5, except that a performance marker comes every half second.
"""

import asyncio
import os
import shutil
import tempfile
import zlib
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

import aiohttp
from aiohttp import web
from yarl import URL

from sonar.sandbox.flow import CHUNK_BYTES, Draws, Flow, TransferError, closed_early

BASE_PATH = "datadisk"


class Files:
    """The files of a node below its base path; nothing outside it can be named."""

    def __init__(self, directory: Path, endpoint: str) -> None:
        self.root = directory.resolve() / endpoint
        self.root.mkdir(parents=True, exist_ok=True)
        self._partials = directory.resolve() / ".partial" / endpoint
        shutil.rmtree(self._partials, ignore_errors=True)  # left by a process that was killed
        self._partials.mkdir(parents=True)
        self._checksums: dict[Path, tuple[tuple[int, ...], str]] = {}

    def at(self, url_path: str) -> Path:
        """Return the file that the path of a URL names, or raise 403 or 404."""
        parts = [part for part in unquote(url_path).split("/") if part not in ("", ".")]
        if ".." in parts or "\0" in unquote(url_path):
            raise web.HTTPForbidden(text=f"{url_path} leaves the base path\n")
        if parts[:1] != [BASE_PATH]:
            raise not_there(url_path)
        path = self.root.joinpath(*parts[1:])
        if not path.resolve().is_relative_to(self.root):
            raise web.HTTPForbidden(text=f"{url_path} leaves the base path\n")
        return path

    def shown(self, path: Path) -> str:
        """Return the path as messages show it."""
        return f"/{BASE_PATH}/{path.relative_to(self.root).as_posix()}".removesuffix("/.")

    @contextmanager
    def written(self, path: Path) -> Iterator[BinaryIO]:
        """Open a file that appears under its name once it is complete, and never in part."""
        handle, name = tempfile.mkstemp(dir=self._partials)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            Path(name).replace(path)
        finally:
            Path(name).unlink(missing_ok=True)

    def delete(self, path: Path) -> None:
        path.unlink()
        self._checksums.pop(path, None)

    async def adler32(self, path: Path) -> str:
        """Return the checksum of a file, which is read once."""
        status = path.stat()
        identity = status.st_ino, status.st_size, status.st_mtime_ns
        last_identity, checksum = self._checksums.get(path, ((), ""))
        if last_identity != identity:
            checksum = await asyncio.to_thread(_adler32, path)
            self._checksums[path] = (identity, checksum)
        return checksum


def _adler32(path: Path) -> str:
    value = 1
    with path.open("rb") as file:
        while data := file.read(CHUNK_BYTES.stop):
            value = zlib.adler32(data, value)
    return f"{value:08x}"


def not_there(name: str) -> web.HTTPNotFound:
    return web.HTTPNotFound(text=f"Unable to open {name}; no such file or directory\n")


def no_parent(name: str) -> str:
    return f"Unable to create {name}; no such file or directory\n"


MARKER_SECONDS = 0.5
"""XRootD sends one every 5 s, which is longer than most transfers at the sandbox's scale."""

CONNECT_SECONDS = 0.25
"""How long the first marker waits for the connection whose name it carries."""

LIBCURL: dict[type[Exception], str] = {
    aiohttp.ClientConnectorDNSError: "Couldn't resolve host name",
    aiohttp.ClientConnectorError: "Couldn't connect to server",
    aiohttp.ServerDisconnectedError: "Server returned nothing (no headers, no data)",
    aiohttp.InvalidURL: "URL using bad/illegal format or missing URL",
    TimeoutError: "Timeout was reached",
}
"""Message of libcurl for an error: the first entry that fits."""


class Node:
    """The HTTP face of one endpoint.

    ``endpoints`` names the endpoint behind each port on this machine, which is how a node
    knows the other end of a COPY, and with it the link.
    """

    def __init__(
        self,
        endpoint: str,
        files: Files,
        draws: Draws,
        endpoints: Mapping[int, str],
        session: aiohttp.ClientSession,
    ) -> None:
        self._endpoint = endpoint
        self._files = files
        self._draws = draws
        self._endpoints = endpoints
        self._session = session
        self._methods = {
            "OPTIONS": self._options,
            "HEAD": self._get,
            "GET": self._get,
            "PUT": self._put,
            "DELETE": self._delete,
            "MKCOL": self._mkcol,
            "MOVE": self._move,
            "COPY": self._copy,
        }

    def application(self) -> web.Application:
        """Return the node as something aiohttp can serve."""
        application = web.Application()
        application.on_response_prepare.append(_sign)
        application.router.add_route("*", "/{path:.*}", self._answer)
        return application

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method = self._methods.get(request.method)
        if method is None:
            raise web.HTTPMethodNotAllowed(request.method, self._methods)
        try:
            return await method(request, self._files.at(urlsplit(request.raw_path).path))
        except ConnectionError:
            raise  # the client has gone
        except OSError as error:
            raise web.HTTPInternalServerError(text=f"{error.strerror}\n") from error

    async def _options(self, _request: web.Request, _path: Path) -> web.Response:
        return web.Response(headers={"DAV": "1", "Allow": ",".join(self._methods)})

    async def _get(self, request: web.Request, path: Path) -> web.StreamResponse:
        if path.is_dir():
            entries = sorted(path.iterdir())
            names = (f"{entry.name}{'/' * entry.is_dir()}\n" for entry in entries)
            return web.Response(text="".join(names))
        try:
            file = path.open("rb")
        except (FileNotFoundError, NotADirectoryError) as error:
            raise not_there(self._files.shown(path)) from error
        with file:
            response = web.StreamResponse(headers=await self._digest(request, path))
            response.content_type = "application/octet-stream"
            response.content_length = os.fstat(file.fileno()).st_size
            await response.prepare(request)
            if request.method == "GET" and request.transport is not None:
                with suppress(ConnectionError):  # the client has gone, which is its own affair
                    await asyncio.get_running_loop().sendfile(request.transport, file)
            await response.write_eof()
        return response

    async def _digest(self, request: web.Request, path: Path) -> dict[str, str]:
        if "adler32" not in request.headers.get("Want-Digest", "").lower():
            return {}
        return {"Digest": f"adler32={await self._files.adler32(path)}"}

    async def _put(self, request: web.Request, path: Path) -> web.Response:
        self._check_overwrite(request, path)
        if path.is_dir() or not path.parent.is_dir():
            raise web.HTTPConflict(text=no_parent(self._files.shown(path)))
        status = 200 if path.exists() else 201
        with self._files.written(path) as file:
            # Raises if the body is shorter than its Content-Length.
            async for data in request.content.iter_chunked(CHUNK_BYTES.stop):
                file.write(data)
        return web.Response(status=status)

    async def _delete(self, _request: web.Request, path: Path) -> web.Response:
        if path == self._files.root:
            raise web.HTTPForbidden(text="The base path stays\n")
        try:
            path.rmdir() if path.is_dir() else self._files.delete(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise not_there(self._files.shown(path)) from error
        except OSError as error:
            raise web.HTTPConflict(text=f"{error.strerror}\n") from error
        return web.Response()

    async def _mkcol(self, _request: web.Request, path: Path) -> web.Response:
        if path.exists():
            raise web.HTTPMethodNotAllowed("MKCOL", self._methods)
        if not path.parent.is_dir():
            raise web.HTTPConflict(text=no_parent(self._files.shown(path)))
        path.mkdir()
        return web.Response(status=201)

    async def _move(self, request: web.Request, path: Path) -> web.Response:
        destination = urlsplit(request.headers.get("Destination", ""))
        if not destination.path:
            raise web.HTTPBadRequest(text="No Destination specified\n")
        if destination.netloc and _port(destination.geturl()) != request.url.port:
            raise web.HTTPBadGateway(text="MOVE stays on one endpoint; use COPY\n")
        target = self._files.at(destination.path)
        if not path.is_file():
            raise not_there(self._files.shown(path))
        self._check_overwrite(request, target)
        if target.is_dir() or not target.parent.is_dir():
            raise web.HTTPConflict(text=no_parent(self._files.shown(target)))
        status = 204 if target.exists() else 201
        path.replace(target)
        return web.Response(status=status)

    def _check_overwrite(self, request: web.Request, path: Path) -> None:
        if request.headers.get("Overwrite", "T").upper() == "F" and path.exists():
            raise web.HTTPPreconditionFailed(
                text=f"Unable to create {self._files.shown(path)}; file exists\n"
            )

    async def _copy(self, request: web.Request, path: Path) -> web.StreamResponse:
        if request.headers.get("Credential", "none").lower() != "none":
            raise web.HTTPBadRequest(text="COPY requested an unsupported Credential type\n")
        if "Source" in request.headers:
            return await self._pull(request, path, request.headers["Source"])
        if "Destination" in request.headers:
            return await self._push(request, path, request.headers["Destination"])
        raise web.HTTPBadRequest(text="No Source or Destination specified\n")

    async def _pull(self, request: web.Request, path: Path, source: str) -> web.StreamResponse:
        self._check_overwrite(request, path)
        if path.is_dir() or not path.parent.is_dir():
            raise web.HTTPBadRequest(text=no_parent(self._files.shown(path)))
        flow = Flow(self._draws.next(self._endpoint_at(source), self._endpoint), source)
        return await _report(request, flow, self._fetch(flow, source, _forwarded(request), path))

    async def _push(self, request: web.Request, path: Path, destination: str) -> web.StreamResponse:
        if not path.is_file():
            raise web.HTTPBadRequest(text=not_there(self._files.shown(path)).text)
        headers = _forwarded(request) | {"Overwrite": request.headers.get("Overwrite", "T")}
        flow = Flow(self._draws.next(self._endpoint, self._endpoint_at(destination)), destination)
        return await _report(request, flow, self._send(flow, destination, headers, path))

    def _endpoint_at(self, url: str) -> str:
        return self._endpoints.get(_port(url), "")

    async def _fetch(self, flow: Flow, source: str, headers: dict[str, str], path: Path) -> None:
        async with self._session.get(source, headers=headers) as remote:
            flow.reach()
            await _check_status(remote)
            with self._files.written(path) as file:
                async for data in flow.data(remote.content.read, remote.content_length):
                    file.write(data)

    async def _send(self, flow: Flow, url: str, headers: dict[str, str], path: Path) -> None:
        with path.open("rb") as file:

            async def read(size: int) -> bytes:
                return file.read(size)

            size = os.fstat(file.fileno()).st_size
            headers = headers | {"Content-Length": str(size)}
            data = flow.data(read, size)
            async with self._session.put(url, data=data, headers=headers) as remote:
                await _check_status(remote)


async def _sign(_request: web.Request, response: web.StreamResponse) -> None:
    """Say who answers, so that it is known that X-Number-Of-Streams was not obeyed."""
    response.headers["Server"] = "sonar-sandbox"


def _port(url: str) -> int:
    """Return the port of a URL, or 0 if it is none."""
    try:
        return URL(url).port or 0
    except ValueError:
        return 0


def _forwarded(request: web.Request) -> dict[str, str]:
    """Return the headers that the client wants to be sent to the other side."""
    prefix = "transferheader"
    return {
        name[len(prefix) :]: value
        for name, value in request.headers.items()
        if name.lower().startswith(prefix)
    }


async def _check_status(remote: aiohttp.ClientResponse) -> None:
    if remote.status not in (200, 201, 204):
        text = " ".join((await remote.text(errors="replace")).split())
        raise TransferError(
            f'Remote side failed with status code {remote.status}; error message: "{text[:200]} "'
        )


async def _report(
    request: web.Request, flow: Flow, transfer: Coroutine[None, None, None]
) -> web.StreamResponse:
    """Run a transfer and tell the client of it: markers, and the verdict in the last line.

    A client that goes away cancels this, and with it the transfer.
    """
    response = web.StreamResponse(status=201, headers={"Content-Type": "text/plain"})
    response.enable_chunked_encoding()
    running = asyncio.create_task(_verdict(flow, transfer))
    try:
        await asyncio.wait(
            {running, flow.reached}, timeout=CONNECT_SECONDS, return_when="FIRST_COMPLETED"
        )
        await response.prepare(request)
        await response.write(flow.marker())
        while not (await asyncio.wait({running}, timeout=MARKER_SECONDS))[0]:
            await response.write(flow.marker())
        await response.write(running.result().encode())
    finally:
        running.cancel()
    await response.write_eof()
    return response


async def _verdict(flow: Flow, transfer: Coroutine[None, None, None]) -> str:
    """Say how a transfer ended in the words of libcurl, which is what XRootD passes on."""
    try:
        await transfer
    except (TransferError, aiohttp.ClientError, OSError) as error:
        reason = next((text for kind, text in LIBCURL.items() if isinstance(error, kind)), "")
        if isinstance(error.__cause__, TransferError):  # raised while aiohttp was sending
            reason = str(error.__cause__)
        elif isinstance(error, aiohttp.ClientPayloadError):
            reason = closed_early(flow.left_bytes)
        return f"failure: {reason or error}"
    return "success: Created"
