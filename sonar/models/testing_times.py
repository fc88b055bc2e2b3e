"""When tests may start: quiet hours of a mesh or a site, and the pause of a site."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from sonar.notation.windows import format_typed

if TYPE_CHECKING:  # models of Django are not there yet while these are loaded
    from django.contrib.auth.models import User


class QuietHours(models.Model):
    """A time of the day in which no scheduled test starts; both ends, or none."""

    quiet_from = models.TimeField(
        null=True, blank=True, help_text="UTC. No scheduled test starts between this and the next."
    )
    quiet_until = models.TimeField(null=True, blank=True, help_text="UTC; may be past midnight.")

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
    return f"until {format_typed(until)}" if until else "until somebody resumes them"


def two_ends(name: str) -> models.CheckConstraint:
    """Return the rule about quiet hours, for the table that has them."""
    return models.CheckConstraint(
        condition=Q(quiet_from__isnull=True, quiet_until__isnull=True)
        | Q(quiet_from__isnull=False, quiet_until__isnull=False) & ~Q(quiet_from=F("quiet_until")),
        name=name,
        violation_error_message="Quiet hours need two different times, or none.",
    )


class Pause(models.Model):
    """While it is paused, no test of its links starts, whoever orders it.

    One without ``paused_until`` lasts until somebody ends it; the others end by themselves, and
    leave their columns as they were.
    """

    paused_since = models.DateTimeField(
        null=True, blank=True, help_text="UTC. Empty: its tests are not paused."
    )
    paused_until = models.DateTimeField(
        null=True, blank=True, help_text="UTC. Empty: until somebody resumes them."
    )
    pause_reason = models.CharField(
        max_length=200, blank=True, db_default="", default="", help_text="Shown to everybody."
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

    def pause(self, now: datetime, reason: str, until: datetime | None, who: User | None) -> None:
        """Begin a pause, or give the one that lasts another reason and end."""
        if not self.is_paused(now):
            self.paused_since, self.paused_by = now, who
        self.paused_until, self.pause_reason = until, reason

    def resume(self) -> None:
        self.paused_since = self.paused_until = self.paused_by = None
        self.pause_reason = ""


PAUSE_COLUMNS = ("paused_since", "paused_until", "pause_reason", "paused_by")
PAUSE_RULES = [
    models.CheckConstraint(
        condition=Q(paused_since__isnull=True, paused_until__isnull=True, pause_reason="")
        | Q(paused_since__isnull=False) & ~Q(pause_reason=""),
        name="site_pause_has_a_reason",
        violation_error_message="A pause has a beginning and a reason; without one, leave its "
        "beginning, end and reason empty.",
    ),
    models.CheckConstraint(
        condition=Q(paused_until__isnull=True) | Q(paused_until__gt=F("paused_since")),
        name="site_pause_ends_after_it_starts",
        violation_error_message="A pause must end after it starts.",
    ),
]
