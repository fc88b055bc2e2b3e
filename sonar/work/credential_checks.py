"""Credentials are looked at from time to time: which work again, and which expire soon.

What is in a file is read. Who gives tokens is asked only where that has failed, or is due.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.db.models import Max

from sonar.credentials import cache, kinds
from sonar.credentials.sources.base import CredentialError, Purpose, Right
from sonar.database.retry import release_connection
from sonar.models import Credential, CredentialState, Endpoint, Mesh, SizeClass
from sonar.movers import loading
from sonar.movers.base import MoverError, Where
from sonar.movers.mover import AsksService
from sonar.movers.watch import as_failures
from sonar.obstacles import credential_states
from sonar.obstacles.credential_states import LENT, OWN, SERVICE, CredentialProblem, CredentialUse
from sonar.work import credential_secrets
from sonar.work.cleanup import PassOn
from sonar.work.transfer_request import (
    LENT_FOR,
    LENT_TO_SERVICES,
    lent_by,
    look,
    needed_for,
    purpose_at_service,
    purpose_of,
    service_of,
)

# Of what nobody renews here: an operator is told this long before, or in its last quarter.
SOON_SECONDS, SOON_SHARE = 86_400, 1 / 4


@dataclass(frozen=True)
class PlacedCredential:
    """A credential at an endpoint, as its own or lent, or at the service of a mesh."""

    place: Endpoint | Mesh
    credential: Credential
    role: str
    to_services: bool = False
    """Whether a service in use may be given it."""

    @property
    def use(self) -> CredentialUse:
        return CredentialUse(self.credential.pk, self.place.pk, self.role)

    @property
    def is_here(self) -> bool:
        return self.place.vantage == settings.SONAR_VANTAGE

    def purposes(self) -> list[Purpose]:
        if isinstance(self.place, Mesh):
            return [purpose_at_service(self.place, self.credential)]
        if self.role == OWN:
            return [purpose_of(self.place, self.credential, Where.SOURCE, Right.OWN)]
        rights = [*LENT_FOR.items(), *(LENT_TO_SERVICES.items() if self.to_services else ())]
        return [
            purpose_of(self.place, self.credential, where, right)
            for where, right in dict.fromkeys(rights)
        ]


def check(now: datetime, seconds: float, pass_on: PassOn = lambda vantages: None) -> None:
    """Bring what is noted of credentials up to date; none is begun after so many seconds.

    Other vantages, whose workers have the files and the way, are told to ``pass_on``.
    """
    until = time.monotonic() + seconds
    noted = {credential_states.use_of(row) for row in CredentialState.objects.all()}
    longest = SizeClass.objects.aggregate(longest=Max("timeout_seconds"))["longest"] or 0
    each = list(uses())
    rows = list(Credential.objects.all())
    pass_on({usage.place.vantage for usage in each})
    release_connection()
    for use in noted - {usage.use for usage in each}:
        credential_states.clear(use)
    cache.forget(settings.SONAR_TOKEN_CACHE_DIR, {row.name for row in rows})
    credential_secrets.forget(rows)
    here = [usage for usage in each if usage.is_here]
    random.shuffle(here)  # what does not answer takes the time of others: not always the same
    for usage in here:
        if time.monotonic() >= until:
            return
        if usage.credential.kind not in kinds.names():
            continue
        try:
            trouble = trouble_of(usage, needed_for(longest), asks=usage.use in noted)
        except MoverError:  # the giver or the taker fails: that says nothing of the credential
            continue
        if trouble:
            credential_states.record_failure(usage.use, trouble, now)
        elif usage.use in noted:
            credential_states.clear(usage.use)
        release_connection()


def uses() -> Iterator[PlacedCredential]:
    """Yield every use of a credential by endpoints and meshes in use. Two SQL queries."""
    meshes = Mesh.objects.filter(enabled=True).exclude(service="")
    served = list(meshes.select_related("service_credential"))
    rows = Endpoint.objects.in_use()
    for endpoint in rows.select_related("credential", "credential_lent"):
        if endpoint.credential:
            yield PlacedCredential(endpoint, endpoint.credential, OWN)
        if lent := lent_by(endpoint):
            yield PlacedCredential(endpoint, lent, LENT, to_services=bool(served))
    for mesh in served:
        if mesh.service_credential:
            yield PlacedCredential(mesh, mesh.service_credential, SERVICE)


def trouble_of(usage: PlacedCredential, needed: float, *, asks: bool) -> CredentialProblem | None:
    """Say what is wrong with a credential; with ``asks`` who gives its tokens is asked at once.

    Raises MoverError where that cannot be known.
    """
    with as_failures(f"checking credential {usage.credential} ({usage.role}) of {usage.place}"):
        if asks and (trouble := _refusal(usage)):
            return trouble
        trouble = None
        for purpose in usage.purposes():
            trouble = trouble or _trouble_of_token(purpose, needed, asks=asks)
            asks = False  # of the lent tokens one is asked for; another one only if it has failed
        return trouble


def _refusal(usage: PlacedCredential) -> CredentialProblem | None:
    """Ask a service whether it takes its credential; raise MoverError if it does not answer."""
    if not isinstance(usage.place, Mesh):
        return None
    mover = loading.load(usage.place.mover_description)
    try:
        if isinstance(mover, AsksService):
            mover.introduce(
                service_of(usage.place, usage.place.mover_description), settings.SONAR_CA_BUNDLE
            )
    except MoverError as error:
        if not error.credential_trouble:
            raise
        for purpose in usage.purposes():  # what the service refuses is no good, however fresh
            cache.drop(purpose, settings.SONAR_TOKEN_CACHE_DIR)
        return CredentialProblem(error.credential_trouble, holds=True)
    return None


def _trouble_of_token(purpose: Purpose, needed: float, *, asks: bool) -> CredentialProblem | None:
    renews = kinds.describe(purpose.kind).renews
    file = settings.SONAR_TOKEN_CACHE_DIR / cache.name_of(purpose)
    try:
        if renews and not asks and not cache.read(file).why:
            return _trouble_of_cache()
        got = look(purpose, needed)
    except CredentialError as error:
        return CredentialProblem(str(error), holds=True)
    # It still counts: what will be wrong with it?
    expires_at = got.token.expires_at
    moment = datetime.fromtimestamp(expires_at, UTC) if expires_at else None
    if got.trouble:
        return CredentialProblem(got.trouble, holds=False, expires_at=moment)
    if renews:
        return _trouble_of_cache()
    if got.token.left(time.time()) >= min(SOON_SECONDS, got.token.life() * SOON_SHARE):
        return None
    sentence = f"{purpose.secret.where} expires soon"
    return CredentialProblem(sentence, holds=False, expires_at=moment)


def _trouble_of_cache() -> CredentialProblem | None:
    """Say what is wrong with the place where tokens are kept: tests run without it."""
    why = cache.problem(settings.SONAR_TOKEN_CACHE_DIR)
    return CredentialProblem(why, holds=False) if why else None
