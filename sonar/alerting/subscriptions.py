"""Whom an incident concerns, what a channel needs to know of them, and addresses to confirm."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.core import signing
from django.db.models import Q
from django.utils import timezone

from sonar.alerting.channels import catalogue
from sonar.credentials.encryption import OtherKeyError, decrypted, encrypted
from sonar.models import Incident, Notification, Subscription
from sonar.people import roles

Scope, Kind, State = Subscription.Scope, Notification.Kind, Notification.State
# What one person may have; nobody can be written to more often than once an hour to confirm.
MOST_OF_ONE = 5
BETWEEN_LINKS = timedelta(hours=1)
LINK_DAYS = 3
SALT = "sonar.subscription"
# In these, people are told.
ACTIVE = Q(enabled=True, confirmed_at__isnull=False) & (Q(owner=None) | Q(owner__is_active=True))


@dataclass(frozen=True)
class Subscribed:
    """A subscription with the ids of its sites; None for the whole grid."""

    row: Subscription
    sites: frozenset[int] | None

    def concerns(self, incident: Incident, sites: Collection[int]) -> bool:
        """Say whether an incident, which is of these sites, is one that it tells of."""
        row = self.row
        return (
            (not row.levels or incident.level in row.levels)
            and (not row.conditions or incident.condition in row.conditions)
            and (self.sites is None or not self.sites.isdisjoint(sites))
        )


def active(**conditions: object) -> list[Subscribed]:
    """Return those in use for incidents, in the order in which they were made. Two SQL queries."""
    rows = Subscription.objects.filter(ACTIVE, report="", **conditions).select_related("owner")
    return [Subscribed(row, sites_of(row)) for row in rows.prefetch_related("sites").order_by("id")]


def sites_of(row: Subscription) -> frozenset[int] | None:
    if row.scope == Scope.GRID:
        return None
    if row.scope == Scope.OWN:
        return roles.sites_of(row.owner) if row.owner else frozenset()
    return frozenset(site.pk for site in row.sites.all())


def seal(row: Subscription, values: Mapping[str, str]) -> None:
    """Keep what a channel needs to know, encrypted, and of the address only where it leads."""
    row.secret = encrypted(f"subscription {row.key}", json.dumps(dict(values)))
    if url := values.get("url", ""):
        scheme, _, rest = url.partition("://")
        host = rest.partition("/")[0].rpartition("@")[2].partition("?")[0]
        row.address = f"{scheme}://{host}" if row.channel != catalogue.APPRISE else f"{scheme}://"


def unseal(row: Subscription) -> dict[str, str]:
    """Return what a channel needs to know; raise OtherKeyError if the key is another by now."""
    if row.secret is None:
        return {}
    values = json.loads(decrypted(f"subscription {row.key}", row.secret))
    if not isinstance(values, dict):
        raise OtherKeyError
    return {str(name): str(value) for name, value in values.items()}


def confirm_or_ask(row: Subscription, now: datetime) -> str:
    """Let an address of one's own be used; ask by a link sent there whether another one may.

    Returns what is to be said of it, empty if nothing. Lists are of operators, who know whom.
    """
    owner = row.owner
    if owner is None or row.address.casefold() == owner.email.casefold():
        row.confirmed_at = now
        row.save(update_fields=["confirmed_at"])
        return ""
    row.confirmed_at = None
    row.save(update_fields=["confirmed_at"])
    earlier = Notification.objects.filter(
        subscription__owner=owner, kind=Kind.CONFIRMATION, created_at__gt=now - BETWEEN_LINKS
    )
    if earlier.exists():
        return (
            "A link to confirm an address was sent less than an hour ago: save this once more later"
        )
    queue(row, Kind.CONFIRMATION, now)
    return f"A link was sent to {row.address}: open it to be told by that address"


def token_of(row: Subscription) -> str:
    """Return what a link has that confirms the address of a subscription."""
    return signing.dumps([str(row.key), row.address], salt=SALT)


def confirm(token: str, user: User) -> Subscription | None:
    """Let the address be used that a token is for; None if it is too old, or of somebody else."""
    try:
        key, address = signing.loads(token, salt=SALT, max_age=timedelta(days=LINK_DAYS))
    except signing.BadSignature:
        return None
    row = Subscription.objects.filter(key=key, address=address, owner=user).first()
    if row is not None and row.confirmed_at is None:
        row.confirmed_at = timezone.now()
        row.save(update_fields=["confirmed_at"])
    return row


def queue(row: Subscription, kind: Notification.Kind, now: datetime) -> None:
    """Let a test, or a link to confirm an address, be sent next; one that waits already is it."""
    Notification.objects.get_or_create(
        subscription=row,
        incident=None,
        kind=kind,
        state=State.WAITING,
        defaults={"created_at": now, "due_at": now},
    )


def forget_unsent(rows: Iterable[Subscription]) -> None:
    """Drop what still waits for subscriptions that are switched off."""
    waiting = Notification.objects.filter(subscription__in=list(rows), state=State.WAITING)
    waiting.delete()
