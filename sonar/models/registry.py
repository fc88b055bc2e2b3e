"""The registry: sites, size classes, credentials, and the endpoints between which files move."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Upper

from sonar.credentials import kinds, rules
from sonar.database.cursors import planned_rows
from sonar.models.fields import (
    NAME,
    TAKEN,
    Pause,
    QuietHours,
    check_name,
    if_given,
    is_new,
    name_field,
    pause_rules,
    refuse_name,
    tags_field,
    tidy,
    two_ends,
    vantage_field,
)
from sonar.notation import addresses, data_hosts


class SiteQuerySet(models.QuerySet["Site"]):
    def listed(self) -> SiteQuerySet:
        """Leave out drafts: sites all of whose endpoints, if there are any, are drafts."""
        return self.filter(Exists(Endpoint.objects.listed().filter(site=OuterRef("pk"))))


class Site(QuietHours, Pause):
    """An organisation's place. While no endpoint of it is listed, the site is a draft."""

    name = name_field()
    cloud = models.CharField(
        max_length=40,
        blank=True,
        help_text="Region (cloud) that the site belongs to, such as UK or DE.",
    )
    tier = models.PositiveSmallIntegerField(
        default=2,
        validators=[MaxValueValidator(3)],
        help_text="WLCG tier of the site, from 0 to 3.",
    )
    country = models.CharField(
        max_length=2,
        blank=True,
        validators=[
            RegexValidator(
                r"^[A-Z]{2}$", "Enter a country as two capital letters (ISO 3166), such as GB."
            )
        ],
    )
    latitude = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(-90), MaxValueValidator(90)]
    )
    longitude = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(-180), MaxValueValidator(180)]
    )
    wan_gbit_s = models.FloatField(
        "nominal WAN capacity (Gbit/s)",
        null=True,
        blank=True,
        validators=[MinValueValidator(0.001)],
    )
    tags = tags_field("for all endpoints of the site")
    admins = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        blank=True,
        related_name="administered_sites",
        help_text="Accounts that can run and pause tests, declare downtimes and add notes for "
        "this site.",
    )

    objects = SiteQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [models.Index(Upper("name"), name="site_name_in_any_case")]
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME), name="site_name_is_plain"),
            models.CheckConstraint(condition=Q(tier__lte=3), name="site_tier_is_0_to_3"),
            if_given("site_latitude_on_earth", latitude__range=(-90, 90)),
            if_given("site_longitude_on_earth", longitude__range=(-180, 180)),
            if_given("site_wan_is_positive", wan_gbit_s__gt=0),
            two_ends("site_quiet_hours_have_two_ends"),
            *pause_rules("site"),
        ]

    def __str__(self) -> str:
        return self.name

    def pause_words(self) -> str:
        return f"{self.name} has paused its tests"

    def clean(self) -> None:
        self.tags = tidy(self.tags)
        check_name(self)


# What parameters begin with that have a dot in them, as those of size classes have.
BEGINNINGS = ("compare", "destination", "source")


def refuse_parameter(row: models.Model, name: str) -> None:
    """Raise ValidationError for a new name that would be read as something else in a URL."""
    if not is_new(row, "name"):
        return
    if name.casefold() in BEGINNINGS:
        sentence = (
            f"A size class cannot be named “{name}”: query parameters use this name as a prefix."
        )
        raise ValidationError({"name": sentence})
    if name.isdecimal():
        sentence = f"A size class cannot be named “{name}”: it would be read as a number."
        raise ValidationError({"name": sentence})


