"""Macaroons that the endpoint itself gives, for one directory and what is to be done there.

dCache answers ``{"macaroon": .., "uri": {..}}``, XRootD ``{"macaroon": .., "expires_in": ..}``;
when it ends to count each macaroon says itself.
"""

from __future__ import annotations

import json
import re
import time

from sonar.movers.base import End, MoverError
from sonar.movers.http_exchange import Web, authorization
from sonar.token_sources.asking import Answer, CertifiedWeb, ask
from sonar.token_sources.base import CredentialError, Purpose, Right, StorageToken, read_secret
from sonar.token_sources.lifetimes import decoded, lifetime_of

ACTIVITIES = {
    Right.OWN: "DOWNLOAD,UPLOAD,DELETE,MANAGE,LIST",
    Right.LENT_TO_READ: "DOWNLOAD,LIST",
    Right.LENT_TO_WRITE: "UPLOAD,LIST",
}
# Without these it is of no use; XRootD gives one with other rights to who may do nothing.
NEEDED = {
    Right.OWN: {"DOWNLOAD", "UPLOAD", "DELETE"},
    Right.LENT_TO_READ: {"DOWNLOAD"},
    Right.LENT_TO_WRITE: {"UPLOAD"},
}
ACTIVITY = re.compile(rb"activity:([A-Z_,]+)")
LIFE_SECONDS = 3600
CERTIFICATE = "-----BEGIN "
ASKS_AGAIN = {408, 425, 429, 500, 502, 503, 504}
"""Answers of a server that is in trouble, whoever asks it."""


class MacaroonSource:
    def __init__(self) -> None:
        self._web = Web()

    def obtain(self, purpose: Purpose) -> StorageToken:
        """Ask the endpoint, with the token or the certificate that the credential's file holds."""
        secret, web = read_secret(purpose.secret), self._web
        end = End(purpose.where, purpose.directory, purpose.base_url, token=secret)
        if CERTIFICATE in secret:
            end = End(purpose.where, purpose.directory, purpose.base_url)
            web = CertifiedWeb(str(purpose.secret))
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
    if answer.status != 200 or not text.isascii() or not text.isprintable() or not text:
        raise CredentialError(f"the endpoint gives no macaroon: {answer.status}")
    if missing := NEEDED[purpose.right] - allowed_by(text):
        raise CredentialError(f"the endpoint gives a macaroon without {', '.join(sorted(missing))}")
    seconds = answer.values.get("expires_in")
    ends = [began_at + (seconds if isinstance(seconds, int | float) else LIFE_SECONDS)]
    expires_at = lifetime_of(text).expires_at
    return StorageToken(text, began_at, min(ends + ([expires_at] if expires_at else [])))


def allowed_by(macaroon: str) -> set[str]:
    """Return what is allowed by all caveats of a macaroon; all if none of them is of that kind."""
    caveats = [set(names.decode().split(",")) for names in ACTIVITY.findall(decoded(macaroon))]
    return set.intersection(*caveats) if caveats else set.union(*NEEDED.values())
