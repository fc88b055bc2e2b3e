"""Which credentials do not work, since when, and which tests wait for them.

Workers that find a credential failing note it, and put the test back;
`sonar.work.credential_checks` looks from time to time and takes the note away. What is said of an
endpoint or a mesh is for all readers, the sentence with the reason for operators alone.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sonar.credentials import rules
from sonar.credentials.redacted import without_tokens
from sonar.models import CredentialState, Endpoint, Mesh, Probe
from sonar.registry import mesh_services

OWN, LENT = CredentialState.Role.OWN.value, CredentialState.Role.LENT.value
SERVICE = CredentialState.Role.SERVICE.value


class CredentialUse(NamedTuple):
    """A credential at an endpoint or the service of a mesh, by ids.

    At an endpoint as its own, or as what the other end is given.
    """

    credential: int
    place: int
    """Of the endpoint; of the mesh for the role ``service``."""
    role: str

    @property
    def column(self) -> str:
        return "mesh_id" if self.role == SERVICE else "endpoint_id"


@dataclass(frozen=True)
class CredentialProblem:
    """What is wrong with a credential: whether tests wait for it, and when it expires."""

    sentence: str
    holds: bool
    expires_at: datetime | None = None


def record_failure(use: CredentialUse, trouble: CredentialProblem, now: datetime) -> None:
    """Keep what is wrong, since when it first was. One statement."""
    row = CredentialState(
        credential_id=use.credential,
        **{use.column: use.place},
        role=use.role,
        since=now,
        holds=trouble.holds,
        sentence=without_tokens(trouble.sentence),
        expires_at=trouble.expires_at,
        checked_at=now,
    )
    CredentialState.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["credential", use.column.removesuffix("_id"), "role"],
        update_fields=["holds", "sentence", "expires_at", "checked_at"],
    )


def clear(use: CredentialUse) -> None:
    rows = CredentialState.objects.filter(credential=use.credential, role=use.role)
    rows.filter(**{use.column: use.place}).delete()


def failing() -> set[CredentialUse]:
    """Return the uses for which tests wait. One SQL query."""
    return {use_of(row) for row in CredentialState.objects.filter(holds=True).order_by()}


def use_of(row: CredentialState) -> CredentialUse:
    return CredentialUse(row.credential_id, row.mesh_id or row.endpoint_id or 0, row.role)


def own_fails(endpoint: Endpoint, uses: Collection[CredentialUse]) -> bool:
    """Say whether an endpoint's own credential is among those that fail."""
    credential = endpoint.credential_id
    return credential is not None and CredentialUse(credential, endpoint.pk, OWN) in uses


def lent_fails(endpoint: Endpoint, uses: Collection[CredentialUse]) -> bool:
    # As the model has it: the rules of credentials know no keys.
    key = endpoint.credential_lent_id or endpoint.credential_id or 0
    return rules.lends(endpoint) is not None and CredentialUse(key, endpoint.pk, LENT) in uses


def service_fails(mesh: Mesh, uses: Collection[CredentialUse]) -> bool:
    """Say whether what the service of a mesh knows us by is among those that fail."""
    credential = mesh.service_credential_id
    return credential is not None and CredentialUse(credential, mesh.pk, SERVICE) in uses


def waits(place: str, role: str) -> str:
    """Say what a test waits for, without a name of what only some may see."""
    return f"{subject(place, role)} does not work, so tests that need it are waiting."


def subject(place: str, role: str) -> str:
    """Name a credential by the endpoint, or the mesh, where it is used."""
    if role == SERVICE:
        return f"The credential for the service of the mesh {place}"
    return f"The {'delegated ' if role == LENT else ''}credential of {place}"


def service_problem(probe: Probe, uses: Collection[CredentialUse]) -> str:
    """Say in a sentence that a test waits for the credential of its service; empty if not.

    ``uses`` are those that fail: while no service has one, no SQL query.
    """
    is_concerned = any(use.role == SERVICE for use in uses)
    mesh = mesh_services.of_probe(probe) if is_concerned else None
    return waits(mesh.name, SERVICE) if mesh and service_fails(mesh, uses) else ""
