"""Accounts as administrators see them: role, where they log in, when they did so last, tokens."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.db.models import Count

from matrix.store import keyset
from matrix.store.keyset import Place
from sonar.people import roles
from sonar.people.accounts import CERTIFICATE
from sonar.people.role_rules import Role

LOCAL = "local"


@dataclass(frozen=True)
class PersonLine:
    """An account; ``origin`` is who vouches for it, or says that it is local."""

    user: User
    role: Role
    sites: tuple[str, ...]
    origin: str
    tokens: int

    @property
    def role_words(self) -> str:
        return self.role.replace("-", " ")


def lines(search: str, after: str, count: int) -> tuple[list[PersonLine], Place | None]:
    """Return accounts in the order of their names, and the end of a page if more follow.

    Four SQL queries.
    """
    every = User.objects.filter(username__icontains=search).annotate(tokens=Count("auth_token_set"))
    users, last = keyset.page(
        every.prefetch_related("groups", "administered_sites"),
        ("username",),
        count,
        (after,) if after else None,
    )
    people = SocialAccount.objects.filter(user__in=users).values_list("user", "provider")
    issuers = dict(people)
    return [line_of(user, issuers.get(user.pk, "")) for user in users], last


def line_of(user: User, issuer: str) -> PersonLine:
    """Return an account, be it active or not, of what was read with it."""
    sites = tuple(sorted(site.name for site in user.administered_sites.all()))
    tokens: int = getattr(user, "tokens", 0)
    return PersonLine(user, role_of(user, sites), sites, origin_of(issuer), tokens)


def role_of(user: User, sites: tuple[str, ...]) -> Role:
    if user.is_superuser:
        return Role.ADMINISTRATOR
    if any(group.name == roles.GROUP for group in user.groups.all()):
        return Role.OPERATOR
    return Role.SITE_ADMIN if sites else Role.READER


def origin_of(issuer: str) -> str:
    return "certificate" if issuer == CERTIFICATE else urlsplit(issuer).hostname or issuer or LOCAL
