"""An FTS3 server for tests: its REST interface, and copies that really move bytes.

It answers and refuses as a real one does (tests/movers/samples/fts_rest.txt, fts_refusals.json and
fts_reasons.json), the limits of the Apache in front of it included. It looks at both ends as FTS
does, with the tokens that they lend and no other, and copies by HTTP third-party copy. Each job
waits in its queue for a while, and is timed by a clock of its own. Unlike a real one it takes lent
macaroons, and does not check its own users' tokens. `python -m tests.storage.fts` runs it alone.
"""

import argparse
import http.client
import json
import re
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from tests.storage.serving import AnyMethod

Json = dict[str, Any]
Answer = tuple[int, dict[str, str], bytes]
Trick = Callable[[str, str, bytes], Answer | None]
"""What to answer to a method, path and body instead of behaving well; None for nothing."""

FINAL = {"FINISHED", "FAILED", "CANCELED"}
BEFORE_CANCEL = {"TOKEN_PREP", "ON_HOLD"}
"""States of files that no cancel ends: the job is cancelled, and its file is copied later."""
PATIENCE_SECONDS = 60.0
SCRIPT = "/usr/libexec/fts3rest/fts3rest.wsgi"
LONGEST_PATH, LONGEST_LINE = 4095, 8190
"""Bytes of a path that Linux looks up for mod_wsgi as one of a file; and of a request line."""
VERDICT = re.compile(r"^(success|failure): ?(.*)$", re.MULTILINE)
SCITAGS = range(65, 65_536)
HERE = Path(__file__).parents[1] / "movers" / "samples"
SAMPLES = (HERE / "fts_rest.txt").read_text()
REFUSALS: list[Json] = json.loads((HERE / "fts_refusals.json").read_text())["answers"]


def sample(heading: str) -> Any:
    """Return what a real server has said: the JSON under the last heading that begins so."""
    text = SAMPLES.rpartition(f"### {heading}")[2]
    begun = re.search(r"^[\[{]", text, re.MULTILINE)
    return json.JSONDecoder().raw_decode(text[begun.start() :])[0]


# Their fields that no test of ours sets are as they are there.
JOB: Json = sample("GET /jobs/ (SUBMITTED)")[0]
FILE: Json = sample("GET /jobs/8d578836-e4b6-11f1-aaf6-02fc00000001/files (SUBMITTED)")[0]
NOBODY: Json = next(one["said"] for one in REFUSALS if one["path"] == "/whoami")
REASONS: dict[str, str] = json.loads((HERE / "fts_reasons.json").read_text())["reasons"]
PAGES: dict[str, str] = json.loads((HERE / "fts_reasons.json").read_text())["pages"]
BROKEN = next(one["said"]["message"] for one in REFUSALS if one["status"] == 500)
NOWHERE = next(one["said"]["message"] for one in REFUSALS if one["path"] == "/nowhere")


