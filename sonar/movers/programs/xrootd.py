"""root:// third-party copy by xrdcp: the destination fetches the file from the source.

The files of an endpoint are asked for by xrdfs.

xrdcp looks only every 2.5 s whether the copy is done, and shows its progress then: to a terminal
only, in binary multiples whatever it calls them. When it was told so is in the log of its library.
"""

import re
import time
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from sonar.movers.base import (
    End,
    FileInfo,
    MoverError,
    NoChecksum,
    NotReady,
    Order,
    Receipt,
)
from sonar.movers.content import read_adler32
from sonar.movers.failures import judge
from sonar.movers.file_address import (
    at_path,
    directories_below_base,
    host_of,
    path_of,
    place_of,
    require_inside,
)
from sonar.movers.messages import one_line
from sonar.movers.programs import sockets, tool
from sonar.movers.programs.copying import copy
from sonar.movers.programs.tool import Command, Ended
from sonar.movers.uploads import NO_RENAME, WatchedFile, put_aside, put_in_place
from sonar.movers.watch import Seen, Watch

# Without these a port that refuses is tried for minutes.
VARIABLES = {
    "XRD_CONNECTIONWINDOW": "5",
    "XRD_CONNECTIONRETRY": "1",
    "XRD_REQUESTTIMEOUT": "60",
    "XRD_STREAMTIMEOUT": "60",
    # Each looks up the name of its own machine first: a lost answer is asked for again in a second.
    "RES_OPTIONS": "timeout:1 attempts:5",
}
# Not what a client complains of itself, of a certificate say.
NO_FILE = re.compile(r"\[3011\]|\A(?!.*\[FATAL\]).*no such file", re.IGNORECASE | re.DOTALL)
NOT_OFFERED = re.compile(r"\[3013\]|\[3006\]|not supported|checksum.*not", re.IGNORECASE)
LATER = re.compile(r"\[3024\]|in progress|try again", re.IGNORECASE)
SIZE = re.compile(r"^Size:\s+([0-9]{1,18})\s*$", re.MULTILINE)
CHANGED = re.compile(r"^MTime:\s+(\S.*?)\s*$", re.MULTILINE)
FLAGS = re.compile(r"^Flags:.*\bIsDir\b", re.MULTILINE)


class XrootdFiles:
    """Files over root://; each question is a run of xrdfs, some 20 ms."""

    def stat(self, end: End, order: Order) -> FileInfo | None:
        ended = ask(end, order, "stat", path_of(end, end.url))
        if ended.code and NO_FILE.search(ended.text):
            return None
        succeeded(ended, end, "stat")
        size, changed = SIZE.search(ended.text), CHANGED.search(ended.text)
        if not size:
            raise MoverError(
                end.where, f"stat {place_of(end)}: the server does not report the file size"
            )
        return FileInfo(int(size[1]), changed[1] if changed else "")

    def checksum(self, end: End, order: Order, seconds: float) -> str:
        path = f"{path_of(end, end.url)}?cks.type=adler32"
        ended = ask(end, order, "query", "checksum", path, seconds=seconds)
        if ended.code and LATER.search(ended.text):
            raise NotReady(end.where, f"checksum of {place_of(end)}: {one_line(ended.text)}")
        if ended.code and NOT_OFFERED.search(ended.text) and not NO_FILE.search(ended.text):
            why = ended.complaint(ended.text)
            raise NoChecksum(
                end.where, f"the server refused the request for an adler32 checksum ({why})"
            )
        succeeded(ended, end, "query checksum")
        return read_adler32(ended.text, end)

    def put(self, order: Order, watch: Watch) -> None:
        """Make the source file appear, whole or not at all: put aside, then moved into place."""
        end = order.source
        self.make_directories(end, order)
        with put_aside(self.delete, order, watch) as part:
            upload(part, order, watch)
            ended = ask(end, order, "mv", path_of(part, part.url), path_of(end, end.url))
            if not (ended.code and NO_RENAME.search(ended.text)):
                succeeded(ended, part, "mv")
                return
            self.delete(part, order)
        put_in_place(self, upload, order, watch)

    def delete(self, end: End, order: Order) -> None:
        require_inside(end)
        ended = ask(end, order, "rm", path_of(end, end.url))
        if not (ended.code and NO_FILE.search(ended.text)):
            succeeded(ended, end, "rm")

    def make_directories(self, end: End, order: Order) -> None:
        """Make what is missing between the base and the file; others may be making it too."""
        require_inside(end)
        *_, deepest = directories_below_base(end)
        if self._is_directory(deepest, end, order):
            return
        self.require_base(end, order)
        ended = ask(end, order, "mkdir", "-p", deepest)
        # Refused where others made it meanwhile: each kind of server says so in its own words.
        if ended.code and not self._is_directory(deepest, end, order):
            succeeded(ended, end, "mkdir")

    def require_base(self, end: End, order: Order) -> None:
        """Raise MoverError unless the base directory is there."""
        base = at_path(end, path_of(end, end.base_url))
        if not self._is_directory(path_of(base, base.url), base, order):
            message = f"{place_of(base)}: the base directory is missing; Sonar does not create it"
            raise MoverError(end.where, message, permanent=True)

    def _is_directory(self, path: str, end: End, order: Order) -> bool:
        """Say whether there is a directory; MoverError for a file, or without an answer."""
        ended = ask(end, order, "stat", path)
        if ended.code and NO_FILE.search(ended.text):
            return False
        succeeded(ended, end, "stat")
        if not FLAGS.search(ended.text):
            message = f"{host_of(end)}{path}: the server does not report this path as a directory"
            raise MoverError(end.where, message, permanent=True)
        return True


