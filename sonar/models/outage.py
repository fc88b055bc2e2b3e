"""Outages: the tests of a link, or of most links of an endpoint, failed one after the other."""

from django.db import models
from django.db.models import F, Q

from sonar.models.endpoint import Endpoint
from sonar.models.fields import reference
from sonar.models.size_class import SizeClass


class Outage(models.Model):
    """A row of failed tests that made a link failing, found by looking back over results.

    Of a link, with both of its ends; of an endpoint as a source or as a destination, with that end
    alone, if most of its links failed at once: those have rows of their own, too. It came to pass
    between ``last_ok``, where there is any, and ``began``, and ended with the success ``ended``.
    """

    class Kind(models.TextChoices):
        LINK = "link"
        SOURCE = "source"
        DESTINATION = "destination"

    kind = models.CharField(max_length=11, choices=Kind)
    source = reference(Endpoint, models.CASCADE, null=True)
    destination = reference(Endpoint, models.CASCADE, null=True)
    size_class = models.ForeignKey(SizeClass, on_delete=models.CASCADE, related_name="+")
    last_ok = models.DateTimeField(null=True, help_text="Start of the newest success before it.")
    began = models.DateTimeField(help_text="Start of the first failed test.")
    newest = models.DateTimeField(help_text="Start of the newest failed test.")
    ended = models.DateTimeField(null=True, help_text="Start of the first success since.")
    tests = models.PositiveIntegerField(help_text="Failed tests.")
    links = models.PositiveIntegerField(help_text="How many links failed.")
    course = models.JSONField(default=list, help_text="Rates before and since it, as of a change.")
    found_at = models.DateTimeField(help_text="When it was first found.")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="link", source__isnull=False, destination__isnull=False)
                | Q(kind="source", source__isnull=False, destination__isnull=True)
                | Q(kind="destination", source__isnull=True, destination__isnull=False),
                name="outage_has_the_ends_of_its_kind",
            ),
            models.CheckConstraint(
                condition=Q(began__lte=F("newest"))
                & (Q(ended__isnull=True) | Q(ended__gt=F("newest"))),
                name="outage_ends_after_its_tests",
            ),
        ]
        indexes = [
            # Lists: what began or ended in a window.
            models.Index(fields=["-began", "-id"], name="outage_newest_first"),
            models.Index(fields=["ended"], name="outage_ended"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.source_id} {self.destination_id} {self.began:%Y-%m-%d %H:%M}"
