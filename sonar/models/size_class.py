"""Size classes: which files are small, medium and large."""

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from sonar.models.fields import NAME, check_name, is_new, name_field

# What parameters begin with that have a dot in them, as those of size classes have.
BEGINNINGS = ("compare", "destination", "source")


def refuse_parameter(row: models.Model, name: str) -> None:
    """Raise ValidationError for a new name that would be read as something else in a URL."""
    if not is_new(row, "name"):
        return
    if name.casefold() in BEGINNINGS:
        sentence = f"The name {name} is none for a size class: other parameters begin with it."
        raise ValidationError({"name": sentence})
    if name.isdecimal():
        sentence = f"The name {name} is none for a size class: it is a number, like one of streams."
        raise ValidationError({"name": sentence})


class SizeClass(models.Model):
    """A named range of file sizes: from its first byte count to that of the next class.

    So ranges cannot overlap or leave a gap. That the first begins at 0 and that every test
    size lies in its own range is held by a deferred trigger (migration 0002), as it
    concerns several rows.
    """

    name = name_field()
    from_bytes = models.BigIntegerField(
        validators=[MinValueValidator(0)], help_text="First size that belongs to it."
    )
    test_bytes = models.BigIntegerField(
        validators=[MinValueValidator(1)], help_text="Size of its test file."
    )
    timeout_seconds = models.PositiveIntegerField(
        default=3600,
        validators=[MinValueValidator(1)],
        help_text="A test transfer that takes longer has failed.",
    )

    class Meta:
        ordering = ["from_bytes"]
        verbose_name_plural = "size classes"
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME), name="sizeclass_name_is_plain"),
            # Deferred, so that a registry file may move several boundaries at once.
            models.UniqueConstraint(
                fields=["from_bytes"],
                name="sizeclass_begins_alone",
                deferrable=models.Deferrable.DEFERRED,
            ),
            models.CheckConstraint(
                condition=Q(from_bytes__gte=0, test_bytes__gte=1, timeout_seconds__gte=1),
                name="sizeclass_numbers_are_positive",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        check_name(self)
        refuse_parameter(self, self.name)
