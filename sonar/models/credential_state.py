"""Credentials that do not work, or will soon not work any more."""

from django.db import models
from django.db.models import Q

from sonar.models.credential import Credential
from sonar.models.endpoint import Endpoint
from sonar.models.mesh import Mesh


class CredentialState(models.Model):
    """Since when a credential is in trouble where it is used; the row goes when it is well again.

    That is at an endpoint, or at the service of a mesh. It is a state of the credential and says
    nothing of a link: tests that need it wait.
    """

    class Role(models.TextChoices):
        OWN = "own"
        LENT = "lent"
        SERVICE = "service"

    credential = models.ForeignKey(Credential, on_delete=models.CASCADE)
    endpoint = models.ForeignKey(Endpoint, null=True, on_delete=models.CASCADE)
    mesh = models.ForeignKey(
        Mesh, null=True, on_delete=models.CASCADE, help_text="Whose service knows Sonar by it."
    )
    role = models.CharField(max_length=7, choices=Role)
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
            models.UniqueConstraint(
                fields=["credential", "mesh", "role"], name="credentialstate_once_for_a_mesh"
            ),
            models.CheckConstraint(
                condition=Q(role__in=["own", "lent"], endpoint__isnull=False, mesh=None)
                | Q(role="service", endpoint=None, mesh__isnull=False),
                name="credentialstate_is_at_one_place",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.credential} at {self.place} ({self.role}) since {self.since}"

    @property
    def place(self) -> str:
        """Return the name of the endpoint or mesh."""
        return str(self.endpoint or self.mesh)
