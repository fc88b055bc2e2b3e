"""An OpenID provider in a thread: oidc-provider-mock, which lies where a test wants it to."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import jwt
import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from flask import Flask, Response, g, request
from oidc_provider_mock import app as mock
from werkzeug.serving import make_server

from sonar.people.issuer import issuer_at
from sonar.people.role_rules import Role, RoleRule, RoleRules

CLIENT = "sonar-of-the-tests"
SECRET = "only-for-tests"
AUDIENCE = "https://sonar.example.org"

DN = "CN=Anna Storage,O=Grid,C=UK"
RULES = RoleRules(
    (
        RoleRule("group", "/grid/admins", Role.ADMINISTRATOR),
        RoleRule("group", "/grid/shifters", Role.OPERATOR),
        RoleRule("group", "/grid/sites/{site}", Role.SITE_ADMIN),
        RoleRule("group", "/grid", Role.READER),
        RoleRule("certificate", DN, Role.OPERATOR),
    )
)

Claims = dict[str, Any]
Key = rsa.RSAPrivateKey
# Makes another ID token of the claims of the right one, and the secret key of the provider.
Lie = Callable[[Claims, Key], str]


@dataclass
class Provider:
    """``lie`` makes the ID tokens, ``broken`` are paths that answer with an error.

    ``instead`` has answers by path that it gives whatever was asked.
    """

    url: str = ""
    key: Any = None
    name: str = ""
    lie: Lie | None = None
    broken: set[str] = field(default_factory=set)
    instead: dict[str, Response] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def person(self, subject: str, **claims: Any) -> None:
        """Say what the provider knows of a person; names with a dot come as `wlcg__groups`."""
        named = {name.replace("__", "."): value for name, value in claims.items()}
        requests.put(f"{self.url}/users/{subject}", json=named, timeout=60).raise_for_status()

    @property
    def host(self) -> str:
        return self.url.partition("://")[2]

    def honest(self) -> None:
        self.lie = None
        self.broken.clear()
        self.instead.clear()
        self.asked.clear()
        self.forgotten()

    def forgotten(self) -> None:
        """Let Sonar know nothing of the provider any more, as one that has just started."""
        issuer_at.cache_clear()

    def token(self, **claims: Any) -> str:
        """Return a token that a script may show; a claim that is None is left out."""
        now = int(time.time())
        all_claims = {
            "iss": self.url,
            "sub": "a-script",
            "aud": AUDIENCE,
            "iat": now,
            "exp": now + 600,
        } | claims
        return self.signed({name: it for name, it in all_claims.items() if it is not None})

    def signed(self, claims: Claims, **header: Any) -> str:
        return jwt.encode(claims, self.key, "RS256", headers={"kid": self.name} | header)

    def settings(self) -> dict[str, Any]:
        """Return the settings of a Sonar where people log in at this provider."""
        return {
            "SONAR_OIDC_ISSUER": self.url,
            "SONAR_OIDC_CLIENT_ID": CLIENT,
            "SONAR_OIDC_CLIENT_SECRET": SECRET,
            "SONAR_OIDC_NAME": "Grid IAM",
            "SONAR_LOGIN_ROLES": RULES,
        }


def stranger() -> Any:
    """Return a secret key that is no provider's."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@contextmanager
def provider() -> Iterator[Provider]:
    """Run one; its own log stays out of the tests'."""
    it, app = Provider(), mock()
    watch(app, it)
    twist(app, it)
    server = make_server("localhost", 0, app, threaded=True)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    it.url = f"http://localhost:{server.server_port}"
    try:
        # The key is made as the provider is asked for the first time.
        it.name = requests.get(f"{it.url}/jwks", timeout=60).json()["keys"][0]["kid"]
        yield it
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def watch(app: Flask, it: Provider) -> None:
    @app.before_request
    def ask() -> Response | None:
        it.asked.append(request.path)
        key = g.oidc_provider_mock_storage.jwk if "oidc_provider_mock_storage" in g else None
        if key is not None and it.key is None:
            it.key = jwt.PyJWK(key.as_dict(is_private=True), "RS256").key
        if request.path == "/favicon.ico":
            return Response(status=204)
        if request.path in it.broken:
            return Response("broken", 500)
        return it.instead.get(request.path)


def twist(app: Flask, it: Provider) -> None:
    @app.after_request
    def mend(response: Response) -> Response:
        """Make it what a browser of the tests can show, and a provider by the standard."""
        place = response.headers.get("Location", "")
        if "error=" in place and "state=" not in place:
            response.headers["Location"] = f"{place}&state={request.args['state']}"
        if response.mimetype == "text/html":  # its style comes from another host
            response.set_data(re.sub(r"<link\b[^>]*>", "", response.get_data(as_text=True)))
        return response

    @app.after_request
    def lie(response: Response) -> Response:
        if response.status_code == 200 and request.path == "/oauth2/token" and it.lie:
            said = json.loads(response.get_data())
            claims = jwt.decode(said["id_token"], options={"verify_signature": False})
            said["id_token"] = it.lie(claims, it.key)
            response.set_data(json.dumps(said))
        return response
