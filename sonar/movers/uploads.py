"""Source files on their way to a server: a stop ends them, and a failure leaves no part behind."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sonar.movers.base import STOP_SECONDS, End, MoverError, Order, aside
from sonar.movers.content import TestFile
from sonar.movers.file_address import place_of
from sonar.movers.mover import Files
from sonar.movers.tcp_info import TcpConnection
from sonar.movers.watch import Upload, Watch, within


class WatchedFile(TestFile):
    """A source file on its way: read no further once the caller has asked for the end.

    Whoever sends it tells ``sent_by`` of its connection: for the record of the test.
    """

    def __init__(self, size_bytes: int, watch: Watch) -> None:
        super().__init__(size_bytes)
        self._watch = watch
        self._began = 0.0
        self._connection: TcpConnection | None = None

    def read(self, size: int = -1) -> bytes:
        self._watch.check()
        if not self.tell():
            self._began = time.monotonic()
        return super().read(size)

    def sent_by(self, connection: TcpConnection | None) -> None:
        """Take down that it goes out now, and how the connection is doing, if that is known."""
        if self.tell():
            self._connection = connection or self._connection
            self._watch.upload = Upload(time.monotonic() - self._began, self._connection)


@contextmanager
def put_aside(delete: Callable[[End, Order], None], order: Order, watch: Watch) -> Iterator[End]:
    """Give where the source file is uploaded to; whatever fails, it is deleted there.

    The error that is told is the first one; its ``left_aside`` says why a part may be left.
    """
    part = aside(order)
    try:
        yield part
    except BaseException as error:
        left = _discard(delete, part, order, watch)
        if isinstance(error, MoverError):
            error.left_aside = left
        raise


NO_RENAME = re.compile(r"\[3013\]|not (supported|implemented)|unsupported", re.IGNORECASE)
"""Answers of servers whose storage cannot rename (object stores, mostly) to a rename."""


def put_in_place(
    files: Files,
    upload: Callable[[End, Order, Watch], None],
    order: Order,
    watch: Watch,
) -> None:
    """Upload the source file under its own name, for storage that cannot rename.

    ``upload`` sends it to the place that it is given. Whatever fails, the file is deleted there,
    and a file of another length is taken for none by all workers. One that another worker has
    put there meanwhile is left alone: tests may be reading it.
    """
    end = order.source
    info = files.stat(end, order)
    if info is not None and info.bytes == order.bytes:
        return
    watch.uploaded_in_place = True
    try:
        upload(end, order, watch)
        info = files.stat(end, order)
    except BaseException:
        _discard(files.delete, end, order, watch)
        raise
    if info is None or info.bytes != order.bytes:
        _discard(files.delete, end, order, watch)
        has = f"has {info.bytes} bytes" if info else "is missing"
        message = f"{place_of(end)}: {order.bytes} bytes were uploaded, but the file {has}"
        raise MoverError(end.where, message)


def _discard(
    delete: Callable[[End, Order], None], part: End, order: Order, watch: Watch
) -> MoverError | None:
    """Delete an unfinished upload; return why it is, or may be, still there."""
    stopped = watch.stopped
    seconds = STOP_SECONDS if stopped else order.limits.cleaning
    try:
        with within(Watch() if stopped else watch, seconds):
            delete(part, order)
    except MoverError as error:
        return error
    if not stopped:
        return None
    message = f"{place_of(part)}: deleted, but the server may still write the file"
    return MoverError(part.where, message)
