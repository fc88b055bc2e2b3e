"""dCache: a door, which answers for the names, and a pool, which has the bytes.

A door redirects GET by 302, and PUT by 307 only to who sends `Expect: 100-continue`; others send
their bytes through the door. In the URL is an id that a pool takes once. It answers COPY itself,
with 202 and markers that have a state: a transfer waits in the queue of a pool first.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from urllib.parse import quote

from tests.storage.dialects.base import Dialect
from tests.storage.dialects.remote import RemoteError, Transfer

QUEUE_SECONDS = 1.2
MARKER_SECONDS = 0.1
WAITING = """Perf Marker
    Timestamp: {now}
    State: Queued on pool
    State description: waiting for a mover
    Stripe Index: 0
    Stripe Status: QUEUED
    Total Stripe Count: 1
End
"""
RUNNING = """Perf Marker
    Timestamp: {now}
    State: Running
    State description: the mover is at work
    Stripe Index: 0
    Stripe Start Time: {began}
    Stripe Last Transferred: {now}
    Stripe Transfer Time: {seconds}
    Stripe Bytes Transferred: {moved}
    Stripe Status: RUNNING
    Total Stripe Count: 1
    RemoteConnections: tcp:{remote}
End
"""
OF_ITSELF = {
    "copy-not-accepted": "transfer not accepted: no write pools online",
    "copy-restarted": "RemoteTransferManager restarted",
}


class Door(Dialect):
    """The WebDAV door."""

    software = "dCache/9.2.22"

    def may(self) -> bool:
        """Want a token for each COPY, even where reading needs none."""
        if self.command == "COPY" and "Authorization" not in self.headers:
            return False
        return super().may()

    def on_get(self) -> None:
        if self.file().is_file():
            self.lead_on(302)
        else:
            self.answer(404)

    def on_put(self) -> None:
        expects = self.headers.get("Expect", "").lower() == "100-continue"
        if expects and self.file().parent.is_dir():
            self.hang_up_after_unread_body()
            self.lead_on(307)
        else:
            super().on_put()

    def lead_on(self, status: int) -> None:
        """Make a mover, and lead its client there."""
        mover = str(uuid.uuid4())
        (Path(self.settings.beside) / mover).write_text(f"{self.command} {self.name}")
        query = f"dcache-http-uuid={mover}&dcache-http-ref=https%3A%2F%2Fdoor"
        self.redirect(status, f"{self.settings.url_beside()}{quote(self.name)}?{query}")

    def on_copy(self) -> None:
        if self.headers.get("Credential", "gridsite") != "none":
            asked = f"{self.settings.host}/delegation"
            self.send_response(302)
            self.send_header("Location", f"{self.path}?asked-to-delegate=true")
            self.send_header("X-Delegate-To", asked)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.spoil() == "unknown-host":
            self.answer(400, {}, b"Unknown source hostname")
        elif "Source" in self.headers and not self.file().parent.is_dir():
            self.answer(409, {}, b"Parent directory does not exist")
        elif "Source" not in self.headers and not self.file().is_file():
            self.answer(404, {}, b"no such file")
        else:
            self.carry_out()

    def carry_out(self) -> None:
        """Wait in the queue, then move the file, and tell of both."""
        began = time.monotonic()
        self.begin(202, Content_Type="text/perf-marker-stream")
        while time.monotonic() < began + QUEUE_SECONDS:
            time.sleep(MARKER_SECONDS)
            self.chunk(WAITING.format(now=int(time.time())))
        queued = time.monotonic() - began
        words = OF_ITSELF.get(f"copy-{self.spoil()}", "") or self.moved(began, queued)
        self.chunk(f"failure: {words}\n" if words else "success: Created\n")
        self.chunk("")

    def moved(self, began: float, queued: float) -> str:
        """Move the file; return what went wrong."""
        pulls = "Source" in self.headers
        url = self.headers["Source" if pulls else "Destination"]
        token = self.headers.get("TransferHeaderAuthorization", "")
        trust = str(self.settings.place / "ca.pem")
        method = "GET" if pulls else "PUT"
        transfer = Transfer(method, url, self.file(), token, trust, looks_after=True).start()
        remote = url.partition("://")[2].partition("/")[0].replace("localhost", "127.0.0.1")
        started = int(time.time())
        while not transfer.is_over(MARKER_SECONDS):
            said = {"now": int(time.time()), "began": started, "moved": transfer.moved}
            self.chunk(RUNNING.format(**said, seconds=said["now"] - started, remote=remote))
        if transfer.error:
            if pulls:
                self.file().unlink(missing_ok=True)
            return words_of(transfer.error)
        wants = self.headers.get("RequireChecksumVerification", "true") != "false"
        if pulls and wants and not transfer.digest:
            self.file().unlink()
            return "no useful checksum in HEAD response"
        self.note_copied(transfer, began, queued)
        return ""


def words_of(error: RemoteError) -> str:
    """Say what the other end did, and where redirects led: URLs with all they have."""
    if error.status:
        words = f"rejected {error.method}: {error.status} {error.reason}"
    else:
        words = f"connection failed for {error.method}: {error.reason}"
    return f"{words}; redirects [{', '.join(error.redirects)}]" if error.redirects else words


class Pool(Dialect):
    """A pool: who comes with the id of a mover that waits is served, and nobody else."""

    software = "dCache/9.2.22 pool"

    def may(self) -> bool:
        mover = self.query.get("dcache-http-uuid", "")
        if not mover.replace("-", "").isalnum():
            return False
        waiting = self.settings.place / mover
        try:
            said = waiting.read_text()
            waiting.unlink()  # once and never again
        except FileNotFoundError:
            return False
        return said == f"{self.command} {self.name}"

    def refusal(self) -> tuple[int, dict[str, str], bytes] | None:
        return None if self.may() else (400, {}, b"no mover waits for this request\n")

    def on_head(self) -> None:
        self.answer(405)

    on_move = on_delete = on_mkcol = on_copy = on_head
