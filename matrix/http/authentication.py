"""Who sends a request with a token: `Authorization: Token ...`."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64

from django.contrib.auth.models import User
from knox.auth import TokenAuthentication as KnoxAuthentication
from knox.settings import knox_settings
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from sonar.models import Token


class TokenAuthentication(KnoxAuthentication):  # type: ignore[misc]  # knox has no types
    """Knox's, which fails with an error of the server on bytes that no token consists of."""

    def authenticate(self, request: Request) -> tuple[User, Token] | None:
        """Refuse a token in another form: a script would read as nobody, and never notice."""
        header = request.headers.get("Authorization", "")
        word, *rest = header.lower().split() or [""]
        well_formed = word == "token" and len(rest) == 1
        if not well_formed and (word in ("token", "bearer") or holds_a_token(header)):
            raise AuthenticationFailed("Send a token as “Authorization: Token ...”.")
        account: tuple[User, Token] | None = super().authenticate(request)
        return account

    def authenticate_credentials(self, token: bytes) -> tuple[User, Token]:
        length = knox_settings.AUTH_TOKEN_CHARACTER_LENGTH
        form = rf"{knox_settings.TOKEN_PREFIX}[0-9a-f]{{{length}}}".encode()
        if not re.fullmatch(form, token):
            raise AuthenticationFailed("This is not a token: it may be cut off or mistyped.")
        try:
            user, record = super().authenticate_credentials(token)
        except AuthenticationFailed as error:
            raise AuthenticationFailed(
                "This token is not valid: it expired or was revoked, or its user is not active."
            ) from error
        return user, record


def holds_a_token(header: str) -> bool:
    """Say whether a header has one of Sonar's tokens in it, be it as a name or password (Basic)."""
    packed = header.rpartition(" ")[2]
    try:
        pair = b64decode(packed + "===", altchars=None, validate=False)
    except (NotBase64, ValueError):  # which it says of what is not ASCII
        pair = b""
    prefix: str = knox_settings.TOKEN_PREFIX
    return prefix in header or prefix.encode() in pair
