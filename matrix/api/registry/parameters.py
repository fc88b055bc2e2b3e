"""Parameters that choose among the rows of a list: what each is, and what it chooses by."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q
from django.http import QueryDict
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter

from matrix.api.parameters import one_of, text, wrong
from matrix.api.schema import parameters as schema
from matrix.query.forms import Moment
from sonar.models.fields import NAME

Row = TypeVar("Row", bound=Model)
YES_OR_NO = ("true", "false")
LONGEST = 80  # characters


def named(params: QueryDict, name: str, model: type[Row]) -> Row | None:
    """Return the registered row that a parameter names; None if it is not given."""
    value = text(params, name)
    if not value:
        return None
    # PostgreSQL does not even take every text.
    row = model._default_manager.filter(name=value).first() if re.fullmatch(NAME, value) else None
    if row is None:
        kind = model._meta.verbose_name
        raise wrong(name, f"{name} “{value}” is not known: use the name of a registered {kind}.")
    return row


@dataclass(frozen=True)
class Parameter:
    """What chooses among rows: parameters as the schema has them, and how they are read.

    ``read`` raises BadQueryError.
    """

    schema: tuple[OpenApiParameter, ...]
    read: Callable[[QueryDict], Q]


def of_row(
    name: str,
    description: str,
    example: str,
    model: type[Row],
    where: Callable[[Row], Q] | None = None,
) -> Parameter:
    """The name of a registered row, which ``where`` makes a condition of; else a field has it."""

    def read(params: QueryDict) -> Q:
        row = named(params, name, model)
        if row is None:
            return Q()
        return where(row) if where else Q((name, row))

    return Parameter((schema.text(name, description, example),), read)


def of_words(
    name: str,
    description: str,
    example: str,
    column: str = "",
    where: Callable[[str], Q] | None = None,
) -> Parameter:
    """A text, which may be any, and which ``where`` makes a condition of; else a column has it."""

    def read(params: QueryDict) -> Q:
        value = text(params, name)
        if len(value) > LONGEST or not value.isprintable():
            raise wrong(name, f"{name} must be at most {LONGEST} printable characters.")
        if not value:
            return Q()
        return where(value) if where else Q((column, value))

    return Parameter((schema.text(name, description, example),), read)


def yes_or_no(name: str, description: str, where: Callable[[], Q]) -> Parameter:
    """Those for which ``where`` holds, or only others."""

    def read(params: QueryDict) -> Q:
        value = one_of(params, name, YES_OR_NO)
        return Q() if not value else where() if value == "true" else ~where()

    return Parameter((schema.choice(name, YES_OR_NO, description),), read)


def at_present() -> Q:
    """Return what holds for rows whose time is now."""
    now = timezone.now()
    return Q(starts_at__lte=now) & (Q(ends_at__isnull=True) | Q(ends_at__gt=now))


def holding(params: QueryDict) -> Q:
    """Return what holds for rows whose time has something of that from `from` to `to`."""
    start, end = moment(params, "from"), moment(params, "to")
    if start and end and start >= end:
        raise wrong("from", "from must be before to.")
    before_end = Q(starts_at__lt=end) if end else Q()
    return before_end & (Q(ends_at__isnull=True) | Q(ends_at__gt=start)) if start else before_end


def moment(params: QueryDict, name: str) -> datetime | None:
    try:
        value: datetime | None = Moment(name).clean(text(params, name))
    except ValidationError as error:
        raise wrong(name, error.messages[0]) from error
    return value


BOUNDS = Parameter(
    (
        schema.text(
            "from",
            "Those that end after this time.",
            "2026-11-20T00:00:00Z",
            format="date-time",
        ),
        schema.text(
            "to",
            "Those that begin before this time.",
            "2026-11-21T00:00:00Z",
            format="date-time",
        ),
    ),
    holding,
)
