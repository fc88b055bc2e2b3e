"""Checks of endpoints, in plain words: the newest one of each."""

from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from sonar.models.registry import Endpoint


class EndpointCheck(models.Model):
    """The newest check of an endpoint; the next one takes its row.

    It waits until a worker has begun it. ``steps`` has those that were taken so far, as
    sonar.notation.check_steps writes them: without secrets, but with hosts and addresses.
    """

    endpoint = models.OneToOneField(Endpoint, on_delete=models.CASCADE, related_name="newest_check")
    run = models.UUIDField(
        default=uuid4,
        unique=True,
        help_text="Unique id of the check, which is part of the name of its test file.",
    )
    requested_at = models.DateTimeField()
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="Account that requested the check. Empty if a command did.",
    )
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    steps = models.JSONField(default=list)
    checked = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="Digests of the settings that the check depended on when it ran.",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(ended_at=None) | Q(started_at__lte=F("ended_at")),
                name="endpointcheck_ends_after_it_began",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.endpoint} at {self.requested_at:%Y-%m-%d %H:%M}"
