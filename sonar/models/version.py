"""What processes tell each other: whether an earlier answer still holds, and who is alive."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class SignOfLife(models.Model):
    """When a worker, the beat or a task last said that it lives (sonar.processes.heartbeats)."""

    class Kind(models.TextChoices):
        WORKER = "worker"
        BEAT = "beat"
        TASK = "task"

    name = models.CharField(max_length=200, primary_key=True)
    kind = models.CharField(max_length=6, choices=Kind)
    seen_at = models.DateTimeField()
    every_seconds = models.PositiveIntegerField(help_text="How often it says so.")
    queues = ArrayField(models.CharField(max_length=160), default=list, blank=True)

    class Meta:
        ordering = ["kind", "name"]
        verbose_name_plural = "signs of life"

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
