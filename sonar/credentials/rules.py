"""Where credentials may go, in one place: the rules for who saves, plans and uses.

A credential is sent to the hosts that it names and to nobody else, and never in clear. The other
end of a third-party copy is given what the endpoint lends: its ``credential_lent``, or its own
one where it says ``lend_credential``; of a kind that renews its tokens the other end gets one
of its own, for what it does and nothing else. A proxy certificate is lent to nobody. The sentences
are for all readers: they name endpoints, no host and no credential.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple, Protocol

from sonar.credentials import kinds as credential_kinds
from sonar.credentials.kinds import KindDescription
from sonar.movers.catalogue import MoverDescription
from sonar.notation import addresses
from sonar.notation.addresses import (
    IN_CLEAR,
    PORTS,
    SHORT_NAMES,
    CredentialKind,
    address_of,
    is_this_machine,
    name_of,
    scheme_of,
)

# No dot first, as the name is that of a file; an older Sonar let names begin with - and _.
NAME = r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$"
NAME_SENTENCE = (
    "A credential name may contain only letters, digits, dots, dashes and underscores. It must not "
    "begin with a dot, as it is also a file name."
)
HOST_SENTENCE = (
    "A host of a credential is a name or an IP address in lower case. A port limits it to that "
    "port: storage.example.org, storage.example.org:1094 or [2001:db8::1]:443. A scheme, a path or "
    "a wildcard is not allowed."
)
_HOST = re.compile(r"([a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?")
SERVICE_URL = r"^https?://[^/@?#\s]+(/[^@?#\s]*)?$"
SERVICE_SENTENCE = (
    "The URL of a service must have the form https://host[:port]/path, without a user name, a "
    "password or a query string."
)
SERVICE_PLACE_SENTENCE = (
    "The URL of a service must have a valid host and only printable characters, even after "
    "percent-decoding. Its path must not contain . or .. as a segment."
)
NOBODY_SENTENCE = (
    "A service refuses requests without a token: “service_credential” must name the credential "
    "that Sonar presents to the service. The field may be empty only if the service runs on this "
    "machine and uses http."
)
# Columns of a probe or schedule that obstacles and `transfer_request.order_for` read: no
# connection is held meanwhile.
CREDENTIALS = ("credential", "credential_lent")
WITH_CREDENTIALS = tuple(
    f"{end}__{name}" for end in ("source", "destination") for name in CREDENTIALS
)
# What to do about an endpoint that lends no credential.
LEND = "set “lend_credential” to delegate its own credential, or set “credential_lent”."
# Who is passive in a copy, and who is active and is given what the other lends.
PASSIVE_AND_ACTIVE = {"pull": ("source", "destination"), "push": ("destination", "source")}


class Credential(Protocol):
    """What these rules read of a credential; models know them, and not they the models."""

    name: str
    hosts: list[str]
    kind: str
    scope: str


class Endpoint(Protocol):
    """What these rules read of an endpoint."""

    name: str
    base_url: str
    credential_id: int | None
    credential_lent_id: int | None
    lend_credential: bool

    @property
    def credential(self) -> Credential | None: ...

    @property
    def credential_lent(self) -> Credential | None: ...


class Host(NamedTuple):
    """A host as it is compared; without a port it stands for all of them."""

    name: str
    port: int | None


@lru_cache(maxsize=10_000)
def host_of(text: str) -> Host | None:
    """Read `host` or `host:port`; None if it is neither. An address has one form then."""
    match = _HOST.fullmatch(text)
    if match is None:
        return None
    name, port = match[1], int(match[2]) if match[2] else None
    if port is not None and port > 65535:
        return None
    if name.startswith("[") and address_of(name) is None:
        return None
    return Host(name_of(name), port)


def host_of_url(base_url: str) -> Host | None:
    """Return the host of a base URL with its port; None for what can be read in two ways."""
    scheme, _, rest = base_url.partition("://")
    authority = rest.partition("/")[0]
    # Letters beyond ASCII may become others, also in a library that sends to them.
    host = host_of(authority.lower()) if authority.isascii() else None
    return host and Host(host.name, host.port or PORTS.get(scheme))


def names(hosts: list[str], base_url: str) -> bool:
    """Say whether a list of hosts names that of a base URL, and its port."""
    used = host_of_url(base_url)
    return used is not None and not {used, Host(used.name, None)}.isdisjoint(_set_of(tuple(hosts)))


@lru_cache(maxsize=1000)
def _set_of(hosts: tuple[str, ...]) -> frozenset[Host]:
    """Read a list of hosts once: a thousand endpoints may share one credential of as many."""
    return frozenset(filter(None, map(host_of, hosts)))


def is_in_clear(base_url: str) -> bool:
    """Say whether what is sent to a base URL can be read on its way: no TLS, another machine."""
    if scheme_of(base_url) not in IN_CLEAR:
        return False
    host = host_of_url(base_url)
    return host is None or not is_this_machine(host.name)


def problems(endpoint: Endpoint) -> dict[str, str]:
    """Say by field what is wrong with the credentials of an endpoint; nothing if nothing is."""
    sentences = {}
    for field, subject in (
        ("credential", "The credential"),
        ("credential_lent", "The delegated credential"),
    ):
        credential: Credential | None = getattr(endpoint, field)
        if credential is None:
            continue
        if not names(credential.hosts, endpoint.base_url):
            sentences[field] = (
                f"{subject} of {endpoint.name} is not valid for the host and port of its base "
                "URL. Administrators set the hosts for which a credential is valid."
            )
        elif is_in_clear(endpoint.base_url):
            sentences[field] = (
                f"{subject} of {endpoint.name} would be sent unencrypted: its base URL must "
                "begin with https:// or davs://."
            )
    lent = endpoint.credential_lent
    if lent is not None and not is_lendable(lent):
        sentences["credential_lent"] = (
            f"The delegated credential of {endpoint.name} is a proxy certificate, whose key Sonar "
            "never passes on: use a token."
        )
    if _lends_its_own(endpoint) and not endpoint.lend_credential:
        sentences.setdefault(
            "credential_lent",
            f"The delegated credential of {endpoint.name} is the endpoint's own credential: choose "
            "another credential, or set “lend_credential”.",
        )
    return sentences


def _lends_its_own(endpoint: Endpoint) -> bool:
    lent = endpoint.credential_lent_id
    return lent is not None and lent == endpoint.credential_id


def problem(endpoint: Endpoint) -> str:
    """Say in a sentence why no test may use the credentials of an endpoint; empty if they may."""
    return next(iter(problems(endpoint).values()), "")


def is_lendable(credential: Credential) -> bool:
    """Say whether others may be given it at all; what is of a kind no longer known is kept."""
    kinds = credential_kinds.names()
    return credential.kind in kinds and credential_kinds.describe(credential.kind).lendable


def lends(endpoint: Endpoint) -> Credential | None:
    """Return the credential that the other end of a copy is given."""
    lent = endpoint.credential_lent
    if endpoint.credential_lent_id is None:
        lent = endpoint.credential if endpoint.lend_credential else None
    return lent if lent is not None and is_lendable(lent) else None


def refuses_to_lend(endpoint: Endpoint) -> bool:
    """Say whether an endpoint wants a token and has none that others may be given.

    Who has a proxy certificate needs none lent: Sonar's own program shows it to both ends.
    """
    own = endpoint.credential
    return own is not None and is_lendable(own) and lends(endpoint) is None


def withheld_from_service(endpoint: Endpoint, *, by_token: bool) -> str:
    """Say in a sentence why a service cannot move files of an endpoint; empty if it can.

    A service that knows Sonar ``by_token`` would show that token where an endpoint lends none.
    """
    lent = lends(endpoint)
    if endpoint.credential is None and by_token and lent is None:
        lacks = f"{endpoint.name} has no credential, but the service needs one"
        return f"{lacks}: add a credential and delegate it."
    if refuses_to_lend(endpoint) or (by_token and lent is None):
        return f"{endpoint.name} delegates no credential to the service: {LEND}"
    why = credential_kinds.describe(lent.kind).not_to_service if lent and by_token else ""
    return f"{endpoint.name} cannot be tested by the service: {why}." if why else ""


def forbids(source: Endpoint, destination: Endpoint, mode: str) -> str:
    """Say in a sentence what a test in this mode would give away; empty if it may run."""
    ends = {"source": source, "destination": destination}
    passive, active = (ends[end] for end in PASSIVE_AND_ACTIVE[mode])
    if refuses_to_lend(passive):
        use = "read" if mode == "pull" else "write"
        return (
            f"{passive.name} delegates no credential, but {active.name} needs one to {use} there: "
            f"{LEND}"
        )
    if lends(passive) and is_in_clear(active.base_url):
        return (
            f"The credential that {passive.name} delegates would be sent unencrypted to "
            f"{active.name}, whose base URL must begin with https:// or davs://."
        )
    return ""


def shown_to_both(endpoint: Endpoint) -> tuple[int | None, str] | None:
    """Return what is equal for two ends to which a program may show one credential.

    That is the credential, and who must not be shown that of this endpoint; None without one.
    """
    kind = _known_kind(endpoint)
    if kind is None:
        return None
    return (endpoint.credential_id, endpoint.name if _is_kept(endpoint, kind) else "")


def _known_kind(endpoint: Endpoint) -> KindDescription | None:
    own = endpoint.credential
    if own is None or own.kind not in credential_kinds.names():
        return None
    return credential_kinds.describe(own.kind)


def _is_kept(endpoint: Endpoint, kind: KindDescription) -> bool:
    """Say whether no other end may have the token of an endpoint; a proxy gives nothing away."""
    return kind.lendable and (kind.renews or not endpoint.lend_credential)


def two_credentials(source: Endpoint, destination: Endpoint, mover: MoverDescription) -> str:
    """Say in a sentence that a mover would need two credentials at once; empty if it does not."""
    if not mover.one_credential or shown_to_both(source) == shown_to_both(destination):
        return ""
    ends = (source, destination)
    kinds = [_known_kind(end) for end in ends]
    if source.credential_id == destination.credential_id:
        return _kept_token(ends, kinds, mover)
    of_ends = [kind and kind.shown for kind in kinds]
    is_proxy = CredentialKind.X509_PROXY in of_ends
    shown = CredentialKind.X509_PROXY if is_proxy else CredentialKind.BEARER_TOKEN
    having = [end.name for end, own in zip(ends, of_ends, strict=True) if own is shown]
    advice = "Give both endpoints the same credential, or use another transfer tool."
    singular, plural = SHORT_NAMES[shown]
    if len(having) == len(ends):
        names = f"{source.name} and {destination.name}"
        return f"{names} have different {plural}, but {mover.name} uses one for both. {advice}"
    without = next(end.name for end in ends if end.name not in having)
    return (
        f"{without} has no {singular}, and {mover.name} would send it the {singular} of "
        f"{having[0]}. {advice}"
    )


def _kept_token(
    ends: Iterable[Endpoint], kinds: Iterable[KindDescription | None], mover: MoverDescription
) -> str:
    """Say why the token of two ends with one credential must not be shown to both."""
    if any(kind and kind.renews for kind in kinds):
        source, destination = (end.name for end in ends)
        return (
            f"{source} and {destination} have a token each, but {mover.name} uses one for both. "
            "Use a token file or another transfer tool."
        )
    keeping = next(end.name for end in ends if not end.lend_credential)
    return (
        f"{keeping} delegates no credential, but {mover.name} would send the token of {keeping} "
        "to the other endpoint. Set “lend_credential”, or use another transfer tool."
    )


def service_problems(
    mover: MoverDescription, service: str, credential: Credential | None
) -> dict[str, str]:
    """Say by field of a mesh what is wrong with its service; nothing if nothing is.

    The sentences are for all readers: they name no host.
    """
    if not mover.asks_service:
        return _no_service(mover.name, service, credential)
    if not service:
        return {
            "service": f"The transfer tool {mover.name} needs a service: “service” must be a URL."
        }
    if sentence := _service_url(service):
        return {"service": sentence}
    if credential:
        sentence = _service_credential(service, credential)
    else:
        sentence = NOBODY_SENTENCE if scheme_of(service) == "https" else ""
    return {"service_credential": sentence} if sentence else {}


def _service_credential(service: str, credential: Credential) -> str:
    """Say why a service cannot know Sonar by a credential; empty if it can."""
    if not names(credential.hosts, service):
        return (
            "The credential of the service is not valid for the host and port of the service. "
            "Administrators set the hosts for which a credential is valid."
        )
    usable = [kind.name for kind in credential_kinds.KINDS if not kind.not_of_service]
    allowed = f"the kind must be {' or '.join(usable)}"
    if credential.kind not in credential_kinds.names():
        return f"The credential of the service is of an unknown kind: {allowed}."
    kind = credential_kinds.describe(credential.kind)
    if kind.not_of_service:
        return (
            f"The credential of the service is of the kind {kind.name}, but {kind.not_of_service}: "
            f"{allowed}."
        )
    if "scope" in kind.takes and not credential.scope:
        return (
            "The credential of the service has no scope: administrators set the scope that the "
            "service requires, for example fts."
        )
    return ""


def _no_service(mover: str, service: str, credential: Credential | None) -> dict[str, str]:
    fields = {"service": service, "service_credential": credential}
    return {
        name: f"The transfer tool {mover} uses no service: “{name}” must be left empty."
        for name, value in fields.items()
        if value
    }


def _service_url(service: str) -> str:
    if not re.match(SERVICE_URL, service) or host_of_url(service) is None:
        return SERVICE_SENTENCE
    if is_in_clear(service):
        return "A service receives delegated credentials: its URL must begin with https://."
    if addresses.problem(service):
        return SERVICE_PLACE_SENTENCE
    return ""
