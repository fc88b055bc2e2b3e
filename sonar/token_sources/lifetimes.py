"""What a token says of its life: read without verifying, as only its server can."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from datetime import datetime
from typing import NamedTuple

BEFORE = re.compile(rb"before:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z")
LONGEST = 16 * 1024


class Lifetime(NamedTuple):
    """Seconds since 1970; None where the token does not say."""

    began_at: float | None
    expires_at: float | None


NOTHING_SAID = Lifetime(None, None)


def lifetime_of(token: str) -> Lifetime:
    """Read when a JSON Web Token or a macaroon begins and ends to count; no token is refused."""
    if len(token) > LONGEST:
        return NOTHING_SAID
    parts = token.split(".")
    return _of_claims(decoded(parts[1])) if len(parts) == 3 else _of_caveats(decoded(token))


def decoded(text: str) -> bytes:
    """Return what a token or a part of it holds; nothing if it is not base64."""
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (NotBase64, ValueError):
        return b""


def _of_claims(content: bytes) -> Lifetime:
    try:
        claims = json.loads(content)
    except (ValueError, RecursionError):
        return NOTHING_SAID
    if not isinstance(claims, dict):
        return NOTHING_SAID
    return Lifetime(_moment(claims.get("iat", claims.get("nbf"))), _moment(claims.get("exp")))


def _moment(value: object) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 < value < 1e11 else None  # type: ignore[arg-type,operator]


def _of_caveats(content: bytes) -> Lifetime:
    """Read a macaroon: each of its caveats only narrows, so that the first moment counts."""
    moments = [
        parsed for text in BEFORE.findall(content) if (parsed := _date(text.decode())) is not None
    ]
    return Lifetime(None, min(moments, default=None))


def _date(text: str) -> float | None:
    try:
        return datetime.fromisoformat(f"{text}+00:00").timestamp()
    except ValueError:
        return None
