"""HTTP third-party copy: COPY tells one server to fetch from (pull) or send to (push) the other.

The one that is told is the active end, the other the passive one. Its answer streams
performance markers while the bytes move and ends with the verdict.
"""

import re
import time
from collections.abc import Callable
from dataclasses import replace

from urllib3.response import BaseHTTPResponse

from sonar.movers.base import BLAME_SECONDS, End, MoverError, Order, Receipt, Stopped, Where
from sonar.movers.failures import Kind, judge
from sonar.movers.file_address import host_of, place_of, require_inside, web_url
from sonar.movers.http.deadlines import Wait
from sonar.movers.http.exchange import Request, bearer, read_text
from sonar.movers.http.failures import refused
from sonar.movers.http.peers import Route
from sonar.movers.http.perf_markers import PerfMarkers, Verdict, data_server, ip_version
from sonar.movers.http.webdav import WebDav
from sonar.movers.messages import not_confirmed, one_line
from sonar.movers.watch import Seen, Watch, within

READ_BYTES = 64 * 1024
MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""An hour of markers of a hundred stripes is less."""
SCITAG_HEADERS = ("SciTag", "TransferHeaderSciTag")
"""For the active end, and for it to hand on to the passive one."""
NO_DELEGATION = {"Credential": "none", "X-No-Delegate": "true"}
"""Nobody is to ask for a proxy of ours."""
PLAIN_SUCCESS = {200, 201, 204}
NO_DIRECTORY = {400, 404, 409}
"""With which a destination refuses to fetch a file into a directory that is not there."""
CALL_SECONDS = BLAME_SECONDS / 2
"""How long an end may take to show that it is there, once a COPY got no answer."""
SILENCE_SECONDS = 12.0
"""A server that is alive sends a marker about every 5 s; without two it is silent."""


class NoAnswer(MoverError):
    """The active end took the COPY and did not say a word."""


class StillLooking(MoverError):
    """The active end has not found out yet on which of its servers the file is, or could be."""


class DirectoryMissing(MoverError):
    """The destination complains, before anything moved, that there is no such directory."""

    at_another_server = False
    """Whether one complains to which the destination redirected."""


class HttpTpc:
    """COPY between two servers that speak http or https."""

    def __init__(self) -> None:
        self.files = WebDav()

    def move(self, order: Order, watch: Watch) -> Receipt:
        require_inside(order.destination)
        lookup_seconds = self._seconds_to_find(order)
        try:
            return self._copy_into_directory(order, watch, lookup_seconds)
        except StillLooking:
            active, _ = ends(order)
            began = time.monotonic()
            self.files.stat(active, order)  # answered once it has found out
            lookup_seconds += time.monotonic() - began
        return self._copy_into_directory(order, watch, lookup_seconds)

    def _copy_into_directory(self, order: Order, watch: Watch, lookup_seconds: float) -> Receipt:
        """Copy the file, and again into a directory made for it if there is none."""
        try:
            return self._copy(order, watch, lookup_seconds)
        except DirectoryMissing as missing:
            order = self._with_directory(order, missing)
        return self._copy(order, watch, lookup_seconds)

    def _with_directory(self, order: Order, missing: DirectoryMissing) -> Order:
        """Make what is missing; return how to copy the file now.

        The manager of an XRootD cluster has a directory made on one of its servers only, and
        not on another later. A file that is put there is on a server that then has both, and
        is overwritten by the copy.
        """
        if missing.at_another_server:
            self.files.put_empty(order.destination, order)
            return replace(order, overwrite=True)
        self.files.make_directories(order.destination, order)
        return order

    def _silent_end(self, order: Order, watch: Watch, error: MoverError) -> MoverError:
        """Return whose the silence is: at most 10 s, and only after a COPY got no answer.

        XRootD 5.5.3 answers a pull only once the source has answered it, so that a source
        that hangs, or a firewall before it, looks like a destination that hangs.
        """
        limits = order.limits
        brief = replace(
            limits,
            connect=min(limits.connect, CALL_SECONDS),
            answer=min(limits.answer, CALL_SECONDS),
        )
        for end in ends(order):
            watch.check()
            try:
                with within(watch, CALL_SECONDS):
                    self.files.web.ask(Request("HEAD", end), replace(order, limits=brief))
            except Stopped:
                raise
            except MoverError as silence:
                return MoverError(end.where, f"{error}; {silence}")
        return MoverError(Where.TRANSFER, f"{error}, although both endpoints answer HEAD requests")

    def _seconds_to_find(self, order: Order) -> float:
        """Ask the destination after the file before it is copied; return how long that took.

        The manager of a cluster takes 5 s and more for a new name, and refuses to pull to one
        until then. Raise MoverError for a file that is there and may not be overwritten, and for
        a push to where no base directory is: XRootD 5.5.3 does both. Who is known to need no such
        look is not asked.
        """
        end = order.destination
        if order.mode == "push":
            self.files.require_base(end, order)
        if self.files.software.is_prompt(end):
            return 0.0
        began = time.monotonic()
        facts = self.files.stat(end, order)
        seconds = time.monotonic() - began
        if facts and not order.overwrite:
            raise MoverError(end.where, f"{place_of(end)}: the file already exists", permanent=True)
        return seconds

    def _copy(self, order: Order, watch: Watch, lookup_seconds: float) -> Receipt:
        """Copy the file; the destination has looked for it for ``lookup_seconds``."""
        watch.check()
        watch.seen = Seen(scitag=order.scitag)
        active, _ = ends(order)
        wait = CopyWait(order)
        request = Request("COPY", active, copy_headers(order))
        try:
            with watch.on_stop(wait.stop), self.files.web.open(request, order, wait) as response:
                watch.seen.data_server = wait.route.data_server
                if wait.route.data_server:
                    watch.seen.redirect_seconds = lookup_seconds + wait.sent_at - wait.began
                watch.seen.streams_used = streams_used(order, response.headers.get("Server", ""))
                require_started(response, order, wait.route)
                return _follow(response, order, wait, watch)
        except NoAnswer as error:
            raise self._silent_end(order, watch, error) from error


class CopyWait(Wait):
    """The deadlines of a COPY: an answer, then progress, and the whole."""

    def __init__(self, order: Order) -> None:
        super().__init__(order.limits.answer, order.limits.total)
        self._order = order
        self._started = False
        self._moved = -1
        self._progress_at = self._heard_at = self.sent_at

    def heard(self, markers: int, moved: int, *, is_queued: bool = False) -> float:
        """Note that the server said something; return the seconds since the request.

        A transfer that waits for its turn there does not stall.
        """
        now = time.monotonic()
        many = self._order.streams > 1
        progress = moved > self._moved or not self._started or many or is_queued
        # A server that has every byte may still verify them: only its silence is a stall.
        if progress or (markers and self._is_whole):
            self._progress_at, self._moved = now, max(moved, self._moved)
        if progress or markers:
            self._heard_at = now
        self._started = True
        self.deadline = min(self._progress_at + self._order.limits.stall, self.end)
        return now - self.sent_at

    @property
    def _is_whole(self) -> bool:
        """Whether all bytes were reported as moved; several streams may report what was asked."""
        return self._moved >= self._order.bytes and self._order.streams == 1

    def overdue(self, end: End, place: str) -> MoverError:
        if not self._started:
            silence = super().overdue(end, place)
            return NoAnswer(silence.where, str(silence)) if self.was_sent else silence
        limits, now = self._order.limits, time.monotonic()
        at = f"at {max(self._moved, 0)} of {self._order.bytes} bytes"
        if now >= self.end:
            late = f"not finished within {limits.total:g} s, {at}"
            why = not_confirmed(self._order) if self._is_whole else late
            return MoverError(Where.TRANSFER, f"{place}: {why}")
        last_words = self._heard_at - self._progress_at  # the first marker comes with the headers
        if last_words < 1 or now - self._heard_at > SILENCE_SECONDS:
            silent = f"the server sent nothing for {now - self._heard_at:.0f} s"
            after = f", after it had reported all {self._order.bytes} bytes as moved"
            return MoverError(end.where, f"{place}: {silent}{after if self._is_whole else ''}")
        message = f"{place}: no bytes moved for {limits.stall:g} s, {at}"
        return MoverError(Where.TRANSFER, message)


def ends(order: Order) -> tuple[End, End]:
    """Return the end that does the work and the other one."""
    if order.mode == "pull":
        return order.destination, order.source
    if order.mode == "push":
        return order.source, order.destination
    raise MoverError(
        Where.CONTROL, f"mode {order.mode!r} is not supported: use pull or push", permanent=True
    )


def copy_headers(order: Order) -> dict[str, str]:
    """Return what makes a COPY a third-party copy."""
    _, passive = ends(order)
    headers = {
        "Source" if order.mode == "pull" else "Destination": web_url(passive),
        "Overwrite": "T" if order.overwrite else "F",
        **NO_DELEGATION,
        # Sonar compares checksums itself; dCache refuses a pull from who tells none, else.
        "RequireChecksumVerification": "false",
    }
    if order.job:
        headers["ClientInfo"] = f"job-id={order.job}"
    if passive.lent:
        headers["TransferHeaderAuthorization"] = f"Bearer {bearer(passive, passive.lent)}"
    if order.streams > 1:
        headers["X-Number-Of-Streams"] = str(order.streams)
    if order.scitag:
        headers |= dict.fromkeys(SCITAG_HEADERS, str(order.scitag))
    return headers


def require_started(response: BaseHTTPResponse, order: Order, route: Route) -> None:
    """Raise MoverError if the active end will not even begin."""
    if 200 <= response.status < 300:
        return
    active, passive = ends(order)
    text = one_line(read_text(response, active, route), passive.token, passive.lent)
    raise refusal(order, response.status, text, route)


def refusal(order: Order, status: int, text: str, route: Route | None = None) -> MoverError:
    """Return the error for a COPY that was refused: whose it is, and whether it will last."""
    active, _ = ends(order)
    said = judge(text, order, status=status)
    shown = route.quotable(text) if route else text
    message = str(refused(active, f"COPY {place_of(active)}", status, shown))
    if said.kind is Kind.NO_DIRECTORY and (order.mode == "push" or status in NO_DIRECTORY):
        missing = said.error_as(DirectoryMissing, message)
        missing.at_another_server = order.mode == "pull" and bool(route and route.elsewhere)
        return missing
    if said.kind is Kind.SEARCHING:
        why = "a cluster manager gives this answer until it has found a data server for the file"
        return said.error_as(StillLooking, f"{message} ({why})")
    error = said.error(message)
    error.status = status if said.where is active.where else 0
    return error


def _follow(response: BaseHTTPResponse, order: Order, wait: CopyWait, watch: Watch) -> Receipt:
    """Read the markers to the verdict, and make of it a receipt or an error."""
    markers, seen, taken, queued = PerfMarkers(), watch.seen, 0, 0.0
    seconds = wait.heard(0, 0)
    # Not decoded: nobody was told that it may be packed.
    while chunk := response.read1(READ_BYTES, decode_content=False):
        watch.check()
        taken += len(chunk)
        if taken > MAX_ANSWER_BYTES:
            active, _ = ends(order)
            message = f"COPY {place_of(active)}: the answer is too long, {taken} bytes so far"
            raise MoverError(active.where, message)
        completed = markers.feed(chunk)
        seconds = wait.heard(completed, markers.moved_bytes, is_queued=markers.is_queued)
        if markers.is_queued:
            queued = seen.queue_seconds = seconds
        if markers.is_queued or not completed:
            continue
        if not wait.route.elsewhere:
            seen.remote_connections = markers.remote_connections
            seen.data_server = data_server(markers.remote_connections)
        seen.ip_version = ip_version(markers.remote_connections)
        if order.streams == 1:
            watch.report(markers.moved_bytes, seconds - queued)
    watch.check()  # a stop may look like the end of an answer
    return Receipt(
        order.bytes, seconds - queued, verdict_of(response.status, markers, order, wait.route)
    )


def verdict_of(status: int, markers: PerfMarkers, order: Order, route: Route) -> str:
    """Say how a success was told; raise MoverError unless it is one.

    No word at all after 200, 201 or 204 is how WebDAV says that a COPY is done (StoRM does
    within itself): whoever looks at the destination will see.
    """
    verdict = markers.finish()
    if verdict is None and markers.is_empty and status in PLAIN_SUCCESS:
        return f"{status} without a body"
    require_success(verdict, order, route)
    return "success"


def require_success(verdict: Verdict | None, order: Order, route: Route) -> None:
    """Raise MoverError unless the verdict is a success."""
    if verdict is None:
        active, _ = ends(order)
        place = route.named(f"COPY {place_of(active)}")
        message = f"{place}: the answer ended without reporting success or failure"
        raise MoverError(active.where, message)
    if not verdict.success:
        raise failed(order, verdict.text, route)


def failed(order: Order, text: str, route: Route | None = None) -> MoverError:
    """Return the error for a ``failure:`` line: whose it is, and whether it will last."""
    active, passive = ends(order)
    tokens = (active.token, active.lent, passive.token, passive.lent)
    why = one_line(text, *tokens, *(route.secrets if route else ()))
    why = why or "failed without giving a reason"
    reason = route.quotable(why) if route else why
    message = one_line(f"COPY {place_of(active)} reported about {host_of(passive)}: {reason}")
    said = judge(text, order, is_verdict=True)
    if said.kind is Kind.NO_DIRECTORY and order.mode == "push":
        return said.error_as(DirectoryMissing, message)
    return said.error(message)


# XRootD, measured with 5.5.3 by the connections that carried data, and read in the sources of
# 4.12 to 6.1: a push ignores the number of streams; a pull cuts the file in blocks of this size
# and opens one connection for each, as many as were asked at most.
XROOTD_BLOCK_BYTES = 16 * 1024 * 1024


def _xrootd(order: Order) -> int:
    if order.mode == "push":
        return 1
    return min(order.streams, -(-order.bytes // XROOTD_BLOCK_BYTES))


def _single_stream(_order: Order) -> int:
    return 1


# By the beginning of the Server header. Who is not in here may do as it likes.
SERVERS: tuple[tuple[re.Pattern[str], Callable[[Order], int]], ...] = (
    (re.compile(r"xrootd\b", re.IGNORECASE), _xrootd),
    (re.compile(r"sonar-sandbox\b"), _single_stream),
)


def streams_used(order: Order, server: str) -> int | None:
    """Return how many streams this server uses for an order; None where nobody can tell."""
    if order.streams == 1:
        return 1
    return next((used(order) for name, used in SERVERS if name.match(server)), None)
