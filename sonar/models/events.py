"""What is known of links and endpoints beside results: changes, outages, notes.

And which credentials do not work.
"""

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from sonar.models.fields import reference
from sonar.models.mesh import Mesh
from sonar.models.registry import Credential, Endpoint, Site, SizeClass


class Change(models.Model):
    """A jump of a rate from one level to another, found by looking back over results.

    Of a link, with both of its ends; of an endpoint as a source or as a destination, with that end
    alone, if its links jumped together; of the whole grid, with neither. ``factor`` is the new
    level over the one before, with an interval of 95 %; it came to pass between ``earliest`` and
    ``latest``, most probably with the first result of the new level, ``at``.
    """

    class Kind(models.TextChoices):
        LINK = "link"
        SOURCE = "source"
        DESTINATION = "destination"
        GRID = "grid"

    kind = models.CharField(max_length=11, choices=Kind)
    source = reference(Endpoint, models.CASCADE, null=True)
    destination = reference(Endpoint, models.CASCADE, null=True)
    size_class = models.ForeignKey(SizeClass, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()
    earliest = models.DateTimeField()
    latest = models.DateTimeField()
    factor = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    before = models.FloatField(null=True, help_text="Of a link: bytes per second before.")
    after = models.FloatField(null=True, help_text="Of a link: bytes per second since.")
    ok_before = models.PositiveIntegerField(help_text="Successful results of the level before.")
    ok_after = models.PositiveIntegerField(help_text="Successful results of the new level.")
    links = models.PositiveIntegerField(help_text="How many links tell of it.")
    chance = models.FloatField(help_text="How often noise alone gives such results one as clear.")
    sure = models.BooleanField(help_text="Beyond chance among all that was looked at.")
    course = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        help_text="Rates before and since, in parts of the level before.",
    )
    found_at = models.DateTimeField(help_text="When it was first found.")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="link", source__isnull=False, destination__isnull=False)
                | Q(kind="source", source__isnull=False, destination__isnull=True)
                | Q(kind="destination", source__isnull=True, destination__isnull=False)
                | Q(kind="grid", source__isnull=True, destination__isnull=True),
                name="change_has_the_ends_of_its_kind",
            ),
            models.CheckConstraint(
                condition=Q(earliest__lte=F("at"), latest__gte=F("at")),
                name="change_is_within_its_bounds",
            ),
        ]
        indexes = [
            # Lists: the newest first.
            models.Index(fields=["-at", "-id"], name="change_newest_first"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.source_id} {self.destination_id} {self.at:%Y-%m-%d %H:%M}"


class ChangeSearch(models.Model):
    """When the results of a size class were last searched for changes of level, and which.

    ``days`` has by day what its results were like then (matrix.store.data_version): as long as
    that holds there is nothing to do. ``method`` is raised with what would find other changes.
    """

    size_class = models.OneToOneField(SizeClass, on_delete=models.CASCADE, related_name="+")
    searched_at = models.DateTimeField()
    start = models.DateTimeField()
    end = models.DateTimeField()
    sequences = models.PositiveIntegerField(help_text="How many could have had a change.")
    days = models.JSONField(default=dict)
    method = models.PositiveSmallIntegerField()

    def __str__(self) -> str:
        return f"{self.size_class}: {self.sequences} sequences at {self.searched_at}"


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
