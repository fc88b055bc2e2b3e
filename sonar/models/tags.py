"""Tags: free words that links are chosen by."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
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
