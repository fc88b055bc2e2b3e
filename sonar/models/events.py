"""Notes on sites and links, and which credentials do not work."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from sonar.models.mesh import Mesh
from sonar.models.registry import Credential, Endpoint, Site


class Annotation(models.Model):
    """A note on a site or on one link, for a time. It explains; it changes no test and no state."""

    site = models.ForeignKey(Site, null=True, blank=True, on_delete=models.CASCADE)
    source = models.ForeignKey(
        Endpoint, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    destination = models.ForeignKey(
        Endpoint, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    text = models.CharField(max_length=500)
    starts_at = models.DateTimeField(
        help_text="Start of the period that the note is about, in UTC."
    )
    ends_at = models.DateTimeField(
        null=True, blank=True, help_text="End of the period, in UTC. Empty means no end."
    )
    public = models.BooleanField(
        default=False,
        help_text="Whether the note is shown to all readers. Otherwise the note is shown "
        "only to operators, administrators and site admins of the affected sites.",
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, editable=False, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-starts_at"]
        verbose_name = "note"
        constraints = [
            models.CheckConstraint(
                condition=Q(site__isnull=False, source__isnull=True, destination__isnull=True)
                | Q(site__isnull=True, source__isnull=False, destination__isnull=False)
                & ~Q(source=F("destination")),
                name="annotation_of_one_site_or_link",
                violation_error_message="A note needs a site, or the source and destination of a "
                "link.",
            ),
            models.CheckConstraint(
                condition=Q(ends_at__isnull=True) | Q(ends_at__gt=F("starts_at")),
                name="annotation_ends_after_it_starts",
                violation_error_message="A note must end after it starts.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}"

    @property
    def subject(self) -> str:
        return str(self.site) if self.site else f"from {self.source} to {self.destination}"


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
        Mesh,
        null=True,
        on_delete=models.CASCADE,
        help_text="Mesh whose transfer service uses the credential. Empty if an endpoint uses it.",
    )
    role = models.CharField(max_length=7, choices=Role)
    since = models.DateTimeField()
    holds = models.BooleanField(
        help_text="Whether tests wait until the credential works. If false, the present credential "
        "is still valid for a while."
    )
    sentence = models.TextField(help_text="Description of the problem, for operators.")
    expires_at = models.DateTimeField(
        null=True, help_text="Time when the present credential expires. Empty if unknown."
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
