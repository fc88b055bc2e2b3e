"""Experiments: tests of one link that differ in one thing, so that they tell what it does."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from sonar.models.endpoint import Endpoint
from sonar.models.size_class import SizeClass


class Experiment(models.Model):
    """A sweep over one variable of the tests of a link; its tests are its steps."""

    class Variable(models.TextChoices):
        STREAMS = "streams", "number of streams"
        SIZE = "size", "size class"
        MODE = "mode", "pull or push"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    source = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="+")
    destination = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="+")
    variable = models.CharField(max_length=7, choices=Variable)
    # What all its tests have in common, but for the variable itself.
    size_class = models.ForeignKey(
        SizeClass, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    mover = models.CharField(max_length=20)
    mode = models.CharField(max_length=4, blank=True)
    streams = models.PositiveSmallIntegerField(null=True)
    requested_at = models.DateTimeField()
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["-requested_at", "-id"]
        constraints = [
            models.CheckConstraint(
                condition=~Q(source=F("destination")), name="experiment_is_between_two_endpoints"
            ),
        ]
        indexes = [
            models.Index(
                fields=["source", "destination", "-requested_at"], name="experiment_of_link"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} by {self.variable}"


class ExperimentStep(models.Model):
    """One test of an experiment: ``test_id`` is that of its probe, and then of its transfer.

    Where neither is there the test was cancelled, or its result is no longer kept.
    """

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="steps")
    position = models.PositiveSmallIntegerField()
    value = models.CharField(max_length=40, help_text="Of the variable: 4, large or push.")
    test_id = models.UUIDField(unique=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "position"], name="experiment_step_once"),
        ]

    def __str__(self) -> str:
        return f"{self.value} ({self.position})"
