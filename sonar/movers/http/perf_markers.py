"""The body of an HTTP-TPC answer: performance markers, then one line that is the verdict.

    Perf Marker                          |  success: Created
    Stripe Index: 0                      |
    Stripe Bytes Transferred: 1654931403 |  failure: Remote side failed with status code 404
    RemoteConnections: tcp:[::1]:1094    |
    End                                  |

The HTTP status says nothing (201 and 202 come before the first byte moves). A short transfer
has no markers. With several streams XRootD 5.5.3 reports the full size from the beginning.
"""

import re
from dataclasses import dataclass, field

from sonar.notation import addresses
from sonar.notation.units import MOST_BYTES

MAX_LINE_BYTES = 64 * 1024
MAX_STRIPES = 1024
MAX_CONNECTIONS = 64

VERDICT = re.compile(
    rb"(success|failure|failed|aborted)\b[ \t]*:?[ \t]*(.*)", re.IGNORECASE | re.DOTALL
)
QUEUED = re.compile(rb"\bqueued\b|\bnew\b", re.IGNORECASE)
"""How dCache says that a transfer has not begun: `State: Queued on pool`, `Stripe Status: NEW`."""
NUMBER = re.compile(rb"[0-9]{1,18}")
ADDRESS = re.compile(r"\b\w+:\[?(?P<host>[0-9A-Fa-f:.]+)\]?:(?P<port>\d+)")


@dataclass(frozen=True)
class Verdict:
    """How the transfer ended, in the server's words."""

    success: bool
    text: str


@dataclass
class PerfMarkers:
    """Reads a body in pieces of any size, in bounded memory; nothing in it can raise."""

    moved_bytes: int = 0
    """Moved so far: the stripes of the last whole marker and those before it, summed."""
    is_queued: bool = False
    """Whether the last marker says that the transfer waits for its turn."""
    remote_connections: tuple[str, ...] = ()
    is_empty: bool = True
    """Whether there was nothing but blank lines."""
    _line: bytearray = field(default_factory=bytearray)
    _cut: bool = False
    _stripes: dict[int, int] = field(default_factory=dict)
    _marker: dict[bytes, bytes] | None = None
    _verdict: Verdict | None = None

    def feed(self, chunk: bytes) -> int:
        """Take the next piece; return how many markers it completed."""
        *whole, rest = chunk.split(b"\n")
        markers = 0
        for piece in whole:
            self._extend(piece)
            markers += self._end_line()
        self._extend(rest)
        return markers

    def finish(self) -> Verdict | None:
        """Return the verdict of a body that is at its end, None if it has none."""
        self._end_line()
        return self._verdict

    def _extend(self, piece: bytes) -> None:
        room = MAX_LINE_BYTES - len(self._line)
        self._cut = self._cut or len(piece) > room
        self._line += piece[:room]

    def _end_line(self) -> bool:
        line, cut = bytes(self._line).strip(), self._cut
        self._line.clear()
        self._cut = False
        self.is_empty = self.is_empty and not line
        return bool(line) and self._read(line, cut)

    def _read(self, line: bytes, cut: bool) -> bool:
        """Take one line; return whether it completed a marker."""
        if verdict := VERDICT.fullmatch(line):
            self._judge(verdict[1].lower() == b"success" and not cut, verdict[2])
            return False
        if self._verdict and self._verdict.success:
            self._verdict = None  # something follows: that was not the last line
        if line == b"Perf Marker":
            self._marker = {}
        elif self._marker is not None and line == b"End":
            return self._complete(self._marker)
        elif self._marker is not None and not cut:
            self._note(line)
        return False

    def _judge(self, success: bool, text: bytes) -> None:
        """Note a verdict; a failure stands, whatever follows."""
        if self._verdict is None or self._verdict.success:
            self._verdict = Verdict(success, text.decode("utf-8", "replace"))

    def _note(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if self._marker is not None and name in FIELDS:
            self._marker[name] = value.strip()

    def _complete(self, marker: dict[bytes, bytes]) -> bool:
        self._marker = None
        moved = NUMBER.fullmatch(marker.get(b"Stripe Bytes Transferred", b""))
        says_so = any(QUEUED.search(marker.get(field, b"")) for field in STATES)
        self.is_queued = says_so and (moved is None or int(moved[0]) == 0)
        if not moved:
            return self.is_queued
        stripe = NUMBER.fullmatch(marker.get(b"Stripe Index", b"0"))
        index = int(stripe[0]) if stripe else 0
        if index in self._stripes or len(self._stripes) < MAX_STRIPES:
            self._stripes[index] = int(moved[0])
        self.moved_bytes = min(sum(self._stripes.values()), MOST_BYTES)
        self._connect(marker.get(b"RemoteConnections", b""))
        return True

    def _connect(self, value: bytes) -> None:
        named = value.decode("ascii", "replace").split(",")
        connections = dict.fromkeys(self.remote_connections)
        connections |= dict.fromkeys(name.strip() for name in named if name.strip())
        self.remote_connections = tuple(connections)[:MAX_CONNECTIONS]


STATES = (b"State", b"Stripe Status")
FIELDS = frozenset({b"Stripe Index", b"Stripe Bytes Transferred", b"RemoteConnections", *STATES})


def data_server(connections: tuple[str, ...]) -> str:
    """Return host and port at the other end if all connections lead to one; empty otherwise."""
    servers = {
        f"{addresses.name_of(match['host'])}:{match['port']}"
        for match in map(ADDRESS.fullmatch, connections)
        if match
    }
    return servers.pop() if len(servers) == 1 else ""


def ip_version(connections: tuple[str, ...]) -> int | None:
    """Return 4 or 6 as the connections agree on it; None if they do not, or say nothing."""
    versions = {
        addresses.ip_version(match["host"])
        for match in map(ADDRESS.fullmatch, connections)
        if match
    }
    return versions.pop() if len(versions) == 1 else None