@dataclass
class Job:
    """One job of one file, as it was asked for, and how far it is."""

    asked: Json
    method: str = "certificate"
    """By which its owner is known."""
    number: str = field(default_factory=lambda: str(uuid4()))
    state: str = "SUBMITTED"
    file_state: str = "SUBMITTED"
    """Of its only file, which may go on after the job was cancelled."""
    reason: str | None = None
    submitted: float = field(default_factory=time.time)
    started: float | None = None
    finished: float | None = None
    file_finished: float | None = None
    seconds: float | None = None
    """By this server's own clock, while bytes moved."""
    end: Callable[[], None] = lambda: None
    """Ends what moves its bytes."""
    woken: threading.Event = field(default_factory=threading.Event)
    """That its file does not wait any more, as it was cancelled."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def file(self) -> Json:
        return dict(self.asked["files"][0])

    @property
    def params(self) -> Json:
        return dict(self.asked["params"])

    @property
    def source(self) -> str:
        return str(self.file["sources"][0])

    @property
    def destination(self) -> str:
        return str(self.file["destinations"][0])

    @property
    def parameters(self) -> str:
        params = {"nostreams": "nostreams", "timeout": "timeout", "buffersize": "buffer_size"}
        return ",".join(f"{name}:{self.params.get(param, 0)}" for name, param in params.items())

    @property
    def log_file(self) -> str | None:
        """Return where url_copy writes, and to where it is moved at the end."""
        if self.started is None or self.file_finished is None:
            return self.started and f"/var/log/fts3/transfers/{self.number}"
        day = moment(self.started)[:10]
        pair = "__".join(urlsplit(url).hostname or "" for url in (self.source, self.destination))
        minute = moment(self.started)[11:16].replace(":", "")
        name = f"{day}-{minute}__{pair}__{self.file_id}__{self.number}"
        return f"/var/log/fts3/transfers/{day}/{pair}/{name}"

    @property
    def file_id(self) -> int:
        return int(self.number[:8], 16)

    @property
    def in_queue_until(self) -> int | None:
        """Return that in seconds of the epoch; it was asked for as a number and ``s``."""
        seconds = self.params.get("max_time_in_queue")
        return seconds and int(self.submitted + int(seconds.removesuffix("s")))

    def row(self) -> Json:
        """Return it as GET /jobs/<id> answers."""
        return JOB | {
            "job_id": self.number,
            "job_state": self.state,
            "submit_time": moment(self.submitted),
            "cancel_job": self.state == "CANCELED",
            "internal_job_params": self.parameters,
            "job_metadata": self.params["job_metadata"] | {"auth_method": self.method},
            "max_time_in_queue": self.in_queue_until,
            "overwrite_flag": "Y" if self.params.get("overwrite") else None,
            "retry": self.params["retry"],
            "verify_checksum": "n",
            "source_se": storage(self.source),
            "dest_se": storage(self.destination),
            "job_finished": moment(self.finished),
            "reason": self.reason,
        }

    def file_row(self) -> Json:
        """Return its file as GET /jobs/<id>/files answers."""
        begun = self.started is not None
        return FILE | {
            "job_id": self.number,
            "file_id": self.file_id,
            "file_state": self.file_state,
            "reason": self.reason,
            "source_se": storage(self.source),
            "dest_se": storage(self.destination),
            "source_surl": self.source,
            "dest_surl": self.destination,
            "user_filesize": self.file["filesize"],
            "scitag": self.file.get("scitag"),
            "checksum": self.file.get("checksum") or "ADLER32",
            "file_metadata": self.file.get("metadata"),
            "start_time": moment(self.started),
            "finish_time": moment(self.file_finished),
            "tx_duration": self.seconds,
            "throughput": self.seconds and self.file["filesize"] / 2**20 / self.seconds,
            "transfer_host": "fts-here" if begun else None,
            "log_file": self.log_file,
            "internal_file_params": self.parameters if begun else None,
        }


def moment(seconds: float | None) -> Any:
    """Write a time as FTS does: of UTC, in whole seconds, without a zone; None for None."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None, microsecond=0).isoformat()


def storage(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}"


def behaves_well(method: str, path: str, body: bytes) -> Answer | None:
    return None