def upload(end: End, order: Order, watch: Watch) -> None:
    """Let xrdcp send a source file, and look now and then at the connection by which it does."""
    content = WatchedFile(order.bytes, watch)
    arguments = ("xrdcp", "--force", "--nopbar", "-", root_url(end))
    command = Command(arguments, VARIABLES, content=content)

    def look(process: int) -> None:
        content.sent_by(sockets.busiest(process))

    try:
        ended = tool.ask(command, order.source, order, order.limits.total, look)
    finally:
        content.sent_by(None)
    succeeded(ended, end, "put")


def ask(end: End, order: Order, *words: str, seconds: float | None = None) -> Ended:
    """Let xrdfs ask the server of a file something."""
    command = Command(("xrdfs", host_of(end), *words), VARIABLES)
    return tool.ask(command, end, order, seconds)


def root_url(end: End) -> str:
    """Return the URL of a file as the programs want it: two slashes before its whole path."""
    return f"root://{host_of(end)}/{path_of(end, end.url)}"


def succeeded(ended: Ended, end: End, question: str) -> None:
    """Raise MoverError unless a program ended well."""
    if not ended.code:
        return
    message = f"{question} {place_of(end)}: {ended.complaint(ended.text)}"
    raise replace(judge(ended.text), where=end.where).error(message)


LOGGED = VARIABLES | {"XRD_LOGLEVEL": "Dump", "XRD_LOGMASK": "XRootDMsg"}
LOG_LINE = re.compile(r"^\[[0-9]{4}-[0-9]{2}-[0-9]{2} .*$", re.MULTILINE)
STAMP = re.compile(r"^\[([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\.[0-9]{6} [+-][0-9]{4})\]")
STAMP_FORMAT = "%Y-%m-%d %H:%M:%S.%f %z"
SYNCED = re.compile(r"\[XRootD *\] .* Got a kXR_ok response to request kXR_sync\b")
SERVER = re.compile(
    r"\] \[(?:[^\s\[\]@]*@)?((?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5})\] Got "
)
REFUSED = re.compile(
    r"\[XRootD *\] .* Got a kXR_error response to request kXR_open \(.*\) (\[[0-9]+\] .*)"
)


class XrootdLog:
    """When the destination answered: that it is ready to copy, and then that it has copied.

    The client library of XRootD logs it, in whichever program it works. The words are the same from
    4.12 to 6.1; where they are not found, nothing is known.
    """

    def __init__(self) -> None:
        self.refusal = ""
        """With which words a server last refused to open a file, and its path among them."""
        self.data_server = ""
        """Host and port of the server that answered that it has copied, after any redirect."""
        self._at: list[float] = []

    def read(self, line: str) -> None:
        """Take the next line; its own time says when it was logged."""
        if SYNCED.search(line):
            self._at.append(tool.when_said(stamp_of(line)))
            if server := SERVER.search(line):
                self.data_server = server[1].lower()
        elif refused := REFUSED.search(line):
            self.refusal = refused[1]

    @property
    def answered(self) -> float | None:
        """Return when it had copied, on the monotonic clock; None if that was not heard."""
        return self._at[-1] if len(self._at) > 1 else None

    @property
    def between(self) -> float | None:
        """Return for how many seconds it copied; None if that was not heard."""
        return self._at[-1] - self._at[-2] if len(self._at) > 1 else None


