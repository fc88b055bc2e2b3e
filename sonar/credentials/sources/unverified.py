"""What a token says of itself: read without verifying, as only its server can."""

import json
import re
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from sonar.notation.units import LONGEST_SECONDS

LONGEST_TOKEN = 16 * 1024
"""No server takes a header that is longer."""
FORMAT_2 = b"\x02"
# Of macaroons in format 2, by their names in format 1.
FIELDS = {1: b"location", 2: b"cid", 4: b"vid", 6: b"signature"}
END_OF_SECTION = 0

Fields = Iterator[tuple[bytes, bytes]]


def is_token(text: str) -> bool:
    """Say whether a text can be shown to a server as a token at all."""
    return text.isascii() and text.isprintable() and 0 < len(text) <= LONGEST_TOKEN


def claims_of(token: str) -> Mapping[str, object] | None:
    """Return the claims of a JSON Web Token; None if it is none that can be read."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > LONGEST_TOKEN:
        return None
    try:
        claims = json.loads(decoded(parts[1]))
    except (ValueError, RecursionError):
        return None
    return claims if isinstance(claims, dict) else None


def caveats_of(token: str) -> list[str] | None:
    """Return the caveats of a macaroon that its own server checks; None if it is none to be read.

    Its binary formats 1 and 2 are read. Those that somebody else must confirm limit nothing by
    their words, and are left out.
    """
    content = decoded(token) if len(token) <= LONGEST_TOKEN else b""
    read = _fields if content.startswith(FORMAT_2) else _packets
    try:
        (location, _), _identifier, *caveats = read(content)
        if location != b"location" or caveats[-1][0] != b"signature":
            return None
        return [
            value.decode()
            for (name, value), (following, _) in pairwise(caveats)
            if name == b"cid" and following != b"vid"
        ]
    except (ValueError, IndexError):
        return None


def decoded(text: str) -> bytes:
    """Return what a token or a part of it holds; nothing if it is not base64."""
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (NotBase64, ValueError):
        return b""


def _packets(content: bytes) -> Fields:
    """Read format 1: the length in four hexadecimal digits, a name, a space, a value, a newline."""
    while content:
        length = int(content[:4], 16)
        name, space, value = content[4:length].partition(b" ")
        if length > len(content) or not space or not value.endswith(b"\n"):
            raise ValueError("not a packet")
        yield name, value[:-1]
        content = content[length:]


def _fields(content: bytes) -> Fields:
    """Read format 2: the kind of a field, its length, its value; a zero ends a section."""
    at = len(FORMAT_2)
    while at < len(content):
        kind, at = _number(content, at)
        if kind == END_OF_SECTION:
            continue
        length, at = _number(content, at)
        if kind not in FIELDS or at + length > len(content):
            raise ValueError("not a field")
        yield FIELDS[kind], content[at : at + length]
        at += length


def _number(content: bytes, at: int) -> tuple[int, int]:
    """Return a number in groups of seven bits, the lowest first, and where it ends."""
    number = shift = 0
    while content[at] & 0x80:
        number |= (content[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return number | content[at] << shift, at + 1


BEFORE = re.compile(r"before:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z", re.ASCII)


class Lifetime(NamedTuple):
    """Seconds since 1970; None where the token does not say."""

    began_at: float | None
    expires_at: float | None


def lifetime_of(token: str) -> Lifetime:
    """Read when a JSON Web Token or a macaroon begins and ends to count; no token is refused."""
    claims = claims_of(token)
    if claims is None:
        return _of_caveats(caveats_of(token) or [])
    moments = claims.get("iat", claims.get("nbf")), claims.get("exp")
    return Lifetime(*(_positive(moment, 1e11) for moment in moments))


def seconds_said(value: object) -> float | None:
    """Return for how long a token is said to count; None for what nobody can mean."""
    return _positive(value, LONGEST_SECONDS)


def _positive(value: object, below: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < below else None


def _of_caveats(caveats: Iterable[str]) -> Lifetime:
    """Read a macaroon: each of its caveats only narrows, so that the first moment counts."""
    ends = filter(None, map(BEFORE.fullmatch, caveats))
    moments = [moment for match in ends if (moment := _date(match[1])) is not None]
    return Lifetime(None, min(moments, default=None))


def _date(text: str) -> float | None:
    try:
        return datetime.fromisoformat(f"{text}+00:00").timestamp()
    except ValueError:
        return None
