"""Tokens that an issuer gives to an OAuth2 client: for one audience, with scopes for one path."""

import re
import time
from base64 import b64encode
from urllib.parse import quote, quote_plus, unquote, urlencode, urlsplit

from sonar.credentials.sources.asking import Answer, ask
from sonar.credentials.sources.base import (
    CredentialError,
    Purpose,
    Right,
    StorageToken,
)
from sonar.credentials.sources.scopes import audience_of, require_audience, require_scope
from sonar.credentials.sources.unverified import is_token, lifetime_of, seconds_said
from sonar.movers.base import End, MoverError, Stopped, Where
from sonar.movers.http.exchange import Web

SCOPES = {
    Right.OWN: ("storage.read", "storage.modify"),
    Right.LENT_TO_READ: ("storage.read",),
    Right.LENT_TO_WRITE: ("storage.create",),
    Right.LENT_TO_SERVICE: ("storage.read", "storage.modify"),
}
DISCOVERY = "/.well-known/openid-configuration"
UNSAID_SECONDS = 300
"""For how long a token counts that says nothing of it."""
CODE = re.compile(r"[a-z_]{1,40}")
"""Error code of OAuth2; the issuer's own description of the error is not repeated."""


class ClientCredentialsSource:
    def __init__(self) -> None:
        self._web = Web()

    def obtain(self, purpose: Purpose) -> StorageToken:
        """Ask the issuer, whose host alone is shown the secret of the client."""
        secret = purpose.secret.read()
        try:
            address = self._token_endpoint(purpose)
            began_at = time.time()
            answer = self._request(address, secret, purpose)
        except Stopped:
            raise
        except MoverError as error:
            raise CredentialError(f"the issuer is not responding: {error}") from None
        token = token_of(answer, scope_of(purpose), began_at)
        require_audience(token.text, _audience(purpose))
        return token

    def _token_endpoint(self, purpose: Purpose) -> str:
        issuer = purpose.issuer.rstrip("/")
        answer = ask(self._web, at(issuer + DISCOVERY), purpose.ca_bundle, {})
        address = answer.text("token_endpoint")
        if answer.status != 200 or not address:
            raise CredentialError(f"the issuer does not name its token endpoint: {answer.status}")
        if answer.text("issuer").rstrip("/") != issuer:
            raise CredentialError("the issuer identifies itself with a different URL")
        if not same_origin(address, issuer):
            raise CredentialError(
                "the token endpoint of the issuer is on another host: secret not sent"
            )
        return address

    def _request(self, address: str, secret: str, purpose: Purpose) -> Answer:
        pair = f"{quote_plus(purpose.client_id)}:{quote_plus(secret)}".encode()
        headers = {
            "Authorization": f"Basic {b64encode(pair).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        }
        form = {
            "grant_type": "client_credentials",
            "scope": scope_of(purpose),
            "audience": _audience(purpose),
        }
        return ask(self._web, at(address), purpose.ca_bundle, headers, urlencode(form).encode())


def at(url: str) -> End:
    return End(Where.CONTROL, url, url)


def same_origin(address: str, issuer: str) -> bool:
    """Say whether two URLs have one scheme, host and port; what can be read in two ways has not."""
    parts, expected = urlsplit(address), urlsplit(issuer)
    same = (parts.scheme, parts.netloc) == (expected.scheme, expected.netloc)
    return same and "\\" not in address and address.isprintable()


def _audience(purpose: Purpose) -> str:
    return purpose.audience or audience_of(purpose.base_url)


def scope_of(purpose: Purpose) -> str:
    """Return the scopes to ask for: those for a service, or each with the one path it is for."""
    if purpose.right is Right.SERVICE:
        return purpose.scope
    path = unquote(urlsplit(purpose.directory).path)
    prefix = purpose.path_prefix.rstrip("/")
    if prefix:
        if not path.startswith(f"{prefix}/"):
            raise CredentialError(
                "the path of the endpoint does not begin with the “path_prefix” of the credential"
            )
        path = path.removeprefix(prefix)
    place = quote("/" + path.strip("/"))
    return " ".join(f"{scope}:{place}" for scope in SCOPES[purpose.right])


def token_of(answer: Answer, scope: str, began_at: float) -> StorageToken:
    """Return the token of an answer, or raise CredentialError: also if it allows anything else."""
    text = answer.text("access_token")
    if answer.status != 200 or not text:
        code = answer.text("error")
        said = f" {code}" if CODE.fullmatch(code) else ""
        raise CredentialError(f"the issuer did not issue a token: {answer.status}{said}")
    if not is_token(text):
        raise CredentialError("the issuer sent something that is not a token")
    require_scope(text, answer.values.get("scope"), scope)
    said_at, expires_at = lifetime_of(text)
    seconds = seconds_said(answer.values.get("expires_in"))
    ends = [began_at + seconds] if seconds else []
    ends += [expires_at] if expires_at else []
    return StorageToken(
        text, min(said_at or began_at, began_at), min(ends, default=began_at + UNSAID_SECONDS)
    )
