"""What several tables share: names, tags, references, and columns of when tests may start."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q

from sonar.notation import vantages
from sonar.notation.windows import format_typed

if TYPE_CHECKING:  # models of Django are not there yet while these are loaded
    from django.contrib.auth.models import User


TAG = "[A-Za-z0-9._:-]{1,40}"
TAG_RULE = "1 to 40 letters, digits, dots, dashes, underscores and colons"
MOST_TAGS = 20


def tidy(tags: Iterable[str]) -> list[str]:
    """Return tags as they are kept: in order, each once."""
    return sorted(set(tags))


def validate_tags(tags: Collection[str]) -> None:
    if len(tags) > MOST_TAGS:
        raise ValidationError(f"At most {MOST_TAGS} tags are allowed (got {len(tags)}).")
    for tag in tags:
        if not re.fullmatch(TAG, tag):
            raise ValidationError(f"“{tag}” is not a valid tag: use {TAG_RULE}.")


def tags_field(whose: str) -> ArrayField[list[str], list[str]]:
    return ArrayField(
        models.CharField(max_length=40, blank=True),
        default=list,
        db_default=[],
        blank=True,
        validators=[validate_tags],
        help_text=f"Tags to filter links by, {whose}. Each has {TAG_RULE}.",
    )


# Names stand in URLs, file names and log lines.
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
NAME_SENTENCE = (
    "Use only letters, digits, dots, dashes and underscores. Begin with a letter or digit."
)

# The code of an error for what another row has already, in another notation.
TAKEN = "taken"


def name_field(verbose_name: str = "name") -> models.CharField[str, str]:
    return models.CharField(
        verbose_name, max_length=80, unique=True, validators=[RegexValidator(NAME, NAME_SENTENCE)]
    )


def vantage_field(help_text: str) -> models.CharField[str, str]:
    validator = RegexValidator(vantages.PATTERN, vantages.SENTENCE)
    return models.CharField(
        max_length=vantages.LONGEST,
        blank=True,
        default="",
        db_default="",
        validators=[validator],
        help_text=help_text,
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
        sentence = f"The name “{name}” differs only in case from the {row._meta.verbose_name} "
        raise ValidationError({"name": ValidationError(f"{sentence}“{other}”.", code=TAKEN)})


def refuse_name(row: models.Model, name: str, address: str) -> None:
    """Raise ValidationError for a new row with this name, as something else has its address."""
    if getattr(row, "name") == name and is_new(row, "name"):  # noqa: B009 - of whichever model
        noun = row._meta.verbose_name
        sentence = (
            f"The {noun} cannot be named “{name}”: Sonar uses the URL {address} for something else."
        )
        raise ValidationError({"name": sentence})


def if_given(name: str, **condition: object) -> models.CheckConstraint:
    """Return the rule that a column is empty or as this says: `latitude__range=(-90, 90)`."""
    (lookup,) = condition
    empty = {f"{lookup.partition('__')[0]}__isnull": True}
    return models.CheckConstraint(condition=Q(**empty) | Q(**condition), name=name)


def two_endpoints(name: str) -> models.CheckConstraint:
    return models.CheckConstraint(condition=~Q(source=F("destination")), name=name)


def reference(
    to: type[models.Model], on_delete: Callable[..., None] = models.PROTECT, *, null: bool = False
) -> models.ForeignKey[Any, Any]:
    """Refer to a row of the registry without a constraint and an index of its own.

    For tables with millions of rows: constraints look at each of them, which costs as much
    as writing it. What is needed is checked for a statement as a whole (migration 0003), and
    schedules are made of the registry and follow it.
    """
    return models.ForeignKey(
        to, on_delete=on_delete, null=null, related_name="+", db_constraint=False, db_index=False
    )


class QuietHours(models.Model):
    """A time of the day in which no scheduled test starts; both ends, or none."""

    quiet_from = models.TimeField(
        null=True,
        blank=True,
        help_text="Start of the quiet hours, in UTC. Empty means no quiet hours.",
    )
    quiet_until = models.TimeField(
        null=True, blank=True, help_text="End of the quiet hours, in UTC. It can be after midnight."
    )

    class Meta:
        abstract = True

    @property
    def quiet_hours(self) -> str | None:
        """Write them as files and API do: `01:00-05:30`; None for none."""
        return quiet_words(self.quiet_from, self.quiet_until)

    def is_quiet(self, now: datetime) -> bool:
        """Say whether this is within them: from their first moment on, up to their end."""
        start, end, moment = self.quiet_from, self.quiet_until, now.astimezone(UTC).time()
        if start is None or end is None:
            return False
        return start <= moment < end if start < end else moment >= start or moment < end


def quiet_words(start: time | None, end: time | None) -> str | None:
    return None if start is None or end is None else f"{start:%H:%M}-{end:%H:%M}"


def end_words(until: datetime | None) -> str:
    """Say how long a pause lasts: `until 2026-11-20 14:00:00 UTC`, or until somebody ends it."""
    return f"until {format_typed(until)}" if until else "until someone resumes them"


def two_ends(name: str) -> models.CheckConstraint:
    """Return the rule about quiet hours, for the table that has them."""
    return models.CheckConstraint(
        condition=Q(quiet_from__isnull=True, quiet_until__isnull=True)
        | Q(quiet_from__isnull=False, quiet_until__isnull=False) & ~Q(quiet_from=F("quiet_until")),
        name=name,
        violation_error_message="Quiet hours need a start and an end, at different times. Leave "
        "both empty for no quiet hours.",
    )


class Pause(models.Model):
    """While it is paused, no test of its links starts, not even an ordered one.

    One without ``paused_until`` lasts until somebody ends it; the others end by themselves, and
    leave their columns as they were.
    """

    paused_since = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Start of the pause, in UTC. Empty if tests are not paused.",
    )
    paused_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="End of the pause, in UTC. Empty means that tests are paused until someone "
        "resumes them.",
    )
    pause_reason = models.CharField(
        max_length=200,
        blank=True,
        db_default="",
        default="",
        help_text="Reason for the pause, shown to everyone.",
    )
    paused_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
    )

    class Meta:
        abstract = True

    def is_paused(self, now: datetime) -> bool:
        """Say whether it lasts; one that begins later than now was begun by a clock ahead."""
        over = self.paused_until is not None and self.paused_until <= now
        return self.paused_since is not None and not over

    def pause_end(self) -> str:
        return end_words(self.paused_until)

    def pause_words(self) -> str:
        """Say what is paused: `The tests of RAL_DISK are paused`."""
        return f"The tests of {self} are paused"

    def pause(self, now: datetime, reason: str, until: datetime | None, who: User | None) -> None:
        """Begin a pause, or give the one that lasts another reason and end."""
        if not self.is_paused(now):
            self.paused_since, self.paused_by = now, who
        self.paused_until, self.pause_reason = until, reason

    def resume(self) -> None:
        self.paused_since = self.paused_until = self.paused_by = None
        self.pause_reason = ""


PAUSE_COLUMNS = ("paused_since", "paused_until", "pause_reason", "paused_by")


def pause_rules(of: str) -> list[models.CheckConstraint]:
    """Return the rules about pauses of a table, whose names begin with this."""
    return [
        models.CheckConstraint(
            condition=Q(paused_since__isnull=True, paused_until__isnull=True, pause_reason="")
            | Q(paused_since__isnull=False) & ~Q(pause_reason=""),
            name=f"{of}_pause_has_a_reason",
            violation_error_message="A pause needs a start and a reason. To end a pause, clear "
            "its start, end and reason.",
        ),
        models.CheckConstraint(
            condition=Q(paused_until__isnull=True) | Q(paused_until__gt=F("paused_since")),
            name=f"{of}_pause_ends_after_it_starts",
            violation_error_message="A pause must end after it starts.",
        ),
    ]
