"""What the credential of an endpoint allows, in plain words: of a token only its claims."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from sonar.credentials.kinds import FILE, describe
from sonar.credentials.sources.scopes import ANYBODY, Scope, audience_of
from sonar.credentials.sources.unverified import caveats_of, claims_of, lifetime_of
from sonar.models import Endpoint
from sonar.movers.base import End
from sonar.movers.messages import one_line
from sonar.notation.check_steps import CheckStep, StepState
from sonar.notation.windows import format_minute

WRITING = "storage.modify"
NO_CREDENTIAL = "No credential is registered, so only anonymous access works."
FOR_ANOTHER = (
    "Request a token for the audience {origin}, or make the server accept the audience of this "
    "token."
)
CANNOT_WRITE = "Request a token with storage.modify: tests also delete the files that they wrote."
NOT_TAKEN = (
    "Register a credential of another kind, or test this endpoint with a transfer tool that "
    "supports this kind."
)


def credential_step(endpoint: Endpoint, end: End) -> CheckStep:
    """Say of what a server is shown who gave it, for whom, for what and until when."""
    own = endpoint.credential
    if own is None:
        return CheckStep("credential", StepState.FINE, NO_CREDENTIAL)
    sort = describe(own.kind).name
    if own.is_uploaded:  # then it is no file that somebody could look at
        sort = "uploaded" if own.kind == FILE else f"{sort}, uploaded"
    kind = f"{own.name} ({sort})"
    if end.proxy:
        return CheckStep("credential", StepState.FINE, f"{kind} is a valid X.509 proxy.")
    if not end.token:
        seen = f"{kind} is of a kind that this protocol does not support: no credential is sent."
        return CheckStep("credential", StepState.WARNING, seen, NOT_TAKEN)
    claims = claims_of(end.token)
    if claims is None:
        return CheckStep("credential", StepState.FINE, f"{kind}{_of_macaroon(end.token)}.")
    facts = {
        "issued by": _texts(claims.get("iss")),
        "for": _texts(claims.get("aud")),
        "with": _scopes(claims),
    }
    said = [f"{word} {one_line(' '.join(texts))}" for word, texts in facts.items() if texts]
    seen = f"{kind}: {', '.join(said) or 'the token has no readable claims'}{_end(end.token)}."
    if advice := problem(claims, endpoint.base_url):
        return CheckStep("credential", StepState.WARNING, seen, advice)
    return CheckStep("credential", StepState.FINE, seen)


def problem(claims: Mapping[str, object], base_url: str) -> str:
    """Say what to do about a token that is for others, or for less; empty if it is right."""
    origin, audiences = audience_of(base_url), _texts(claims.get("aud"))
    if audiences and not {origin, *ANYBODY} & set(audiences):
        return FOR_ANOTHER.format(origin=origin)
    scopes = [Scope.of(word).name for word in _scopes(claims)]
    is_of_storage = any(name.startswith("storage.") for name in scopes)
    return CANNOT_WRITE if is_of_storage and WRITING not in scopes else ""


def _of_macaroon(token: str) -> str:
    caveats = caveats_of(token)
    if caveats is None:
        return ": only the server that issued this token can read its content"
    # Others name who has it, or are of no use to people.
    words = [each for each in caveats if each.startswith(("activity:", "path:"))]
    limits = f", limited to {one_line(', '.join(words))}" if words else ""
    return f": a macaroon{limits}{_end(token)}"


def _end(token: str) -> str:
    expires_at = lifetime_of(token).expires_at
    if expires_at is None:
        return "; no expiry time"
    left = max(expires_at - time.time(), 0)
    moment = datetime.fromtimestamp(expires_at, UTC)
    return f"; valid until {format_minute(moment)} ({left / 3600:.1f} h left)"


def _scopes(claims: Mapping[str, object]) -> list[str]:
    return [
        word
        for name in ("scope", "scp")
        for text in _texts(claims.get(name))
        for word in text.split()
    ]


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)]
