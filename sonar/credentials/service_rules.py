"""Which service a mesh may name, and who it may be known by there: rules for whoever saves."""

import re
from typing import Protocol

from sonar.credentials import kinds, rules
from sonar.movers.catalogue import MoverDescription
from sonar.notation import addresses

URL = r"^https?://[^/@?#\s]+(/[^@?#\s]*)?$"
URL_SENTENCE = (
    "The URL of a service is https://host[:port]/path, and holds no user, password or query."
)
PLACE_SENTENCE = (
    "The URL of a service must have a host that there can be, no . or .. in its path, and only "
    "characters that can be printed, also where it is percent-encoded."
)


class Credential(rules.Credential, Protocol):
    """What these rules read of a credential."""

    @property
    def scope(self) -> str: ...


def problems(
    mover: MoverDescription, service: str, credential: Credential | None
) -> dict[str, str]:
    """Say by field of a mesh what is wrong with its service; nothing if nothing is.

    The sentences are for all readers: they name no host.
    """
    if not mover.asks_service:
        return _of_none(mover.name, service, credential)
    if not service:
        return {"service": f"The mover {mover.name} asks a service: service must be its URL."}
    if sentence := _of_url(service):
        return {"service": sentence}
    if credential and not rules.names(credential.hosts, service):
        sentence = (
            "The credential of the service is not for its host and port: administrators set which "
            "hosts a credential is for."
        )
        return {"service_credential": sentence}
    if credential and (sentence := _of_kind(credential)):
        return {"service_credential": sentence}
    return {}


def _of_kind(credential: Credential) -> str:
    """Say why no service can know us by a credential of this kind; empty if one can."""
    usable = [kind.name for kind in kinds.KINDS if not kind.not_of_service]
    allowed = f"its kind must be {' or '.join(usable)}"
    if credential.kind not in kinds.names():
        return f"There is no kind of credential like that of the service: {allowed}."
    kind = kinds.describe(credential.kind)
    if kind.not_of_service:
        return (
            f"The credential of the service is of the kind {kind.name}, but {kind.not_of_service}: "
            f"{allowed}."
        )
    if "scope" in kind.takes and not credential.scope:
        return (
            "The credential of the service names no scope: administrators set it to what the "
            "service wants, like fts."
        )
    return ""


def _of_none(mover: str, service: str, credential: Credential | None) -> dict[str, str]:
    fields = {"service": service, "service_credential": credential}
    return {
        name: f"The mover {mover} asks no service: {name} must be left empty."
        for name, value in fields.items()
        if value
    }


def _of_url(service: str) -> str:
    if not re.match(URL, service) or rules.host_of_url(service) is None:
        return URL_SENTENCE
    if rules.is_in_clear(service):
        return "A service is sent what endpoints lend: its URL must begin with https://."
    if addresses.problem(service):
        return PLACE_SENTENCE
    return ""
