"""Runs a program that moves a file: read while it runs, stopped at once, and nothing of it left.

Each has a process group of its own, which ends with it, with a stop or with this process, and an
environment with nothing of Sonar's in it. There it finds the path of a proxy, or a token, which
nobody but its user can read there: no secret is in its arguments.
"""

import os
import pty
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from sonar.movers.base import End, Late, MoverError, Order, Where
from sonar.movers.content import TestFile
from sonar.movers.file_address import place_of
from sonar.movers.messages import not_confirmed, one_line
from sonar.movers.watch import Watch, current
from sonar.notation.addresses import SHORT_NAMES, CredentialKind, scheme_of

USUAL_PROXY = f"/tmp/x509up_u{os.getuid()}"  # noqa: S108 - nothing is written there
"""A program without a proxy takes the one that it finds at this usual place of its user."""
NO_PROXY = {"X509_USER_PROXY": "/nonexistent"}
# Without GSI nobody is shown one, and gfal2 wants to open what is named.
NEVER_SHOWN = "ftp"
# A server is asked whether it takes a token, over TLS and in no other way.
TOKEN = "BEARER_TOKEN"  # noqa: S105 - the name of a variable
BY_TOKEN = {"XrdSecPROTOCOL": "ztn"}
NOT_LED_ON = {"XRD_REDIRECTLIMIT": "0"}


def credential_variables(order: Order, *ends: End) -> dict[str, str]:
    """Return what tells a program, by its environment alone, what to show to these ends.

    The file of a proxy stays where it is: what it holds is read by the program. A token goes where
    a redirect leads only if it may go along from each end. Raises MoverError for ends that have
    not all the same credential, as a program shows its only one to whoever asks for it.
    """
    first, *others = ends
    if any((end.proxy, end.token) != (first.proxy, first.token) for end in others):
        raise MoverError(Where.CONTROL, sentence(*ends), permanent=True)
    if first.proxy:
        return {"X509_USER_PROXY": first.proxy} | trusted(order)
    return _without_proxy(*ends) | _token_variables(*ends) | trusted(order)


def _without_proxy(*ends: End) -> dict[str, str]:
    """Hide the proxy at the usual place, if there is one.

    XRootD 5.5.3 speaks no TLS at all where a proxy is named that is not there.
    """
    over_ftp = all(scheme_of(end.url) == NEVER_SHOWN for end in ends)
    return {} if over_ftp or not Path(USUAL_PROXY).exists() else NO_PROXY


def _token_variables(*ends: End) -> dict[str, str]:
    token = ends[0].token
    if not token:
        return {}
    led_on = all(end.token_goes_along for end in ends)
    return {TOKEN: token} | BY_TOKEN | ({} if led_on else NOT_LED_ON)


def sentence(*ends: End) -> str:
    """Say why one program cannot serve ends with these credentials."""
    by_proxy = any(end.proxy for end in ends)
    kind = CredentialKind.X509_PROXY if by_proxy else CredentialKind.BEARER_TOKEN
    singular, plural = SHORT_NAMES[kind]
    without = [end.where for end in ends if not (end.proxy if by_proxy else end.token)]
    if without:
        other = f"the {singular} of the other endpoint"
        reason = f"the {without[0]} has no {singular} and would be sent {other}"
    else:
        reason = f"the endpoints have different {plural}"
    return f"{reason}: both endpoints need the same credential, as the program uses only one"


def trusted(order: Order) -> dict[str, str]:
    """Name the directory of certificate authorities, where there is one of Sonar's own."""
    own = order.ca_bundle
    return {"X509_CERT_DIR": own} if own and Path(own).is_dir() else {}


READ_BYTES = 64 * 1024
LAST_READS = 16
"""Reads of a pipe or a terminal after its program has ended."""
LOOK_SECONDS, SHORT_SECONDS = 0.2, 0.02
GRACE_SECONDS = 2.0
"""From asking a program to end to ending it."""
READ_LATE_SECONDS = 60.0
"""How long after a program has written a line it may be read."""
KEPT_CHARACTERS = 16_000
MAX_LINE_CHARACTERS = 8_000
LINE_END = re.compile(r"[\r\n]+")
ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])|\ufeff"
)
"""Colours and the like, for a terminal, and the mark at the beginning of a text in UTF-8."""
# What makes a child end when this process is killed: it costs no process of its own.
WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Command:
    """A program with its arguments; ``variables`` are all that it finds beside a plain few."""

    arguments: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    on_terminal: bool = False
    """Whether it shows its progress to a terminal only."""
    content: TestFile | None = None
    """Its standard input; empty without one."""


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    code: int
    """Its exit code; below zero the signal that ended it."""
    seconds: float
    text: str
    """The end of what it wrote, for who looks why it failed."""
    began: float = 0.0
    """When it was started, on the monotonic clock."""

    def complaint(self, words: str) -> str:
        """Return why it ended badly as one line, of what it wrote or a part of that."""
        return one_line(words) or f"exited with code {self.code} and no message"


