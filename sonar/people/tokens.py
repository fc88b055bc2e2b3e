"""Tokens for scripts: made, listed and revoked here."""

import re
from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from sonar.models import Token
from sonar.models.fields import NAME, NAME_SENTENCE
from sonar.people import roles
from sonar.people.roles import Role

LONGEST_DAYS = 3650


class TokenError(Exception):
    """A wish for a token that cannot be met; the sentence says why."""


@transaction.atomic
def create(user: User, name: str, scopes: Iterable[str], days: int) -> tuple[Token, str]:
    """Make a token and return it with the text to show, once: only its hash is kept.

    An expired token of the same name makes room; raises TokenError for anything wrong.
    """
    scopes, choices = sorted(set(scopes)), Token.Scope.values
    if not scopes or not set(scopes) <= set(choices):
        unknown = ", ".join(scope for scope in scopes if scope not in choices) or "missing"
        raise TokenError(f"scope {unknown}: use one or more of {', '.join(choices)}")
    if not 1 <= days <= LONGEST_DAYS:
        raise TokenError(f"a token is valid for 1 to {LONGEST_DAYS} days, not {days}")
    if not re.fullmatch(NAME, name) or len(name) > 80:
        raise TokenError(f"{name!r} cannot be the name of a token: {NAME_SENTENCE}")
    if not user.is_active:
        raise TokenError(f"{user} is not active: its tokens would be refused")
    usable = roles.scopes_for(user)
    if useless := [scope for scope in scopes if scope not in usable]:
        raise TokenError(
            f"{user} has no right to {' or '.join(useless)}, so a token of this account cannot "
            f"have this right either. Possible scopes: {', '.join(usable)} (see manage.py role)"
        )
    Token.objects.filter(user=user, name=name, expiry__lt=timezone.now()).delete()
    try:
        with transaction.atomic():
            token, text = Token.objects.create(
                user=user, name=name, scopes=scopes, expiry=timedelta(days=days)
            )
    except IntegrityError:
        taken = f"{user} already has a token named {name!r}: revoke it or choose another name"
        raise TokenError(taken) from None
    return token, text


def in_reach_of(user: User) -> QuerySet[Token]:
    """Return the tokens that an account may see and revoke: its own, or for administrators all."""
    every: QuerySet[Token] = Token.objects.select_related("user")
    return every if roles.role_of(user) is Role.ADMINISTRATOR else every.filter(user=user)


def revoke(key: str, among: QuerySet[Token] | None = None) -> Token:
    """Delete the token with this key, at once; raise TokenError if there is none."""
    within = Token.objects.select_related("user") if among is None else among
    try:
        token: Token = within.get(token_key=key.replace("\0", ""))
    except Token.DoesNotExist:
        raise TokenError("no token has this key: see manage.py token list") from None
    token.delete()
    return token
