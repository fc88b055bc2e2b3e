"""What a mover is given and what it gives back: a value in, a value out, and one way to fail.

    MoverError            where: source | destination | transfer | control; permanent or not
    ├── Late              asked, and no answer came in time
    ├── NotReady          the server says that it will know later
    └── Stopped           the caller asked for the end; says nothing about the link

``where`` names who has to look at it: the source endpoint, the destination endpoint, the
way between them once both had agreed to the transfer, or Sonar itself (``control``).
``permanent`` means that trying again without a change will fail again (no such file, no
right), not that the endpoint is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum


class Where(StrEnum):
    SOURCE = "source"
    DESTINATION = "destination"
    TRANSFER = "transfer"
    CONTROL = "control"


class MoverError(Exception):
    """A transfer, or a step around it, that did not succeed.

    ``str(error)`` is one line for people and never holds a credential.
    """

    def __init__(self, where: Where, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.where = where
        self.permanent = permanent
        self.left_aside: MoverError | None = None
        """Why a half-uploaded source file is, or may be, left behind; None if there is none."""
        self.credential_trouble = ""
        """What is wrong with what the service knows us by, for operators: says nothing about a
        link. Empty if that is not why."""
        self.is_unsettled = False
        """Whether somebody may still write the destination file, although we have given up."""


class Late(MoverError):
    """A server took the question and did not answer in time."""


class NotReady(MoverError):
    """A server that is at work on the answer, or too busy for the question just now."""


class Stopped(MoverError):
    """The caller asked for the end (a worker that shuts down, Ctrl-C)."""

    def __init__(self) -> None:
        super().__init__(Where.CONTROL, "stopped before it ended")


BLAME_SECONDS = 10.0
"""To find out whose fault it is that a transfer got no answer."""


@dataclass(frozen=True)
class Limits:
    """How long each step may take, in seconds."""

    connect: float = 10.0
    answer: float = 30.0
    """A plain request, or the first line of an answer."""
    stall: float = 60.0
    """Without one more byte moved, where the mover can see bytes."""
    total: float = 3600.0
    """The move itself, from the request to the verdict; as much again to prepare it."""
    checksum: float = 300.0
    """For the checksums of what arrived: a server that is at work may be asked again."""
    cleaning: float = 30.0
    """To delete the destination file, and after a failure to see that it stays away."""

    @property
    def longest(self) -> float:
        """Return within how many seconds a measurement ends, whatever its servers do."""
        look = self.connect + self.answer
        return 2 * self.total + BLAME_SECONDS + look + self.checksum + self.cleaning


STOP_SECONDS = 3.0
"""What a stop leaves for one DELETE: whoever stops us does not wait for long."""
CLEANING_LIMITS = Limits(connect=5, answer=10, stall=10, total=15)
"""For what deletes files later: who does not answer soon is asked again after a pause."""


@dataclass(frozen=True)
class End:
    """One end of a transfer: a file below the base URL of an endpoint.

    Nothing outside ``base_url`` is ever written, made or deleted.
    """

    where: Where
    url: str
    base_url: str
    token: str = field(default="", repr=False)
    """Sent to its own host, and to nobody else."""
    lent: str = field(default="", repr=False)
    """What the other end of a third-party copy is given to reach this file; empty for nothing."""
    proxy: str = field(default="", repr=False)
    """Path of an X.509 proxy certificate with its key, for its own host and nobody else; empty
    for none."""


@dataclass(frozen=True)
class Service:
    """Who moves files for whoever asks, with an address and a queue of its own."""

    url: str
    credential: str = ""
    """The name of what it knows us by: what is asked in one name is not seen in another."""
    token: Callable[[], str] = field(default=lambda: "", repr=False)
    """Reads that credential: each time anew, as a job may wait for longer than a token lives.

    It is sent to the service and to nobody else. Raises MoverError.
    """


@dataclass(frozen=True)
class Order:
    """One transfer to make: everything a mover needs to know, and nothing else."""

    source: End
    destination: End
    bytes: int
    adler32: str = ""
    """Of the source file, eight hex digits; empty where it is not known."""
    streams: int = 1
    tcp_buffer_bytes: int | None = None
    scitag: int | None = None
    """The flow label that the servers are asked to mark its packets with."""
    mode: str = "pull"
    """Who does the work: ``pull`` the destination, ``push`` the source."""
    overwrite: bool = False
    ca_bundle: str = ""
    """Path of the CA certificates to trust; empty for the system's."""
    known_hosts: frozenset[str] = frozenset()
    """Names of hosts, in lower case, to which a server may redirect what only reads."""
    service: Service | None = None
    """Who is asked to move it, by movers that ask a service."""
    limits: Limits = Limits()