class SizeClass(models.Model):
    """A named range of file sizes: from its first byte count to that of the next class.

    So ranges cannot overlap or leave a gap. That the first begins at 0 and that every test
    size lies in its own range is held by a deferred trigger (migration 0002), as it
    concerns several rows.
    """

    name = name_field()
    from_bytes = models.BigIntegerField(
        validators=[MinValueValidator(0)],
        help_text="Smallest file size in bytes that belongs to the size class.",
    )
    test_bytes = models.BigIntegerField(
        validators=[MinValueValidator(1)],
        help_text="Size of a test file in bytes, within the range of the size class.",
    )
    timeout_seconds = models.PositiveIntegerField(
        default=3600,
        validators=[MinValueValidator(1)],
        help_text="Maximum duration of a test in seconds. A test that takes longer counts as "
        "failed.",
    )

    class Meta:
        ordering = ["from_bytes"]
        verbose_name_plural = "size classes"
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME), name="sizeclass_name_is_plain"),
            # Deferred, so that a registry file may move several boundaries at once.
            models.UniqueConstraint(
                fields=["from_bytes"],
                name="sizeclass_begins_alone",
                deferrable=models.Deferrable.DEFERRED,
            ),
            models.CheckConstraint(
                condition=Q(from_bytes__gte=0, test_bytes__gte=1, timeout_seconds__gte=1),
                name="sizeclass_numbers_are_positive",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def test_sizes(cls) -> dict[str, int]:
        """Return the size of the test file of each class, the smallest first. One SQL query.

        By hand, as most pages ask: Django takes longer to write it than PostgreSQL to answer.
        """
        return dict(
            planned_rows("SELECT name, test_bytes FROM sonar_sizeclass ORDER BY from_bytes")
        )

    def clean(self) -> None:
        check_name(self)
        refuse_parameter(self, self.name)


def validate_host(text: str) -> None:
    if rules.host_of(text) is None:
        raise ValidationError(rules.HOST_SENTENCE)


def setting_field(verbose_name: str, longest: int, help_text: str) -> models.CharField[str, str]:
    """Return a column that only some kinds of credentials have; empty for the others."""
    return models.CharField(
        verbose_name, max_length=longest, blank=True, default="", db_default="", help_text=help_text
    )


class Credential(models.Model):
    """Where tokens come from, and the hosts that they may be sent to; never a secret.

    That is in a file on the workers, or was uploaded. Written by administrators alone: whoever
    says where a token may go can have it. Who uploads a secret binds it to where it is used.
    """

    name = models.CharField(
        max_length=80,
        unique=True,
        validators=[RegexValidator(rules.NAME, rules.NAME_SENTENCE)],
        help_text="Name of the credential. A file with this name in SONAR_CREDENTIALS_DIR holds "
        "its secret, unless the secret was uploaded.",
    )
    hosts = ArrayField(
        models.CharField(max_length=255, validators=[validate_host]),
        help_text="Hosts that the credential may be sent to, in lower case. Write host:port to "
        "allow only that port.",
    )
    kind = models.CharField(
        max_length=20,
        choices=kinds.CHOICES,
        default=kinds.FILE,
        db_default=kinds.FILE,
        help_text="Kind of secret, which determines how Sonar obtains a credential from the "
        "secret.",
    )
    issuer = setting_field(
        "issuer",
        400,
        "Only for client_credentials: URL of the token issuer, https://host/path. The secret is "
        "sent only there.",
    )
    client_id = setting_field(
        "client ID",
        200,
        "Only for client_credentials: client ID that is registered with the issuer.",
    )
    audience = setting_field(
        "audience",
        400,
        "Only for client_credentials: audience of the tokens. Empty means the URL origin of the "
        "endpoint or service.",
    )
    path_prefix = setting_field(
        "path prefix",
        200,
        "Only for client_credentials: prefix that token scopes omit from endpoint paths, such as "
        "/atlas. Empty if scopes contain the whole path.",
    )
    scope = setting_field(
        "scope",
        200,
        "Only for client_credentials of transfer services: scope of the tokens, such as fts.",
    )

    to_data_hosts = models.BooleanField(
        "send to data servers",
        default=False,
        db_default=False,
        help_text="Whether the credential is also sent to the declared data servers of an "
        "endpoint. It is sent if the endpoint's server redirects to a data server and the redirect "
        "contains no other credential.",
    )
    uploaded_at = models.DateTimeField(
        "uploaded",
        null=True,
        blank=True,
        help_text="Time when the secret was uploaded. Empty if the secret is in a file on the "
        "workers.",
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
                violation_error_message="A credential must list at least one host.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_uploaded(self) -> bool:
        return self.uploaded_at is not None

    def clean(self) -> None:
        if self.name.endswith("\n"):  # which the pattern lets pass
            raise ValidationError({"name": rules.NAME_SENTENCE})
        if self.kind not in kinds.names():
            return  # the field says so
        values = {name: getattr(self, name) for name in kinds.SETTINGS}
        if sentences := kinds.problems(self.kind, values):
            raise ValidationError(sentences)
        uploaded = Credential.objects.filter(pk=self.pk, uploaded_secret__isnull=False)
        if (before := uploaded.first()) is None:
            return
        if before.kind != self.kind:
            raise ValidationError({"kind": FOR_ANOTHER})
        if before.issuer != self.issuer and (
            addresses.place_of(before.issuer).server != addresses.place_of(self.issuer).server
        ):
            raise ValidationError({"issuer": FOR_ANOTHER})


FOR_ANOTHER = (
    "The uploaded secret belongs to the previous kind or issuer. Remove the secret first, or "
    "upload it again on the page of its endpoint."
)
# A known scheme, a host, no user or password, no query: a URL that may be shown to anyone.
BASE_URL = r"^(https?|davs?|root|xroot|gsiftp|ftp|iperf3|fake)://[^/@?#\s]+(/[^@?#\s]*)?$"
BASE_URL_SENTENCE = (
    "Enter a base URL as scheme://host[:port]/path, without user name, password or query string. "
    "Its scheme must be http, https, dav, davs, root, xroot, gsiftp, ftp, iperf3 or fake."
)
HOST_SENTENCE = "A base URL needs a host. Its port, if any, must be a number from 1 to 65535."

# What forms and API let in; the columns hold more.
MOST_CAP, MOST_DAILY_BYTES = 9999, 10**18 - 1

# Columns of an endpoint that say who is sent what.
WHERE_TOKENS_GO = ("base_url", "credential_id", "credential_lent_id", "lend_credential")


def validate_data_host(text: str) -> None:
    if sentence := data_hosts.problem(text):
        raise ValidationError(sentence)


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    def listed(self) -> EndpointQuerySet:
        """Leave out drafts, which only those see who may finish them."""
        return self.filter(is_draft=False)

    def in_use(self) -> EndpointQuerySet:
        """Return what meshes may test: neither a draft nor retired. It may be switched off."""
        return self.listed().filter(retired_at=None)

    def drafts(self) -> EndpointQuerySet:
        return self.filter(is_draft=True, retired_at=None)


class Endpoint(Pause):
    """One storage area of a site. Retired, never deleted: history keeps it.

    It is a draft until it is first enabled, or a result of it is imported. A draft is part of no
    mesh, count, answer or export; one that is switched off later keeps its results and is listed.
    """

    name = name_field()
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="endpoints")
    label = models.CharField(
        max_length=40, blank=True, help_text="Label of the storage area, such as DATADISK."
    )
    base_url = models.CharField(
        "base URL",
        max_length=400,
        unique=True,
        validators=[RegexValidator(BASE_URL, BASE_URL_SENTENCE)],
        help_text="Base URL of the storage area. Sonar writes and deletes files only in sonar/ "
        "below it.",
    )
    software = models.CharField(
        max_length=80, blank=True, help_text="Server software, such as XRootD 5.5.3."
    )
    tags = tags_field("in addition to the tags of its site")
    inbound_cap = models.PositiveIntegerField(
        default=2,
        validators=[MinValueValidator(1)],
        help_text="Maximum number of concurrent test transfers to the endpoint.",
    )
    outbound_cap = models.PositiveIntegerField(
        default=2,
        validators=[MinValueValidator(1)],
        help_text="Maximum number of concurrent test transfers from the endpoint.",
    )
    budget_bytes_per_day = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Maximum number of bytes that tests read from and write to the endpoint per UTC "
        "day. Empty means no limit.",
    )
    credential = models.ForeignKey(
        Credential,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="endpoints",
        help_text="Credential with which Sonar reads, writes and deletes files at the endpoint. "
        "It is not sent to other endpoints.",
    )
    credential_lent = models.ForeignKey(
        Credential,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="lending_endpoints",
        help_text="Credential that is delegated to the other endpoint of a third-party copy. It "
        "should be read-only.",
    )
    lend_credential = models.BooleanField(
        default=False,
        help_text="Whether `credential` is delegated to the other endpoint of a third-party copy "
        "if no separate delegated credential is set.",
    )
    data_hosts = ArrayField(
        models.CharField(max_length=255, validators=[validate_data_host]),
        size=data_hosts.MOST,
        default=list,
        db_default=[],
        blank=True,
        help_text="Data servers to which the server can redirect tests, such as "
        "st-048.example.org, st-*.example.org:8443 or 192.0.2.0/24:20000-25000.",
    )
    vantage = vantage_field(
        "Vantage point whose workers can reach the endpoint. Empty if all workers can reach the "
        "endpoint."
    )
    enabled = models.BooleanField(
        default=True,
        db_default=True,
        help_text="Tests of the endpoint's links start only while the endpoint is enabled. An "
        "endpoint check is always possible.",
    )
    # A trigger (migration 0053) clears it in the statement that enables the endpoint, and never
    # sets it again: an object that has just been saved may still say True.
    is_draft = models.BooleanField(default=True, db_default=True, editable=False)
    simulated = models.BooleanField(
        default=False,
        help_text="Whether the endpoint is a node of the sandbox. Its rates are simulated and "
        "marked as such.",
    )
    retired_at = models.DateTimeField(null=True, blank=True)
    # The places of all endpoints, set by a load of many; without it `clean_up` reads them.
    places: addresses.Places | None = None

    objects = EndpointQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [models.Index(Upper("name"), name="endpoint_name_in_any_case")]
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME), name="endpoint_name_is_plain"),
            # A segment has two bytes for each end of a link.
            models.CheckConstraint(
                condition=Q(id__lte=65535),
                name="endpoint_id_has_16_bits",
                violation_error_message="Sonar can register at most 65535 endpoints, including "
                "retired ones.",
            ),
            models.CheckConstraint(
                condition=Q(base_url__regex=BASE_URL), name="endpoint_base_url_is_plain"
            ),
            models.CheckConstraint(
                condition=Q(inbound_cap__gte=1, outbound_cap__gte=1),
                name="endpoint_caps_are_positive",
            ),
            if_given("endpoint_budget_is_positive", budget_bytes_per_day__gte=1),
            *pause_rules("endpoint"),
        ]

    def __str__(self) -> str:
        return self.name

    def pauses(self, now: datetime) -> list[Pause]:
        """Return what is paused of its site, which is read already, and itself."""
        return [row for row in (self.site, self) if row.is_paused(now)]

    def clean(self) -> None:
        """Want a URL that movers can take apart: the pattern lets `ftp://[` pass, and port 99999.

        And one that its credentials are for. Sentences do not repeat the URL, as there may be a
        password in it.
        """
        if re.match(BASE_URL, self.base_url) and not has_host(self.base_url):
            raise ValidationError({"base_url": HOST_SENTENCE})
        self.tags = tidy(self.tags)
        check_name(self)
        refuse_name(self, "state", "/api/v1/endpoints/state/")
        if is_new(self, "base_url") and re.match(BASE_URL, self.base_url):
            self._refuse_place()
        if self._is_bound_anew() and (problems := rules.problems(self)):
            raise ValidationError(problems)

    def _refuse_place(self) -> None:
        """Raise ValidationError for a base URL that is no place of its own."""
        if sentence := addresses.problem(self.base_url):
            raise ValidationError({"base_url": sentence})
        others: Iterable[tuple[str, str]]
        if self.places is None:
            others = Endpoint.objects.exclude(pk=self.pk).values_list("name", "base_url")
        else:
            others = (each for each in self.places.others(self.base_url) if each[0] != self.name)
        if sentence := addresses.overlap(self.base_url, others):
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


class RefusedRedirect(models.Model):
    """A server to which an endpoint's own led a test, and which is not declared."""

    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.CASCADE, related_name="refused_redirects"
    )
    server = models.CharField(max_length=255, help_text="Host and port of the server.")
    times = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        ordering = ["-last_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "server"], name="refusedredirect_is_told_once"
            )
        ]

    def __str__(self) -> str:
        return self.server


class FileRow(models.Model):
    """What a registry file said of one row when it was last loaded, by the keys of the file.

    Fields that the file states as before leave the row as pages have set it since.
    """

    kind = models.CharField(max_length=20, help_text="Section of the registry file.")
    name = models.CharField(max_length=200)
    fields = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "name"], name="filerow_is_unique")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
