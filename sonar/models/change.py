"""Changes of level: when a link, or an endpoint over all its links, became faster or slower."""

from django.db import models
from django.db.models import F, Q

from sonar.models.endpoint import Endpoint
from sonar.models.fields import reference
from sonar.models.size_class import SizeClass


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
