"""Counters that say whether an answer given earlier still holds."""

from __future__ import annotations

from django.db import models


class Version(models.Model):
    """A counter, raised in the transaction of what it counts.

    ``registry`` and ``results`` are raised by triggers (migration 0002) on every statement
    that changes those tables, whoever sends it; ``schedule`` notes the version of the
    registry that scheduler.follow_registry has followed. The price: transactions that write
    results wait for each other's commit, so writers put them in batches.
    """

    name = models.CharField(max_length=20, primary_key=True)
    value = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} {self.value}"
