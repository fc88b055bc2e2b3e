"""One question to who gives tokens: short deadlines, no redirect elsewhere, no secret in errors."""

import io
from collections.abc import Mapping
from dataclasses import dataclass

import orjson
import urllib3

from sonar.credentials.sources.base import CredentialError
from sonar.movers.base import End, Limits, Order
from sonar.movers.http.deadlines import Wait
from sonar.movers.http.exchange import MAX_ANSWER_BYTES, Request, Web, new_pool, new_trust

LIMITS = Limits(connect=5, answer=10, total=15)


@dataclass(frozen=True)
class Answer:
    """What came back; ``values`` is empty unless it was a JSON object."""

    status: int
    values: Mapping[str, object]

    def text(self, name: str) -> str:
        """Return a value that is text; empty if it is none."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""


class CertifiedWeb(Web):
    """Connections that show the certificate in a file, made anew for each question."""

    def __init__(self, certificate: str) -> None:
        super().__init__()
        self._certificate = certificate

    def _pool(self, ca_bundle: str, token: str) -> urllib3.PoolManager:
        pool, context = new_pool(ca_bundle), new_trust(ca_bundle)
        try:
            context.load_cert_chain(self._certificate)
        except OSError:  # ssl.SSLError is one
            raise CredentialError("the secret contains no certificate with its key") from None
        pool.connection_pool_kw["ssl_context"] = context
        return pool


def ask(
    web: Web, end: End, ca_bundle: str, headers: Mapping[str, str], body: bytes | None = None
) -> Answer:
    """Ask: GET without a body, else POST. MoverError, with the end's ``where``, if none answers."""
    request = Request("GET", end, headers)
    if body is not None:
        length = {"Content-Length": str(len(body))}
        request = Request("POST", end, {**headers, **length}, io.BytesIO(body))
    order = Order(end, end, bytes=1, ca_bundle=ca_bundle, limits=LIMITS)
    with web.open(request, order, Wait(LIMITS.answer, LIMITS.total)) as response:
        answer = response.read(MAX_ANSWER_BYTES, decode_content=False)
        return Answer(response.status, _object(answer))


def _object(content: bytes) -> Mapping[str, object]:
    try:
        values = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return values if isinstance(values, dict) else {}
