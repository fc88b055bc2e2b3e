"""A token issuer of these tests' own: OAuth2 over TLS, whose tokens real servers verify."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.storage.serving import AnyMethod
from tests.storage.xrootd import Authority

CLIENT_ID = "sonar"
P256 = ec.ECDSA(hashes.SHA256())


def text_of(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@dataclass
class Issuer:
    """Who gives tokens; what was asked of it is in ``forms``, with who asked."""

    authority: Authority
    secret: str
    life: float = 3600
    ahead: float = 0.0
    """By how many seconds its clock is ahead of this machine's."""
    changes: dict[str, object] = field(default_factory=dict)
    """What its answers have otherwise than they should."""
    leads_to: str = ""
    """Where it redirects who asks for a token."""
    refuses: int = 0
    """The status with which it refuses tokens."""
    pause: threading.Event | None = None
    """What it waits for before each token."""
    forms: list[dict[str, str]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._server: ThreadingHTTPServer | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def start(self) -> Issuer:
        """Listen; after a stop at the same port."""
        server = ThreadingHTTPServer(("127.0.0.1", self.port), handler_of(self))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.ca.issue_cert("localhost", "127.0.0.1").configure_cert(context)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.port, self._server = server.server_address[1], server
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def discovery(self) -> dict[str, object]:
        told = {"issuer": self.url, "token_endpoint": f"{self.url}/token"}
        return told | {"jwks_uri": f"{self.url}/jwks"} | self._changed("discovery")

    def keys(self) -> dict[str, object]:
        numbers = self._key.public_key().public_numbers()
        place = {name: text_of(getattr(numbers, name).to_bytes(32, "big")) for name in "xy"}
        key = {"kty": "EC", "crv": "P-256", "kid": "one", "use": "sig", "alg": "ES256"}
        return {"keys": [key | place]}

    def reply(self, body: str, shown: str) -> tuple[int, dict[str, object]]:
        """Answer a request for a token; who is refused is told what he showed."""
        pair = base64.b64encode(f"{CLIENT_ID}:{self.secret}".encode()).decode()
        if shown != f"Basic {pair}":
            return 401, {"error": "invalid_client", "error_description": shown}
        if self.leads_to:
            return 307, {}
        if self.refuses:
            return self.refuses, {"error": "invalid_scope", "error_description": shown}
        return 200, self.answer({name: values[0] for name, values in parse_qs(body).items()})

    def answer(self, form: dict[str, str]) -> dict[str, object]:
        """Give a token for what a client asks."""
        self.forms.append(form)
        if self.pause:
            self.pause.wait(30)
        token = self.token(form["scope"], form["audience"])
        self.tokens.append(token)
        given = {"access_token": token, "expires_in": int(self.life), "scope": form["scope"]}
        return given | self._changed("token")

    def token(self, scope: object, audience: str, **claims: object) -> str:
        """Sign a token by this issuer's clock."""
        now = int(time.time() + self.ahead)
        said: dict[str, object] = {
            "iss": self.url,
            "sub": CLIENT_ID,
            "aud": audience,
            "scope": scope,
            "wlcg.ver": "1.0",
            "iat": now,
            "nbf": now,
            "exp": now + int(self.life),
            "jti": str(uuid.uuid4()),
        }
        head = {"alg": "ES256", "typ": "JWT", "kid": "one"}
        parts = [text_of(json.dumps(part).encode()) for part in (head, said | claims)]
        signed = ".".join(parts)
        r, s = decode_dss_signature(self._key.sign(signed.encode(), P256))
        return f"{signed}.{text_of(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def _changed(self, name: str) -> dict[str, object]:
        values = self.changes.get(name, {})
        assert isinstance(values, dict)
        return values


def handler_of(issuer: Issuer) -> type[BaseHTTPRequestHandler]:
    class Handler(AnyMethod):
        timeout = 10

        def serve(self) -> None:
            if self.command == "POST":
                self.send(*issuer.reply(self.body().decode(), str(self.headers["Authorization"])))
            elif self.path == "/.well-known/openid-configuration":
                self.send(200, issuer.discovery())
            elif self.path == "/jwks":
                self.send(200, issuer.keys())
            else:
                self.send(404, {})

        def send(self, status: int, values: dict[str, object]) -> None:
            headers = {"Content-Type": "application/json"}
            headers |= {"Location": issuer.leads_to} if status == 307 else {}
            self.answer(status, headers, json.dumps(values).encode())

    return Handler


def secret_in(room: Path, name: str, text: str) -> Path:
    """Keep a secret as operators do."""
    path = room / name
    path.write_text(text)
    path.chmod(0o600)
    return path
