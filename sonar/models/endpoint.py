"""Endpoints: the storage areas between which files move."""

import re
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from sonar.credentials import rules
from sonar.models.credential import Credential
from sonar.models.fields import NAME, TAKEN, check_name, is_new, name_field, tags_field, tidy
from sonar.models.site import Site
from sonar.notation import addresses

# A known scheme, a host, no user or password, no query: a URL that may be shown to anyone.
BASE_URL = r"^(https?|davs?|root|xroot|gsiftp|ftp|iperf3|fake)://[^/@?#\s]+(/[^@?#\s]*)?$"
BASE_URL_SENTENCE = (
    "A base URL is scheme://host[:port]/path with one of the schemes http, https, dav, davs, "
    "root, xroot, gsiftp, ftp, iperf3 or fake, and holds no user, password or query."
)
HOST_SENTENCE = "A base URL has a host and, if any, a port from 1 to 65535."

# What forms and API let in; the columns hold more.
MOST_CAP, MOST_DAILY_BYTES = 9999, 10**18 - 1

# Columns of an endpoint that say who is sent what.
WHERE_TOKENS_GO = ("base_url", "credential_id", "credential_lent_id", "lend_credential")


class Endpoint(models.Model):
    """One storage area of a site. Retired, never deleted: history keeps it."""

    name = name_field()
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="endpoints")
    label = models.CharField(max_length=40, blank=True, help_text="Storage area, like DATADISK.")
    base_url = models.CharField(
        "base URL",
        max_length=400,
        unique=True,
        validators=[RegexValidator(BASE_URL, BASE_URL_SENTENCE)],
        help_text="Sonar writes and deletes only in sonar/ below it.",
    )
    software = models.CharField(max_length=80, blank=True)
    tags = tags_field("in addition to those of its site")
    inbound_cap = models.PositiveIntegerField(
        default=2,
        validators=[MinValueValidator(1)],
        help_text="Test transfers to it at once.",
    )
    outbound_cap = models.PositiveIntegerField(
        default=2, validators=[MinValueValidator(1)], help_text="Test transfers from it at once."
    )
    budget_bytes_per_day = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Test bytes it may send and receive per UTC day; empty for no limit.",
    )
    credential = models.ForeignKey(
        Credential,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="endpoints",
        help_text="Reads, writes and deletes here; sent only to this endpoint.",
    )
    credential_lent = models.ForeignKey(
        Credential,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="lending_endpoints",
        help_text="Given to the other end of a copy; should be read-only.",
    )
    lend_credential = models.BooleanField(
        default=False,
        help_text="The other end of a copy may be given the credential itself, if none is lent.",
    )
    simulated = models.BooleanField(
        default=False, help_text="A sandbox node: its rates are simulated and shown as such."
    )
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME), name="endpoint_name_is_plain"),
            # A segment has two bytes for each end of a link.
            models.CheckConstraint(
                condition=Q(id__lte=65535),
                name="endpoint_id_has_16_bits",
                violation_error_message="Sonar keeps at most 65535 endpoints, including "
                "retired ones.",
            ),
            models.CheckConstraint(
                condition=Q(base_url__regex=BASE_URL), name="endpoint_base_url_is_plain"
            ),
            models.CheckConstraint(
                condition=Q(inbound_cap__gte=1, outbound_cap__gte=1),
                name="endpoint_caps_are_positive",
            ),
            models.CheckConstraint(
                condition=Q(budget_bytes_per_day__isnull=True) | Q(budget_bytes_per_day__gte=1),
                name="endpoint_budget_is_positive",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Want a URL that movers can take apart: the pattern lets `ftp://[` pass, and port 99999.

        And one that its credentials are for. Sentences do not repeat the URL, as there may be a
        password in it.
        """
        if re.match(BASE_URL, self.base_url) and not has_host(self.base_url):
            raise ValidationError({"base_url": HOST_SENTENCE})
        self.tags = tidy(self.tags)
        check_name(self)
        if is_new(self, "base_url") and re.match(BASE_URL, self.base_url):
            self._refuse_place()
        if self._is_bound_anew() and (problems := rules.problems(self)):
            raise ValidationError(problems)

    def _refuse_place(self) -> None:
        """Raise ValidationError for a base URL that is no place of its own."""
        if sentence := addresses.problem(self.base_url):
            raise ValidationError({"base_url": sentence})
        places = Endpoint.objects.exclude(pk=self.pk).values_list("name", "base_url")
        if sentence := addresses.overlap(self.base_url, places):
            raise ValidationError({"base_url": ValidationError(sentence, code=TAKEN)})

    def _is_bound_anew(self) -> bool:
        """Say whether keeping it would change where a credential goes. One SQL query at most.

        What was there already waits with its reason, and its caps can be changed all the same.
        """
        if self.credential_id is None and self.credential_lent_id is None:
            return False
        before = Endpoint.objects.filter(pk=self.pk).first()
        if before is None or (before.retired_at and not self.retired_at):
            return True
        return any(getattr(before, name) != getattr(self, name) for name in WHERE_TOKENS_GO)


def has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # an IPv6 address, or a port, that cannot be
        return False
