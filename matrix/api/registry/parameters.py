"""Parameters that lists of the registry share."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q
from django.http import QueryDict
from django.utils import timezone

from matrix.api.parameters import one_of, text, wrong
from matrix.query.forms import Moment
from sonar.models.registry import NAME

Row = TypeVar("Row", bound=Model)
YES_OR_NO = ("true", "false")


def named(params: QueryDict, name: str, model: type[Row]) -> Row | None:
    """Return the registered row that a parameter names; None if it is not given."""
    given = text(params, name)
    if not given:
        return None
    row = model._default_manager.filter(name=given).first() if is_name(given) else None
    if row is None:
        kind = model._meta.verbose_name
        raise wrong(name, f"{name} “{given}” is not known: use the name of a registered {kind}.")
    return row


def is_name(given: str) -> bool:
    """Say whether a text can be a name; PostgreSQL does not even take every text."""
    return bool(re.fullmatch(NAME, given))


def words(params: QueryDict, name: str) -> str:
    given = text(params, name)
    if len(given) > 80 or not given.isprintable():
        raise wrong(name, f"{name} must be at most 80 printable characters.")
    return given


def yes_or_no(params: QueryDict, name: str) -> bool | None:
    given = one_of(params, name, YES_OR_NO)
    return given == "true" if given else None


def holding(params: QueryDict) -> Q:
    """Return what holds for rows whose time has something of that from `from` to `to`."""
    start, end = moment(params, "from"), moment(params, "to")
    if start and end and start >= end:
        raise wrong("from", "from must be before to.")
    begun = Q(starts_at__lt=end) if end else Q()
    return begun & (Q(ends_at__isnull=True) | Q(ends_at__gt=start)) if start else begun


def at_present(params: QueryDict) -> Q:
    """Return what `current=true` (it holds now) or `current=false` stands for."""
    wanted = yes_or_no(params, "current")
    now = timezone.now()
    current = Q(starts_at__lte=now) & (Q(ends_at__isnull=True) | Q(ends_at__gt=now))
    return Q() if wanted is None else current if wanted else ~current


def moment(params: QueryDict, name: str) -> datetime | None:
    try:
        found: datetime | None = Moment(name).clean(text(params, name))
    except ValidationError as error:
        raise wrong(name, error.messages[0]) from error
    return found
