"""Connections that servers reported, and the tests that each of them may be of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import median

from django.db.models import F, Q

from matrix.statistics.cells.axes import EndpointInfo
from sonar.models import Flow, Probe, Transfer
from sonar.notation.units import LONGEST_SECONDS
from sonar.notation.windows import Window

# By how much clocks of servers may differ from Sonar's.
CLOCKS = timedelta(seconds=5)
# No test takes longer: it would be lost before.
LONGEST = timedelta(hours=6)

# A connection that moved less only controlled others.
LEAST_BYTES = 1_000_000
NEWEST = 500

Link = tuple[int, int]
Times = tuple[datetime, datetime]


def times_of(transfer: Transfer) -> Times:
    """Return when a test began and ended: what prepared it and its queue are a part of it."""
    seconds = sum(
        part or 0.0 for part in (transfer.prepare_seconds, transfer.queue_seconds, transfer.seconds)
    )
    # An older Sonar kept whatever a service told of its queue.
    lasted = timedelta(seconds=min(seconds, LONGEST_SECONDS))
    return transfer.started_at, transfer.started_at + lasted


def round_trip_ms(ends: Sequence[EndpointInfo], window: Window) -> float | None:
    """Return the median round trip of the connections between two endpoints that moved a file.

    Of each the shortest that was reported, of the newest in the window; None for none. One SQL
    query.
    """
    first, second = ([end.id] for end in ends)
    rows = Flow.objects.filter(
        Q(source_endpoints__contains=first, destination_endpoints__contains=second)
        | Q(source_endpoints__contains=second, destination_endpoints__contains=first),
        Q(sent_bytes__gte=LEAST_BYTES) | Q(received_bytes__gte=LEAST_BYTES),
        started_at__gte=window.start,
        started_at__lt=window.end,
    )
    numbers = rows.order_by("-started_at").values_list("tcp", flat=True)[:NEWEST]
    reported = [tcp.get("min_rtt", tcp.get("rtt")) for tcp in numbers]
    positive = [milliseconds for milliseconds in reported if milliseconds]
    return median(positive) if positive else None


def near(transfer: Transfer, scitag: int) -> list[Flow]:
    """Return the connections with a flow label, at the time and ends of a test. One SQL query.

    Which way a connection was opened says nothing of which way the bytes went.
    """
    start, end = times_of(transfer)
    source, destination = [transfer.source_id], [transfer.destination_id]
    between = Q(source_endpoints__contains=source, destination_endpoints__contains=destination)
    back = Q(source_endpoints__contains=destination, destination_endpoints__contains=source)
    rows = Flow.objects.filter(
        between | back,
        scitag=scitag,
        started_at__gte=start - CLOCKS,
        started_at__lte=end + CLOCKS,
    )
    return list(rows.order_by("started_at", "source_port"))


def tests_beside(flows: Sequence[Flow], transfer: Transfer) -> list[tuple[Link, Times]]:
    """Return the other tests with the same flow label at the time of these. Two SQL queries."""
    first = min(flow.started_at for flow in flows) - CLOCKS
    last = max(flow.started_at for flow in flows) + CLOCKS
    scitag = flows[0].scitag
    rows = Transfer.objects.filter(
        scitag=scitag, started_at__gte=first - LONGEST, started_at__lte=last
    )
    ended = rows.exclude(id=transfer.id).only(
        *("source_id", "destination_id", "started_at"),
        *("prepare_seconds", "queue_seconds", "seconds"),
    )
    tests = [((test.source_id, test.destination_id), times_of(test)) for test in ended]
    running = Probe.objects.filter(scitag=scitag, started_at__lte=last)
    for source, destination, started_at in running.values_list(
        "source_id", "destination_id", F("started_at")
    ):
        tests.append(((source, destination), (started_at, last)))
    return tests
