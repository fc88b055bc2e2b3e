"""The files of an endpoint over WebDAV: look, put, delete, and nothing outside its base."""

import re
from contextlib import suppress
from dataclasses import replace

from sonar.movers.base import End, FileInfo, MoverError, NoChecksum, NotReady, Order
from sonar.movers.content import read_adler32
from sonar.movers.file_address import (
    at_path,
    directories_below_base,
    path_of,
    place_of,
    require_inside,
    web_url,
)
from sonar.movers.http.exchange import Reply, Request, Web
from sonar.movers.http.failures import lasts, refused
from sonar.movers.http.software import Software
from sonar.movers.uploads import NO_RENAME, WatchedFile, put_aside, put_in_place
from sonar.movers.watch import Watch

ABSENT = {404, 410}
FORBIDDEN = {401, 403}
NO_PARENT = {404, 409}
MULTI_STATUS = 207
GONE = re.compile(r"</(?:\w+:)?href>\s*<(?:\w+:)?status>HTTP/\S+ (404|410)\b", re.IGNORECASE)
"""A 207 that says of the resource itself that it is not there."""
NOT_OFFERED = {405, 501}
LATER = {202, 408, 423, 425, 429, 503, 504}
"""Answers of who may well have a checksum after a while."""
WANT_CHECKSUM = {"Want-Digest": "adler32"}
AFTER_CHECKSUM_SECONDS = 0.05
"""Until the connection that brought a checksum takes the next request.

XRootD 5.5.3 works out a checksum outside of the connection, and for a moment after its answer two
threads serve that connection: a next request may be done twice, or never, or end the server.
"""
MAX_VERSION = 200


