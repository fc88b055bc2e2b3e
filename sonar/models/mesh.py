"""Meshes: which links are tested, how, and how often; the schedule and the tests that follow."""

import uuid
from datetime import datetime
from functools import cached_property
from typing import Self

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q

from sonar.credentials import rules
from sonar.models.fields import (
    NAME,
    Pause,
    QuietHours,
    check_name,
    if_given,
    is_new,
    name_field,
    pause_rules,
    reference,
    two_endpoints,
    two_ends,
    vantage_field,
)
from sonar.models.member_filters import MemberFilters
from sonar.models.registry import Credential, Endpoint, SizeClass
from sonar.movers import catalogue
from sonar.notation import scitags


class Mode(models.TextChoices):
    PULL = "pull", "pull: the destination fetches"
    PUSH = "push", "push: the source sends"


def mover_choices() -> list[tuple[str, str]]:
    return [(name, name) for name in catalogue.names()]


LIMITS = ("bytes_per_hour",)
"""Columns of limits at which an obstacle holds tests back: each door of the registry has them."""


class Mesh(MemberFilters, QuietHours):
    """Which links are tested, how often per size class, with what, and in which hours."""

    name = name_field()
    enabled = models.BooleanField(default=True)
    mover = models.CharField(max_length=20, default=catalogue.DEFAULT, choices=mover_choices)
    mode = models.CharField(max_length=4, choices=Mode, default=Mode.PULL)
    streams = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1)])
    tcp_buffer_bytes = models.PositiveIntegerField(
        "TCP buffer (bytes)",
        null=True,
        blank=True,
        help_text="Size of the TCP buffer in bytes, for transfer tools that can set it. Empty "
        "means that the servers choose the buffer size.",
    )
    scitag = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(scitags.LEAST), MaxValueValidator(scitags.MOST)],
        help_text="Flow label of the transfers as experiment/activity (scitags.org), such as "
        "2/11. Only for transfer tools that can send one. Empty means no flow label.",
    )
    service = models.CharField(
        max_length=400,
        blank=True,
        default="",
        db_default="",
        validators=[RegexValidator(rules.SERVICE_URL, rules.SERVICE_SENTENCE)],
        help_text="URL of the transfer service, for transfer tools that use one. The service "
        "receives the delegated credentials of both endpoints.",
    )
    service_credential = models.ForeignKey(
        Credential,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="meshes",
        help_text="Credential with which Sonar authenticates to the transfer service. It is sent "
        "only there.",
    )
    priority = models.PositiveSmallIntegerField(
        default=5,
        help_text="If limits do not allow all due tests to start, tests with a higher priority "
        "start first.",
    )
    bytes_per_hour = models.BigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Maximum number of bytes that tests of the mesh move per hour. Empty means no "
        "limit.",
    )
    vantage = vantage_field(
        "Vantage point whose workers run the tests, unless a different vantage point is set for an "
        "endpoint."
    )
    sources = models.ManyToManyField(
        Endpoint,
        blank=True,
        related_name="+",
        help_text="Endpoints that the mesh tests. If none are chosen, all endpoints are tested.",
    )
    destinations = models.ManyToManyField(
        Endpoint,
        blank=True,
        related_name="+",
        help_text="Endpoints that the mesh tests. If none are chosen, all endpoints are tested.",
    )

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "meshes"
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME), name="mesh_name_is_plain"),
            models.CheckConstraint(condition=Q(mode__in=Mode.values), name="mesh_mode_is_known"),
            models.CheckConstraint(condition=Q(streams__gte=1), name="mesh_streams_are_positive"),
            if_given("mesh_bytes_per_hour_are_positive", bytes_per_hour__gte=1),
            two_ends("mesh_quiet_hours_have_two_ends"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def mover_description(self) -> catalogue.MoverDescription:
        return catalogue.kept(self.mover)

    def clean(self) -> None:
        check_name(self)
        if self.mover in catalogue.names():
            self._refuse_what_its_mover_does_not_obey()
            wrong = rules.service_problems(
                self.mover_description, self.service, self.service_credential
            )
            if wrong:
                raise ValidationError(wrong)

    def _refuse_what_its_mover_does_not_obey(self) -> None:
        """Raise ValidationError by field; what was kept before its mover was described stays."""
        parameters = {name: getattr(self, name) for name in catalogue.PARAMETERS}
        refusals = self.mover_description.refusals(self.mode, **parameters)
        if new := [field for field in refusals if is_new(self, "mover") or is_new(self, field)]:
            raise ValidationError({field: refusals[field] for field in new})


class MeshInterval(models.Model):
    """How often a mesh tests each of its links with one size class."""

    mesh = models.ForeignKey(Mesh, on_delete=models.CASCADE, related_name="intervals")
    size_class = models.ForeignKey(SizeClass, on_delete=models.PROTECT)
    every_seconds = models.PositiveIntegerField(validators=[MinValueValidator(1)])

    class Meta:
        ordering = ["mesh", "size_class__from_bytes"]
        constraints = [
            models.UniqueConstraint(
                fields=["mesh", "size_class"], name="meshinterval_once_per_size_class"
            ),
            models.CheckConstraint(
                condition=Q(every_seconds__gte=1), name="meshinterval_is_positive"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.mesh} {self.size_class} every {self.every_seconds} s"


class Schedule(models.Model):
    """When one link of a mesh is due for a test of one size class, and why it had to wait.

    Rows are made and removed by scheduler.follow_registry, never by hand.
    """

    mesh = reference(Mesh, models.CASCADE)
    source = reference(Endpoint, models.CASCADE)
    destination = reference(Endpoint, models.CASCADE)
    size_class = reference(SizeClass, models.CASCADE)
    every_seconds = models.PositiveIntegerField()
    next_due = models.DateTimeField()
    skipped_because = models.CharField(
        max_length=12,
        blank=True,
        help_text="Name of the reason why the last due test did not start. Empty if it started.",
    )
    skipped_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["mesh", "source", "destination", "size_class"], name="schedule_once"
            ),
            two_endpoints("schedule_is_between_two_endpoints"),
        ]
        indexes = [
            # scheduler.claim_due: what is due, oldest first.
            models.Index(fields=["next_due"], name="schedule_next_due"),
        ]

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} {self.size_class}"


