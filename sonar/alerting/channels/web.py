"""One POST to an external service: with limits on time, size, address and redirects.

The address is checked when the socket connects, so that a second DNS answer changes nothing. Errors
contain no part of the URL, which may be the secret.
"""

import base64
import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from socket import socket
from urllib.parse import urlsplit

import urllib3
from django.conf import settings
from urllib3.exceptions import HTTPError
from urllib3.util import Timeout

import sonar
from sonar.alerting.channels.base import ChannelError
from sonar.movers.base import MoverError
from sonar.movers.http.deadlines import CURRENT_WAIT, PatientHTTPPool, PatientHTTPSPool, Wait
from sonar.movers.http.exchange import new_trust
from sonar.movers.http.failures import REASONS, chain_of, detail_of
from sonar.movers.http.peers import Addresses, ForbiddenPeer, Route
from sonar.movers.messages import one_line
from sonar.notation.addresses import Kind, is_public, kind_of, unmapped

CONNECT_SECONDS, ANSWER_SECONDS = 5, 10
MOST_BYTES = 2000
MOST_WORDS = 200
FOREIGN = (HTTPError, OSError, http.client.HTTPException, UnicodeError, ForbiddenPeer, MoverError)


class ForbiddenAddress(ForbiddenPeer):
    """An address to which Sonar sends only if a setting names its network."""

    def __init__(self, kind: Kind, *, is_plain: bool) -> None:
        why = f"has an address that is not public ({kind})"
        if is_plain and kind is Kind.PUBLIC:
            why = "requires TLS. Use an address that begins with https://"
        sentence = f"{why}. Only networks in SONAR_NOTIFY_NETWORKS are exempt"
        Exception.__init__(self, sentence)


class Outward(Route):
    """Allows public addresses by TLS, and any address in the networks of the setting."""

    def __init__(self, *, is_plain: bool) -> None:
        super().__init__()
        self.is_plain = is_plain

    def permitted(self, addresses: Addresses) -> Addresses:
        allowed = [address for address in addresses if self._is_allowed(address[4][0])]
        if addresses and not allowed:
            raise self._forbidden(addresses[0][4][0])
        return allowed

    def meet(self, sock: socket) -> None:
        host = sock.getpeername()[0]
        if not self._is_allowed(host):
            raise self._forbidden(host)

    def _is_allowed(self, host: str) -> bool:
        address = unmapped(ip_address(host.partition("%")[0]))
        if any(address in network for network in settings.SONAR_NOTIFY_NETWORKS):
            return True
        return is_public(address) and not self.is_plain

    def _forbidden(self, host: str) -> ForbiddenAddress:
        kind = kind_of(ip_address(host.partition("%")[0]))
        return ForbiddenAddress(kind, is_plain=self.is_plain)


@dataclass(frozen=True)
class Reply:
    status: int
    text: str

    @property
    def words(self) -> str:
        """Return status and text of the answer: `200 OK: ok`."""
        phrase = f"{self.status} {http.client.responses.get(self.status, '')}".strip()
        return f"{phrase}: {self.text}" if self.text else phrase


def post(url: str, body: bytes, headers: Mapping[str, str], *secrets: str) -> Reply:
    """Post JSON; return an answer of success, or raise ChannelError. ``secrets`` are not quoted."""
    host = urlsplit(url).netloc
    sent = {"Content-Type": "application/json", "User-Agent": f"Sonar/{sonar.__version__}"}
    wait = Wait(ANSWER_SECONDS, CONNECT_SECONDS + ANSWER_SECONDS)
    wait.route = Outward(is_plain=not url.startswith("https:"))
    mark = CURRENT_WAIT.set(wait)
    # It connects for each message: they are few, and idle connections end.
    pool = urllib3.PoolManager(num_pools=1, ssl_context=trust(settings.SONAR_NOTIFY_CA_BUNDLE))
    pool.pool_classes_by_scheme = {"http": PatientHTTPPool, "https": PatientHTTPSPool}
    try:
        response = pool.request(
            "POST", url, body=body, headers={**sent, **headers}, preload_content=False,
            redirect=False, retries=False, timeout=Timeout(CONNECT_SECONDS, ANSWER_SECONDS),
        )  # fmt: skip
        content = response.read(MOST_BYTES, decode_content=False)
        response.close()
    except FOREIGN as error:
        raise ChannelError(f"{host} {failure(error)}.") from None
    finally:
        CURRENT_WAIT.reset(mark)
        wait.release()
    hidden = (url, urlsplit(url).path.strip("/"), urlsplit(url).query, *secrets)
    text = one_line(content.decode("utf-8", "replace"), *filter(None, hidden))[:MOST_WORDS]
    reply = Reply(response.status, text)
    if 300 <= reply.status < 400:
        raise ChannelError(f"{host} redirected ({reply.status}); redirects are not followed.")
    if not 200 <= reply.status < 300:
        raise ChannelError(f"{host} answers {reply.words}.")
    return reply


trust = lru_cache(maxsize=2)(new_trust)


def failure(error: Exception) -> str:
    """Describe an error of urllib3, ssl or the system without its quoted text."""
    causes = list(chain_of(error))
    for kind, sentence, _ in REASONS:
        for cause in causes:
            if isinstance(cause, kind):
                return sentence.format(detail=detail_of(cause))
    if isinstance(error, ForbiddenAddress | MoverError):
        return str(error)
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return f"did not answer within {CONNECT_SECONDS + ANSWER_SECONDS} s"
    os_error = next((cause for cause in causes if isinstance(cause, OSError)), None)
    return f"does not answer: {detail_of(os_error)}" if os_error else "sent an incomplete response"


def basic(user: str, password: str) -> dict[str, str]:
    """Return the header of basic authentication; none without a user."""
    if not user:
        return {}
    text = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {text}"}