class WebDav:
    """Files over http and https; one object serves all threads of a process."""

    def __init__(self) -> None:
        self.web = Web()
        self.software = Software()

    def stat(self, end: End, order: Order) -> FileInfo | None:
        return self._described(Request("HEAD", end), order)

    def arrived(self, end: End, order: Order) -> FileInfo | None:
        """Return the same, with the checksum where the server is known to keep it at hand."""
        headers = WANT_CHECKSUM if self.software.is_prompt(end) else {}
        return self._described(Request("HEAD", end, headers), order)

    def _described(self, request: Request, order: Order) -> FileInfo | None:
        end = request.end
        reply = self.web.ask(request, order)
        self.software.note(end, reply)
        if reply.status in ABSENT:
            return None
        succeeded(reply, "HEAD", end)
        version = reply.headers.get("ETag") or reply.headers.get("Last-Modified") or ""
        checksum = ""
        if request.headers:
            with suppress(NoChecksum):  # asked for again, with more time
                checksum = read_adler32(digest_of(reply), end)
        return FileInfo(size_of(reply, end), version[:MAX_VERSION], checksum)

    def checksum(self, end: End, order: Order, seconds: float) -> str:
        """Return the file's adler32, as ``Files.checksum`` says.

        XRootD 5.5.3 without ``xrootd.chksum`` answers 405 to the question.
        """
        limits = replace(order.limits, answer=seconds, total=seconds)
        hold = 0.0 if self.software.is_prompt(end) else AFTER_CHECKSUM_SECONDS
        request = Request("HEAD", end, WANT_CHECKSUM, hold_seconds=hold)
        reply = self.web.ask(request, replace(order, limits=limits))
        if reply.status in NOT_OFFERED:
            why = f"the server refused the request for an adler32 checksum ({reply.status})"
            raise NoChecksum(end.where, why)
        if reply.status in LATER:
            raise NotReady(end.where, str(refused(end, request.place, reply.status, reply.text)))
        succeeded(reply, "HEAD", end)
        return read_adler32(digest_of(reply), end)

    def put(self, order: Order, watch: Watch) -> None:
        """Make the source file appear, whole or not at all: put aside, then moved into place."""
        end = order.source
        require_inside(end)
        self.require_base(end, order)
        with put_aside(self.delete, order, watch) as part:
            self._upload(part, order, watch)
            headers = {"Destination": web_url(end), "Overwrite": "T"}
            moved = self.web.ask(Request("MOVE", part, headers), order)
            if not cannot_rename(moved):
                succeeded(moved, "MOVE", part)
                return
            self.delete(part, order)
        put_in_place(self, self._upload, order, watch)

    def _upload(self, end: End, order: Order, watch: Watch) -> None:
        """Put the source file to this place."""
        reply = self._put(end, order, watch)
        if reply.status in NO_PARENT:
            self.make_directories(end, order)
            reply = self._put(end, order, watch)
        succeeded(reply, "PUT", end)
        watch.uploaded_to = reply.data_server

    def _put(self, end: End, order: Order, watch: Watch) -> Reply:
        # XRootD refuses a PUT without reading its body, then hangs up: nothing to keep.
        headers = {
            "Content-Length": str(order.bytes),
            "Connection": "close",
            "Expect": "100-continue",
        }
        body = WatchedFile(order.bytes, watch)
        return self.web.ask(Request("PUT", end, headers, body, sent_by=body.sent_by), order)

    def put_empty(self, end: End, order: Order) -> None:
        """Make an empty file, for a server that makes the directories of what it is sent."""
        require_inside(end)
        self.require_base(end, order)
        reply = self.web.ask(Request("PUT", end, {"Content-Length": "0"}), order)
        succeeded(reply, "PUT", end)

    def delete(self, end: End, order: Order) -> None:
        require_inside(end)
        reply = self.web.ask(Request("DELETE", end), order)
        if reply.status not in ABSENT:
            succeeded(reply, "DELETE", end)

    def make_directories(self, end: End, order: Order) -> None:
        """Make what is missing between the base and the file; others may be making it too."""
        require_inside(end)
        self.require_base(end, order)
        for path in directories_below_base(end):
            directory = at_path(end, path)
            reply = self.web.ask(Request("MKCOL", directory), order)
            # 405 says that it exists; whatever else is said may mean the same.
            if reply.status == 405 or is_success(reply):
                continue
            if not any(map(is_success, self._look_for_directory(directory, order))):
                succeeded(reply, "MKCOL", directory)

    def _look_for_directory(self, end: End, order: Order) -> tuple[Reply, Reply]:
        """Return what the server answers to HEAD, and to PROPFIND if HEAD did not find it.

        HEAD need not succeed for a collection (RFC 4918, 9.4); XRootD and dCache answer it.
        Without a PROPFIND the same answer is returned twice.
        """
        head = self.web.ask(Request("HEAD", end), order)
        if head.status not in ABSENT | NOT_OFFERED:
            return head, head
        listing = self.web.ask(Request("PROPFIND", end, {"Depth": "0"}), order)
        gone = listing.status == MULTI_STATUS and GONE.search(listing.text)
        return head, replace(listing, status=int(gone[1])) if gone else listing

    def require_base(self, end: End, order: Order) -> None:
        """Raise MoverError unless the base directory is there.

        Needed because XRootD silently creates every missing directory of a PUT or MKCOL. A token
        may be for the first directory below the base alone, and not show what is above it.
        The error's ``status`` is 404 if the directory is missing.
        """
        base = at_path(end, path_of(end, end.base_url))
        head, listing = self._look_for_directory(base, order)
        if listing.status in FORBIDDEN:
            own = at_path(end, next(directories_below_base(end)))
            if not any(map(is_success, self._look_for_directory(own, order))):
                succeeded(listing, "HEAD" if listing is head else "PROPFIND", base)
        elif listing.status in ABSENT or (head.status in ABSENT and not is_success(listing)):
            why = "the base directory is missing; Sonar does not create it"
            if listing.status not in ABSENT:
                answers = f"HEAD returned {head.status} and PROPFIND {listing.status}"
                why = f"{answers}, so Sonar does not know whether the base directory exists"
            message = f"{place_of(base)}: {why}"
            error = MoverError(end.where, message, permanent=lasts(listing.status))
            error.status = listing.status
            raise error


def cannot_rename(reply: Reply) -> bool:
    """Say whether an answer to MOVE means that this storage has no rename."""
    said = not is_success(reply) and NO_RENAME.search(reply.text)
    return reply.status in NOT_OFFERED or bool(said)


def is_success(reply: Reply) -> bool:
    return 200 <= reply.status < 300


def succeeded(reply: Reply, method: str, end: End) -> None:
    """Raise MoverError unless the answer is a success."""
    if not is_success(reply):
        raise refused(end, f"{method} {place_of(end)}", reply.status, reply.text)


def size_of(reply: Reply, end: End) -> int:
    length = reply.headers.get("Content-Length", "")
    if not re.fullmatch(r"[0-9]{1,18}", length):
        raise MoverError(
            end.where, f"HEAD {place_of(end)}: the server does not report the file size"
        )
    return int(length)


def digest_of(reply: Reply) -> str:
    """Return what an answer says of checksums; some servers use the header's newer name alone."""
    names = ("Digest", "Repr-Digest")
    return ", ".join(reply.headers[name] for name in names if reply.headers.get(name))
