"""Accounts of people whom somebody else vouches for: an OpenID provider, or a certificate.

Such an account belongs to an issuer and what that calls the person, and to nothing else: names
and e-mail addresses find nobody. Its role is what its groups give, anew at each log-in.
"""

import logging
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.checks import Warning as CheckWarning
from django.db import IntegrityError, ProgrammingError, transaction
from django.utils import timezone

from sonar.database import actor
from sonar.models import Site
from sonar.people import roles
from sonar.people.role_rules import Grant, Role

log = logging.getLogger(__name__)

# Stands for the issuer of all certificates: the front server says which it trusts.
CERTIFICATE = "certificate"
LONGEST_SUBJECT = 191  # characters of allauth's column
LONGEST_NAME = 150  # of Django's
# Tokens of an account end when nobody has asked for its groups for as long.
LAPSE = timedelta(days=30)
# In the row of a person: switched off here as no group was left, and not by an administrator.
NO_GROUP = "no_group"


class NotAdmitted(Exception):
    """A person who is known and may not log in; the sentence says why."""


@dataclass(frozen=True)
class Identity:
    """A person: ``subject`` is what ``issuer`` calls it, ``name`` what it is called among us."""

    issuer: str
    subject: str
    name: str = ""
    groups: tuple[str, ...] = ()

    @property
    def certificate(self) -> str:
        return self.subject if self.issuer == CERTIFICATE else ""

    @property
    def host(self) -> str:
        return urlsplit(self.issuer).hostname or self.issuer


def admit(person: Identity) -> User:
    """Return the account of a person, with the role that its groups give now.

    A new person gets a new one. Raises NotAdmitted, after a person who was known has lost the
    role and, where no group is left, everything that an account may.
    """
    if not 0 < len(person.subject) <= LONGEST_SUBJECT or not person.subject.isprintable():
        raise NotAdmitted(
            f"Your identifier at the log-in provider must have 1 to {LONGEST_SUBJECT} printable "
            "characters."
        )
    grant = settings.SONAR_LOGIN_ROLES.grant(person.groups, person.certificate)
    with actor.acting("log-in", f"log-in through {person.host}"):
        record = recorded(person, grant) or recorded(person, grant)
    if (record is None or grant is None) and person.certificate:
        raise NotAdmitted(
            f"Your certificate has no role in this Sonar instance: {person.certificate}."
        )
    if record is None or grant is None:
        groups = ", ".join(person.groups) or "none"
        raise NotAdmitted(
            "None of your groups has a role in this Sonar instance. Your groups, as reported by "
            f"the log-in provider: {groups}."
        )
    if not record.user.is_active:
        raise NotAdmitted("Your account was disabled by an administrator of this Sonar instance.")
    user: User = record.user
    return user


def recorded(person: Identity, grant: Grant | None) -> SocialAccount | None:
    """Give an account what its groups give; return its row. None if there is none and may be none.

    None as well if another log-in made it at the same moment: ask again.
    """
    try:
        with transaction.atomic():
            # The account, too: an administrator may close it at the same moment.
            rows = SocialAccount.objects.select_for_update(of=("self", "user"))
            rows = rows.select_related("user")
            record = rows.filter(provider=person.issuer, uid=person.subject).first()
            if record is None:
                if grant is None:
                    return None
                user = User.objects.create_user(free_name(person))
                record = SocialAccount(user=user, provider=person.issuer, uid=person.subject)
            update(record, person, grant)
            return record
    except IntegrityError:
        return None


def update(record: SocialAccount, person: Identity, grant: Grant | None) -> None:
    user = record.user
    closed_here = record.extra_data.get(NO_GROUP, False)
    if grant is None:
        roles.give(user, Role.READER)
        closes = user.is_active
        user.is_active = False
        record.extra_data = {NO_GROUP: closes or closed_here}
    else:
        sites = list(Site.objects.filter(name__in=grant.sites))
        for name in sorted(grant.sites - {site.name for site in sites}):
            log.warning(
                "A group reported at log-in refers to the site %s, which is not registered.", name
            )
        # A site admin without any site is a reader.
        is_without = grant.role is Role.SITE_ADMIN and not sites
        roles.give(user, Role.READER if is_without else grant.role, sites)
        user.is_active = user.is_active or closed_here
        record.extra_data = {}
    user.save(update_fields=["is_active"])
    record.extra_data["groups"] = list(person.groups)
    record.save()
    log.info(
        "Log-in: the groups of %s give this account the role of %s.", user, roles.described(user)
    )


def free_name(person: Identity) -> str:
    """Return a name for a new account that no other has: anna@iam.example.org.

    It says who vouches for it, so that nobody is taken for an account of Sonar's own.
    """
    plain = re.sub(r"[^\w.+-]+", "-", (person.name or person.subject).partition("@")[0]).strip("-")
    end = f"@{person.host}"[: LONGEST_NAME // 2]
    name = plain[: LONGEST_NAME - len(end) - 4] or "person"
    tries = (f"{name}{number or ''}{end}" for number in (0, *range(2, 1000)))
    return next(it for it in tries if not User.objects.filter(username__iexact=it).exists())


def described(user: User) -> str:
    """Say who vouches for the person of an account, and what the groups were at the last log-in."""
    record = SocialAccount.objects.filter(user=user).first()
    if record is None:
        return "no, a local account of this Sonar instance"
    groups = ", ".join(record.extra_data.get("groups", [])) or "none"
    return f"{record.uid} at {record.provider}; groups at the last log-in: {groups}"


def forget_sessions(now: datetime) -> None:
    """Delete sessions that are over, as each log-in that is begun elsewhere makes one."""
    Session.objects.filter(expire_date__lt=now).delete()


def lapsed(user: User) -> bool:
    """Say whether nobody has looked for too long which groups this account is in.

    Accounts of Sonar's own never lapse. Costs no query for who logged in lately, or never does.
    """
    last = user.last_login
    return bool(last and last < timezone.now() - LAPSE and is_elsewhere(user))


def is_elsewhere(user: User) -> bool:
    """Say whether somebody else vouches for an account, and decides on its role."""
    return bool(SocialAccount.objects.filter(user=user).exists())


def is_closed(issuer: str, subject: str) -> bool:
    """Say whether a person has an account that may no longer be used. One SQL query."""
    closed = SocialAccount.objects.filter(provider=issuer, uid=subject, user__is_active=False)
    return bool(closed.exists())


def check(databases: Collection[str] | None = None, **_: object) -> list[CheckWarning]:
    """Let `migrate`, and `check` with a database, warn of sites that rules name in vain."""
    named = settings.SONAR_LOGIN_ROLES.sites
    if not (named and databases):
        return []
    try:
        registered = set(Site.objects.values_list("name", flat=True))
    except ProgrammingError:  # before the first migration
        return []
    sentence = "SONAR_LOGIN_ROLES names the site {}, which is not registered."
    return [
        CheckWarning(sentence.format(name), id="sonar.W001") for name in sorted(named - registered)
    ]
