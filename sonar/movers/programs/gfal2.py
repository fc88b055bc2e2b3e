"""gfal-copy between two servers, of the same or of different protocols: never through the worker.

gfal2 may fall back from one way of copying to the next, at last to a stream through the machine
where it runs: that would measure the worker. Whatever it says that it does is read, and a stream
is ended at once. It says when it begins to copy and when it has: Python's start is no part of it.
"""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sonar.movers.base import End, MoverError, Order, Receipt, Where
from sonar.movers.failures import judge
from sonar.movers.file_address import parsed
from sonar.movers.messages import one_line
from sonar.movers.programs.copying import copy
from sonar.movers.programs.files_by_scheme import FilesByScheme
from sonar.movers.programs.tool import Command, Ended, when_said
from sonar.movers.programs.xrootd import LOG_LINE, LOGGED, XrootdLog, root_url
from sonar.movers.watch import Seen, Watch

TYPE = re.compile(r"^event: \[[0-9]+\] \w+\s+\S+\s+TRANSFER:TYPE\s+(\S.*)")
STEP = re.compile(r"^event: \[([0-9]{1,15})\] \w+\s+\S+\s+TRANSFER:(ENTER|EXIT)\b")
ADDRESSES = re.compile(r"^event: \[[0-9]+\] \w+\s+\S+\s+IPV([46])\s+TRUE\s*$", re.IGNORECASE)
MONITOR = re.compile(r"^monitor: \S+ \S+ [0-9]{1,15} [0-9]{1,15} ([0-9]{1,18}) [0-9]{1,9}\s*$")
ERROR = re.compile(r"^gfal-copy error: ([0-9]+) \((.*?)\) - (.*)$", re.MULTILINE)
THIRD_PARTY = re.compile(r"3rd (pull|push)\b", re.IGNORECASE)
# Debian's script looks for the newest python3 on the path, which may be one without gfal2.
PYTHON = {"GFAL_PYTHONBIN": "/usr/bin/python3"}
# Over TLS it would else ask each server for a macaroon, and hand that on to the other one.
NO_TOKENS = ("--definition", "HTTP PLUGIN:RETRIEVE_BEARER_TOKEN=false")
# For the passive end over TLS it would else ask for a delegation by GridSite, which XRootD refuses.
NO_DELEGATION = ("--definition", "HTTP PLUGIN:HEADERS=Credential: none")
# Each is a Python of its own with all plugins: 11 MB that nothing shares.
AT_ONCE = 20
TURNS = threading.BoundedSemaphore(AT_ONCE)
TURN_LOOK_SECONDS = 0.2


class Gfal2:
    """gfal-copy between two servers."""

    def __init__(self) -> None:
        self.files = FilesByScheme()

    def move(self, order: Order, watch: Watch) -> Receipt:
        require_root_for_proxies(order)
        require_tokens_that_go_along(order)
        watch.seen = Seen(streams_used=1 if order.streams == 1 else None)
        account = Account(watch)
        command = Command(arguments(order), LOGGED | PYTHON)

        def failure(order: Order, ended: Ended) -> MoverError:
            return failed(order, ended, account.log.refusal)

        with turn(order, watch):
            ended = copy(self.files, command, order, watch, read=account.read, failure=failure)
        if not account.method:
            message = (
                "gfal-copy did not report how it copied: the data may have passed through this "
                "worker"
            )
            raise MoverError(Where.CONTROL, message)
        watch.seen.transfer_seconds = account.log.between
        return Receipt(order.bytes, account.seconds(ended), account.method)


@contextmanager
def turn(order: Order, watch: Watch) -> Iterator[None]:
    """Wait until few enough copies run in this process, and count as one of them.

    Raises MoverError after as long as the copy itself may take, and Stopped.
    """
    began = time.monotonic()
    while not TURNS.acquire(timeout=TURN_LOOK_SECONDS):
        watch.check()
        if time.monotonic() - began > order.limits.total:
            message = f"the worker was busy with {AT_ONCE} other gfal-copy transfers the whole time"
            raise MoverError(Where.CONTROL, message)
    try:
        yield
    finally:
        TURNS.release()


