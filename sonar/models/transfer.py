"""Results: transfers, append-only, each with the profile it was made with; tests of the network.

And flows: what networks say of the connections of transfers.
"""

import uuid
from datetime import datetime, timedelta

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from sonar.models.fields import if_given, reference, two_endpoints
from sonar.models.mesh import Mesh, Mode, Probe, Schedule, SweepStep
from sonar.models.registry import Endpoint, SizeClass
from sonar.movers.catalogue import CLOCKS
from sonar.notation.units import LONGEST_SECONDS
from sonar.notation.windows import EARLIEST, LATEST

# Of a result: Sonar's own worker made it, or gave it up before it ran. An import has none of both.
MADE_HERE = ~Q(worker="") | Q(error_where="control", seconds=0)
WHERE = ["source", "destination", "transfer", "control"]


class Profile(models.Model):
    """What results must not be mixed over unknowingly, one row for each combination in use."""

    class Origin(models.TextChoices):
        TEST = "test"
        PRODUCTION = "production"
        EXTERNAL = "external"

    class Purpose(models.TextChoices):
        """Why a test is made; tests that are not a ``SWEEP`` say how a link is.

        An ordered test does so only if it was made as the link's mesh makes its tests. One made
        with other settings is a sweep, and so is each test of a Sweep.
        """

        SCHEDULED = "scheduled"
        ORDERED = "ordered"
        SWEEP = "sweep"

    mover = models.CharField(max_length=20)
    mode = models.CharField(max_length=4, choices=Mode, blank=True)
    streams = models.PositiveSmallIntegerField(default=1, help_text="Requested number of streams.")
    streams_used = models.PositiveSmallIntegerField(
        null=True, help_text="Actual number of streams. Empty if unknown."
    )
    tcp_buffer_bytes = models.PositiveIntegerField(null=True)
    ip_version = models.PositiveSmallIntegerField(null=True)
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.TEST)
    mesh = models.ForeignKey(Mesh, null=True, on_delete=models.PROTECT)
    activity = models.CharField("VO or activity", max_length=80, blank=True)
    clock = models.CharField(
        max_length=7,
        choices=[*CLOCKS.items()],
        blank=True,
        db_default="",
        help_text="Which program measured the duration, and between which two events. Empty if "
        "unknown.",
    )
    concurrent = models.PositiveSmallIntegerField(
        null=True,
        help_text="Whether other tests ran at the source or destination at the same time: 0 for "
        "no, 1 for yes. Empty if not recorded.",
    )
    purpose = models.CharField(
        max_length=10,
        choices=Purpose,
        blank=True,
        db_default="",
        help_text="Reason why the test was run. Empty if an import does not state the reason.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "mover",
                    "mode",
                    "streams",
                    "streams_used",
                    "tcp_buffer_bytes",
                    "ip_version",
                    "origin",
                    "mesh",
                    "activity",
                    "clock",
                    "concurrent",
                    "purpose",
                ],
                nulls_distinct=False,
                name="profile_once",
            ),
            # A segment has two bytes for it.
            models.CheckConstraint(condition=Q(id__lte=65535), name="profile_id_has_16_bits"),
            if_given("profile_ip_version_is_4_or_6", ip_version__in=[4, 6]),
            models.CheckConstraint(
                condition=Q(origin__in=["test", "production", "external"]),
                name="profile_origin_is_known",
            ),
            models.CheckConstraint(
                condition=Q(clock__in=["", *CLOCKS]), name="profile_clock_is_known"
            ),
            if_given("profile_concurrent_is_0_or_1", concurrent__in=[0, 1]),
            models.CheckConstraint(
                condition=Q(purpose__in=["", "scheduled", "ordered", "sweep"]),
                name="profile_purpose_is_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.mover} {self.mode}, {self.streams} streams, {self.origin}"


class Transfer(models.Model):
    """One file sent once, finished. Rows enter by sonar.results.store and are not changed.

    The table has a partition for each UTC month (sonar.results.store); its primary key there
    is (id, started_at), and sonar.results.store sees to it that an id is stored once.
    """

    class State(models.TextChoices):
        DONE = "done"
        FAILED = "failed"
        LOST = "lost", "lost: the worker stopped"

    class Where(models.TextChoices):
        SOURCE = "source"
        DESTINATION = "destination"
        TRANSFER = "transfer"
        CONTROL = "control"

    CANCELLED = "cancelled"
    """The first word of the error of a test that was cancelled while it ran."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    source = reference(Endpoint)
    destination = reference(Endpoint)
    size_class = reference(SizeClass)
    profile = reference(Profile)
    state = models.CharField(max_length=6, choices=State)
    started_at = models.DateTimeField()
    seconds = models.FloatField(
        help_text="Duration of the whole transfer in seconds, as seen by its requester."
    )
    bytes = models.BigIntegerField(
        help_text="Size of the file in bytes, whether it arrived or not."
    )
    prepare_seconds = models.FloatField(
        null=True, help_text="Seconds of preparation before the transfer itself began."
    )
    queue_seconds = models.FloatField(
        null=True,
        help_text="Seconds in the queue of the transfer service before the transfer began.",
    )
    redirect_seconds = models.FloatField(
        null=True, help_text="Seconds until a redirector had found a data server."
    )
    first_byte_seconds = models.FloatField(null=True)
    transfer_seconds = models.FloatField(
        null=True,
        help_text="Seconds during which bytes moved, as reported by the transfer tool or service.",
    )
    checksum_seconds = models.FloatField(
        null=True, help_text="Seconds spent verifying the checksum at the destination."
    )
    tcp_buffer_used_bytes = models.BigIntegerField(
        null=True, help_text="Size of the TCP buffer that was used, in bytes. Empty if unknown."
    )
    moved_bytes = models.BigIntegerField(
        null=True, help_text="Number of bytes that are known to have arrived. Empty if unknown."
    )
    samples = models.JSONField(
        default=list, help_text="Progress samples: pairs of elapsed seconds and bytes moved so far."
    )
    remote_connections = models.JSONField(default=list)
    error = models.TextField(blank=True)
    error_where = models.CharField(max_length=11, choices=Where, blank=True)
    error_is_permanent = models.BooleanField(default=False)
    worker = models.CharField(max_length=120, blank=True)
    verified = models.BooleanField(
        null=True,
        help_text="Whether the checksums at source and destination agree. Empty if unknown.",
    )
    verified_note = models.TextField(
        blank=True, db_default="", help_text="Why the checksum was not verified."
    )
    # Concurrent tests: other Sonar tests at the source or destination while bytes moved. The mean
    # over that time and the highest number at one moment; empty where not recorded.
    concurrent_at_source_mean = models.FloatField(null=True)
    concurrent_at_source_max = models.PositiveSmallIntegerField(null=True)
    concurrent_at_destination_mean = models.FloatField(null=True)
    concurrent_at_destination_max = models.PositiveSmallIntegerField(null=True)
    remote_id = models.CharField(
        max_length=100,
        blank=True,
        db_default="",
        help_text="Id of the transfer at the transfer service.",
    )
    log_url = models.CharField(max_length=500, blank=True, db_default="")
    scitag = models.PositiveIntegerField(
        null=True,
        help_text="Flow label that the packets carried (experiment and activity). Empty if they "
        "carried none.",
    )
    data_server = models.CharField(
        max_length=260,
        blank=True,
        db_default="",
        help_text="Host and port of the data server that moved the bytes. Empty if unknown.",
    )
    upload = models.JSONField(
        null=True,
        help_text="How the worker uploaded the test file to the source before the transfer, and "
        "over which connection. Empty if the file was already there.",
    )

    class Meta:
        verbose_name = "result"
        constraints = [
            two_endpoints("transfer_is_between_two_endpoints"),
            models.CheckConstraint(
                condition=Q(bytes__gte=1, seconds__gte=0), name="transfer_numbers_are_positive"
            ),
            models.CheckConstraint(
                condition=Q(state="done", seconds__gt=0, error="", error_where="")
                | (Q(state__in=["failed", "lost"], error_where__in=WHERE) & ~Q(error="")),
                name="transfer_failed_with_where_and_why",
            ),
        ]
        indexes = [
            # sonar.results.segments: the raw rows of an hour; lists: the newest first.
            models.Index(fields=["started_at", "size_class"], name="transfer_started_class"),
            # One link over time.
            models.Index(
                fields=["source", "destination", "started_at"], name="transfer_link_started"
            ),
            # matrix.store.runs: what few servers moved.
            models.Index(
                fields=["data_server", "started_at"],
                name="transfer_data_server",
                condition=~Q(data_server=""),
            ),
            # matrix.assessment.inputs: failed tests of a day whose error names an end, or Sonar.
            models.Index(
                fields=["started_at", "size_class"],
                name="transfer_failed_where",
                condition=Q(state="failed", error_where__in=["source", "destination", "control"]),
            ),
        ]

    # What ``times`` is made of.
    TIMES = ("started_at", "prepare_seconds", "queue_seconds", "seconds")

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} {self.size_class} {self.state}"

    @property
    def is_cancelled(self) -> bool:
        return self.state == self.State.LOST and self.error.startswith(f"{self.CANCELLED} ")

    def times(self) -> tuple[datetime, datetime]:
        """Return when it began and ended: what prepared it and its queue are a part of it."""
        parts = self.prepare_seconds, self.queue_seconds, self.seconds
        seconds = sum(part or 0.0 for part in parts)
        # An older Sonar kept whatever a service told of its queue.
        lasted = timedelta(seconds=min(seconds, LONGEST_SECONDS))
        return self.started_at, self.started_at + lasted


class NetworkResult(models.Model):
    """One test of the network, finished: no transfer, and in no statistic of them.

    A probe of a mover of the network becomes one with its id. What nobody told is null.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    source = models.ForeignKey(Endpoint, on_delete=models.PROTECT, related_name="+")
    destination = models.ForeignKey(Endpoint, on_delete=models.PROTECT, related_name="+")
    mesh = models.ForeignKey(Mesh, null=True, on_delete=models.SET_NULL, related_name="+")
    size_class = models.ForeignKey(
        SizeClass, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    mover = models.CharField(max_length=20)
    mode = models.CharField(
        max_length=4,
        choices=Mode,
        help_text="Endpoint at which the worker ran: “push” means the source, “pull” the "
        "destination.",
    )
    streams = models.PositiveSmallIntegerField()
    tcp_buffer_bytes = models.PositiveIntegerField(
        null=True,
        help_text="Size of the TCP buffer that was set, in bytes. Empty if the kernels chose it.",
    )
    ip_version = models.PositiveSmallIntegerField(null=True)
    state = models.CharField(max_length=6, choices=Transfer.State)
    started_at = models.DateTimeField()
    seconds = models.FloatField(
        help_text="Seconds during which the bytes arrived, by the clock of the tool."
    )
    bytes = models.BigIntegerField(help_text="Number of bytes that are known to have arrived.")
    rtt_min_ms = models.FloatField(null=True)
    rtt_mean_ms = models.FloatField(null=True)
    rtt_max_ms = models.FloatField(null=True)
    retransmits = models.BigIntegerField(
        null=True, help_text="Number of TCP segments that were retransmitted. Empty if unknown."
    )
    sent_bytes = models.BigIntegerField(null=True)
    max_cwnd_bytes = models.BigIntegerField(
        null=True, help_text="Largest congestion window of a stream, in bytes. Empty if unknown."
    )
    max_receive_window_bytes = models.BigIntegerField(
        null=True,
        help_text="Largest TCP window that the receiver advertised for a stream, in bytes. "
        "Empty if unknown.",
    )
    mss_bytes = models.PositiveIntegerField(null=True)
    congestion_control = models.CharField(max_length=20, blank=True)
    samples = models.JSONField(
        default=list, help_text="Progress samples: pairs of elapsed seconds and bytes moved so far."
    )
    error = models.TextField(blank=True)
    error_where = models.CharField(max_length=11, choices=Transfer.Where, blank=True)
    error_is_permanent = models.BooleanField(default=False)
    worker = models.CharField(max_length=120, blank=True)

    class Meta:
        constraints = [
            two_endpoints("networkresult_has_two_ends"),
            models.CheckConstraint(
                condition=Q(bytes__gte=0, seconds__gte=0), name="networkresult_is_positive"
            ),
            models.CheckConstraint(
                condition=Q(state="done", seconds__gt=0, bytes__gt=0, error="", error_where="")
                | (Q(state__in=["failed", "lost"], error_where__in=WHERE) & ~Q(error="")),
                name="networkresult_failed_with_where_and_why",
            ),
        ]
        indexes = [
            # Lists: the newest first; and what is too old to keep.
            models.Index(fields=["started_at"], name="networkresult_started"),
            # One link over time.
            models.Index(fields=["source", "destination", "started_at"], name="networkresult_link"),
        ]

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} network {self.state}"


# PostgreSQL keeps times that Python cannot read.
POSSIBLE = (EARLIEST, LATEST)


class Flow(models.Model):
    """One connection by what one reporter last said of it. Anybody may have forged it."""

    reporter = models.GenericIPAddressField(help_text="Address of the host that sent the report.")
    scitag = models.PositiveIntegerField()
    source_address = models.GenericIPAddressField()
    source_port = models.PositiveIntegerField()
    destination_address = models.GenericIPAddressField()
    destination_port = models.PositiveIntegerField()
    # Which endpoints the addresses were of as it was reported; one host may have several.
    source_endpoints = ArrayField(models.IntegerField())
    destination_endpoints = ArrayField(models.IntegerField())
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    ended_at = models.DateTimeField(
        null=True,
        help_text="Time when the connection ended. Empty if it is not known to have ended.",
    )
    application = models.CharField(max_length=100, blank=True)
    sent_bytes = models.BigIntegerField(
        null=True, help_text="Number of bytes sent by the source, as reported by the source."
    )
    received_bytes = models.BigIntegerField(
        null=True, help_text="Number of bytes received by the source, as reported by the source."
    )
    tcp = models.JSONField(
        default=dict, help_text="TCP statistics of the connection, with the names that Linux uses."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "reporter",
                    "source_address",
                    "source_port",
                    "destination_address",
                    "destination_port",
                    "started_at",
                ],
                name="flow_once_per_reporter",
            ),
            models.CheckConstraint(
                condition=Q(started_at__range=POSSIBLE, seen_at__range=POSSIBLE)
                & (Q(ended_at__isnull=True) | Q(ended_at__range=POSSIBLE)),
                name="flow_times_are_possible",
            ),
        ]
        indexes = [
            models.Index(fields=["scitag", "started_at"], name="flow_scitag_started"),
            # Those of one link, among all.
            GinIndex(fields=["source_endpoints", "destination_endpoints"], name="flow_endpoints"),
        ]

    def __str__(self) -> str:
        return f"flow {self.scitag} from {self.started_at:%Y-%m-%d %H:%M:%S} UTC"


# What of a mesh, and of a test, tells how its tests are made.
SETTINGS = ("mover", "mode", "streams", "tcp_buffer_bytes")


def purpose_of(probe: Probe) -> str:
    """Return the purpose of a test. Two SQL queries at most, none for a scheduled one."""
    if probe.mesh_id is not None:
        return Profile.Purpose.SCHEDULED
    if is_step(probe) or differs_from_meshes(probe):
        return Profile.Purpose.SWEEP
    return Profile.Purpose.ORDERED


def is_step(probe: Probe) -> bool:
    return SweepStep.objects.filter(test_id=probe.id).exists()


def differs_from_meshes(probe: Probe) -> bool:
    """Say whether meshes test this link with this size class, and none of them in this way."""
    scheduled = Schedule.objects.filter(
        source=probe.source_id, destination=probe.destination_id, size_class=probe.size_class_id
    )
    of_meshes = set(scheduled.values_list(*(f"mesh__{name}" for name in SETTINGS)))
    return bool(of_meshes) and tuple(getattr(probe, name) for name in SETTINGS) not in of_meshes
