"""What sources of topology said last of sites and endpoints."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from sonar.models.aliases import LONGEST_SOURCE
from sonar.models.registry import Endpoint, Site


class SourcedValues(models.Model):
    """The values that a source gave a site or an endpoint when it was applied last.

    A value that is another one here was changed by somebody since, and is kept. ``name`` is what
    the source calls it, and ``source_id`` the source's id (empty where it has none): a row that is
    renamed here, or in the source, is still known.
    """

    source = models.CharField(max_length=LONGEST_SOURCE)
    name = models.CharField(max_length=255)
    source_id = models.CharField(max_length=255, blank=True, default="", db_default="")
    site = models.ForeignKey(Site, null=True, on_delete=models.CASCADE, related_name="+")
    endpoint = models.ForeignKey(Endpoint, null=True, on_delete=models.CASCADE, related_name="+")
    values = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "site"], name="sourcedvalues_once_a_site"),
            models.UniqueConstraint(
                fields=["source", "endpoint"], name="sourcedvalues_once_an_endpoint"
            ),
            models.CheckConstraint(
                condition=Q(site__isnull=False, endpoint__isnull=True)
                | Q(site__isnull=True, endpoint__isnull=False),
                name="sourcedvalues_of_one_site_or_endpoint",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source}: {self.name}"


class Proposal(models.Model):
    """What a source said when it was read last, for operators to look at and to apply."""

    source = models.CharField(max_length=LONGEST_SOURCE, primary_key=True)
    places = models.TextField(help_text="Files and URLs that were read, one per line.")
    read_at = models.DateTimeField()
    topology = models.JSONField()

    class Meta:
        ordering = ["source"]

    def __str__(self) -> str:
        return self.source
