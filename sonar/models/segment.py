"""Segments: the results of one size class in one hour or day as columns; and what is dirty."""

from django.db import models

from sonar.models.size_class import SizeClass


class Level(models.TextChoices):
    HOUR = "hour"
    DAY = "day"


class Bucket(models.Model):
    """One size class in one UTC hour or day. Results belong to the bucket they started in."""

    # Like Transfer: no key in the database, so that no writer locks a row of the registry.
    size_class = models.ForeignKey(
        SizeClass, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    level = models.CharField(max_length=4, choices=Level)
    start = models.DateTimeField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.level} {self.start:%Y-%m-%d %H:%M} of size class {self.size_class_id}"


class DirtyMark(Bucket):
    """Says that a bucket's segment does not hold all its results; sealing takes it away.

    Triggers (migration 0003) append one for each hour that a statement touches, in its
    transaction: only added, never updated, so that writers do not wait for each other. A day
    is dirty if it has a mark or any of its hours has one.
    """

    seq = models.BigAutoField(primary_key=True)

    class Meta:
        indexes = [
            # matrix.store.runs and segments.seal: what is dirty in a window of one size class.
            models.Index(fields=["size_class", "start"], name="dirtymark_class_start"),
        ]


class Segment(Bucket):
    """The results of a bucket as columns of little-endian numpy arrays (sonar.results.segments).

    A segment is never changed: sealing again puts one with a new id in its place, so the id
    says what it holds, for caches and ETags.
    """

    rows = models.IntegerField()
    keys = models.BinaryField()
    offsets = models.BinaryField()
    sizes = models.BinaryField()
    profiles = models.BinaryField()
    links = models.BinaryField()
    lasts = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["size_class", "level", "start"], name="segment_once"),
        ]
