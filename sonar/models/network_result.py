"""Tests of the network alone: what a way between two sites bears, without any storage."""

import uuid

from django.db import models
from django.db.models import F, Q

from sonar.models.endpoint import Endpoint
from sonar.models.mesh import Mesh, Mode
from sonar.models.size_class import SizeClass
from sonar.models.transfer import WHERE, Transfer


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
        help_text="Where the worker was: push at the source, pull at the destination.",
    )
    streams = models.PositiveSmallIntegerField()
    tcp_buffer_bytes = models.PositiveIntegerField(
        null=True, help_text="As it was set; empty where the kernels chose."
    )
    ip_version = models.PositiveSmallIntegerField(null=True)
    state = models.CharField(max_length=6, choices=Transfer.State)
    started_at = models.DateTimeField()
    seconds = models.FloatField(help_text="In which its bytes arrived, by the tool's own clock.")
    bytes = models.BigIntegerField(help_text="That arrived, as far as anybody knows.")
    rtt_min_ms = models.FloatField(null=True)
    rtt_mean_ms = models.FloatField(null=True)
    rtt_max_ms = models.FloatField(null=True)
    retransmits = models.BigIntegerField(null=True, help_text="Segments that were sent again.")
    sent_bytes = models.BigIntegerField(null=True)
    max_cwnd_bytes = models.BigIntegerField(
        null=True, help_text="The largest congestion window of a stream."
    )
    max_receive_window_bytes = models.BigIntegerField(
        null=True, help_text="The largest window that the receiver offered a stream."
    )
    mss_bytes = models.PositiveIntegerField(null=True)
    congestion_control = models.CharField(max_length=20, blank=True)
    samples = models.JSONField(default=list, help_text="[seconds, bytes] while it ran.")
    error = models.TextField(blank=True)
    error_where = models.CharField(max_length=11, choices=Transfer.Where, blank=True)
    error_is_permanent = models.BooleanField(default=False)
    worker = models.CharField(max_length=120, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~Q(source=F("destination")), name="networkresult_has_two_ends"
            ),
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
