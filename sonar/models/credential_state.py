"""Credentials that do not work, or will soon not work any more."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from sonar.models.registry import Credential, Endpoint


class CredentialState(models.Model):
    """Since when a credential is in trouble at an endpoint; the row goes when it is well again.

    It is a state of the credential and says nothing of a link: tests that need it wait.
    """

    class Role(models.TextChoices):
        OWN = "own"
        LENT = "lent"

    credential = models.ForeignKey(Credential, on_delete=models.CASCADE)
    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE)
    role = models.CharField(max_length=4, choices=Role)
    since = models.DateTimeField()
    holds = models.BooleanField(
        help_text="Whether tests wait for it; if not, what there is still counts for a while."
    )
    sentence = models.TextField(help_text="What is wrong, for operators.")
    expires_at = models.DateTimeField(
        null=True, help_text="When what there is ends to count, where that is known."
    )
    checked_at = models.DateTimeField()

    class Meta:
        ordering = ["since", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["credential", "endpoint", "role"], name="credentialstate_once"
            ),
            models.CheckConstraint(
                condition=Q(role__in=["own", "lent"]), name="credentialstate_role_is_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.credential} at {self.endpoint} ({self.role}) since {self.since}"
