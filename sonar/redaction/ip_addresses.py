"""How hosts and IP addresses are written in texts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sonar.notation.hosts import address_of
from sonar.redaction.disguises import fold

_DOT = r"[\s\[\](){}]{0,3}\.[\s\[\](){}]{0,3}"
IPV4 = re.compile(rf"(?<!\d)\d{{1,4}}(?:{_DOT}\d{{1,4}}){{3,}}(?!\d)")
# As inet_aton reads them: in hex, octal, or with fewer parts.
ODD_IPV4 = re.compile(
    r"(?<![\w.])(?:0x[0-9a-f]{1,8}|\d{1,11})(?:\.(?:0x[0-9a-f]{1,8}|\d{1,11})){0,3}(?![\w-])"
)
IPV6 = re.compile(r"[0-9a-f:.]+")
ZONE = re.compile(r"%[\w-]+")


def plain(host: str) -> str:
    """Return a host as its spellings are looked up: small, or an address in its shortest form."""
    host = fold(host).rstrip(".")
    address = address_of(host)
    return str(address) if address else host


def international(host: str) -> Iterator[str]:
    """Yield a host as the DNS has it and as people do."""
    try:
        yield host.encode("idna").decode()
        yield fold(host.encode("idna").decode("idna"))
    except UnicodeError:  # no name of the DNS: it is written as it is
        return


def are_octets(parts: list[str]) -> bool:
    return all(int(part) <= 255 for part in parts)


def ipv6_places(text: str) -> Iterator[tuple[int, int]]:
    """Yield what looks like an IPv6 address; times of day and names of C++ do not."""
    for match in IPV6.finditer(text):
        start, end = _within_word(text, match), match.end()
        while end > start and text[end - 1] == ".":
            end -= 1
        if text[start:end].endswith(":") and not text[start:end].endswith("::"):
            end -= 1
        if _is_ipv6(text[start:end], followed_by=text[end : end + 1]):
            zone = ZONE.match(text, end)
            yield start, zone.end() if zone else end


def _within_word(text: str, match: re.Match[str]) -> int:
    """Return where an address may begin: not in a word before it, as `tcp:` or `XrdCl::`."""
    before = text[match.start() - 1 : match.start()] if match.start() else ""
    word = re.match(r"[^:]*(?:::(?!:)|:|$)", match[0])
    inside = before.isalnum() or before == "_"
    return match.start() + (len(word[0]) if inside and word else 0)


def _is_ipv6(run: str, followed_by: str) -> bool:
    colons = run.count(":")
    if colons < 2 or not any(letter.isalnum() for letter in run):
        return False
    if "::" not in run:
        return colons >= 5
    if followed_by.isalnum() or followed_by == "_":
        return colons >= 3
    return any(letter.isdigit() for letter in run) or colons >= 3
