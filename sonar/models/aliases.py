"""Aliases: names that other services have for sites and endpoints, and unknown ones."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Lower

from sonar.models.registry import Endpoint, Site

LONGEST_NAME, LONGEST_SOURCE, LONGEST_EXAMPLE = 255, 40, 200
# The origin of an alias that somebody gave; others are named after what said it.
BY_HAND = "hand"


class AliasKind(models.TextChoices):
    """What a name is a name of, in the words of who uses it."""

    RSE = "rse", "Rucio RSE"
    SE_HOST = "se_host", "storage host"
    RCSITE = "rcsite", "WLCG site (rcsite)"
    GOCDB_SITE = "gocdb_site", "GOCDB site"
    OSG_GROUP = "osg_group", "OSG resource group"
    OSG_RESOURCE = "osg_resource", "OSG resource"
    PERFSONAR_HOST = "perfsonar_host", "perfSONAR host"
    NETSITE = "netsite", "network site (netsite)"


HOSTS = (AliasKind.SE_HOST, AliasKind.PERFSONAR_HOST)
"""Kinds whose names are hosts, in which case means nothing."""


def compared(kind: str, name: str) -> str:
    """Return a name as it is compared with others of its kind."""
    return name.lower() if kind in HOSTS else name


def key_column() -> models.GeneratedField:
    """Return the column that says the same as `compared`."""
    return models.GeneratedField(
        expression=Case(
            When(kind__in=[kind.value for kind in HOSTS], then=Lower("name")), default=F("name")
        ),
        output_field=models.CharField(max_length=LONGEST_NAME),
        db_persist=True,
    )


def kind_field() -> models.CharField[str, str]:
    return models.CharField(max_length=20, choices=AliasKind)


def check_alias_name(name: str) -> None:
    """Raise ValidationError for a name that no service can have."""
    if not name.isprintable() or name != name.strip() or not name:
        raise ValidationError(
            {"name": "An alias must be printable text, without spaces at its start or end."}
        )


class Alias(models.Model):
    """A name that somebody else has for a site or for an endpoint."""

    kind = kind_field()
    name = models.CharField(
        max_length=LONGEST_NAME, help_text="The alias, exactly as the other service writes it."
    )
    key = key_column()
    site = models.ForeignKey(
        Site, null=True, blank=True, on_delete=models.CASCADE, related_name="aliases"
    )
    endpoint = models.ForeignKey(
        Endpoint, null=True, blank=True, on_delete=models.CASCADE, related_name="aliases"
    )
    origin = models.CharField(
        max_length=LONGEST_SOURCE,
        default=BY_HAND,
        help_text=f"Origin of the alias: “{BY_HAND}” if a person entered the alias, otherwise the "
        f"name of its source.",
    )

    class Meta:
        ordering = ["kind", "name"]
        verbose_name_plural = "aliases"
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "key"],
                name="alias_means_one_thing",
                violation_error_code="unique",
                violation_error_message="This alias is already assigned.",
            ),
            models.CheckConstraint(
                condition=Q(site__isnull=False, endpoint__isnull=True)
                | Q(site__isnull=True, endpoint__isnull=False),
                name="alias_of_one_site_or_endpoint",
                violation_error_message="An alias belongs to a site or to an endpoint: "
                "choose exactly one.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        check_alias_name(self.name)

    @property
    def target(self) -> Site | Endpoint:
        target = self.site or self.endpoint
        if target is None:
            raise ValueError(f"the alias {self.name} has neither a site nor an endpoint")
        return target


class UnknownAlias(models.Model):
    """A name that a source uses, and that is neither registered nor an alias here.

    A ``dismissed`` one is nothing that Sonar tests: it is still counted, but no longer listed.
    """

    kind = kind_field()
    name = models.CharField(max_length=LONGEST_NAME)
    key = key_column()
    source = models.CharField(
        max_length=LONGEST_SOURCE, help_text="Source that uses the unknown alias."
    )
    example = models.CharField(
        max_length=LONGEST_EXAMPLE,
        blank=True,
        help_text="Place where the source last used the alias.",
    )
    times = models.PositiveIntegerField(
        default=1, help_text="Number of times that the source used the alias."
    )
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    dismissed = models.BooleanField(
        default=False,
        db_default=Value(False),
        help_text="Whether the alias was dismissed because it names something that Sonar does not "
        "test.",
    )

    class Meta:
        ordering = ["source", "kind", "name"]
        verbose_name_plural = "unknown aliases"
        constraints = [
            models.UniqueConstraint(
                fields=["source", "kind", "key"], name="unknownalias_once_per_source"
            ),
        ]

    def __str__(self) -> str:
        return self.name
