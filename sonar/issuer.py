"""Tokens of an OpenID Connect issuer: are they its own, for whom, and until when?

Where the issuer's keys are it says itself (discovery). Both are kept for an hour, so that a token
costs no request; a key that is not known is looked for once a minute at most.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

import jwt
import requests
from django.conf import settings
from django.core.checks import Error

log = logging.getLogger(__name__)

KEPT_SECONDS = 3600
# Before an issuer is asked again for a key that it did not have, or after it gave no answer.
KEY_PAUSE_SECONDS = 60
SILENCE_PAUSE_SECONDS = 5
TIMEOUT_SECONDS = 5
# How far clocks may be apart.
LEEWAY_SECONDS = 30
# No shared secrets, and never none.
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
ADDRESSES = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
REQUIRED = ["iss", "sub", "aud", "exp"]


class IssuerAway(Exception):
    """The issuer does not answer, or not as one; the sentence says what it did."""


class TokenRefused(Exception):
    """A token that is not accepted; the sentence says why."""


class Issuer:
    """One issuer, and what it has said of itself; for all threads."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = Lock()
        self._answers: dict[str, tuple[float, dict[str, Any]]] = {}
        self._not_before: dict[str, float] = {}

    def configuration(self) -> dict[str, Any]:
        """Return what discovery says; raise IssuerAway."""
        said = self._answer(f"{self.url}/.well-known/openid-configuration")
        name = said.get("issuer")
        if not isinstance(name, str) or name.rstrip("/") != self.url:
            raise IssuerAway(f"{self.url} says that it is another issuer: {name!r:.200}.")
        for field in ADDRESSES:
            if not str(said.get(field, "")).startswith(self.url.partition("//")[0] + "//"):
                raise IssuerAway(f"{self.url} does not say its {field}, or not with https.")
        return said

    def verify(self, token: str, audience: str) -> dict[str, Any]:
        """Return the claims of a token of this issuer; raise TokenRefused or IssuerAway."""
        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError as error:
            raise TokenRefused("it is not a signed token (JWT)") from error
        if header.get("alg") not in ALGORITHMS:
            raise TokenRefused("it is not signed, or not with a key pair of the issuer")
        issuer = self.configuration()["issuer"]
        key = self._key(header)
        try:
            return jwt.decode(
                token,
                key,
                algorithms=[header["alg"]],
                audience=audience,
                issuer=issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": REQUIRED},
            )
        except jwt.PyJWTError as error:
            raise TokenRefused(reason(error)) from error

    def _key(self, header: dict[str, Any]) -> jwt.PyJWK:
        """Return the key that a token says it is signed with, if the issuer has it."""
        address = self.configuration()["jwks_uri"]
        for again in (False, True):
            key = chosen(self._answer(address, again=again), header.get("kid"))
            if key is not None:
                return key
        raise TokenRefused("it is signed with a key that the issuer does not have")

    def _answer(self, address: str, *, again: bool = False) -> dict[str, Any]:
        """Return the JSON at an address, kept or new; ``again`` asks anew, but not too often."""
        with self._lock:
            now = time.monotonic()
            at, answer = self._answers.get(address, (0.0, None))
            is_due = answer is None or again or now - at > KEPT_SECONDS
            if is_due and now >= self._not_before.get(address, 0.0):
                self._not_before[address] = now + KEY_PAUSE_SECONDS
                try:
                    answer = ask(address)
                except IssuerAway:
                    self._not_before[address] = time.monotonic() + SILENCE_PAUSE_SECONDS
                    if answer is None:
                        raise
                else:
                    self._answers[address] = now, answer
            if answer is None:
                raise IssuerAway(f"{address} did not answer a moment ago.")
            return answer


def ask(address: str) -> dict[str, Any]:
    """Return the JSON object at an address; raise IssuerAway."""
    try:
        response = requests.get(address, timeout=TIMEOUT_SECONDS)
        response.raise_for_status()
        answer = response.json()
    except requests.RequestException as error:
        log.warning("The issuer does not answer at %s: %s", address, type(error).__name__)
        raise IssuerAway(f"{address} does not answer ({type(error).__name__}).") from error
    if not isinstance(answer, dict):
        raise IssuerAway(f"{address} answers with no JSON object.")
    return answer


def chosen(keys: dict[str, Any], name: str | None) -> jwt.PyJWK | None:
    """Return the key of this name among those of an issuer; its only one where none is named."""
    try:
        usable = jwt.PyJWKSet.from_dict(keys).keys
    except (jwt.PyJWTError, AttributeError, TypeError) as error:
        raise IssuerAway("The issuer's keys cannot be read.") from error
    if name is None:
        return usable[0] if len(usable) == 1 else None
    return next((key for key in usable if key.key_id == name and key.public_key_use != "enc"), None)


def reason(error: jwt.PyJWTError) -> str:
    """Say why a token is refused."""
    sentences: Sequence[tuple[type[Exception], str]] = (
        (jwt.ExpiredSignatureError, "it has expired"),
        (jwt.ImmatureSignatureError, "it is not valid yet: a clock may be wrong"),
        (jwt.InvalidAudienceError, "it is meant for somebody else (its audience)"),
        (jwt.InvalidIssuerError, "another issuer made it"),
        (jwt.MissingRequiredClaimError, f"it lacks one of {', '.join(REQUIRED)}"),
        (jwt.InvalidSignatureError, "its signature is not the issuer's"),
        (jwt.InvalidKeyError, "its signature is not the issuer's"),
    )
    matching = (sentence for kind, sentence in sentences if isinstance(error, kind))
    return next(matching, "it cannot be read")


@lru_cache(maxsize=4)
def issuer_at(url: str) -> Issuer:
    return Issuer(url)


def the_issuer() -> Issuer:
    """Return the issuer of the settings, of which there must be one."""
    return issuer_at(settings.SONAR_OIDC_ISSUER)


def check(**_: object) -> list[Error]:
    """Let `check --deploy` end with an issuer that does not answer: it may be nobody's way in."""
    if not settings.SONAR_OIDC_ISSUER:
        return []
    try:
        Issuer(settings.SONAR_OIDC_ISSUER).configuration()
    except IssuerAway as error:
        return [Error(f"SONAR_OIDC_ISSUER: {error}", id="sonar.E002")]
    return []
