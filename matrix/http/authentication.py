"""Who sends a call: by `Authorization: Token ...`, `Bearer` of an issuer, or a session."""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from copy import copy
from dataclasses import dataclass, field

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.http import QueryDict
from knox.auth import TokenAuthentication as KnoxAuthentication
from knox.settings import knox_settings
from rest_framework import authentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from sonar.models import Token
from sonar.people import accounts
from sonar.people.issuer import SILENCE_PAUSE_SECONDS, IssuerAway, TokenRefused, the_issuer

READ = [Token.Scope.READ.value]


@dataclass(frozen=True)
class IssuedToken:
    """A token of the issuer, as far as the rest of the API asks one of Sonar's own."""

    pk: str
    scopes: list[str] = field(default_factory=lambda: list(READ))


class Script(AnonymousUser):
    """Who reads with a token of the issuer: a reader without an account, and without any right."""

    @property
    def is_authenticated(self) -> bool:  # type: ignore[override]  # of nobody it is always False
        return True


class TokenAuthentication(KnoxAuthentication):  # type: ignore[misc]  # knox has no types
    """Knox's, which fails with an error of the server on bytes that no token consists of."""

    def authenticate(
        self, request: Request
    ) -> tuple[User, Token] | tuple[Script, IssuedToken] | None:
        """Refuse a token in another form: a script would read as nobody, and never notice."""
        header = request.headers.get("Authorization", "")
        word, *rest = header.lower().split() or [""]
        if word == "bearer" and settings.SONAR_OIDC_AUDIENCE and not holds_a_token(header):
            return by_issuer(header.partition(" ")[2].strip())
        well_formed = word == "token" and len(rest) == 1
        if not well_formed and (word in ("token", "bearer") or holds_a_token(header)):
            raise AuthenticationFailed("Send a token as “Authorization: Token ...”.")
        account: tuple[User, Token] | None = super().authenticate(request)
        return account

    def authenticate_credentials(self, token: bytes) -> tuple[User, Token]:
        length = knox_settings.AUTH_TOKEN_CHARACTER_LENGTH
        form = rf"{knox_settings.TOKEN_PREFIX}[0-9a-f]{{{length}}}".encode()
        if not re.fullmatch(form, token):
            raise AuthenticationFailed("This is not a valid token: it may be cut off or mistyped.")
        try:
            user, record = super().authenticate_credentials(token)
        except AuthenticationFailed as error:
            raise AuthenticationFailed(
                "This token is not valid: it expired or was revoked, or its user is not active."
            ) from error
        if accounts.lapsed(user):
            days = accounts.LAPSE.days
            raise AuthenticationFailed(
                f"The owner of this token has not logged in for {days} days: the token works "
                "again after the next log-in."
            )
        return user, record


class SessionAuthentication(authentication.SessionAuthentication):
    """The framework's, which reads a body for the CSRF token of a form before anybody's rights.

    No body here is a form: what writes has that token in a header, as Django's scripts do.
    """

    def enforce_csrf(self, request: Request) -> None:
        if request.method in request.parser_context["view"].allowed_methods:  # else it is a 405
            head = copy(request._request)
            head.POST = QueryDict()
            super().enforce_csrf(head)  # type: ignore[arg-type]  # a plain one will do


def by_issuer(token: str) -> tuple[Script, IssuedToken]:
    """Let a token of the issuer read that was made for this Sonar; else raise what says why."""
    try:
        subject = the_issuer().verify(token, settings.SONAR_OIDC_AUDIENCE)["sub"]
    except TokenRefused as error:
        raise AuthenticationFailed(f"This token is not accepted: {error}.") from error
    except IssuerAway as error:
        from matrix.http.exceptions import NotNow  # which imports the framework's views

        sentence = "This token cannot be checked because its issuer is not responding."
        raise NotNow(sentence, SILENCE_PAUSE_SECONDS) from error
    if accounts.is_closed(settings.SONAR_OIDC_ISSUER, subject):
        raise AuthenticationFailed("The Sonar account of this token's owner has been disabled.")
    return Script(), IssuedToken(f"{settings.SONAR_OIDC_ISSUER} {subject}")


def holds_a_token(header: str) -> bool:
    """Say whether a header has one of Sonar's tokens in it, be it as a name or password (Basic)."""
    packed = header.rpartition(" ")[2]
    try:
        pair = b64decode(packed + "===", altchars=None, validate=False)
    except (NotBase64, ValueError):  # which it says of what is not ASCII
        pair = b""
    prefix: str = knox_settings.TOKEN_PREFIX
    return prefix in header or prefix.encode() in pair
