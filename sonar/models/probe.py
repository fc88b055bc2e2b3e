"""Probes: test transfers that are queued or running, and what they could not clean up."""

import uuid
from functools import cached_property

from django.db import models
from django.db.models import F, Q

from sonar.models.endpoint import Endpoint
from sonar.models.fields import reference
from sonar.models.mesh import Mesh, Mode, Schedule
from sonar.models.size_class import SizeClass
from sonar.movers.catalogue import MoverDescription, kept


class Probe(models.Model):
    """One test transfer that has been ordered and has not ended. Few rows, often updated.

    A probe that ends becomes a Transfer with the same id, in one transaction.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "waiting: ordered, and there is no room for it yet"
        QUEUED = "queued"
        RUNNING = "running"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # At most one open probe per schedule: a slow link is not tested twice at once.
    schedule = models.OneToOneField(
        Schedule, null=True, on_delete=models.SET_NULL, db_constraint=False
    )
    # The one reference that is checked: a result is of a mesh that exists.
    mesh = models.ForeignKey(Mesh, null=True, on_delete=models.SET_NULL, db_index=False)
    source = reference(Endpoint)
    destination = reference(Endpoint)
    size_class = reference(SizeClass)
    bytes = models.BigIntegerField()
    mover = models.CharField(max_length=20)
    mode = models.CharField(max_length=4, choices=Mode, default=Mode.PULL)
    streams = models.PositiveSmallIntegerField(default=1)
    tcp_buffer_bytes = models.PositiveIntegerField(null=True)
    scitag = models.PositiveIntegerField(null=True)
    state = models.CharField(max_length=7, choices=State, default=State.QUEUED)
    requested_at = models.DateTimeField()
    sent_at = models.DateTimeField(help_text="When its id was last put on the queue.")
    queued_at = models.DateTimeField(
        null=True, help_text="When it was queued, if it had to wait for that."
    )
    started_at = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True)
    worker = models.CharField(max_length=120, blank=True)
    progress_bytes = models.BigIntegerField(default=0)
    waits_because = models.CharField(
        max_length=300, blank=True, help_text="Why it waits: a sentence that all may read."
    )
    runs = models.PositiveIntegerField(
        default=0, help_text="How often it was begun: each run has file names of its own."
    )

    class Meta:
        verbose_name = "test"
        constraints = [
            # Tests of one link would share it. Who plans or orders sees to that (scheduler.Room),
            # and this that nothing else ever does.
            models.UniqueConstraint(
                fields=["source", "destination"],
                condition=Q(state__in=["queued", "running"]),
                name="probe_one_test_per_link",
            ),
            models.CheckConstraint(
                condition=~Q(source=F("destination")), name="probe_is_between_two_endpoints"
            ),
            models.CheckConstraint(condition=Q(bytes__gte=1), name="probe_bytes_are_positive"),
            models.CheckConstraint(
                condition=Q(
                    state__in=["waiting", "queued"], started_at__isnull=True, deadline__isnull=True
                )
                | Q(state="running", started_at__isnull=False, deadline__isnull=False),
                name="probe_runs_with_a_deadline",
            ),
        ]
        indexes = [
            # sweeping.sweep: running past the deadline, and queued but never taken.
            models.Index(fields=["deadline"], name="probe_deadline"),
            models.Index(fields=["sent_at"], condition=Q(state="queued"), name="probe_queued"),
            # scheduler.waiting: what is next.
            models.Index(
                fields=["requested_at"], condition=Q(state="waiting"), name="probe_waiting"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} {self.size_class} ({self.state})"

    @cached_property
    def mover_description(self) -> MoverDescription:
        """Return what its mover can; looked up once in the life of a test."""
        return kept(self.mover)


class RecentRun(models.Model):
    """When a test that has ended was at its two ends, kept as long as one that ran beside it runs.

    With the probes that are running this says how many others each test had beside it.
    """

    source = reference(Endpoint)
    destination = reference(Endpoint)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(ended_at__gte=F("began_at")), name="recentrun_ends_after_it_begins"
            ),
        ]
        indexes = [
            # company.forget
            models.Index(fields=["ended_at"], name="recentrun_ended"),
            # company.beside: who was at an endpoint, as its source or as its destination.
            models.Index(fields=["source", "ended_at"], name="recentrun_source"),
            models.Index(fields=["destination", "ended_at"], name="recentrun_destination"),
        ]

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} until {self.ended_at}"


class Circuit(models.Model):
    """How often in a row tests have failed by one end; the row goes when one succeeds there.

    From SONAR_CIRCUIT_FAILURES on the circuit is open: its tests are spread thin.
    """

    endpoint = models.OneToOneField(Endpoint, on_delete=models.CASCADE)
    failures = models.PositiveIntegerField(default=1)
    since = models.DateTimeField(help_text="When the first of them began.")
    last_at = models.DateTimeField(help_text="When the last of them ended.")
    error = models.TextField(help_text="Of the last one, as all may read it.")
    next_test_at = models.DateTimeField(
        null=True, help_text="While it is open: when it is tested again."
    )

    class Meta:
        ordering = ["since"]

    def __str__(self) -> str:
        return f"{self.endpoint}: {self.failures} failures in a row"


class Leftover(models.Model):
    """A file of ours that could not be deleted yet; sonar.work.cleanup tries again."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE)
    path = models.CharField(max_length=200, help_text="Below the base URL of the endpoint.")
    mover = models.CharField(max_length=20)
    since = models.DateTimeField()
    next_try = models.DateTimeField()
    tries = models.PositiveIntegerField(default=1)
    error = models.TextField()

    class Meta:
        ordering = ["since"]
        verbose_name = "file left behind"
        verbose_name_plural = "files left behind"
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "path"], name="leftover_once"),
        ]
        indexes = [models.Index(fields=["next_try"], name="leftover_next_try")]

    def __str__(self) -> str:
        return f"{self.path} at {self.endpoint}"
