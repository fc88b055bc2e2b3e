"""EOS: an MGM, which knows the names and leads clients on, and an FST, which has the bytes.

An MGM answers HEAD, DELETE, MKCOL and MOVE itself, and redirects GET, PUT and COPY by 307 to an FST
with a capability in the URL: signed, of some minutes, for one file and one method. An FST looks at
that alone, answers no HEAD, and shows a source what TransferHeaderAuthorization brought.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from urllib.parse import quote, urlencode

from tests.storage.dialects.base import Dialect, Settings
from tests.storage.dialects.remote import RemoteError, Transfer

LATE, LATE_SECONDS = "/late/", 1.3
"""Where a PUT is redirected only once its client waits no more, as XRootD does with a new name."""
LIFETIME_SECONDS = 300.0
MARKER_SECONDS = 0.1
MARKER = """Perf Marker
Timestamp: {now}
Stripe Index: 0
Stripe Bytes Transferred: {moved}
Total Stripe Count: 1
RemoteConnections: tcp:{remote}
End
"""


def signed(settings: Settings, text: str) -> str:
    """Return what only servers that share a key can say of a capability."""
    return hmac.digest(settings.own.encode(), text.encode(), "sha256").hex()


class Mgm(Dialect):
    """The head node."""

    software = "XrootD/v5.7.1 EOS/5.3 MGM"
    received_bytes = 16 * 1024

    def on_get(self) -> None:
        if self.file().is_file():
            self.lead_on()
        else:
            self.answer(404)

    def on_put(self) -> None:
        if self.name.startswith(LATE):
            time.sleep(LATE_SECONDS)
        if self.file().parent.is_dir():
            self.hang_up_after_unread_body()
            self.lead_on()
        else:
            self.refuse_body(409, "no such directory\n")

    def on_copy(self) -> None:
        pulls = "Source" in self.headers
        if pulls and not self.file().parent.is_dir():
            self.answer(409, {}, b"Unable to open file; No such file or directory\n")
        elif not pulls and not self.file().is_file():
            self.answer(404, {}, b"no such file\n")
        else:
            self.lead_on()

    def lead_on(self) -> None:
        """Redirect to the FST with a capability; with an old one, or none, if that is asked for."""
        spoil = self.spoil()
        until = time.time() + (-1 if spoil == "cap-expired" else LIFETIME_SECONDS)
        said = {"path": self.name, "method": self.command, "until": until}
        message = base64.urlsafe_b64encode(json.dumps(said).encode()).decode()
        query = {"cap.sym": signed(self.settings, message), "cap.msg": message, "mgm.id": "0001"}
        if spoil == "cap-missing":
            query = {"mgm.id": "0001"}
        location = f"{self.settings.url_beside()}{quote(self.name)}?{urlencode(query)}"
        self.redirect(307, location)


class Fst(Dialect):
    """A disk server."""

    software = "XrootD/v5.7.1 EOS/5.3 FST"

    def may(self) -> bool:
        """Look at the capability, and at nothing else."""
        message, signature = self.query.get("cap.msg", ""), self.query.get("cap.sym", "")
        if not hmac.compare_digest(signature, signed(self.settings, message)):
            return False
        said = json.loads(base64.urlsafe_b64decode(message))
        is_meant = (said["path"], said["method"]) == (self.name, self.command)
        return is_meant and time.time() < float(said["until"])

    def refusal(self) -> tuple[int, dict[str, str], bytes] | None:
        if not self.may():
            words = f"capability illegal or expired: {self.path}\n"
            return 403, {}, words.encode()
        return None

    def on_head(self) -> None:
        self.answer(405)

    on_move = on_delete = on_mkcol = on_head

    def on_copy(self) -> None:
        """Answer 201 at once, and say at the end how it went."""
        began, pulls = time.monotonic(), "Source" in self.headers
        url = self.headers["Source" if pulls else "Destination"]
        token = self.headers.get("TransferHeaderAuthorization", "")
        trust = str(self.settings.place / "ca.pem")
        transfer = Transfer("GET" if pulls else "PUT", url, self.file(), token, trust).start()
        self.begin(201, Content_Type="text/plain")
        remote = url.partition("://")[2].partition("/")[0].replace("localhost", "127.0.0.1")
        while not transfer.is_over(MARKER_SECONDS):
            moved = transfer.moved
            self.chunk(MARKER.format(now=int(time.time()), moved=moved, remote=remote))
        self.note_copied(transfer, began)
        self.chunk(self.verdict(transfer.error) + "\n")
        self.chunk("")

    def verdict(self, error: RemoteError | None) -> str:
        if error is None:
            return "success: Created"
        if error.status:
            why = f"Remote side {self.client_address[0]} failed with status code {error.status}"
        else:
            why = f"HTTP library failure: {error.reason}"
        return f"failure: {why}, local={self.path}"
