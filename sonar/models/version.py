"""Counters that say whether an answer given earlier still holds."""

from __future__ import annotations

from django.db import models

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
