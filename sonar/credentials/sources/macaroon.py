"""Macaroons that the endpoint itself gives, for one directory and what is to be done there.

dCache answers ``{"macaroon": .., "uri": {..}}``, XRootD ``{"macaroon": .., "expires_in": ..}``;
when it ends to count each macaroon says itself.
"""

import json
import time
from collections.abc import Collection, Iterable
from urllib.parse import unquote, urlsplit

from sonar.credentials.sources.asking import Answer, CertifiedWeb, ask
from sonar.credentials.sources.base import (
    CredentialError,
    Purpose,
    Right,
    StorageToken,
)
from sonar.credentials.sources.scopes import is_within
from sonar.credentials.sources.unverified import caveats_of, is_token, lifetime_of, seconds_said
from sonar.movers.base import End, MoverError
from sonar.movers.http.exchange import Web, authorization
from sonar.movers.messages import one_line

ACTIVITIES = {
    Right.OWN: "DOWNLOAD,UPLOAD,DELETE,MANAGE,LIST",
    Right.LENT_TO_READ: "DOWNLOAD,LIST",
    Right.LENT_TO_WRITE: "UPLOAD,LIST",
    Right.LENT_TO_SERVICE: "DOWNLOAD,UPLOAD,DELETE,LIST",
}
# Without these it is of no use; XRootD gives one with other rights to who may do nothing.
NEEDED = {
    Right.OWN: {"DOWNLOAD", "UPLOAD", "DELETE"},
    Right.LENT_TO_READ: {"DOWNLOAD"},
    Right.LENT_TO_WRITE: {"UPLOAD"},
    Right.LENT_TO_SERVICE: {"DOWNLOAD", "UPLOAD"},
}
# Who may do anything else may do this.
INCLUDED = {"READ_METADATA"}
ACTIVITY, PATH = "activity:", "path:"
LIFE_SECONDS = 3600
CERTIFICATE = "-----BEGIN "
ASKS_AGAIN = {408, 425, 429, 500, 502, 503, 504}
"""Status codes of a server in trouble, for which the request is repeated."""


class MacaroonSource:
    def __init__(self) -> None:
        self._web = Web()

    def obtain(self, purpose: Purpose) -> StorageToken:
        """Ask the endpoint, with the token or the certificate that the credential's file holds."""
        secret, web = purpose.secret.read(), self._web
        end = End(purpose.where, purpose.directory, purpose.base_url, token=secret)
        if CERTIFICATE in secret:
            end = End(purpose.where, purpose.directory, purpose.base_url)
            web = CertifiedWeb(str(purpose.secret.file()))
        headers = {"Content-Type": "application/macaroon-request", **authorization(end)}
        caveats = [f"activity:{ACTIVITIES[purpose.right]}"]
        body = json.dumps({"caveats": caveats, "validity": f"PT{LIFE_SECONDS}S"}).encode()
        began_at = time.time()
        return token_of(ask(web, end, purpose.ca_bundle, headers, body), purpose, began_at)


def token_of(answer: Answer, purpose: Purpose, began_at: float) -> StorageToken:
    """Return the macaroon of an answer; its own words are not repeated, as one may be in them."""
    text = answer.text("macaroon")
    if answer.status in ASKS_AGAIN:
        why = f"the request for a macaroon was answered with {answer.status}"
        raise MoverError(purpose.where, why)
    if answer.status != 200 or not is_token(text):
        raise CredentialError(f"the endpoint did not issue a macaroon: {answer.status}")
    _require_narrow(text, purpose)
    ends = [began_at + (seconds_said(answer.values.get("expires_in")) or LIFE_SECONDS)]
    expires_at = lifetime_of(text).expires_at
    return StorageToken(text, began_at, min(ends + ([expires_at] if expires_at else [])))


def _require_narrow(macaroon: str, purpose: Purpose) -> None:
    """Raise CredentialError for a macaroon that allows anything else than was asked for."""
    caveats = caveats_of(macaroon)
    if caveats is None:
        why = "the endpoint did not issue a readable macaroon, so its rights are unknown"
        raise CredentialError(why)
    allowed = _allowed_by(_values(ACTIVITY, caveats))
    request, place = ACTIVITIES[purpose.right], unquote(urlsplit(purpose.directory).path)
    extra = [_more_activities(allowed, request), _more_paths(_values(PATH, caveats), place)]
    if any(extra):
        words = one_line(" ".join(filter(None, extra)), macaroon)
        why = (
            f"the macaroon is not used: {request} below {place} was requested, but the endpoint "
            f"granted: {words}"
        )
        raise CredentialError(why)
    if missing := NEEDED[purpose.right] - (allowed or set()):
        raise CredentialError(
            f"the endpoint issued a macaroon without {', '.join(sorted(missing))}"
        )


def _more_activities(allowed: set[str] | None, request: str) -> str:
    if allowed is None:
        return "every activity"
    return ",".join(sorted(allowed - set(request.split(",")) - INCLUDED))


def _more_paths(paths: Collection[str], place: str) -> str:
    """Say for which paths it is; nothing if one of them is what was asked for: they all count."""
    if any(is_within(path, place) for path in paths):
        return ""
    return f"below {' and '.join(path or '/' for path in paths) or 'every path'}"


def _values(name: str, caveats: Iterable[str]) -> list[str]:
    return [caveat.removeprefix(name) for caveat in caveats if caveat.startswith(name)]


def _allowed_by(activities: Iterable[str]) -> set[str] | None:
    """Return what all caveats of activities allow; None, which is all, if there are none."""
    each = [{name.strip() for name in names.split(",")} for names in activities]
    return set.intersection(*each) if each else None
