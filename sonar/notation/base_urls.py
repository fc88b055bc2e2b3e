"""Where base URLs lead: which are the same place or lie within each other, and which none may be.

Two URLs are one place if they differ only in how they are written: the case of the host, a port
that goes without saying, http or dav, slashes, percent-encoding, the notation of an address.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from sonar.notation.hosts import address_of, is_nobodys, meanings, name_of


class Protocol(NamedTuple):
    """What servers speak, its port where a URL says none, and whether all can read it."""

    name: str
    port: int
    is_in_clear: bool = False


# By the scheme of a base URL: two schemes may be two names of one protocol.
PROTOCOLS = {
    **dict.fromkeys(("http", "dav"), Protocol("http", 80, is_in_clear=True)),
    **dict.fromkeys(("https", "davs"), Protocol("https", 443)),
    **dict.fromkeys(("root", "xroot"), Protocol("root", 1094)),
    "gsiftp": Protocol("gsiftp", 2811),
    "ftp": Protocol("ftp", 21, is_in_clear=True),
    "iperf3": Protocol("iperf3", 5201, is_in_clear=True),
}
# What a URL without a port stands for.
PORTS = {scheme: protocol.port for scheme, protocol in PROTOCOLS.items()}
IN_CLEAR = tuple(scheme for scheme, protocol in PROTOCOLS.items() if protocol.is_in_clear)
# So often an escape may hide another one.
ROUNDS = 6

LETTERS_SENTENCE = (
    "A base URL must hold only characters that can be printed, also where it is percent-encoded: "
    "UTF-8 without control characters. None may change the direction of writing."
)
DOTS_SENTENCE = "The path of a base URL must not contain . or .., however they are written."
HOST_SENTENCE = (
    "A base URL must not have a link-local, unspecified, multicast or broadcast address, however "
    "it is written."
)


class Place(NamedTuple):
    """What a URL leads to, whatever it is called."""

    protocol: str
    host: str
    port: int
    path: tuple[str, ...]

    def overlaps(self, other: Place) -> bool:
        """Say whether one is the other, or lies below it."""
        shared = min(len(self.path), len(other.path))
        return self[:3] == other[:3] and self.path[:shared] == other.path[:shared]


def place_of(url: str) -> Place:
    """Return where a base URL leads; raise ValueError for one that has no host or port."""
    parts = urlsplit(url)
    protocol = PROTOCOLS.get(parts.scheme, Protocol(parts.scheme, 0))
    port = parts.port or protocol.port
    return Place(protocol.name, host_of(url), port, segments(parts.path))


def scheme_of(base_url: str) -> str:
    """Return the scheme of a base URL, as it is written."""
    return base_url.partition("://")[0]


def host_of(url: str) -> str:
    """Return the host as one name, an address in its one usual notation."""
    host = urlsplit(url).hostname or ""
    address = address_of(host)
    return name_of(str(meanings(address)[0]) if address else host)


def segments(path: str) -> tuple[str, ...]:
    return tuple(segment for segment in unquote(path).split("/") if segment)


def readings(text: str) -> Iterator[str]:
    """Yield a text as it is written, and as it reads each time that its escapes are decoded.

    A server in front of another may decode what that one decodes again. Raises ValueError where
    it is not UTF-8, or escapes hide escapes for too long.
    """
    for _ in range(ROUNDS):
        yield text
        before, text = text, unquote(text, errors="strict")
        if text == before:
            return
    raise ValueError("escapes hide escapes")


def is_printable(text: str) -> bool:
    """Say whether a text has no character that ends a line of a protocol, or is not seen."""
    try:
        return all(reading.isprintable() for reading in readings(text))
    except ValueError:
        return False


def problem(url: str) -> str:
    """Say why no endpoint can be at this URL, whatever else is registered; empty if one can."""
    if not is_printable(url):
        return LETTERS_SENTENCE
    parts = urlsplit(url)
    if any({".", ".."} & set(segments(path)) for path in readings(parts.path)):
        return DOTS_SENTENCE
    return HOST_SENTENCE if is_nobodys(parts.hostname or "") else ""


def overlap(url: str, others: Iterable[tuple[str, str]]) -> str:
    """Say of which other endpoint, as (name, URL), the files would lie where those of this do."""
    own = place_of(url)
    for name, other in others:
        if other != url and _overlaps(own, other):
            return (
                f"The base URL of {name} is the same location, or one of the two is inside the "
                "other. Sonar writes and deletes below each."
            )
    return ""


def _overlaps(own: Place, other: str) -> bool:
    try:
        return own.overlaps(place_of(other))
    except ValueError:  # registered before such URLs were refused
        return False
