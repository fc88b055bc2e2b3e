"""The content of test files: incompressible, the same for the same size, checksum known."""

import base64
import random
import re
import threading
import zlib
from functools import lru_cache

from sonar.movers.base import End, NoChecksum
from sonar.movers.messages import one_line

CHUNK_BYTES = 1 << 20


class TestFile:
    """A test file of a given size as something to read from; nothing is stored.

    ``requests`` takes its length from ``len`` and rewinds it for a redirect.
    """

    __test__ = False  # not a test case, whatever its name says

    def __init__(self, size_bytes: int) -> None:
        self.len = size_bytes
        self._rewind()

    def _rewind(self) -> None:
        self._random = random.Random(self.len)  # noqa: S311 - content, not a secret
        self._left_bytes = self.len
        self._buffer = b""

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes (one chunk at most), and b"" at the end."""
        if not self._buffer:
            self._buffer = self._random.randbytes(min(CHUNK_BYTES, self._left_bytes))
            self._left_bytes -= len(self._buffer)
        size = len(self._buffer) if size < 0 else size
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def tell(self) -> int:
        return self.len - self._left_bytes - len(self._buffer)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go back to the beginning, the only place a redirected upload goes to."""
        if (offset, whence) != (0, 0):
            raise OSError("a test file can only be read from its beginning")
        self._rewind()
        return 0


_one_at_a_time = threading.Lock()


def adler32(size_bytes: int) -> str:
    """Return the checksum of the test file of this size, as eight hex digits.

    Costs one pass over the content (about 4 s for 2 GB), once per size and process: threads
    that want it meanwhile wait for it instead of working it out too.
    """
    with _one_at_a_time:
        return _adler32(size_bytes)


@lru_cache(maxsize=32)
def _adler32(size_bytes: int) -> str:
    content, checksum = TestFile(size_bytes), 1
    while chunk := content.read():
        checksum = zlib.adler32(chunk, checksum)
    return f"{checksum:08x}"


NAMED = re.compile(
    r"""\badler(?:32)?\s*[=:\s]\s*["']?(?:0x)?([0-9a-f]{1,8})["']?(?![\w=+/])""", re.IGNORECASE
)
PACKED = re.compile(r"\badler(?:32)?\s*=\s*:([A-Za-z0-9+/]{6}==):", re.IGNORECASE)
"""As Repr-Digest has it (RFC 9530): four bytes in base64."""


def read_adler32(answer: str, end: End) -> str:
    """Return the adler32 that a server named, as eight hex digits; raise NoChecksum for none.

    Servers write ``adler32=``, ``Adler32:`` or ``adler32`` and a space before it, quote it, and
    omit leading zeros.
    """
    if match := NAMED.search(answer):
        return match[1].lower().zfill(8)
    if match := PACKED.search(answer):
        return base64.b64decode(match[1]).hex()
    said = one_line(answer, end.token, end.lent)
    if "adler" in said.lower():
        raise NoChecksum(end.where, f"the server's adler32 checksum cannot be read: {said}")
    raise NoChecksum(
        end.where,
        f"the server returned no adler32 checksum{f' but answered: {said}' if said else ''}",
    )
