"""What is seen of a transfer while it runs, and how whoever asked for it ends it."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, make_dataclass
from typing import Any

from sonar.movers.base import MoverError, Stopped, Where
from sonar.movers.tcp_info import TcpConnection
from sonar.notation.result_columns import REPORTED_BY_MOVERS, dataclass_fields


@dataclass(frozen=True)
class Sample:
    """How far a transfer was, some time after it began."""

    seconds: float
    bytes: int


@dataclass(frozen=True)
class Upload:
    """That this worker sent the source file to its server itself, before the move, whole or not.

    It says nothing of the way between the two ends: another machine sends, and to the source.
    """

    seconds: float
    """From the first byte that was read of it to the server's answer."""
    connection: TcpConnection | None
    """None where the kernel does not tell, or a program was done before it was looked at."""

    def numbers(self) -> dict[str, float]:
        """Return all that is known of it by name; what is not known is left out."""
        numbers = asdict(self.connection) if self.connection else {}
        return {"seconds": self.seconds} | {
            name: number for name, number in numbers.items() if number is not None
        }


_Reported: Any = make_dataclass("_Reported", dataclass_fields(REPORTED_BY_MOVERS), slots=True)


@dataclass(slots=True)
class Seen(_Reported):  # type: ignore[misc]  # of the table of columns
    """What was seen of a move while it ran: it stays, however the move ends.

    Beside ``samples`` it has those columns of a result that movers report
    (sonar.notation.result_columns): each is empty where nobody can tell. No other can be set.
    """

    samples: list[Sample] = field(default_factory=list)


MAX_SAMPLES = 10_000


class Watch:
    """What the caller holds while a transfer runs: it is told of progress and may stop it.

    ``stop`` may be called from any thread; the mover registers with ``on_stop`` what ends
    its wait (closing a socket, say).
    """

    def __init__(self, progress: Callable[[int], None] | None = None) -> None:
        self._progress = progress
        self._stopped = threading.Event()
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self.seen = Seen()
        self.upload: Upload | None = None
        """None where the source file was there already, or not a byte of it was sent."""
        self.uploaded_to = ""
        """Host and port of the server to which the source redirected its file, and that has it."""
        self.uploaded_in_place = False
        """Whether the source file was uploaded under its own name, as its storage cannot rename."""

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def report(self, bytes_moved: int, seconds: float) -> None:
        """Tell the caller how many bytes have arrived this long after the move began."""
        self.seen.moved_bytes = bytes_moved
        if len(self.seen.samples) < MAX_SAMPLES:
            self.seen.samples.append(Sample(seconds, bytes_moved))
        if self._progress:
            self._progress(bytes_moved)

    def pause(self, seconds: float) -> None:
        """Do nothing for a while; raise Stopped as soon as the caller asks for the end."""
        self._stopped.wait(max(seconds, 0.0))
        self.check()

    def stop(self) -> None:
        with self._lock:
            self._stopped.set()
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    def check(self) -> None:
        """Raise Stopped once the caller has asked for the end."""
        if self.stopped:
            raise Stopped

    @contextmanager
    def on_stop(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call back, once and at once, when the caller asks for the end."""
        with self._lock:
            self._callbacks.append(callback)
            late = self.stopped
        if late:
            callback()
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)


class Span:
    """So many seconds from now, for one step."""

    def __init__(self, watch: Watch, seconds: float) -> None:
        self.watch = watch
        self.seconds = seconds
        self.end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Return the seconds that are left, 0 at least."""
        return max(self.end - time.monotonic(), 0.0)


_CURRENT: ContextVar[Span | None] = ContextVar("span", default=None)


@contextmanager
def within(watch: Watch, seconds: float) -> Iterator[Span]:
    """Let all exchanges of this step end after so many seconds, or when the watch is stopped.

    One inside another stands alone, as what must be said after the outer one is over.
    """
    span = Span(watch, seconds)
    mark = _CURRENT.set(span)
    try:
        yield span
    finally:
        _CURRENT.reset(mark)


def current() -> Span | None:
    """Return the step that this thread is at; None outside of a measurement."""
    return _CURRENT.get()


log = logging.getLogger(__name__)


class UnexpectedError(MoverError):
    """Something else than a MoverError was raised; nobody knows what is left of the work."""

    def __init__(self, error: Exception, where: Where) -> None:
        # Its own words are for operators: they may tell anything.
        name = type(error).__name__
        super().__init__(where, f"internal error in Sonar ({name}): see the worker log for details")
        self.is_unsettled = True


@contextmanager
def as_failures(
    work: str, watch: Watch | None = None, *, where: Where = Where.CONTROL
) -> Iterator[None]:
    """Raise whatever goes wrong as MoverError; what is none goes into the log with its traceback.

    ``work`` says there what was being done; the formatter of the log takes secrets out. What goes
    wrong after the watch was stopped is Stopped: it may have closed what was in use.
    """
    try:
        yield
    except MoverError:
        raise
    except Exception as error:
        is_stopped = watch is not None and watch.stopped
        failure = Stopped() if is_stopped else UnexpectedError(error, where)
        failure.left_aside = MoverError(Where.SOURCE, "a partly uploaded source file may remain")
        if not is_stopped:
            log.exception("%s: unexpected error, not a storage failure", work)
        raise failure from error
