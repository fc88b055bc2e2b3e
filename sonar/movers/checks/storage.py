"""The steps of a check with a small file: written, read, looked at, deleted, as tests do it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Protocol

from sonar.movers.base import (
    STOP_SECONDS,
    End,
    FileInfo,
    Late,
    Limits,
    MoverError,
    NoChecksum,
    NotReady,
    Order,
    aside,
)
from sonar.movers.checks.sequence import PlannedStep, sentence
from sonar.movers.content import adler32
from sonar.movers.mover import Files
from sonar.movers.watch import Watch, within
from sonar.notation.check_steps import CheckStep, StepState
from sonar.notation.units import format_bytes, format_seconds

FILE_BYTES = 100_000
"""Read back, and sent again after each redirect: less than 1 MB in all."""
LIMITS = Limits(connect=5, answer=15, stall=15, total=30, checksum=20, cleaning=15)


class CheckedFiles(Files, Protocol):
    """The files of a protocol whose directories can be made."""

    def make_directories(self, end: End, order: Order) -> None:
        """Make what is missing between the base and the file; MoverError without the base."""


class Storage:
    """The file of a check at its endpoint.

    ``end_of`` returns it with the credential of the endpoint, or raises MoverError; it is called
    once, when the first step needs it. ``remember`` is called before anything is written.
    """

    def __init__(
        self,
        files: CheckedFiles,
        end_of: Callable[[], End],
        ca_bundle: str,
        watch: Watch,
        remember: Callable[[], None] = lambda: None,
    ) -> None:
        self.files, self.watch, self.remember = files, watch, remember
        self._end_of, self._ca_bundle = end_of, ca_bundle
        self.data_servers: set[str] = set()
        """Host and port of servers that took or gave something in its place."""
        self.refused_servers: set[str] = set()
        """And of those to which it redirected, and that are not declared."""
        self.may_be_left = False
        """Whether the file may lie there."""

    @cached_property
    def end(self) -> End:
        return self._end_of()

    @cached_property
    def order(self) -> Order:
        return Order(
            self.end,
            self.end,
            bytes=FILE_BYTES,
            adler32=adler32(FILE_BYTES),
            ca_bundle=self._ca_bundle,
            limits=LIMITS,
        )

    @contextmanager
    def asking(self, seconds: float = LIMITS.total) -> Iterator[None]:
        """Let what is asked of the server end in time, and note where it would lead."""
        try:
            with within(self.watch, seconds):
                yield
        except MoverError as error:
            if error.refused_server:
                self.refused_servers.add(error.refused_server)
            raise

    def stat(self) -> FileInfo | None:
        with self.asking():
            return self.files.stat(self.end, self.order)

    def clean(self) -> bool:
        """Delete what may be left, if anything may; say whether nothing is."""
        if not self.may_be_left:
            return True
        stopped = self.watch.stopped
        watch, seconds = (Watch(), STOP_SECONDS) if stopped else (self.watch, LIMITS.cleaning)
        try:
            with within(watch, seconds):
                for place in (self.end, aside(self.order)):
                    self.files.delete(place, self.order)
        except MoverError:
            return False
        self.may_be_left = stopped
        return not stopped


def steps_of(storage: Storage) -> list[PlannedStep]:
    """Plan the steps that the files of any protocol can take."""
    return [
        PlannedStep("directory", lambda: directory_step(storage), ("port", "credential")),
        PlannedStep("write", lambda: write_step(storage), ("directory",)),
        PlannedStep("read", lambda: size_step(storage), ("write",)),
        PlannedStep("checksum", lambda: checksum_step(storage), ("write",)),
        PlannedStep("delete", lambda: delete_step(storage), ("write",)),
    ]


def directory_step(storage: Storage) -> CheckStep:
    """Make what is missing between the base and the file."""
    with storage.asking():
        storage.files.make_directories(storage.end, storage.order)
    return CheckStep(
        "directory", StepState.FINE, "The directory sonar/incoming below the base URL exists."
    )


def write_step(storage: Storage) -> CheckStep:
    """Upload the file as the source files of tests are."""
    storage.remember()
    storage.may_be_left, began = True, time.monotonic()
    with storage.asking():
        storage.files.put(storage.order, storage.watch)
    if storage.watch.uploaded_to:
        storage.data_servers.add(storage.watch.uploaded_to)
    took = format_seconds(time.monotonic() - began)
    how = "under a temporary name and renamed"
    if storage.watch.uploaded_in_place:
        how = "under its final name, as this storage refuses to rename files"
    seen = f"{format_bytes(FILE_BYTES)} uploaded {how}, in {took}."
    return CheckStep("write", StepState.FINE, seen)


SHORT = "Check the server's log: the stored file differs from the uploaded one."


def size_step(storage: Storage) -> CheckStep:
    """See how long the file is; nothing is read."""
    info = storage.stat()
    if info is None or info.bytes != FILE_BYTES:
        has = "is missing" if info is None else f"has {info.bytes} bytes"
        seen = f"The file {has}, but {FILE_BYTES} bytes were written."
        return CheckStep("read", StepState.FAILED, seen, SHORT)
    seen = f"The file size is right: {format_bytes(FILE_BYTES)}. The content is not read back."
    return CheckStep("read", StepState.FINE, seen)


OFFER_CHECKSUMS = (
    "Tests run, but files that arrive here are not verified. Make the server report adler32 "
    "checksums in hexadecimal digits (XRootD: xrootd.chksum adler32)."
)


def checksum_step(storage: Storage) -> CheckStep:
    """Compare the checksum that the server offers with that of what was written."""
    try:
        with storage.asking(LIMITS.checksum):
            offered = storage.files.checksum(storage.end, storage.order, LIMITS.checksum)
    except (Late, NotReady):
        seen = (
            f"The server returned no adler32 checksum for a file of {format_bytes(FILE_BYTES)} "
            f"within {LIMITS.checksum:g} s."
        )
        return CheckStep("checksum", StepState.WARNING, seen, OFFER_CHECKSUMS)
    except NoChecksum as error:
        return CheckStep("checksum", StepState.WARNING, sentence(str(error)), OFFER_CHECKSUMS)
    if offered != storage.order.adler32:
        seen = f"The server reports adler32 {offered}, but the file has {storage.order.adler32}."
        return CheckStep("checksum", StepState.FAILED, seen, SHORT)
    return CheckStep(
        "checksum", StepState.FINE, f"The adler32 checksum is that of the uploaded file: {offered}."
    )


def delete_step(storage: Storage) -> CheckStep:
    """Delete the file, and see that it is gone."""
    with storage.asking(LIMITS.cleaning):
        storage.files.delete(storage.end, storage.order)
    if storage.stat() is not None:
        seen = "The server reported the file as deleted, but still shows it."
        advice = (
            "Check the server's log for the reason: test files that are not deleted would fill its "
            "disks."
        )
        return CheckStep("delete", StepState.FAILED, seen, advice)
    storage.may_be_left = False
    return CheckStep("delete", StepState.FINE, "The file was deleted.")
