"""Annotations: what people know about a site or a link that no test tells."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from sonar.models.endpoint import Endpoint
from sonar.models.site import Site


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
    starts_at = models.DateTimeField(help_text="UTC.")
    ends_at = models.DateTimeField(null=True, blank=True, help_text="UTC; empty: until removed.")
    public = models.BooleanField(
        default=False,
        help_text="Shown to everyone who may read; else to operators and the admins of its sites.",
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
                violation_error_message="Name a site, or the source and destination of a link.",
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
