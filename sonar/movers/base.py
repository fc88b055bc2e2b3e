"""What a mover is given and what it gives back: a value in, a value out, and one way to fail.

    MoverError            where: source | destination | transfer | control; permanent or not
    ├── Late              asked, and no answer came in time
    ├── NotReady          the server says that it will know later
    ├── NoChecksum        the server answered, with no checksum that can be read
    └── Stopped           the caller asked for the end; says nothing about the link

``where`` names who has to look at it: the source endpoint, the destination endpoint, the
way between them once both had agreed to the transfer, or Sonar itself (``control``).
``permanent`` means that trying again without a change will fail again (no such file, no
right), not that the endpoint is lost.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sonar.notation.data_hosts import DataHost
from sonar.notation.units import FASTEST, LONGEST_SECONDS


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
        """Why a half-uploaded source file may be left there; None if nothing is left."""
        self.credential_trouble = ""
        """Trouble of the credential for the service, for operators: says nothing about a
        link. Empty if that is not why."""
        self.refused_server = ""
        """Host and port to which a redirect led that was not followed, for operators."""
        self.kind = self.phase = ""
        """The kind of failure, and the part of the transfer (``failures.py``); empty
        if no text was read for it."""
        self.status = 0
        """With which status of HTTP a server refused; 0 if it is not for that."""
        self.is_unsettled = False
        """Whether the destination file may still be written, although the test was given up."""


class Late(MoverError):
    """A server took the question and did not answer in time."""


class NotReady(MoverError):
    """A server that is at work on the answer, or too busy for the question just now."""


class NoChecksum(MoverError):
    """A server answered without an adler32 that can be read; the message quotes its answer."""


class Stopped(MoverError):
    """The caller asked for the end (a worker that shuts down, Ctrl-C)."""

    def __init__(self) -> None:
        super().__init__(Where.CONTROL, "interrupted before completion")


BLAME_SECONDS = 10.0
"""To find out whose fault it is that a transfer got no answer."""


@dataclass(frozen=True)
class Limits:
    """How long each step may take, in seconds."""

    connect: float = 10.0
    answer: float = 30.0
    """A plain request, or the first line of an answer."""
    stall: float = 60.0
    """Without one more byte moved, where the mover can see bytes; once all have moved, without a
    word from the server, which may verify them for as long as ``total`` allows."""
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
"""Time for one DELETE after a stop, as the caller does not wait for long."""
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
    """Sent only to its own host, and to ``data_hosts`` where it goes along."""
    lent: str = field(default="", repr=False)
    """Delegated token with which the other end reaches this file; empty for none."""
    lent_until: float | None = None
    """When that expires, in seconds since 1970; None if it is not known."""
    proxy: str = field(default="", repr=False)
    """Path of an X.509 proxy certificate with its key, for its own host only; empty
    for none."""
    data_hosts: tuple[DataHost, ...] = ()
    """Where its server may lead a request on."""
    token_goes_along: bool = False
    """Whether those are shown the token, where its server leads there."""


@dataclass(frozen=True)
class Service:
    """Who moves files for whoever asks, with an address and a queue of its own."""

    url: str
    credential: str = ""
    """The name of what it knows us by: what is asked in one name is not seen in another."""
    token: Callable[[], str] = field(default=lambda: "", repr=False)
    """Reads that credential again each time, as a job may wait for longer than a token lives.

    It is sent only to the service. Raises MoverError.
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
    """The active end: for ``pull`` the destination, for ``push`` the source."""
    overwrite: bool = False
    ca_bundle: str = ""
    """Path of the CA certificates to trust; empty for the system's."""
    job: str = ""
    """Label that servers log with the copy, so that their owners find it."""
    service: Service | None = None
    """The service that moves the file, for movers that use one."""
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
    """The answer of the server, in few words."""

    def __post_init__(self) -> None:
        """Raise MoverError for a time that cannot be: another's clock may tell any."""
        if not self.bytes / FASTEST <= self.seconds <= LONGEST_SECONDS:
            reported = f"{self.bytes} bytes in {self.seconds:.3g} s"
            raise MoverError(Where.CONTROL, f"the reported time is impossible: {reported}")


@dataclass(frozen=True)
class FileInfo:
    """A file as its server describes it without looking inside."""

    bytes: int
    version: str = ""
    """A value that changes with the content, if the server reports one."""
    adler32: str = ""
    """Eight hex digits, if it was requested and the server reports it with the length."""