class Probe(models.Model):
    """One test transfer that has been ordered and has not ended. Few rows, often updated.

    A probe that ends becomes a Transfer with the same id, in one transaction.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "waiting: requested, but limits do not allow the test to start yet"
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
    sent_at = models.DateTimeField(help_text="Time when the test was last put in the queue.")
    queued_at = models.DateTimeField(
        null=True,
        help_text="Time when the test was queued after waiting. Empty if it did not have to wait.",
    )
    started_at = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True)
    worker = models.CharField(max_length=120, blank=True)
    progress_bytes = models.BigIntegerField(default=0)
    waits_because = models.CharField(
        max_length=300,
        blank=True,
        help_text="Reason why the test is waiting, visible to all readers.",
    )
    runs = models.PositiveIntegerField(
        default=0,
        help_text="Number of times that the test was started. Each run uses different file names.",
    )
    cancelled_by = models.CharField(
        max_length=100,
        blank=True,
        default="",
        db_default="",
        help_text="User who cancelled the running test, as shown to all readers. The worker then "
        "ends the test.",
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
            two_endpoints("probe_is_between_two_endpoints"),
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
            # probes.recover: running past the deadline, and queued but never taken.
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
    def mover_description(self) -> catalogue.MoverDescription:
        """Return what its mover can; looked up once in the life of a test."""
        return catalogue.kept(self.mover)


class AllTests(Pause):
    """One row: whether all Sonar tests are stopped. While they are, no test starts."""

    name = models.CharField(max_length=20, default="all tests", editable=False)

    class Meta:
        verbose_name = "global stop of tests"
        verbose_name_plural = "global stop of tests"
        constraints = [
            models.CheckConstraint(condition=Q(id=1), name="alltests_is_one"),
            *pause_rules("alltests"),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def read(cls) -> Self:
        """Return the row, or one that stops nothing. One SQL query."""
        return cls.objects.select_related("paused_by").first() or cls(id=1)

    def pause_words(self) -> str:
        return "All Sonar tests are stopped"

    def sentence(self, now: datetime) -> str:
        """Say that all tests are stopped, until when and why; empty while they are not."""
        if not self.is_paused(now):
            return ""
        return f"{self.pause_words()} {self.pause_end()}: {self.pause_reason}"


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
            # concurrency.forget
            models.Index(fields=["ended_at"], name="recentrun_ended"),
            # concurrency.end_run: the tests at an endpoint, as its source or as its destination.
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
    since = models.DateTimeField(
        help_text="Time when the first of the consecutive failed tests began."
    )
    last_at = models.DateTimeField(help_text="Time when the last failed test ended.")
    error = models.TextField(help_text="Error from the last failed test, as shown to all readers.")
    next_test_at = models.DateTimeField(
        null=True,
        help_text="Time of the next test while the circuit breaker is open. Empty if it is closed.",
    )

    class Meta:
        ordering = ["since"]

    def __str__(self) -> str:
        return f"{self.endpoint}: {self.failures} failures in a row"


class Leftover(models.Model):
    """A file of ours that could not be deleted yet; sonar.work.cleanup tries again."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE)
    path = models.CharField(
        max_length=200, help_text="Path of the file below the base URL of the endpoint."
    )
    mover = models.CharField(max_length=20)
    since = models.DateTimeField()
    next_try = models.DateTimeField()
    tries = models.PositiveIntegerField(default=1)
    error = models.TextField()
    remote_id = models.CharField(
        max_length=100,
        blank=True,
        db_default="",
        help_text="Transfer-service job that may still write the file. Empty if no such job is "
        "known.",
    )

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


class Sweep(models.Model):
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
            two_endpoints("sweep_is_between_two_endpoints"),
        ]
        indexes = [
            models.Index(fields=["source", "destination", "-requested_at"], name="sweep_of_link"),
        ]

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} by {self.variable}"


class SweepStep(models.Model):
    """One test of a sweep: ``test_id`` is that of its probe, and then of its transfer.

    Where neither is there the test was cancelled, or its result is no longer kept.
    """

    sweep = models.ForeignKey(Sweep, on_delete=models.CASCADE, related_name="steps")
    position = models.PositiveSmallIntegerField()
    value = models.CharField(
        max_length=40, help_text="Value of the varied setting, such as 4, large or push."
    )
    test_id = models.UUIDField(unique=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["sweep", "position"], name="sweep_step_once"),
        ]

    def __str__(self) -> str:
        return f"{self.value} ({self.position})"
