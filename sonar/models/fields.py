"""Fields that several tables share: names, tags, and references from large tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models

TAG = "[A-Za-z0-9._:-]{1,40}"
TAG_RULE = "1 to 40 letters, digits and . _ : -"
MOST_TAGS = 20


def tidy(tags: Iterable[str]) -> list[str]:
    """Return tags as they are kept: in order, each once."""
    return sorted(set(tags))


def validate_tags(tags: Collection[str]) -> None:
    if len(tags) > MOST_TAGS:
        raise ValidationError(f"There are at most {MOST_TAGS} tags, not {len(tags)}.")
    for tag in tags:
        if not re.fullmatch(TAG, tag):
            raise ValidationError(f"“{tag}” is not a tag: a tag is {TAG_RULE}.")


def tags_field(whose: str) -> ArrayField[list[str], list[str]]:
    return ArrayField(
        models.CharField(max_length=40, blank=True),
        default=list,
        db_default=[],
        blank=True,
        validators=[validate_tags],
        help_text=f"Free words to filter links by, {whose}: each is {TAG_RULE}.",
    )


# Names stand in URLs, file names and log lines.
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
NAME_SENTENCE = "A name is made of letters, digits, dot, dash and underscore."

# The code of an error for what another row has already, in another notation.
TAKEN = "taken"


def name_field(verbose_name: str = "name") -> models.CharField[str, str]:
    return models.CharField(
        verbose_name,
        max_length=80,
        unique=True,
        validators=[RegexValidator(NAME, NAME_SENTENCE)],
    )


def is_new(row: models.Model, field: str) -> bool:
    """Say whether keeping a row would change this field; what was kept before a rule may stay."""
    kept = type(row)._default_manager.filter(pk=row.pk).values_list(field, flat=True).first()
    return bool(kept != getattr(row, field))


def check_name(row: models.Model) -> None:
    """Raise ValidationError for a name that only its case tells from another.

    And for one with a line break at its end, which the pattern lets pass.
    """
    if not is_new(row, "name"):
        return
    name = getattr(row, "name")  # noqa: B009 - of whichever model
    if name.endswith("\n"):
        raise ValidationError({"name": NAME_SENTENCE})
    alike = type(row)._default_manager.filter(name__iexact=name).exclude(name=name)
    if other := alike.exclude(pk=row.pk).first():
        sentence = f"The name {name} differs only in case from the {row._meta.verbose_name} "
        raise ValidationError({"name": ValidationError(f"{sentence}{other}.", code=TAKEN)})


def reference(
    to: type[models.Model],
    on_delete: Callable[..., None] = models.PROTECT,
    *,
    null: bool = False,
) -> models.ForeignKey[Any, Any]:
    """Refer to a row of the registry without a constraint and an index of its own.

    For tables with millions of rows: constraints look at each of them, which costs as much
    as writing it. What is needed is checked for a statement as a whole (migration 0003), and
    schedules are made of the registry and follow it.
    """
    return models.ForeignKey(
        to, on_delete=on_delete, null=null, related_name="+", db_constraint=False, db_index=False
    )
