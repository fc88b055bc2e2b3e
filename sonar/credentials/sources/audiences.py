"""For whom a token is: the servers that take it."""

import re

from sonar.credentials.sources.base import CredentialError
from sonar.credentials.sources.unverified import claims_of
from sonar.movers.messages import one_line

ANYBODY = {"https://wlcg.cern.ch/jwt/v1/any", "ANY"}
"""What WLCG's profile and SciTokens call it."""
ORIGIN = re.compile(r"\w+://[^/]+/*")
MOST_NAMES = 5


def audience_of(base_url: str) -> str:
    """Return the origin of an endpoint as tokens name it: https, and no port that goes unsaid."""
    scheme, _, rest = base_url.partition("://")
    host = rest.partition("/")[0].lower()
    web = {"davs": "https", "dav": "http"}.get(scheme, scheme)
    return f"{web}://{host.removesuffix(':443') if web == 'https' else host}"


def require_audience(token: str, requested: str) -> None:
    """Raise CredentialError for a token that others than it was requested for would take, too.

    What cannot be read is for whom its issuer was asked.
    """
    claims = claims_of(token)
    if claims is None or requested in ANYBODY:
        return
    audiences = _named(claims.get("aud"))
    others = [name for name in audiences if _plain(name) != _plain(requested)]
    if others or not audiences:
        names = one_line(" ".join(others[:MOST_NAMES]), token) or "anybody"
        raise CredentialError(
            f"the issuer was asked for a token for {requested}, and gives one for {names}: not used"
        )


def _named(audience: object) -> list[str]:
    """Return whom a claim names; nobody if that cannot be read."""
    each = audience if isinstance(audience, list) else [audience]
    names = [name for name in each if isinstance(name, str)]
    return names if len(names) == len(each) else []


def _plain(audience: str) -> str:
    return audience_of(audience) if ORIGIN.fullmatch(audience) else audience
