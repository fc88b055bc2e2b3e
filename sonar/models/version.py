"""What processes tell each other: counters, signs of life, and what of the results is sealed."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from sonar.models.registry import SizeClass


class SignOfLife(models.Model):
    """Heartbeat of a worker, the scheduler (beat) or a task; written by processes.heartbeats."""

    class Kind(models.TextChoices):
        WORKER = "worker"
        BEAT = "beat"
        TASK = "task"

    name = models.CharField(max_length=200, primary_key=True)
    kind = models.CharField(max_length=6, choices=Kind)
    seen_at = models.DateTimeField(
        help_text="Time of the last heartbeat, by the clock of the database."
    )
    every_seconds = models.PositiveIntegerField(
        help_text="Interval between heartbeats, in seconds."
    )
    queues = ArrayField(models.CharField(max_length=160), default=list, blank=True)
    clock_ahead_seconds = models.FloatField(
        default=0.0,
        db_default=0.0,
        help_text="Seconds by which the process clock was ahead of the database clock. Negative if "
        "the process clock lagged.",
    )

    class Meta:
        ordering = ["kind", "name"]
        verbose_name = "heartbeat"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


# What changes with each raise of a counter, named in the braces. The counter alone would repeat
# itself after a rollback or a restored backup; with the transaction that raised it it does not.
RAISED = "SELECT value || '.' || xmin FROM sonar_version WHERE name = '{}'"


class Version(models.Model):
    """A counter, raised in the transaction of what it counts.

    ``registry`` is raised by triggers (migration 0002) on every statement that changes its
    tables, whoever sends it; ``schedule`` notes the version of the registry that
    scheduler.follow_registry has followed, and ``wanted`` the hash of what its meshes wanted
    then; ``tick`` is the second in which was planned last (scheduler.clock). Results have no
    counter, as their writers would wait for each other: their dirty marks and segments say what
    has changed.
    """

    name = models.CharField(max_length=20, primary_key=True)
    value = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} {self.value}"

    @classmethod
    def lock_registry(cls) -> None:
        """Wait for those that are changing the registry, and let others wait for this transaction.

        Rules about several rows, such as places inside each other, are then checked in turn.
        """
        cls.objects.select_for_update().filter(name="registry").first()


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
