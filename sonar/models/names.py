"""Names of what is registered: how they are written, and that no two are alike."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models

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
