"""Connections of transfers, as servers that mark their packets told them (sonar.fireflies)."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from sonar.notation.windows import EARLIEST, LATEST

# PostgreSQL keeps times that Python cannot read.
POSSIBLE = (EARLIEST, LATEST)


class Flow(models.Model):
    """One connection by what one reporter last said of it. Anybody may have forged it."""

    reporter = models.GenericIPAddressField(help_text="Who sent the packet.")
    scitag = models.PositiveIntegerField()
    source_address = models.GenericIPAddressField()
    source_port = models.PositiveIntegerField()
    destination_address = models.GenericIPAddressField()
    destination_port = models.PositiveIntegerField()
    # Which endpoints the addresses were of as it was reported; one host may have several.
    source_endpoints = ArrayField(models.IntegerField())
    destination_endpoints = ArrayField(models.IntegerField())
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, help_text="Empty while it is not known to be over.")
    application = models.CharField(max_length=100, blank=True)
    sent_bytes = models.BigIntegerField(null=True, help_text="By its source.")
    received_bytes = models.BigIntegerField(null=True, help_text="By its source.")
    tcp = models.JSONField(default=dict, help_text="TCP's own numbers, as Linux names them.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "reporter",
                    "source_address",
                    "source_port",
                    "destination_address",
                    "destination_port",
                    "started_at",
                ],
                name="flow_once_per_reporter",
            ),
            models.CheckConstraint(
                condition=Q(started_at__range=POSSIBLE, seen_at__range=POSSIBLE)
                & (Q(ended_at__isnull=True) | Q(ended_at__range=POSSIBLE)),
                name="flow_times_are_possible",
            ),
        ]
        indexes = [
            models.Index(fields=["scitag", "started_at"], name="flow_scitag_started"),
            # Those of one link, among all.
            GinIndex(fields=["source_endpoints", "destination_endpoints"], name="flow_endpoints"),
        ]

    def __str__(self) -> str:
        return f"flow {self.scitag} from {self.started_at:%Y-%m-%d %H:%M:%S} UTC"
