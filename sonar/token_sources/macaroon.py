"""Macaroons that the endpoint itself gives, for one directory and what is to be done there.

dCache answers ``{"macaroon": .., "uri": {..}}``, XRootD ``{"macaroon": .., "expires_in": ..}``;
when it ends to count each macaroon says itself.
"""

from __future__ import annotations

import json
import time

from sonar.movers.base import End, MoverError
from sonar.movers.http_exchange import Web, authorization
from sonar.token_sources.asking import Answer, CertifiedWeb, ask
from sonar.token_sources.base import CredentialError, Right, Token, Wanted, read_secret
from sonar.token_sources.lifetimes import lifetime_of

ACTIVITIES = {
    Right.OWN: "DOWNLOAD,UPLOAD,DELETE,MANAGE,LIST",
    Right.LENT_TO_READ: "DOWNLOAD,LIST",
    Right.LENT_TO_WRITE: "UPLOAD,LIST",
}
LIFE_SECONDS = 3600
CERTIFICATE = "-----BEGIN "
ASKS_AGAIN = {408, 425, 429, 500, 502, 503, 504}
"""Answers of a server that is in trouble, whoever asks it."""


class MacaroonSource:
    def __init__(self) -> None:
        self._web = Web()

    def obtain(self, wanted: Wanted) -> Token:
        """Ask the endpoint, with the token or the certificate that the credential's file holds."""
        secret, web = read_secret(wanted.secret), self._web
        end = End(wanted.where, wanted.directory, wanted.base_url, token=secret)
        if CERTIFICATE in secret:
            end = End(wanted.where, wanted.directory, wanted.base_url)
            web = CertifiedWeb(str(wanted.secret))
        headers = {"Content-Type": "application/macaroon-request", **authorization(end)}
        caveats = [f"activity:{ACTIVITIES[wanted.right]}"]
        body = json.dumps({"caveats": caveats, "validity": f"PT{LIFE_SECONDS}S"}).encode()
        began_at = time.time()
        return token_of(ask(web, end, wanted.ca_bundle, headers, body), wanted, began_at)


def token_of(answer: Answer, wanted: Wanted, began_at: float) -> Token:
    """Return the macaroon of an answer; its own words are not repeated, as one may be in them."""
    text = answer.text("macaroon")
    if answer.status in ASKS_AGAIN:
        why = f"the request for a macaroon was answered with {answer.status}"
        raise MoverError(wanted.where, why)
    if answer.status != 200 or not text.isascii() or not text.isprintable() or not text:
        raise CredentialError(f"the endpoint gives no macaroon: {answer.status}")
    seconds = answer.values.get("expires_in")
    ends = [began_at + (seconds if isinstance(seconds, int | float) else LIFE_SECONDS)]
    expires_at = lifetime_of(text).expires_at
    return Token(text, began_at, min(ends + ([expires_at] if expires_at else [])))
