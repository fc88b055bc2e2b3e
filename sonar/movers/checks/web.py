"""The steps of a check over http: what a server answers, and where it leads."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from sonar.movers.base import End, MoverError
from sonar.movers.checks.sequence import PlannedStep
from sonar.movers.checks.storage import FILE_BYTES, LIMITS, SHORT, Storage, steps_of
from sonar.movers.content import TestFile
from sonar.movers.file_address import at_path, path_of
from sonar.movers.http.deadlines import Wait
from sonar.movers.http.exchange import MAX_ANSWER_BYTES, Reply, Request
from sonar.movers.http.webdav import ABSENT, NOT_OFFERED, WebDav, succeeded
from sonar.movers.messages import one_line
from sonar.notation.check_steps import CheckStep, StepState
from sonar.notation.units import format_bytes

SKEW_SECONDS = 30
"""Certificates and tokens count from a moment on; a Date has whole seconds."""
MOST_LETTERS = 200
MODIFIED = re.compile(r"<[^<>]*\bgetlastmodified\b[^<>]*>([^<]+)<")
REACHED = ("port", "certificate", "credential")
"""Steps that any request to its server needs."""


class WebStorage(Storage):
    """The file of a check at an endpoint of http; what its own server said of the time is kept."""

    files: WebDav
    clock_ahead: float | None = None
    """By how many seconds its clock is ahead of this machine's; None if it did not say.

    From the Date of its last answer. XRootD sends none: there it is when the file was modified.
    """

    def ask(self, method: str, end: End) -> Reply:
        with self.asking():
            reply = self.files.web.ask(Request(method, end), self.order)
        if reply.data_server:
            self.data_servers.add(reply.data_server)
        else:
            self.read_clock(reply.headers.get("Date", ""))
        return reply

    def read_clock(self, date: str) -> None:
        try:
            moment = parsedate_to_datetime(date)
        except ValueError:
            return
        if moment.tzinfo is None:  # "-0000": of no zone that is said
            moment = moment.replace(tzinfo=UTC)
        self.clock_ahead = (moment - datetime.now(UTC)).total_seconds()

    @property
    def base(self) -> End:
        return at_path(self.end, path_of(self.end, self.end.base_url))


def web_steps_of(storage: WebStorage) -> list[PlannedStep]:
    """Plan all steps with the file of a check over http."""
    steps = {plan.name: plan for plan in steps_of(storage)}
    return [
        PlannedStep("base", lambda: base_step(storage), REACHED),
        replace(steps["directory"], needs=("base",)),
        steps["write"],
        PlannedStep("read", lambda: read_step(storage), ("write",)),
        PlannedStep("redirects", lambda: redirects_step(storage), REACHED),
        steps["checksum"],
        PlannedStep("copy", lambda: copy_step(storage), REACHED),
        steps["delete"],
        PlannedStep("clock", lambda: clock_step(storage), ("port", "certificate")),
    ]


def base_step(storage: WebStorage) -> CheckStep:
    """See that the base directory is there, as each upload does."""
    path = one_line(path_of(storage.end, storage.end.base_url))
    storage.ask("HEAD", storage.base)
    try:
        with storage.asking():
            storage.files.require_base(storage.end, storage.order)
    except MoverError as error:
        if error.status not in ABSENT:
            raise
        return CheckStep("base", StepState.FAILED, f"The directory {path} is missing.", MAKE_BASE)
    return CheckStep("base", StepState.FINE, f"The directory {path} exists.")


MAKE_BASE = "Create this directory (Sonar does not create it), or correct the path of the base URL."


def read_step(storage: WebStorage) -> CheckStep:
    """Read the file to its end, and compare it with what was written."""
    wait = Wait(LIMITS.answer, LIMITS.total)
    with (
        storage.asking(),
        storage.files.web.open(Request("GET", storage.end), storage.order, wait) as response,
    ):
        content = response.read(FILE_BYTES + 1, decode_content=False)
    if wait.route.data_server:
        storage.data_servers.add(wait.route.data_server)
    reply = Reply(response.status, response.headers, "", wait.route.data_server)
    succeeded(reply, "GET", storage.end)
    if storage.clock_ahead is None:
        storage.read_clock(modified_at(storage))
    if content != written():
        seen = f"The server returned {len(content)} bytes that differ from those written."
        return CheckStep("read", StepState.FAILED, seen, SHORT)
    seen = f"The server returned the same {format_bytes(FILE_BYTES)} that were written."
    return CheckStep("read", StepState.FINE, seen)


def modified_at(storage: WebStorage) -> str:
    """Return when the file was modified, as its server says it; empty if it does not."""
    request = Request("PROPFIND", storage.end, {"Depth": "0"})
    wait = Wait(LIMITS.answer, LIMITS.total)
    try:
        with storage.asking(), storage.files.web.open(request, storage.order, wait) as response:
            listing = response.read(MAX_ANSWER_BYTES, decode_content=False)
    except MoverError:
        return ""
    modified = MODIFIED.search(listing.decode("utf-8", "replace"))
    return modified[1] if modified else ""


def written() -> bytes:
    """Return the content of the file."""
    return TestFile(FILE_BYTES).read()


def redirects_step(storage: WebStorage) -> CheckStep:
    """Say to which servers it led what was asked so far."""
    if storage.refused_servers:
        servers = ", ".join(sorted(storage.refused_servers))
        seen = f"The server redirects to {servers}, which is not a declared data host."
        advice = f"If {servers} belongs to this storage, declare it as a data host of the endpoint."
        if len(storage.refused_servers) > 1:
            seen = f"The server redirects to {servers}, which are not declared data hosts."
            advice = (
                f"If {servers} belong to this storage, declare them as data hosts of the endpoint."
            )
        return CheckStep("redirects", StepState.FAILED, seen, advice)
    if storage.data_servers:
        servers = ", ".join(sorted(storage.data_servers))
        return CheckStep(
            "redirects", StepState.FINE, f"The server redirects to {servers}, as declared."
        )
    return CheckStep(
        "redirects", StepState.FINE, "No redirects: the server answers all requests directly."
    )


LOAD_COPY = (
    "Load the module for third-party copy (XRootD: http.exthandler xrdtpc libXrdHttpTPC.so, which "
    "requires xrd.tls). Without it, only the other endpoint of a test can run the copy."
)


def copy_step(storage: WebStorage) -> CheckStep:
    """See whether the server names COPY among its methods; none is made."""
    reply = storage.ask("OPTIONS", storage.base)
    named = one_line(reply.headers.get("Allow", ""))[:MOST_LETTERS]
    methods = {word.strip().upper() for word in named.split(",")} - {""}
    if reply.status not in NOT_OFFERED:
        succeeded(reply, "OPTIONS", storage.base)
    if not methods:
        seen = f"The server does not list its methods (OPTIONS: {reply.status})."
        return CheckStep(
            "copy", StepState.NOT_CHECKED, f"{seen} Tests will show whether it supports COPY."
        )
    if "COPY" not in methods:
        seen = f"COPY is not among the methods that OPTIONS lists: {', '.join(sorted(methods))}."
        return CheckStep("copy", StepState.FAILED, seen, LOAD_COPY)
    return CheckStep("copy", StepState.FINE, "COPY is among the methods that OPTIONS lists.")


def clock_step(storage: WebStorage) -> CheckStep:
    """Compare the server's clock with this machine's."""
    ahead = storage.clock_ahead
    if ahead is None:
        seen = (
            "The server's responses contain neither a Date header nor the modification time of a "
            "file."
        )
        return CheckStep("clock", StepState.NOT_CHECKED, seen)
    if abs(ahead) <= SKEW_SECONDS:
        return CheckStep(
            "clock", StepState.FINE, "The server's clock agrees with the clock of this machine."
        )
    seen = f"The server's clock is {abs(ahead):.0f} s {'fast' if ahead > 0 else 'slow'}."
    advice = (
        "Synchronise both clocks with NTP: otherwise, valid tokens and certificates seem expired, "
        "or not valid yet."
    )
    return CheckStep("clock", StepState.WARNING, seen, advice)
