"""Where the tokens of credentials come from: a description of each kind, loaded only when used.

Registry, forms, planner, docs and workers read the facts of a kind here and nowhere else. A new
kind is an entry of ``KINDS`` and the module that it names.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from sonar.notation.addresses import CredentialKind, is_nobodys, is_printable, is_this_machine

FILE = "file"
X509 = "x509"
SETTINGS = ("issuer", "client_id", "audience", "path_prefix", "scope")
PRINTABLE = re.compile(r"[!-~]+")
# RFC 6749, 3.3.
SCOPES = re.compile(r"[!#-\[\]-~]+( [!#-\[\]-~]+)*")
OF_STORAGE = "storage."

ISSUER_SENTENCE = (
    "An issuer must have the form https://host[:port]/path (http only for this machine). A user "
    "name, a password, a query string and control characters are not allowed, not even "
    "percent-encoded."
)
ISSUER_HOST_SENTENCE = "The URL of an issuer must have a valid host."


@dataclass(frozen=True)
class KindDescription:
    """A kind of credential as everybody but its source knows it."""

    name: str
    label: str
    """Content of the credential file, and its use."""
    path: str
    """The class, as ``package.module:Name``; called without arguments once it is used."""
    shown: CredentialKind
    """The kind of credential that storage servers receive."""
    needs: frozenset[str] = frozenset()
    """Settings that it must have."""
    takes: frozenset[str] = frozenset()
    """Settings that it may have besides."""
    renews: bool = False
    """Whether tokens are asked for, each as narrow as its use, and renewed before they expire."""
    not_of_service: str = ""
    """Why no service can know us by it; empty if one can."""
    not_to_service: str = ""
    """Why no service that knows us by a token takes it as what an endpoint lends; empty if it does.
    """

    @property
    def lendable(self) -> bool:
        """Say whether the other end of a copy can be given it: a private key never leaves."""
        return self.shown is CredentialKind.BEARER_TOKEN


KINDS: tuple[KindDescription, ...] = (
    KindDescription(
        name=FILE,
        label="file: a bearer token, used as is",
        path="sonar.credentials.sources.file:FileSource",
        shown=CredentialKind.BEARER_TOKEN,
    ),
    KindDescription(
        name="client_credentials",
        label="client_credentials: the secret of an OAuth2 client, for which an issuer issues "
        "tokens",
        path="sonar.credentials.sources.client_credentials:ClientCredentialsSource",
        shown=CredentialKind.BEARER_TOKEN,
        needs=frozenset({"issuer", "client_id"}),
        takes=frozenset({"audience", "path_prefix", "scope"}),
        renews=True,
    ),
    KindDescription(
        name="macaroon",
        label="macaroon: a token, or a certificate with its key, that the endpoint itself "
        "exchanges for macaroons",
        path="sonar.credentials.sources.macaroon:MacaroonSource",
        shown=CredentialKind.BEARER_TOKEN,
        renews=True,
        not_of_service="only storage endpoints issue macaroons",
        not_to_service="the endpoint delegates a macaroon, but the service accepts only JSON Web "
        "Tokens",
    ),
    KindDescription(
        name=X509,
        label="x509: a proxy certificate with its key",
        path="sonar.credentials.sources.x509:ProxySource",
        shown=CredentialKind.X509_PROXY,
        not_of_service="a proxy certificate would have to be delegated to the service, which Sonar "
        "does not support",
    ),
)
CHOICES = [(kind.name, kind.label) for kind in KINDS]


def names() -> list[str]:
    return [kind.name for kind in KINDS]


def describe(name: str) -> KindDescription:
    """Return the description of a kind; ValueError names those there are."""
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise ValueError(f"the credential kind {name!r} does not exist; allowed: {', '.join(names())}")


def problems(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    """Say by field what is wrong with the settings of a credential; nothing if nothing is.

    ``values`` has those of ``SETTINGS``. Raises ValueError for a kind that there is not.
    """
    description = describe(kind)
    sentences = {}
    for name in SETTINGS:
        if name in description.needs and not values[name]:
            sentences[name] = f"A credential of the kind {kind} needs the {name}."
        elif name not in description.needs | description.takes and values[name]:
            sentences[name] = f"A credential of the kind {kind} has no {name}: leave it empty."
        elif values[name] and (sentence := RULES[name](values[name])):
            sentences[name] = sentence
    return sentences


def _of_issuer(url: str) -> str:
    """Say what is wrong with the address of an issuer."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:  # an IPv6 address, or a port, that cannot be
        return ISSUER_SENTENCE
    plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    safe = parts.scheme == "https" or (parts.scheme == "http" and is_this_machine(host))
    if not (host and plain and safe and PRINTABLE.fullmatch(url) and is_printable(url)):
        return ISSUER_SENTENCE
    return ISSUER_HOST_SENTENCE if is_nobodys(host) else ""


def _of_words(text: str) -> str:
    return (
        ""
        if PRINTABLE.fullmatch(text)
        else "Only printable ASCII characters without spaces are allowed."
    )


def _of_scope(text: str) -> str:
    if not SCOPES.fullmatch(text):
        return "A scope is one or more words separated by single spaces, for example fts."
    if any(word.startswith(OF_STORAGE) for word in text.split()):
        return "This scope is for services only: Sonar itself chooses the storage scopes."
    return ""


def _of_path(path: str) -> str:
    if not PRINTABLE.fullmatch(path) or not path.startswith("/") or ".." in path:
        return "A path must begin with / and must not contain spaces or “..”."
    return (
        ""
        if is_printable(path)
        else "A path must not contain control characters, not even percent-encoded."
    )


RULES = {
    "issuer": _of_issuer,
    "client_id": _of_words,
    "audience": _of_words,
    "path_prefix": _of_path,
    "scope": _of_scope,
}
