"""Credentials: where tokens come from, and where they may go."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from sonar.credentials import kinds, rules


def validate_host(text: str) -> None:
    if rules.host_of(text) is None:
        raise ValidationError(rules.HOST_SENTENCE)


def setting_field(verbose_name: str, longest: int, help_text: str) -> models.CharField[str, str]:
    """Return a column that only some kinds of credentials have; empty for the others."""
    return models.CharField(
        verbose_name,
        max_length=longest,
        blank=True,
        default="",
        db_default="",
        help_text=help_text,
    )


class Credential(models.Model):
    """Where tokens come from, and the hosts that they may be sent to; secrets are in a file.

    Written by administrators alone: whoever says where a token may go can have it.
    """

    name = models.CharField(
        max_length=80,
        unique=True,
        validators=[RegexValidator(rules.NAME, rules.NAME_SENTENCE)],
        help_text="Name of the file in SONAR_CREDENTIALS_DIR that holds its secret.",
    )
    hosts = ArrayField(
        models.CharField(max_length=255, validators=[validate_host]),
        help_text="Where it may be sent: hosts, or host:port for only that port, in lower case.",
    )
    kind = models.CharField(
        max_length=20,
        choices=kinds.CHOICES,
        default=kinds.FILE,
        db_default=kinds.FILE,
        help_text="What the file holds, and what is made of it.",
    )
    issuer = setting_field(
        "issuer", 400, "Of client_credentials: https://host/path, which alone is shown the secret."
    )
    client_id = setting_field("client ID", 200, "Of client_credentials: the name of the client.")
    audience = setting_field(
        "audience",
        400,
        "Of client_credentials: whom its tokens are for; empty for the origin of the endpoint or "
        "service.",
    )
    path_prefix = setting_field(
        "path prefix",
        200,
        "Of client_credentials: the part of the endpoint's path that scopes leave out, like "
        "/atlas; empty if they have the whole path.",
    )
    scope = setting_field(
        "scope",
        200,
        "Of client_credentials, for services alone: what their tokens must allow, like fts.",
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(name__regex=rules.NAME), name="credential_name_is_a_file"
            ),
            models.CheckConstraint(
                condition=Q(hosts__len__gte=1),
                name="credential_has_a_host",
                violation_error_message="A credential is for at least one host.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        if self.name.endswith("\n"):  # which the pattern lets pass
            raise ValidationError({"name": rules.NAME_SENTENCE})
        if self.kind not in kinds.names():
            return  # the field says so
        values = {name: getattr(self, name) for name in kinds.SETTINGS}
        if sentences := kinds.problems(self.kind, values):
            raise ValidationError(sentences)
