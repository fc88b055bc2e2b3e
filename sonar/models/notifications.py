"""Subscriptions to incidents and reports, and the outbox: queued, sent and failed notifications."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, time, timedelta

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from sonar.models.fields import QuietHours, two_ends

DAY = timedelta(days=1)
LONGEST_NAME = 80
MOST_CAP = 1000


def chosen(field: models.CharField[str, str], text: str) -> ArrayField[list[str], list[str]]:
    return ArrayField(field, default=list, blank=True, help_text=f"{text} Empty means all.")


class Subscription(QuietHours):
    """Which incidents or report Sonar sends, by which channel, and when.

    With an owner it belongs to that person and uses e-mail; without one it is a shared
    subscription of operators. With ``report`` it sends no incidents but the report of each week or
    month, of the grid, of a ``cloud`` or of the one site among ``sites``. ``secret`` has the
    encrypted settings of the channel (`sonar.alerting.subscriptions`), and ``address`` their
    public part.
    """

    class Scope(models.TextChoices):
        OWN = "own", "incidents of my own sites"
        SITES = "sites", "incidents of these sites"
        GRID = "grid", "all incidents"

    class Report(models.TextChoices):
        WEEK = "week", "every week"
        MONTH = "month", "every month"

    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(max_length=LONGEST_NAME)
    channel = models.CharField(max_length=20)
    address = models.CharField(max_length=254, blank=True)
    secret = models.BinaryField(null=True)
    confirmed_at = models.DateTimeField(null=True, editable=False)
    enabled = models.BooleanField(default=True)
    scope = models.CharField(max_length=5, choices=Scope, default=Scope.GRID)
    sites = models.ManyToManyField("sonar.Site", blank=True, related_name="+")
    report = models.CharField(max_length=5, choices=Report, blank=True, default="", db_default="")
    cloud = models.CharField(max_length=40, blank=True, default="", db_default="")
    incident_scopes = chosen(
        models.CharField(max_length=11), "Scopes of the incidents that the subscription includes."
    )
    incident_types = chosen(
        models.CharField(max_length=7), "Types of the incidents that the subscription includes."
    )
    digest_hour = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(23)],
        help_text="Hour of the day in UTC at which one message is sent. Empty means one message "
        "per incident.",
    )
    cap = models.PositiveSmallIntegerField(
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_CAP)],
        help_text="Maximum number of messages per hour. Further notifications are combined into "
        "one message.",
    )
    # Columns of the sender: its lease, and how its channel answers.
    leased_until = models.DateTimeField(null=True, editable=False)
    told_at = models.DateTimeField(null=True, editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False)
    failing_since = models.DateTimeField(null=True, editable=False)
    retry_at = models.DateTimeField(null=True, editable=False)
    answer = models.CharField(max_length=500, blank=True, editable=False)

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name"],
                nulls_distinct=False,
                name="subscription_name_once",
                violation_error_message="Another subscription already has this name.",
            ),
            models.CheckConstraint(
                condition=Q(owner=None) | Q(channel="email"), name="subscription_of_one_is_email"
            ),
            models.CheckConstraint(
                condition=Q(owner__isnull=False) | ~Q(scope="own"),
                name="subscription_of_list_has_no_own_sites",
                violation_error_message="A shared subscription cannot have the scope “own”: use "
                "“sites” or “grid”.",
            ),
            models.CheckConstraint(
                condition=Q(digest_hour=None) | Q(digest_hour__lte=23),
                name="subscription_digest_at_an_hour",
            ),
            models.CheckConstraint(
                condition=Q(report="", cloud="") | ~Q(report="") & Q(owner__isnull=False),
                name="subscription_to_a_report_is_of_one",
            ),
            models.CheckConstraint(condition=Q(cap__gte=1), name="subscription_cap_is_positive"),
            two_ends("subscription_quiet_hours_have_two_ends"),
        ]

    def __str__(self) -> str:
        return self.name

    def due_at(self, moment: datetime) -> datetime:
        """Return when a notification of this moment is sent: by digest, and after quiet hours."""
        if self.digest_hour is not None:
            return next_at(time(self.digest_hour), moment)
        if self.is_quiet(moment) and self.quiet_until is not None:
            return next_at(self.quiet_until, moment)
        return moment


def next_at(clock: time, moment: datetime) -> datetime:
    """Return the next moment of this time of the day (UTC)."""
    today = datetime.combine(moment.astimezone(UTC).date(), clock, UTC)
    return today if today > moment else today + DAY


class Notification(models.Model):
    """A notification of a subscription about an incident: waiting, sent or failed.

    At most one waits for each incident, with all ``events`` that were not sent yet and, in the same
    order, their ``event_types``. ``missed`` counts messages that could not be sent. Tests,
    confirmation links and the report of a ``period`` (`2026-W47`, `2026-10`) have no incident.
    """

    class Kind(models.TextChoices):
        INCIDENT = "incident"
        MISSED = "missed"
        TEST = "test"
        CONFIRMATION = "confirmation"
        REPORT = "report"

    class State(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        FAILED = "failed"

    subscription = models.ForeignKey(
        Subscription, on_delete=models.CASCADE, related_name="notifications"
    )
    incident = models.ForeignKey(
        "sonar.Incident", null=True, on_delete=models.CASCADE, related_name="notifications"
    )
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.INCIDENT)
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    events = ArrayField(models.BigIntegerField(), default=list)
    event_types = ArrayField(models.CharField(max_length=12), default=list)
    missed = models.PositiveIntegerField(default=0)
    period = models.CharField(max_length=8, blank=True, default="", db_default="")
    urgent = models.BooleanField(default=False)
    together = models.BooleanField(
        default=False,
        help_text="Whether the notification is combined with other notifications into one message.",
    )
    created_at = models.DateTimeField()
    due_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    message = models.UUIDField(
        null=True,
        help_text="Id of the message that contained the notification. Empty before it is sent.",
    )
    answer = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["subscription", "incident", "kind"],
                condition=Q(state="waiting"),
                nulls_distinct=False,
                name="notification_waits_once",
            ),
        ]
        indexes = [
            # What is to be sent (sonar.alerting.sending.claim).
            models.Index(
                fields=["due_at"], condition=Q(state="waiting"), name="notification_waiting"
            ),
            # The last deliveries of a subscription.
            models.Index(fields=["subscription", "-id"], name="notification_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state} since {self.created_at:%Y-%m-%d %H:%M}"


class LastSent(models.Model):
    """When a limited message was last requested or sent, by a key of the person or the address.

    No row refers to another table, so limits still hold after a subscription or an account is
    deleted (`sonar.alerting.subscriptions.take_turn`). ``key`` has a hash of the address.
    """

    key = models.CharField(max_length=100, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.key} {self.at:%Y-%m-%d %H:%M}"