class FtsServer:
    """One server on a loopback port; every request is noted with all that it said."""

    def __init__(
        self,
        *,
        queue_seconds: float = 0.0,
        token: str = "",
        certificate: bool = False,
        bundle: str = "",
        tls: ssl.SSLContext | None = None,
        port: int = 0,
        prefix: str = "",
    ) -> None:
        self.queue_seconds, self.token, self.bundle = queue_seconds, token, bundle
        self.certificate, self.prefix = certificate, prefix
        """Whether it takes whoever comes for somebody with a certificate, as a front that shows one
        would have it; and the path below which it is served."""
        self.cancel_seconds = 0.2
        """Until url_copy is ended after a cancel: 3 to 12 s for a real one."""
        self.token_seconds = 0.0
        """In TOKEN_PREP, for tokens that it manages: 24 s were seen of a real one."""
        self.released = threading.Event()
        """Whether no file is put on hold."""
        self.well()
        self.jobs: dict[str, Job] = {}
        self.foreign: list[Json] = []
        """Unfinished jobs of others, as it lists them."""
        self.heard: list[tuple[str, str, str]] = []
        """Method, path, and everything of each request."""
        server = self

        class Handler(_Handler):
            fts = server

        class Listener(ThreadingHTTPServer):
            request_queue_size = 512
            daemon_threads = True

        self._listener = Listener(("127.0.0.1", port), Handler)
        self._scheme = "https" if tls else "http"
        if tls:
            self._listener.socket = tls.wrap_socket(
                self._listener.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self._listener.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return self._listener.server_port

    @property
    def url(self) -> str:
        host = "localhost" if self._scheme == "https" else "127.0.0.1"
        return f"{self._scheme}://{host}:{self.port}{self.prefix}"

    def close(self) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        self.end_all()

    def end_all(self) -> None:
        """End each job and its file, whatever their states."""
        for job in list(self.jobs.values()):
            self.cancel(job)
            with job.lock:
                if job.file_state not in FINAL:
                    job.file_state = "CANCELED"
            job.woken.set()
            job.end()
        self.released.set()

    def forget(self) -> None:
        """Behave well from now on, and know of no job or request."""
        self.end_all()
        self.jobs.clear()
        self.foreign.clear()
        self.heard.clear()
        self.well()

    def well(self) -> None:
        self.trick: Trick = behaves_well
        self.unmanaged = True
        """Whether it knows and allows tokens that it does not manage."""
        self.away = False
        """Whether its database does not answer."""
        self.token_seconds = 0.0
        self.released.set()

    def counted(self, method: str, path: str = "") -> int:
        """Return how many requests there were of a method, to paths that begin so."""
        return sum(
            heard == method and where.startswith(path) for heard, where, _ in list(self.heard)
        )

    def submit(self, asked: Json) -> Job:
        job = Job(asked, "oauth2" if self.token else "certificate")
        self.jobs[job.number] = job
        threading.Thread(target=self._work, args=(job,), daemon=True).start()
        return job

    def cancel(self, job: Job) -> None:
        """Cancel it at once; a copy that runs ends later, and a file that waits in
        TOKEN_PREP or ON_HOLD is copied all the same."""
        with job.lock:
            if job.state in FINAL:
                return
            job.state, job.reason = "CANCELED", "Job canceled by the user"
            job.finished = time.time()
            if job.file_state in BEFORE_CANCEL:
                return
            runs, job.file_state = job.started is not None, "CANCELED"
            job.file_finished = None if runs else job.finished
        job.woken.set()
        if runs:
            threading.Timer(self.cancel_seconds, self._end_copy, [job]).start()

    def _end_copy(self, job: Job) -> None:
        job.file_finished = time.time()
        job.end()

    def _work(self, job: Job) -> None:
        """Lead the file of a job through its states; its job follows, unless it is cancelled."""
        is_managed = "source_tokens" in job.file and not job.params.get("unmanaged_tokens")
        if is_managed and not self._enters(job, "TOKEN_PREP", self.token_seconds):
            return
        if not self._enters(job, "SUBMITTED", self.queue_seconds):
            return
        if not self.released.is_set() and self._enters(job, "ON_HOLD", 0):
            self.released.wait()
        job.started = time.time()
        if not (self._enters(job, "READY", 0.02) and self._enters(job, "ACTIVE", 0)):
            return
        state, reason = "FINISHED", ""
        try:
            self._copy(job)
        except Failure as failure:
            state, reason = "FAILED", str(failure)
        with job.lock:
            if job.file_state == "ACTIVE":
                job.file_finished, job.file_state = time.time(), state
                job.reason = reason or job.reason
                if job.state == "ACTIVE":
                    job.state, job.finished = state, job.file_finished

    def _enters(self, job: Job, state: str, seconds: float) -> bool:
        """Put a file into a state for a while; return False if it was cancelled by then."""
        with job.lock:
            if job.file_state == "CANCELED":
                return False
            job.file_state = state
            if job.state not in FINAL:
                job.state = "SUBMITTED" if state in BEFORE_CANCEL else state
        job.woken.wait(seconds)
        return job.file_state != "CANCELED"

    def _copy(self, job: Job) -> None:
        """Look at both ends, let the destination fetch the file, and look at it again."""
        if not self._is_there(job, "SOURCE", job.source):
            raise Failure(f"SOURCE {REASONS['no file']}")
        if self._is_there(job, "DESTINATION", job.destination) and not job.params.get("overwrite"):
            raise Failure(REASONS["destination exists"])
        directory = job.destination.rpartition("/")[0]
        if not self._is_there(job, "DESTINATION", directory):
            self._ask("MKCOL", job, "DESTINATION", directory)
        began = time.monotonic()
        try:
            self._third_party(job)
            job.seconds = round(time.monotonic() - began, 3)
            self._is_there(job, "DESTINATION", job.destination)
        except Failure:
            with suppress(Failure):
                self._ask("DELETE", job, "DESTINATION", job.destination)
            raise

    def _is_there(self, job: Job, end: str, url: str) -> bool:
        """Look as davix does: by PROPFIND, and by HEAD where that shows nothing."""
        if self._ask("PROPFIND", job, end, url) == 207:
            return True
        status = self._ask("HEAD", job, end, url)
        if status not in (200, 404):
            number, words = REFUSED.get(status, (112, "Server Error"))
            raise Failure(f"{end} [{number}] HTTP {status} : {words}")
        return status == 200

    def _connect(self, url: str) -> http.client.HTTPConnection:
        parts = urlsplit(url)
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=self.bundle)
            return http.client.HTTPSConnection(
                parts.netloc, timeout=PATIENCE_SECONDS, context=context
            )
        return http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_SECONDS)

    def _ask(self, method: str, job: Job, end: str, url: str) -> int:
        """Return what a server answers to whoever has the token that it lends, and no other."""
        headers = {"Depth": "0", **bearer(job.file, end.lower())}
        connection = self._connect(url)
        try:
            connection.request(method, urlsplit(url).path, headers=headers)
            return connection.getresponse().status
        except socket.gaierror as error:
            raise Failure(f"{end} {REASONS['unknown host']}") from error
        except ssl.SSLCertVerificationError as error:
            raise Failure(f"{end} {REASONS['certificate']}") from error
        except OSError as error:
            raise Failure(f"{end} {REASONS['connection']}") from error
        finally:
            connection.close()

    def _third_party(self, job: Job) -> None:
        """Let the destination fetch the file; raise Failure with its words if it does not."""
        headers = {"Source": job.source, "Credential": "none", "Overwrite": "T"}
        headers |= bearer(job.file, "destination")
        if lent := bearer(job.file, "source"):
            headers["TransferHeaderAuthorization"] = lent["Authorization"]
        connection = self._connect(job.destination)
        try:
            connection.connect()
            job.end = partial(shut, connection.sock)
            if job.file_state == "CANCELED" and job.file_finished:
                raise Failure("cancelled")
            connection.request("COPY", urlsplit(job.destination).path, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise Failure(LAST_ATTEMPT.format(5, f"Transfer failure: {error}")) from error
        finally:
            connection.close()
        if answer.status >= 300:
            number, words = REFUSED.get(answer.status, (112, "Server Error"))
            raise Failure(LAST_ATTEMPT.format(number, f"copy HTTP {answer.status} : {words}"))
        match = VERDICT.search(text)
        if not match or match[1] != "success":
            words = match[2] if match else "no verdict"
            raise Failure(LAST_ATTEMPT.format(5, f"Transfer failure: {words}"))


class Failure(Exception):
    """A copy that did not succeed; its text is the reason of the file."""


LAST_ATTEMPT = "TRANSFER [{}] TRANSFER ERROR: Copy failed (3rd pull). Last attempt: {}"
REFUSED = {401: (13, "Authentication Error"), 403: (1, "Permission refused")}


def shut(sock: socket.socket) -> None:
    with suppress(OSError):  # it may have ended
        sock.shutdown(socket.SHUT_RDWR)


def bearer(file: Mapping[str, Any], end: str) -> dict[str, str]:
    tokens = file.get(f"{end}_tokens")
    return {"Authorization": f"Bearer {tokens[0]}"} if tokens else {}


OURS = {"user_dn": JOB["user_dn"], "delegation_id": JOB["cred_id"]}


class _Handler(AnyMethod):
    fts: FtsServer

    def serve(self) -> None:
        body = self.body()
        said = f"{self.path} {self.headers} {body.decode()}"
        self.fts.heard.append((self.command, self.path, said))
        trick = self.fts.trick(self.command, self.path, body)
        path, where = self.path.partition("?")[0], self.path.removeprefix(self.fts.prefix)
        with suppress(OSError):  # who asked may have gone
            if trick:
                self.answer(*trick)
            elif len(self.requestline) > LONGEST_LINE:
                self.show("414")
            elif len(SCRIPT + path) > LONGEST_PATH or not path.startswith(self.fts.prefix):
                self.show("404")
            elif self.fts.away:
                self.show("500")
            elif not self.is_known():
                self.turn_away(where)
            else:
                self.behave(where, body)

    def show(self, status: str) -> None:
        """Answer with a page of Apache's."""
        page = PAGES[status].encode()
        self.answer(int(status), {"Content-Type": "text/html; charset=iso-8859-1"}, page)

    def is_known(self) -> bool:
        shown = self.headers.get("Authorization", "")
        return self.fts.token in shown if self.fts.token else self.fts.certificate

    def turn_away(self, path: str) -> None:
        """Answer to nobody: who shows no token, or one that is not taken; some of it breaks."""
        if path == "/whoami":
            self.say(NOBODY)
        elif path.startswith("/jobs/"):
            self.refuse("500 Internal Server Error", BROKEN)
        else:
            self.refuse("403 Forbidden", "Not enough permissions")

    def behave(self, where: str, body: bytes) -> None:
        """Do as a real one does; `/heard`, which that has not, says how often it was asked."""
        if where == "/heard":
            self.fts.heard.pop()
            self.say(Counter(method for method, _, _ in self.fts.heard))
            return
        path, _, query = where.partition("?")
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        parts = path.strip("/").split("/")
        match self.command, *parts:
            case "POST", "jobs":
                self.submit(body)
            case "GET", "whoami":
                method = "oauth2" if self.fts.token else "certificate"
                self.say(NOBODY | OURS | {"method": method})
            case "GET", "jobs":
                self.list_jobs(asked)
            case "GET", "jobs", number, "files":
                self.files(number)
            case "GET", "jobs", numbers:
                self.say_each(numbers, partial(self.row, fields=asked.get("files", "")))
            case "DELETE", "jobs", numbers:
                self.say_each(numbers, self.cancelled)
            case _:
                self.refuse("404 Not Found", NOWHERE)

    def submit(self, body: bytes) -> None:
        try:
            kind = self.headers.get("Content-Type", "")
            asked = asked_for(kind, body, unmanaged=self.fts.unmanaged)
        except BadRequest as error:
            self.refuse("400 Bad Request", str(error))
        else:
            self.say({"job_id": self.fts.submit(asked).number})

    def files(self, number: str) -> None:
        if job := self.fts.jobs.get(number):
            self.say([job.file_row()])
        else:
            self.refuse("404 Not Found", unknown(number)["http_message"])

    def list_jobs(self, asked: Mapping[str, str]) -> None:
        if asked.get("dlg_id", OURS["delegation_id"]) == OURS["delegation_id"]:
            self.say([*self.listed(asked)])
        else:
            words = "The provided delegation id does not match your delegation id"
            self.refuse("403 Forbidden", words)

    def listed(self, asked: Mapping[str, str]) -> Iterator[Json]:
        """Yield the unfinished jobs, for a token everybody's unless it asks for its own."""
        own = [job.row() for job in list(self.fts.jobs.values()) if job.state not in FINAL]
        for row in own + ([] if "dlg_id" in asked else self.fts.foreign):
            given = {name: asked.get(name, row[name]) for name in ("source_se", "dest_se")}
            if given.items() <= row.items():
                yield only(row, asked["fields"]) if "fields" in asked else row

    def say_each(self, numbers: str, answer: Callable[[str], Json]) -> None:
        """Answer about each job of one request: one alone without a list around it."""
        rows = [answer(number) for number in numbers.split(",") if number]
        lost = any(row["http_status"].startswith("404") for row in rows)
        if "," in numbers:
            self.say(rows, 207 if lost else 200)
        else:
            self.say(rows[0], 404 if lost else 200)

    def row(self, number: str, fields: str) -> Json:
        job = self.fts.jobs.get(number)
        if job is None:
            return unknown(number)
        row = job.row() | {"http_status": "200 Ok"}
        return row | {"files": [only(job.file_row(), fields)]} if fields else row

    def cancelled(self, number: str) -> Json:
        job = self.fts.jobs.get(number)
        if job is None:
            return unknown(number)
        if job.state in FINAL:
            words = "The job is in a terminal state"
            return job.row() | {"http_status": "304 Not Modified", "http_message": words}
        self.fts.cancel(job)
        return job.row() | {"http_status": "200 Ok", "http_message": None}

    def refuse(self, status: str, message: str) -> None:
        self.say({"status": status, "message": message}, int(status[:3]))

    def say(self, content: Json | list[Json], status: int = 200) -> None:
        self.answer(status, {"Content-Type": "application/json"}, json.dumps(content).encode())


class BadRequest(Exception):
    """A job that is not taken; its text says why."""


def asked_for(content_type: str, body: bytes, *, unmanaged: bool) -> Json:
    """Return what is asked for with a job; raise BadRequest in the words of a real one."""
    if not content_type.startswith("application/json"):
        raise BadRequest("Expecting application/json or application/x-www-form-urlencoded")
    try:
        asked = json.loads(body)
    except ValueError:
        raise BadRequest("Badly formatted JSON request") from None
    if not isinstance(asked, dict):
        raise BadRequest("Expecting a dictionary")
    (file,) = asked["files"]
    if "unmanaged_tokens" in asked["params"] and not unmanaged:
        raise BadRequest("Unmanaged tokens are not allowed!")
    if bool(file.get("source_tokens")) != bool(file.get("destination_tokens")):
        wanted = "Both source_tokens and destination_tokens are required"
        raise BadRequest(f"{wanted} if one of them is present.")
    wrong = [fault_of_url(url) for url in (*file["sources"], *file["destinations"])]
    wrong.append(fault_of_scitag(file.get("scitag")))
    for words in filter(None, wrong):
        raise BadRequest(f"Invalid value within the request: {words}")
    return asked


def fault_of_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return f"Can not transfer local files ({url})"
    there = {
        "scheme": parts.scheme,
        "path": parts.path.strip("/") or parts.query,
        "host": parts.hostname,
    }
    return next((f"Missing {what} ({url})" for what, value in there.items() if not value), "")


def fault_of_scitag(scitag: object) -> str:
    if scitag is None or (isinstance(scitag, int) and scitag in SCITAGS):
        return ""
    if isinstance(scitag, int):
        return f"Invalid SciTag value: {scitag} (not in [65, 65535] range)"
    return f"Invalid SciTag value: {scitag}. Must be an integer in the [65, 65535] range!"


def only(row: Json, fields: str) -> Json:
    """Return these fields, separated by commas; one that is not known is left out."""
    return {name: row[name] for name in fields.split(",") if name in row}


def unknown(number: str) -> Json:
    message = f'No job with the id "{number}" has been found'
    return {"job_id": number, "http_status": "404 Not Found", "http_message": message}


@contextmanager
def fts_server(**options: Any) -> Iterator[FtsServer]:
    server = FtsServer(**options)
    try:
        yield server
    finally:
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.storage.fts", description=__doc__)
    parser.add_argument("--port", type=int, default=8446, help="on 127.0.0.1")
    parser.add_argument("--queue", type=float, default=2.0, help="seconds that each job waits")
    chosen = parser.parse_args()
    with fts_server(port=chosen.port, queue_seconds=chosen.queue, certificate=True) as server:
        print(f"FTS3 for tests at {server.url}, until it is interrupted", flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
