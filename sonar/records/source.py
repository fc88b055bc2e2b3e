"""The text of a file of results, plain or gzip, in blocks of whole lines."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from typing import IO, cast

GZIP_MAGIC = b"\x1f\x8b"
BLOCK = 500_000  # bytes
_PIECE = 65_536
_MARK = codecs.BOM_UTF8


class Source:
    """Gives lines as text, and in their place the rest of a block where all of it is unread."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._stream = unpacked(file)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._waiting = b""
        self._block = b""
        self._error: Exception | None = None
        self._is_first = True
        self._has_begun = False
        self.is_within_block = False
        """Whether lines of a block are still to come from `lines`."""

    def block(self) -> bytes:
        """Return whole lines that were not read, at first one; nothing at the end.

        They are read once `take` is called, or by `lines`. Raises what reading raised, after all
        that comes before.
        """
        if not self._block:
            self._fill()
            # The first line names the columns: others are read by what it says.
            begun, self._has_begun = self._has_begun, True
            end = 0 if begun else self._waiting.find(b"\n") + 1
            # Without the end of a line, what is left is longer than any.
            end = end or self._waiting.rfind(b"\n") + 1 or self._waiting.rfind(b"\r", 0, -1) + 1
            end = end or len(self._waiting)
            self._block, self._waiting = self._waiting[:end], self._waiting[end:]
        return self._block

    def take(self) -> None:
        """Count the block as read."""
        self._block = b""

    def lines(self) -> Iterator[str]:
        """Give line by line as text, each with its end; a block at a time counts as read."""
        while data := self.block():
            self.take()
            text = io.StringIO(self._decoder.decode(data), newline="")
            size = text.seek(0, io.SEEK_END)
            text.seek(0)
            for line in text:
                self.is_within_block = text.tell() < size
                yield line
        self._decoder.decode(b"", final=True)

    def _fill(self) -> None:
        while len(self._waiting) < BLOCK and not self._error:
            try:
                piece = self._stream.read(_PIECE)
            except (OSError, EOFError, zlib.error) as error:
                self._error = error
                # A line that does not end is not one.
                self._waiting = self._waiting[: self._waiting.rfind(b"\n") + 1]
                break
            if not piece:
                break
            self._waiting += piece
            if self._is_first and len(self._waiting) >= len(_MARK):
                self._waiting = self._waiting.removeprefix(_MARK)
                self._is_first = False
        if self._error and not self._waiting:
            raise self._error


def unpacked(file: io.BufferedReader) -> IO[bytes]:
    """Return what a file holds, unpacked if it begins as gzip does, whatever its name."""
    if file.peek(2)[:2] != GZIP_MAGIC:
        return file
    return cast(IO[bytes], gzip.GzipFile(fileobj=file, mode="rb"))