def when_said(stamp: float) -> float:
    """Return on the monotonic clock when a program said what bears this time, seconds since 1970.

    A busy machine reads it later. A time that is not of the last minute is of a clock that has
    been set meanwhile: now is taken instead.
    """
    ago = time.time() - stamp
    return time.monotonic() - (ago if 0 <= ago <= READ_LATE_SECONDS else 0.0)


class Lines:
    """Cuts what a program writes into lines; a progress bar begins its line again and again.

    Neither the lines nor the text hold escape codes for terminals.
    """

    def __init__(self, secret: str = "") -> None:
        """Know the token that the program was given: it is in none of its lines."""
        self._text = ""
        self._secret, self._rest = secret, ""

    @property
    def text(self) -> str:
        """Return the end of what was written."""
        return self._plain(self._text)

    def _without_secret(self, text: str) -> str:
        return text.replace(self._secret, "***") if self._secret else text

    def _plain(self, text: str) -> str:
        return self._without_secret(ESCAPES.sub("", text))

    def feed(self, chunk: bytes) -> list[str]:
        """Take the next piece; return the lines that it ends."""
        piece = chunk.decode("utf-8", "replace")
        # Before anything is cut off: of half a secret nobody would know that it is one.
        self._text = self._without_secret(self._text + piece)[-KEPT_CHARACTERS:]
        *whole, self._rest = LINE_END.split(self._without_secret(self._rest + piece))
        self._rest = self._rest[-MAX_LINE_CHARACTERS:]
        return list(filter(None, map(self._plain, whole)))

    def finish(self) -> list[str]:
        """Return what is left without an end."""
        rest, self._rest = self._plain(self._rest), ""
        return [rest] if rest else []


class Deadline:
    """So many seconds for a program that asks a server something; silence is of that end."""

    def __init__(self, end: End, seconds: float) -> None:
        self.began = time.monotonic()
        self._end, self._seconds = end, seconds

    def check(self, name: str) -> None:
        """Raise Late once the program is overdue."""
        if time.monotonic() - self.began > self._seconds:
            message = f"{name} {place_of(self._end)}: no answer within {self._seconds:.3g} s"
            raise Late(self._end.where, message)

    def note(self, moved: int, *, is_reported: bool) -> None:
        """Take down how many bytes have moved: a question moves none."""


class MoveDeadlines:
    """Until when a program that moves a file must have shown progress, and have ended."""

    def __init__(self, order: Order) -> None:
        self.began = self._progress_at = time.monotonic()
        self._order, self._moved = order, -1

    @property
    def _is_whole(self) -> bool:
        return self._moved >= self._order.bytes

    def note(self, moved: int, *, is_reported: bool) -> None:
        """Take down how many bytes have moved, and whether the program itself reported it.

        A program that goes on reporting the full size waits for a server that verifies it.
        """
        if moved > self._moved or (is_reported and self._is_whole):
            self._moved, self._progress_at = max(moved, self._moved), time.monotonic()

    def check(self, name: str) -> None:
        """Raise MoverError once the program is overdue; who has shown nothing may be silent."""
        now, limits = time.monotonic(), self._order.limits
        at = f", at {self._moved} of {self._order.bytes} bytes" if self._moved >= 0 else ""
        if now - self.began > limits.total:
            late = f"not finished within {limits.total:g} s{at}"
            why = not_confirmed(self._order) if self._is_whole else late
            raise MoverError(Where.TRANSFER, f"{name}: {why}")
        if self._moved >= 0 and now - self._progress_at > limits.stall:
            why = f"no bytes moved for {limits.stall:g} s{at}"
            if self._is_whole:
                silent = f"nothing happened for {limits.stall:g} s"
                why = f"all {self._moved} bytes had moved, then {silent}"
            raise MoverError(Where.TRANSFER, f"{name}: {why}")


Meter = Callable[[int], int | None]
"""Returns how many bytes a process, by its number, has moved; None where it cannot tell."""


def move(
    command: Command,
    order: Order,
    watch: Watch,
    progress: Callable[[str], int | None],
    meter: Meter = lambda _: None,
) -> Ended:
    """Run a program that moves a file; raise Stopped, or MoverError if it takes too long.

    It shows one credential: MoverError if the ends do not have the same.
    ``progress`` is given each line as it comes, and returns the bytes moved so far where the
    line tells them: they become samples, by the seconds since the program was started. The
    ``meter`` is for programs that say nothing while they run: asked now and then.
    """
    shown = _showing(command, order, order.source, order.destination)
    return _run(shown, watch, MoveDeadlines(order), progress, meter)


