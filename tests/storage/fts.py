"""An FTS3 server for tests: its REST interface, and copies that really move bytes.

It answers and refuses as the samples of a real one do (tests/movers/samples/fts_rest.txt and
fts_refusals.json), and copies by HTTP third-party copy, or by xrdcp for root://. Each job waits in
its queue for a while, and is timed by a clock of its own. Otherwise than a real one, it takes any
token that it knows, whatever the ends lend, and who shows none if it knows nobody by a token: that
stands for a certificate. `python -m tests.storage.fts` runs it by itself.
"""

import argparse
import http.client
import json
import re
import socket
import ssl
import subprocess
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
PATIENCE_SECONDS = 60.0
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
    reason: str | None = None
    submitted: float = field(default_factory=time.time)
    started: float | None = None
    finished: float | None = None
    seconds: float | None = None
    """By this server's own clock, while bytes moved."""
    end: Callable[[], None] = lambda: None
    """Ends what moves its bytes."""
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
        return ",".join(
            f"{name}:{self.params[param]}" for name, param in params.items() if param in self.params
        )

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
            "file_id": int(self.number[:8], 16),
            "file_state": self.state,
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
            "finish_time": moment(self.finished),
            "tx_duration": self.seconds,
            "throughput": self.seconds and self.file["filesize"] / 2**20 / self.seconds,
            "transfer_host": "fts-here" if begun else None,
            "log_file": f"/var/log/fts3/{self.number}" if begun else None,
            "internal_file_params": self.parameters if begun else None,
        }


