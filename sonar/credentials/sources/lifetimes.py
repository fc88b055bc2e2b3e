"""What a token says of its life."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from sonar.credentials.sources.unverified import caveats_of, claims_of
from sonar.notation.units import LONGEST_SECONDS

BEFORE = re.compile(r"before:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z", re.ASCII)


class Lifetime(NamedTuple):
    """Seconds since 1970; None where the token does not say."""

    began_at: float | None
    expires_at: float | None


def lifetime_of(token: str) -> Lifetime:
    """Read when a JSON Web Token or a macaroon begins and ends to count; no token is refused."""
    claims = claims_of(token)
    return _of_caveats(caveats_of(token) or []) if claims is None else _of_claims(claims)


def seconds_said(value: object) -> float | None:
    """Return for how long a token is said to count; None for what nobody can mean."""
    return _number(value, LONGEST_SECONDS)


def _of_claims(claims: Mapping[str, object]) -> Lifetime:
    return Lifetime(_moment(claims.get("iat", claims.get("nbf"))), _moment(claims.get("exp")))


def _moment(value: object) -> float | None:
    return _number(value, 1e11)


def _number(value: object, below: float) -> float | None:
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
