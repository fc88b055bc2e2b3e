"""StoRM WebDAV: one server, which redirects nothing and makes no directory by itself.

What the other end of a COPY does wrong before a byte has moved is a 412 that begins with *Third
party transfer error*; its markers have no content type.
"""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from tests.storage.dialects.base import Dialect
from tests.storage.dialects.remote import RemoteError, Transfer

MARKER_SECONDS = 0.1
MARKER = """Perf Marker
Timestamp: {now}
Stripe Index: 0
Stripe Bytes Transferred: {moved}
Total Stripe Count: 1
End
"""
SCHEMES = {"http", "https", "dav", "davs"}


class Storm(Dialect):
    """The whole of it."""

    software = "StoRM WebDAV"

    def on_copy(self) -> None:
        if refused := self.wrong_with_copy():
            status, words = refused
            self.answer(status, {}, words.encode())
            return
        pulls = "Source" in self.headers
        began = time.monotonic()
        url = self.headers["Source" if pulls else "Destination"]
        token = self.headers.get("TransferHeaderAuthorization", "")
        trust = str(self.settings.place / "ca.pem")
        transfer = Transfer("GET" if pulls else "PUT", url, self.file(), token, trust).start()
        transfer.wait_for_first_byte()
        if transfer.error and not transfer.moved:
            words = f"Third party transfer error: {words_of(transfer.error)}"
            self.answer(412, {}, words.encode())
            return
        self.begin(202)
        while not transfer.is_over(MARKER_SECONDS):
            self.chunk(MARKER.format(now=int(time.time()), moved=transfer.moved))
        self.note_copied(transfer, began)
        failed = transfer.error
        self.chunk(f"failure: {words_of(failed)}\n" if failed else "success: Created\n")
        self.chunk("")

    def wrong_with_copy(self) -> tuple[int, str] | None:
        source, target = self.headers.get("Source"), self.headers.get("Destination")
        overwrites = self.headers.get("Overwrite", "T")
        if overwrites not in {"T", "F"} or (source is None) == (target is None):
            return 400, "Invalid request"
        if urlsplit(source or target or "").scheme not in SCHEMES:
            return 400, "Invalid scheme"
        if source is None:
            return None if self.file().is_file() else (404, "Resource not found")
        if not self.file().parent.is_dir():
            return 409, "Parent resource does not exist"
        exists = self.file().exists() or self.spoil() == "exists"
        if exists and overwrites == "F":
            return 412, "Target file exists and Overwrite is false"
        return None


def words_of(error: RemoteError) -> str:
    if error.status:
        phrase = f"status code: {error.status}, reason phrase: {error.reason}"
        return f"{error.status} {phrase}"
    return "Connection error"