def aside(order: Order) -> End:
    """Return where the source file is uploaded to before it is moved into its place."""
    return replace(order.source, url=part_of(order.source.url, order.destination.url))


def part_of(source: str, destination: str) -> str:
    """Name a half-uploaded source file, given the URLs or paths of both files of an order.

    Known from the order alone, so that the file can be deleted if its worker died meanwhile.
    """
    return f"{source}.{destination.rpartition('/')[2]}.part"


@dataclass(frozen=True)
class Receipt:
    """That one transfer succeeded; ``Seen`` has what else was seen of it."""

    bytes: int
    seconds: float
    """Of which its rate is made: by the clock that the mover's description names."""
    verdict: str = "success"
    """What the server answered, in few words."""


@dataclass(frozen=True)
class FileInfo:
    """A file as its server describes it without looking inside."""

    bytes: int
    version: str = ""
    """What changes with the content, where the server tells such a thing."""


@dataclass
class Seen:
    """What was seen of a move while it ran: it stays, however the move ends.

    Each is None, or empty, where nobody can tell.
    """

    samples: list[Sample] = field(default_factory=list)
    moved_bytes: int | None = None
    queue_seconds: float | None = None
    """Before it began, in the queue of who was asked for it: not part of the receipt's time."""
    first_byte_seconds: float | None = None
    transfer_seconds: float | None = None
    """While bytes moved, as a tool or a service told it: a part of the receipt's time."""
    checksum_seconds: float | None = None
    """To verify what arrived; not part of the receipt's time."""
    streams_used: int | None = None
    tcp_buffer_used_bytes: int | None = None
    ip_version: int | None = None
    remote_connections: tuple[str, ...] = ()
    remote_id: str = ""
    """What a service calls it, like the id of a job."""
    log_url: str = ""
    """Where a service shows its log of it."""
    scitag: int | None = None
    """The flow label that was sent along: experiment and activity."""


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


class Files(Protocol):
    """The files at one end, as the steps before and after a transfer need them.

    Every method raises MoverError with ``where`` of the end it was given.
    """

    def stat(self, end: End, order: Order) -> FileInfo | None:
        """Return how long the file is, or None if there is none; nobody reads it for that."""

    def checksum(self, end: End, order: Order, seconds: float) -> str:
        """Return the file's adler32, eight hex digits; empty if the server offers none.

        The server may have to read the whole file: it may take so many ``seconds``. Raises
        Late if it does not answer by then, NotReady if it says to come back.
        """

    def put(self, order: Order, watch: Watch) -> None:
        """Make the source file of ``order.bytes`` bytes appear, whole or not at all.

        Until it is whole it is at ``aside(order)``; an error tells in ``left_aside`` if it
        may have stayed there.
        """

    def delete(self, end: End, order: Order) -> None:
        """Delete the file; that it is not there is fine."""


@runtime_checkable
class AsksService(Protocol):
    """A mover that asks a service for its transfers: they go on without it."""

    def introduce(self, service: Service, ca_bundle: str) -> None:
        """Raise MoverError if the service does not take what it knows us by, or does not answer."""

    def withdraw(self, order: Order) -> None:
        """Cancel whatever was asked of ``order.service`` for this destination file.

        That there is nothing is fine. Raises MoverError.
        """


class Mover(Protocol):
    """One protocol: the verb, and the files it works on; `sonar.mover_catalogue` describes it."""

    @property
    def files(self) -> Files:
        """Return what looks at, puts and deletes the files this mover moves."""

    def move(self, order: Order, watch: Watch) -> Receipt:
        """Make one transfer happen and wait for its verdict, or raise MoverError."""
