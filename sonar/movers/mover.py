"""What a mover is: one verb, and the files that it works on."""

from typing import Protocol, runtime_checkable

from sonar.movers.base import End, FileInfo, Order, Receipt, Service
from sonar.movers.watch import Watch


class Files(Protocol):
    """The files at one end, as the steps before and after a transfer need them.

    Every method raises MoverError with ``where`` of the end it was given.
    """

    def stat(self, end: End, order: Order) -> FileInfo | None:
        """Return how long the file is, or None if there is none; nobody reads it for that."""

    def checksum(self, end: End, order: Order, seconds: float) -> str:
        """Return the file's adler32, eight hex digits.

        The server may have to read the whole file and has these ``seconds`` for it. Raises Late
        if it does not answer by then, NotReady if it says to come back, and NoChecksum for an
        answer without an adler32.
        """

    def put(self, order: Order, watch: Watch) -> None:
        """Make the source file of ``order.bytes`` bytes appear, whole or not at all.

        Until it is whole it is at ``aside(order)``; an error tells in ``left_aside`` if it
        may have stayed there.
        """

    def delete(self, end: End, order: Order) -> None:
        """Delete the file; that it is not there is fine."""


@runtime_checkable
class TellsOfArrival(Protocol):
    """Files of servers some of which tell the checksum of one as they describe it."""

    def arrived(self, end: End, order: Order) -> FileInfo | None:
        """Return what ``stat`` does, with the checksum if the server knows it anyway."""


@runtime_checkable
class AsksService(Protocol):
    """A mover that asks a service for its transfers: they go on without it."""

    def introduce(self, service: Service, ca_bundle: str) -> None:
        """Raise MoverError if the service does not take what it knows us by, or does not answer."""

    def withdraw(self, order: Order, remote_id: str = "") -> str:
        """Cancel what ``order.service`` was asked to do for this destination file.

        Return the service's id of a job that may write the file although it is cancelled; empty if
        there is none. With a ``remote_id`` it is that job: one that was cancelled before is not
        found by the name of its file. Raises MoverError.
        """


class Mover(Protocol):
    """One protocol: the verb, and the files it works on; `sonar.movers.catalogue` describes it."""

    @property
    def files(self) -> Files:
        """Return what looks at, puts and deletes the files this mover moves."""

    def move(self, order: Order, watch: Watch) -> Receipt:
        """Make one transfer happen and wait for its verdict, or raise MoverError."""