def stamp_of(line: str) -> float:
    """Return when XRootD's client logged a line, in seconds since 1970; now if it does not say."""
    match = STAMP.match(line)
    with suppress(ValueError):
        return datetime.strptime(match[1] if match else "", STAMP_FORMAT).timestamp()
    return time.time()


AMOUNT = r"[0-9]{1,12}(?:\.[0-9]{1,6})?"
PROGRESS = re.compile(rf"\[({AMOUNT})([kMGTP]?)B/({AMOUNT}[kMGTP]?)B\]\[\s*[0-9]+%\]")
MULTIPLES = {letter: 1024**power for power, letter in enumerate(("", "k", "M", "G", "T", "P"))}
ERROR = re.compile(r"\[(?:ERROR|FATAL)\]\s*(.*)")
# Alone in its line: warnings name versions, too.
VERSION = re.compile(
    r"^[^\S\n]*v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})(?:-\S+)?\s*$", re.MULTILINE
)
# Before, it asks the destination for one stream more than it was told.
EXACT_STREAMS = (5, 6, 7)


class Xrootd:
    """xrdcp --tpc only between two servers."""

    def __init__(self) -> None:
        self.files = XrootdFiles()
        self._version: tuple[int, ...] = ()

    def move(self, order: Order, watch: Watch) -> Receipt:
        more = self._streams(order)
        watch.seen = Seen(streams_used=1 if order.streams == 1 else None, scitag=order.scitag)
        log = XrootdLog()

        def read(line: str) -> int | None:
            log.read(line)
            watch.seen.data_server = log.data_server
            return moved_bytes(line, order.bytes)

        command = Command(arguments(order, more), LOGGED, on_terminal=True)
        ended = copy(self.files, command, order, watch, read=read, failure=failed)
        watch.seen.transfer_seconds = log.between
        if log.answered is None:
            return Receipt(
                order.bytes,
                ended.seconds,
                "xrdcp reported success, at most 2.5 s after the copy ended",
            )
        return Receipt(order.bytes, log.answered - ended.began, "xrdcp succeeded")

    def _streams(self, order: Order) -> tuple[str, ...]:
        """Return what makes the destination fetch by so many streams."""
        if order.streams == 1:
            return ()
        if not self._version:
            command = Command(("xrdcp", "--version"), VARIABLES)
            self._version = version_of(tool.ask(command, order.destination, order).text)
        return ("--streams", str(order.streams - (self._version < EXACT_STREAMS)))


def failed(order: Order, ended: Ended) -> MoverError:
    """Return what its words say, and of which end if they name its file."""
    own = LOG_LINE.sub("", ended.text)
    match = ERROR.search(own)
    text = match[1] if match else own
    return judge(text, order).error(f"xrdcp: {ended.complaint(text)}")


def arguments(order: Order, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    overwrite = ("--force",) if order.overwrite else ()
    flow = f"?scitag.flow={order.scitag}" if order.scitag else ""
    ends = (root_url(end) + flow for end in (order.source, order.destination))
    return ("xrdcp", "--tpc", "only", *overwrite, *more, *ends)


def version_of(text: str) -> tuple[int, ...]:
    """Return the version of xrdcp, as it says it; that of the newest ones if it does not."""
    match = VERSION.search(text)
    return tuple(map(int, match.groups())) if match else EXACT_STREAMS


def moved_bytes(line: str, whole: int) -> int | None:
    """Return how many bytes had moved, of a line that says it: three or four digits of them.

    Equal amounts are the whole file, which the digits alone would miss by a few bytes.
    """
    match = PROGRESS.search(line)
    if match is None:
        return None
    moved = round(float(match[1]) * MULTIPLES[match[2]])
    return whole if match[1] + match[2] == match[3] else min(moved, whole)
