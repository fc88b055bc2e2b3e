"""Signs of life: when the processes that measure were last heard of."""

from __future__ import annotations

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
