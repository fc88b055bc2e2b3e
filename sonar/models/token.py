"""What belongs to an account: tokens that scripts show instead of a password, and saved views."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from knox.models import AbstractAuthToken

from sonar.models.fields import NAME, NAME_SENTENCE

LONGEST_NAME = 80
LONGEST_ADDRESS = 2000


class SavedView(models.Model):
    """A page of Sonar that an account keeps: ``address`` is its path and query, without a host."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=LONGEST_NAME)
    address = models.CharField(max_length=LONGEST_ADDRESS)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "name"], name="saved_view_name_once_for_a_user"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Token(AbstractAuthToken):  # type: ignore[misc]  # knox has no types
    """A token of one user. What is kept is its hash and its first characters, as a key to it."""

    class Scope(models.TextChoices):
        READ = "read"
        INGEST = "ingest"
        OPERATE = "operate"

    name = models.CharField(max_length=80, help_text="Name of the token, for example cron-at-ral.")
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope))

    class Meta:
        ordering = ["user__username", "name"]
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="token_name_once_for_a_user"),
            models.CheckConstraint(
                condition=Q(name__regex=NAME),
                name="token_name_is_plain",
                violation_error_message=NAME_SENTENCE,
            ),
            models.CheckConstraint(
                condition=Q(scopes__contained_by=["read", "ingest", "operate"])
                & Q(scopes__len__gte=1),
                name="token_scopes_are_known",
            ),
            models.CheckConstraint(condition=Q(expiry__isnull=False), name="token_expires"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"
