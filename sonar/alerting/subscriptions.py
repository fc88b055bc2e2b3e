"""Subscriptions: the incidents that match them, their settings, and confirmed addresses."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone

from sonar.alerting.channels import catalogue
from sonar.credentials.encryption import OtherKeyError, decrypted, encrypted
from sonar.models import Endpoint, Incident, LastSent, Mesh, Notification, Site, Subscription
from sonar.models.member_filters import ENDS
from sonar.notation.units import format_span
from sonar.people import roles
from sonar.registry.cache import RegistryCache
from sonar.registry.mesh_members import at_end, read_endpoints

Scope, Kind, State = Subscription.Scope, Notification.Kind, Notification.State
# Users request these by a button; they are sent before all others.
DIRECT = (Kind.TEST, Kind.CONFIRMATION)
MOST_OF_ONE = 5
# Within these times, each person can request and each address can get only one link, one test or
# one message with open incidents.
BETWEEN_LINKS, BETWEEN_TESTS = timedelta(hours=1), timedelta(minutes=1)
BETWEEN_INCIDENTS = timedelta(minutes=1)
LINK_DAYS = 3
NO_SITE = "No site of this report is registered. Cancel this subscription."
SALT = "sonar.subscription"
MINUTE = timedelta(minutes=1)
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
# Sonar may write to these addresses; to others it sends only a link to confirm the address.
OWNER_IS_ACTIVE = Q(owner=None) | Q(owner__is_active=True)
REACHABLE = Q(confirmed_at__isnull=False) & OWNER_IS_ACTIVE
# Subscriptions that send notifications.
ACTIVE = Q(enabled=True) & REACHABLE


@dataclass(frozen=True)
class Subscribed:
    """A subscription with the ids of its sites; None for the whole grid."""

    row: Subscription
    sites: frozenset[int] | None

    def concerns(self, incident: Incident, sites: Collection[int]) -> bool:
        """Return whether an incident of these sites matches the subscription."""
        row = self.row
        return (
            (not row.incident_scopes or incident.scope in row.incident_scopes)
            and (not row.incident_types or incident.type in row.incident_types)
            and (self.sites is None or not self.sites.isdisjoint(sites))
        )


def sites_of(row: Subscription) -> frozenset[int] | None:
    if row.scope == Scope.GRID:
        return None
    if row.scope == Scope.OWN:
        return roles.sites_of(row.owner) if row.owner else frozenset()
    return frozenset(site.pk for site in row.sites.all())


def read_tested_sites() -> frozenset[int]:
    """Return the ids of the sites that have a link in an enabled mesh."""
    endpoints, tested = read_endpoints(), set[int]()
    for mesh in Mesh.objects.filter(enabled=True).prefetch_related(*ENDS):
        schemes = mesh.mover_description.schemes_in(mesh.mode)
        sources, destinations = (
            {end.id for end in at_end(mesh, at, endpoints) if end.enabled and end.scheme in schemes}
            for at in ENDS
        )
        if sources and destinations and len(sources | destinations) > 1:
            tested |= sources | destinations
    return frozenset(Endpoint.objects.filter(pk__in=tested).values_list("site_id", flat=True))


tested_sites = RegistryCache(read_tested_sites)

NOT_IN_A_MESH = "no enabled mesh includes any links from or to the sites of this subscription."


def covers_nothing(row: Subscription) -> str:
    """Say why no incident can match a subscription; return an empty string if some can."""
    if row.report:
        places = row.sites.all() if row.scope == Scope.SITES else Site.objects.all()
        places = places.filter(cloud=row.cloud) if row.cloud else places
        return "" if places.exists() else NO_SITE
    sites, tested = sites_of(row), tested_sites.read()
    if sites is None:
        why = "" if tested else "no enabled mesh includes any links."
    elif list(row.incident_scopes) == [Incident.Scope.GRID]:
        why = "incidents of Sonar itself do not belong to a site. Choose “all incidents”."
    elif not sites and row.scope == Scope.OWN:
        why = "this account administers no site. Choose “all incidents”, or select sites."
    elif not sites:
        why = "the selected sites are no longer registered. Select other sites."
    else:
        why = NOT_IN_A_MESH if tested.isdisjoint(sites) else ""
    return why and f"No incident can match this subscription: {why}"


def seal(row: Subscription, values: Mapping[str, str]) -> None:
    """Store the settings of a channel encrypted; ``address`` gets only scheme and host."""
    row.secret = encrypted(f"subscription {row.key}", json.dumps(dict(values)))
    if url := values.get("url", ""):
        scheme, _, rest = url.partition("://")
        host = rest.partition("/")[0].rpartition("@")[2].partition("?")[0]
        row.address = f"{scheme}://{host}" if row.channel != catalogue.APPRISE else f"{scheme}://"


def unseal(row: Subscription) -> dict[str, str]:
    """Return the settings of a channel; raise OtherKeyError if the key has changed."""
    if row.secret is None:
        return {}
    values = json.loads(decrypted(f"subscription {row.key}", row.secret))
    if not isinstance(values, dict):
        raise OtherKeyError
    return {str(name): str(value) for name, value in values.items()}


def count_own(owner: User, among: Q) -> int:
    """Count the subscriptions of a person; concurrent additions wait for each other here."""
    User.objects.select_for_update(no_key=True).get(pk=owner.pk)
    return Subscription.objects.filter(among, owner=owner).count()


def confirm_or_ask(row: Subscription, now: datetime, *, is_same: bool = False) -> str:
    """Confirm the address of the account at once; send a confirmation link to any other address.

    Returns a sentence for the person, or an empty string. Shared subscriptions need no link. Run
    in a transaction that has locked the row; ``is_same`` says that its address was not changed.
    """
    owner, links = row.owner, row.notifications.filter(kind=Kind.CONFIRMATION)
    if not is_same:  # what was requested for another address is not sent to this one
        row.notifications.filter(kind=Kind.TEST, state=State.WAITING).delete()
        links.delete()
    is_known = owner is None or row.address.casefold() == owner.email.casefold()
    if not is_known:
        own = Subscription.objects.filter(owner=owner, address__iexact=row.address)
        is_known = own.filter(confirmed_at__isnull=False).exclude(pk=row.pk).exists()
    row.confirmed_at = now if is_known else None
    Subscription.objects.filter(pk=row.pk).update(confirmed_at=row.confirmed_at)
    if is_known:
        links.filter(state=State.WAITING).delete()
        return ""
    if wait := take_turn("link", row, BETWEEN_LINKS, now):
        later = format_span(wait + MINUTE)
        if links.exists():
            return (
                f"A confirmation link was already sent to {row.address}. Open it, or save the "
                f"subscription again in {later}"
            )
        return (
            f"No confirmation link was sent to {row.address}, because another link was sent less "
            f"than an hour ago. Save the subscription again in {later}"
        )
    queue(row, Kind.CONFIRMATION, now)
    return (
        f"A confirmation link was sent to {row.address}. Open it to receive messages at this "
        "address"
    )


@transaction.atomic
def take_turn(noun: str, row: Subscription, pause: timedelta, now: datetime) -> timedelta | None:
    """Count a requested message for its owner and for its address; return None.

    If either had one within the pause, count nothing and return the time to wait. The counts
    stay when subscriptions and accounts are deleted. Concurrent requests wait for each other.
    """
    keys = [f"{noun} to {hash_address(row)}"]
    keys += [f"{noun} of {row.owner_id}"] if row.owner_id else []
    LastSent.objects.bulk_create(
        [LastSent(key=key, at=NEVER) for key in sorted(keys)], ignore_conflicts=True
    )
    counts = LastSent.objects.filter(key__in=keys)
    free = counts.filter(at__lte=now - pause).order_by("key").select_for_update()
    if len(free) == len(keys):
        counts.update(at=now)
        return None
    latest = counts.aggregate(at=Max("at"))["at"] or now
    return max(latest + pause - now, timedelta(seconds=1))


def hash_address(row: Subscription) -> str:
    """Return a hash of the mailbox, or of the key of the subscription without a mailbox."""
    name, _, host = row.address.casefold().partition("@")
    # Mail to ann+x@ is delivered to ann@.
    address = f"{name.partition('+')[0]}@{host}" if host else str(row.key)
    return hashlib.sha256(address.encode()).hexdigest()


def message_prefix(row: Subscription) -> str:
    """Return the prefix of the keys of messages to a person at this address."""
    return f"message {row.owner_id or 0} {hash_address(row)[:32]} "


def call_prefix(row: Subscription, incident: int) -> str:
    """Return the prefix of the keys of messages to a person about an incident."""
    return f"incident {incident} {row.owner_id or hash_address(row)[:32]} "


def keys_of(row: Subscription, rows: Sequence[Notification]) -> list[str]:
    """Return the keys by which a message is counted, even after its subscription is deleted."""
    calls = [f"{call_prefix(row, each.incident_id)}{each.pk}" for each in rows if each.incident_id]
    return [*(f"{message_prefix(row)}{each.pk}" for each in rows[:1]), *calls]


def sent_by_deleted(prefix: str, since: datetime) -> list[datetime]:
    """Return when messages of deleted subscriptions were sent, by the prefix of their keys."""
    kept = LastSent.objects.filter(key__startswith=prefix, at__gt=since)
    sent = {int(key.rpartition(" ")[2]): at for key, at in kept.values_list("key", "at")}
    present = Notification.objects.filter(pk__in=sent).values_list("pk", flat=True) if sent else ()
    return [sent[pk] for pk in sent.keys() - set(present)]


def token_of(row: Subscription) -> str:
    """Return the token of the link that confirms the address of a subscription."""
    return signing.dumps([str(row.key), row.address], salt=SALT)


def confirm(token: str, user: User) -> Subscription | None:
    """Confirm the address of a token; return None if it has expired or is of another account.

    One statement decides, so an address that changes at the same moment is not confirmed.
    """
    try:
        key, address = signing.loads(token, salt=SALT, max_age=timedelta(days=LINK_DAYS))
    except signing.BadSignature:
        return None
    rows = Subscription.objects.filter(key=key, address=address, owner=user)
    rows.filter(confirmed_at=None).update(confirmed_at=timezone.now())
    row = rows.filter(confirmed_at__isnull=False).first()
    if row is not None:
        row.notifications.filter(kind=Kind.CONFIRMATION, state=State.WAITING).delete()
    return row


def queue(row: Subscription, kind: Notification.Kind, now: datetime) -> None:
    """Queue a test or a confirmation link, unless one is queued already."""
    Notification.objects.get_or_create(
        subscription=row,
        incident=None,
        kind=kind,
        state=State.WAITING,
        defaults={"created_at": now, "due_at": now},
    )


def forget_unsent(rows: Iterable[Subscription]) -> None:
    """Delete the queued notifications of disabled subscriptions."""
    waiting = Notification.objects.filter(subscription__in=list(rows), state=State.WAITING)
    waiting.delete()