def moment(seconds: float | None) -> str | None:
    """Write a time as FTS does: of UTC, in whole seconds, without a zone."""
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
        bundle: str = "",
        tls: ssl.SSLContext | None = None,
        port: int = 0,
    ) -> None:
        self.queue_seconds, self.token, self.bundle = queue_seconds, token, bundle
        self.unmanaged = True
        """Whether it knows and allows tokens that it does not manage."""
        self.jobs: dict[str, Job] = {}
        self.heard: list[tuple[str, str, str]] = []
        """Method, path, and everything of each request."""
        self.trick: Trick = behaves_well
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
        return f"{self._scheme}://{host}:{self.port}"

    def close(self) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        for job in list(self.jobs.values()):
            self.cancel(job)

    def forget(self) -> None:
        """Behave well from now on, and know of no job or request."""
        self.jobs.clear()
        self.heard.clear()
        self.trick, self.unmanaged = behaves_well, True

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
        """End it, and what moves its bytes."""
        with job.lock:
            if job.state in FINAL:
                return
            job.state, job.reason = "CANCELED", "Job canceled by the user"
            job.finished = time.time()
        job.end()

    def _work(self, job: Job) -> None:
        time.sleep(self.queue_seconds)
        with job.lock:
            if job.state != "SUBMITTED":
                return
            job.state, job.started = "ACTIVE", time.time()
        state, reason = "FINISHED", ""
        try:
            self._copy(job)
        except Failure as failure:
            state, reason = "FAILED", str(failure)
        with job.lock:
            if job.state == "ACTIVE":
                job.finished, job.state, job.reason = time.time(), state, reason or None

    def _begin(self, job: Job, end: Callable[[], None]) -> None:
        """Note what ends the bytes of a job; one that was cancelled meanwhile is not begun."""
        job.end = end
        if job.state == "CANCELED":
            raise Failure("cancelled")

    def _copy(self, job: Job) -> None:
        if job.source.startswith("root:"):
            self._copy_root(job)
            return
        source = self._ask("HEAD", job, "SOURCE")
        destination = self._ask("HEAD", job, "DESTINATION")
        if source != 200:
            raise Failure(f"SOURCE [{ERRNO.get(source, 5)}] HTTP {source} : the source file")
        if destination == 200 and not job.params.get("overwrite"):
            raise Failure("DESTINATION [17] Destination file exists and overwrite is not enabled")
        began = time.monotonic()
        verdict = self._third_party(job)
        if verdict[0] != "success":
            raise Failure(f"TRANSFER [5] TRANSFER ERROR: Copy failed (3rd pull): {verdict[1]}")
        job.seconds = round(time.monotonic() - began, 3)

    def _connect(self, url: str) -> http.client.HTTPConnection:
        parts = urlsplit(url)
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=self.bundle)
            return http.client.HTTPSConnection(
                parts.netloc, timeout=PATIENCE_SECONDS, context=context
            )
        return http.client.HTTPConnection(parts.netloc, timeout=PATIENCE_SECONDS)

    def _ask(self, method: str, job: Job, end: str) -> int:
        """Return what one of its servers says to a look at the file."""
        url = job.source if end == "SOURCE" else job.destination
        connection = self._connect(url)
        try:
            connection.request(method, urlsplit(url).path, headers=bearer(job.file, end.lower()))
            return connection.getresponse().status
        except OSError as error:
            raise Failure(f"{end} [{error.errno or 110}] {error}") from error
        finally:
            connection.close()

    def _third_party(self, job: Job) -> tuple[str, str]:
        """Let the destination fetch the file; return the verdict and its words."""
        headers = {"Source": job.source, "Credential": "none", "Overwrite": "T"}
        headers |= bearer(job.file, "destination")
        if lent := bearer(job.file, "source"):
            headers["TransferHeaderAuthorization"] = lent["Authorization"]
        connection = self._connect(job.destination)
        try:
            connection.connect()
            self._begin(job, partial(shut, connection.sock))
            connection.request("COPY", urlsplit(job.destination).path, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            return "failure", f"{error}"
        finally:
            connection.close()
        if answer.status >= 300:
            scope, number = "DESTINATION", ERRNO.get(answer.status, 5)
            raise Failure(f"{scope} [{number}] HTTP {answer.status} : {text.strip()}")
        match = VERDICT.search(text)
        return (match[1], match[2]) if match else ("failure", "no verdict")

    def _copy_root(self, job: Job) -> None:
        began = time.monotonic()
        program = subprocess.Popen(
            ["xrdcp", "--nopbar", "--force", "--tpc", "only", job.source, job.destination],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._begin(job, program.kill)
        words, _ = program.communicate()
        if program.returncode:
            raise Failure(f"TRANSFER [5] {words.strip()}")
        job.seconds = round(time.monotonic() - began, 3)


class Failure(Exception):
    """A copy that did not succeed; its text is the reason of the file."""


def shut(sock: socket.socket) -> None:
    with suppress(OSError):  # it may have ended
        sock.shutdown(socket.SHUT_RDWR)


ERRNO = {401: 13, 403: 13, 404: 2, 409: 2}


def bearer(file: Mapping[str, Any], end: str) -> dict[str, str]:
    tokens = file.get(f"{end}_tokens")
    return {"Authorization": f"Bearer {tokens[0]}"} if tokens else {}


class _Handler(AnyMethod):
    fts: FtsServer

    def serve(self) -> None:
        body = self.body()
        said = f"{self.path} {self.headers} {body.decode()}"
        self.fts.heard.append((self.command, self.path, said))
        trick = self.fts.trick(self.command, self.path, body)
        with suppress(OSError):  # who asked may have gone
            if trick:
                self.answer(*trick)
            elif self.fts.token and self.fts.token not in self.headers.get("Authorization", ""):
                self.turn_away()
            else:
                self.behave(body)

    def turn_away(self) -> None:
        """Answer to who shows a token that is not taken, and so is nobody; some of it breaks."""
        if self.path == "/whoami":
            self.say(NOBODY)
        elif self.path.startswith("/jobs/"):
            self.refuse("500 Internal Server Error", BROKEN)
        else:
            self.refuse("403 Forbidden", "Not enough permissions")

    def behave(self, body: bytes) -> None:
        """Do as a real one does; `/heard`, which that has not, says how often it was asked."""
        if self.path == "/heard":
            self.fts.heard.pop()
            self.say(Counter(method for method, _, _ in self.fts.heard))
            return
        path, _, query = self.path.partition("?")
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        parts = path.strip("/").split("/")
        match self.command, *parts:
            case "POST", "jobs":
                self.submit(body)
            case "GET", "whoami":
                method = "oauth2" if self.fts.token else "certificate"
                self.say(NOBODY | {"user_dn": JOB["user_dn"], "method": method})
            case "GET", "jobs":
                self.say(list(self.listed(asked)))
            case "GET", "jobs", number, "files":
                self.files(number)
            case "GET", "jobs", numbers:
                self.jobs(numbers.split(","), asked.get("files", ""))
            case "DELETE", "jobs", number:
                self.cancel(number)
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

    def listed(self, asked: Mapping[str, str]) -> Iterator[Json]:
        for job in list(self.fts.jobs.values()):
            row = job.row()
            if job.state in FINAL or asked.get("dest_se", row["dest_se"]) != row["dest_se"]:
                continue
            yield only(row, asked["fields"]) if "fields" in asked else row

    def jobs(self, numbers: list[str], fields: str) -> None:
        rows = [self.row(number, fields) for number in filter(None, numbers)]
        lost = [row for row in rows if row["http_status"].startswith("404")]
        if len(numbers) == 1:
            self.say(rows[0], 404 if lost else 200)
        else:
            self.say(rows, 207 if lost else 200)

    def row(self, number: str, fields: str) -> Json:
        job = self.fts.jobs.get(number)
        if job is None:
            return unknown(number)
        row = job.row() | {"http_status": "200 Ok"}
        return row | {"files": [only(job.file_row(), fields)]} if fields else row

    def cancel(self, number: str) -> None:
        job = self.fts.jobs.get(number)
        if job is None:
            self.say(unknown(number), 404)
        elif job.state in FINAL:
            words = "The job is in a terminal state"
            self.say(job.row() | {"http_status": "304 Not Modified", "http_message": words})
        else:
            self.fts.cancel(job)
            self.say(job.row() | {"http_status": "200 Ok", "http_message": None})

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
    with fts_server(port=chosen.port, queue_seconds=chosen.queue) as server:
        print(f"FTS3 for tests at {server.url}, until it is interrupted", flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
