"""Secrets that people uploaded: encrypted, for workers alone."""

from django.conf import settings
from django.db import models

from sonar.models.registry import Credential


class UploadedSecret(models.Model):
    """The secret of a credential as `sonar.credentials.encryption` writes it; shown nowhere."""

    credential = models.OneToOneField(
        Credential, on_delete=models.CASCADE, related_name="uploaded_secret"
    )
    content = models.BinaryField()
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    expires_at = models.DateTimeField(
        null=True,
        help_text="Expiry time that the secret states. Empty if the secret states no expiry time.",
    )

    def __str__(self) -> str:
        return str(self.credential)
