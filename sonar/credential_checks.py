"""Credentials are looked at from time to time: which work again, and which expire soon.

What is in a file is read. Who gives tokens is asked only where that has failed, or is due.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings
from django.db.models import Max

from sonar import credential_kinds, credential_states, token_cache
from sonar.credential_states import LENT, OWN, Trouble, Use
from sonar.db_retry import release_connection
from sonar.models import Credential, CredentialState, Endpoint, SizeClass
from sonar.movers.base import MoverError, Where
from sonar.token_cache import UsableToken
from sonar.token_sources.base import CredentialError, Right
from sonar.transfer_request import LENT_FOR, kind_of, lent_by, look, needed_for, purpose_of

# Of what nobody renews here: an operator is told this long before, or in its last quarter.
SOON_SECONDS, SOON_SHARE = 86_400, 1 / 4


@dataclass(frozen=True)
class Usage:
    """A credential at an endpoint, as its own or lent."""

    endpoint: Endpoint
    credential: Credential
    role: str

    @property
    def use(self) -> Use:
        return Use(self.credential.pk, self.endpoint.pk, self.role)


def check(now: datetime, seconds: float) -> None:
    """Bring what is noted of credentials up to date; none is begun after so many seconds."""
    until = time.monotonic() + seconds
    noted = {Use(row.credential_id, row.endpoint_id, row.role) for row in _rows()}
    longest = SizeClass.objects.aggregate(longest=Max("timeout_seconds"))["longest"] or 0
    each = list(uses())
    release_connection()
    _forget_others(noted - {usage.use for usage in each})
    token_cache.forget(settings.SONAR_TOKEN_CACHE_DIR)
    random.shuffle(each)  # what does not answer takes the time of others: not always the same
    for usage in each:
        if time.monotonic() >= until:
            return
        _check_one(usage, noted, needed_for(longest), now)


def uses() -> Iterator[Usage]:
    """Yield every use of a credential by an endpoint that is not retired. One SQL query."""
    rows = Endpoint.objects.filter(retired_at=None)
    for endpoint in rows.select_related("credential", "credential_lent"):
        if endpoint.credential:
            yield Usage(endpoint, endpoint.credential, OWN)
        if lent := lent_by(endpoint):
            yield Usage(endpoint, lent, LENT)


def _rows() -> list[CredentialState]:
    return list(CredentialState.objects.all())


def _forget_others(uses_gone: set[Use]) -> None:
    for use in uses_gone:
        credential_states.well(use)


def _check_one(usage: Usage, noted: set[Use], needed: float, now: datetime) -> None:
    if usage.credential.kind not in credential_kinds.names():
        return
    try:
        trouble = trouble_of(usage, needed, asks=usage.use in noted)
    except MoverError:  # the endpoint is to give it and fails: that says nothing of the credential
        return
    if trouble:
        credential_states.note(usage.use, trouble, now)
    elif usage.use in noted:
        credential_states.well(usage.use)
    release_connection()


def trouble_of(usage: Usage, needed: float, *, asks: bool) -> Trouble | None:
    """Say what is wrong with a credential; with ``asks`` who gives its tokens is asked at once."""
    rights = [Right.OWN] if usage.role == OWN else list(LENT_FOR.values())
    trouble: Trouble | None = None
    for right in rights:
        trouble = trouble or _trouble_of_right(usage, right, needed, asks=asks)
        asks = False  # of two kinds of lent tokens one is asked for; the other if it has failed
    return trouble


def _trouble_of_right(usage: Usage, right: Right, needed: float, *, asks: bool) -> Trouble | None:
    where = Where.DESTINATION if right is Right.LENT_TO_WRITE else Where.SOURCE
    purpose = purpose_of(usage.endpoint, usage.credential, where, right)
    renews = kind_of(usage.credential).renews
    if renews and not asks:
        entry = token_cache.read(settings.SONAR_TOKEN_CACHE_DIR / token_cache.name_of(purpose))
        if not entry.why:
            return None
    try:
        got = look(purpose, needed)
    except CredentialError as error:
        return Trouble(str(error), holds=True)
    return _trouble_ahead(got, renews=renews)


def _trouble_ahead(got: UsableToken, *, renews: bool) -> Trouble | None:
    """Say what will be wrong with a token that still counts."""
    expires_at = got.token.expires_at
    moment = datetime.fromtimestamp(expires_at, UTC) if expires_at else None
    if got.trouble:
        return Trouble(got.trouble, holds=False, expires_at=moment)
    left = got.token.left(time.time())
    soon = min(SOON_SECONDS, got.token.life() * SOON_SHARE)
    if renews or left >= soon:
        return None
    return Trouble("what is in its file expires soon", holds=False, expires_at=moment)