def require_root_for_proxies(order: Order) -> None:
    """Raise MoverError for a proxy over HTTP: gfal2 would give servers one like it, or a token."""
    for end in (order.source, order.destination):
        if end.proxy and parsed(end, end.url).scheme != "root":
            message = (
                "gfal2 gets an X.509 proxy for root:// only: over HTTP it would delegate the proxy"
            )
            raise MoverError(Where.CONTROL, message, permanent=True)


def require_tokens_that_go_along(order: Order) -> None:
    """Raise MoverError for a token over HTTP that may not go where a redirect leads: it does."""
    for end in (order.source, order.destination):
        over_http = parsed(end, end.url).scheme != "root"
        if end.token and over_http and not end.token_goes_along:
            message = (
                "over HTTP gfal2 follows every redirect and sends the token along: set "
                f"“to_data_hosts” for the credential of the {end.where}"
            )
            raise MoverError(Where.CONTROL, message, permanent=True)


class Account:
    """What gfal-copy says while it runs."""

    def __init__(self, watch: Watch) -> None:
        self.method = ""
        self.log = XrootdLog()
        self._steps: dict[str, float] = {}
        self._watch = watch

    def seconds(self, ended: Ended) -> float:
        """Return how long it copied, without the start of Python; of its whole run if unsaid."""
        began, over = self._steps.get("ENTER", ended.began), self._steps.get("EXIT")
        if (answered := self.log.answered) is not None:
            return answered - began
        return ended.seconds if over is None else over - began

    def read(self, line: str) -> int | None:
        """Return how many bytes had moved, if it says so; raise MoverError for a stream."""
        self.log.read(line)
        self._watch.seen.data_server = self.log.data_server
        if match := STEP.match(line):
            self._steps[match[2]] = when_said(int(match[1]) / 1000)
        elif match := TYPE.match(line):
            self.method = match[1].rstrip()
            require_third_party(self.method)
        elif match := ADDRESSES.match(line):
            self._watch.seen.ip_version = int(match[1])
        elif match := MONITOR.match(line):
            return int(match[1])
        return None


def require_third_party(method: str) -> None:
    if not THIRD_PARTY.match(method):
        message = (
            "gfal-copy would have copied the data through this worker "
            f"({one_line(method)}), so Sonar stopped it"
        )
        raise MoverError(Where.CONTROL, message, permanent=True)


def arguments(order: Order) -> tuple[str, ...]:
    seconds = str(max(round(order.limits.total), 1))
    streams = ("--nbstreams", str(order.streams)) if order.streams > 1 else ()
    passive = order.destination if order.mode == "push" else order.source
    over_tls = parsed(passive, passive.url).scheme == "https"
    return (
        *("gfal-copy", "--verbose", "--just-copy", "--copy-mode", order.mode),
        *("--timeout", seconds, "--transfer-timeout", seconds, *streams),
        *(*NO_TOKENS, *(NO_DELEGATION if over_tls else ())),
        *(url_of(end) for end in (order.source, order.destination)),
    )


def url_of(end: End) -> str:
    """Return the URL of a file as gfal2 wants it."""
    address = parsed(end, end.url)
    return root_url(end) if address.scheme == "root" else address.url


def failed(order: Order, ended: Ended, refusal: str = "") -> MoverError:
    """Return what its words say: which end, and whether it will last.

    ``refusal`` is what its library for root:// was told; of that gfal2 says something else.
    """
    match = ERROR.search(ended.text)
    if not match:
        why = ended.complaint(LOG_LINE.sub("", ended.text)[-300:])
        return MoverError(Where.TRANSFER, f"gfal-copy: {why}")
    code, name, text = match.groups()
    said = judge(refusal, order) if refusal else judge(text, order, errno=int(code))
    return said.error(f"gfal-copy: {one_line(f'{name}: {refusal or text}')}")