def ask(
    command: Command,
    end: End,
    order: Order,
    seconds: float | None = None,
    look: Callable[[int], None] = lambda _: None,
) -> Ended:
    """Run a program that asks a server something, within ``limits.answer`` or so many seconds.

    It has no longer than the step that it belongs to, whose stop ends it, and the credential of
    this end. ``look`` is given the number of its process now and then. Raises Late.
    """
    span, patience = current(), seconds or order.limits.connect + order.limits.answer
    watch = span.watch if span else Watch()
    left = min(patience, span.left) if span else patience
    shown = _showing(command, order, end)
    return _run(shown, watch, Deadline(end, left), lambda _: None, look)


def _showing(command: Command, order: Order, *ends: End) -> Command:
    variables = {**command.variables, **credential_variables(order, *ends)}
    return replace(command, variables=variables)


def _run(
    command: Command,
    watch: Watch,
    deadline: Deadline | MoveDeadlines,
    progress: Callable[[str], int | None],
    meter: Meter = lambda _: None,
) -> Ended:
    watch.check()
    name, lines = command.arguments[0], Lines(command.variables.get(TOKEN, ""))

    def note(moved: int | None, *, is_reported: bool = True) -> None:
        if moved is not None:
            deadline.note(moved, is_reported=is_reported)
            watch.report(moved, time.monotonic() - deadline.began)

    with _started(command) as (process, output):
        with watch.on_stop(lambda: _signal_group(process, signal.SIGTERM)):
            for chunk in _chunks(process, output):
                watch.check()
                for line in lines.feed(chunk):
                    note(progress(line))
                note(meter(process.pid), is_reported=False)
                deadline.check(name)
            for line in lines.finish():
                note(progress(line))
        watch.check()
        seconds = time.monotonic() - deadline.began
    return Ended(process.returncode, seconds, lines.text, deadline.began)


def _chunks(process: subprocess.Popen[bytes], output: int) -> Iterator[bytes]:
    """Give what a program writes, and an empty piece now and then, until it has ended."""
    poll = select.poll()
    poll.register(output, select.POLLIN)
    while True:
        if poll.poll(1000 * LOOK_SECONDS):
            if not (chunk := _read(output)):
                break
            yield chunk
        elif _has_ended(process):  # what it started may hold its output open, and write on
            for _ in range(LAST_READS):  # written since the look before
                if not (poll.poll(0) and (chunk := _read(output))):
                    return
                yield chunk
            return
        else:
            yield b""
    while not _has_ended(process):  # it has closed its output, and goes on
        time.sleep(SHORT_SECONDS)
        yield b""


def _read(output: int) -> bytes:
    try:
        return os.read(output, READ_BYTES)
    except OSError:  # a terminal whose other side is closed
        return b""


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Say whether it is over, and leave its number to it: its group may have to be ended."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


@contextmanager
def _started(command: Command) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a program; afterwards nothing of its group is left, however this block ends."""
    reading, writing = pty.openpty() if command.on_terminal else os.pipe()
    try:
        try:
            process = _start(command, writing)
        finally:
            os.close(writing)
        try:
            yield process, reading
        finally:
            _end(process)
    finally:
        os.close(reading)


def _start(command: Command, output: int) -> subprocess.Popen[bytes]:
    try:
        process = subprocess.Popen(
            [*WITH_US, *command.arguments],
            stdin=subprocess.PIPE if command.content else subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment(command.variables),
            start_new_session=True,
        )
    except OSError as error:
        why = f"{command.arguments[0]} cannot be started: {error.strerror}"
        raise MoverError(Where.CONTROL, why, permanent=True) from error
    if command.content and process.stdin:
        threading.Thread(target=_feed, args=(process.stdin, command.content), daemon=True).start()
    return process


def _feed(stdin: IO[bytes], content: TestFile) -> None:
    """Write a test file to a program; one that has ended, or is stopped, wants no more."""
    with suppress(BrokenPipeError, MoverError), stdin:
        while chunk := content.read():
            stdin.write(chunk)


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return what a program finds in its environment: nothing of ours."""
    return {"PATH": PATH, "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": "/nonexistent", **variables}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program that runs, and what it has started; nobody else waits for it."""
    if not _has_ended(process):
        _signal_group(process, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        while not _has_ended(process) and time.monotonic() < deadline:
            time.sleep(SHORT_SECONDS)
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.returncode is None:  # not waited for: its number is nobody else's
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
