"""Tests of the network alone, and connections that servers reported, with their tests."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from uuid import UUID

from django.db.models import F, Q, QuerySet

from matrix.query.filters import Filter
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import keyset
from matrix.store.keyset import Cursor
from matrix.store.transfers import ends_condition
from sonar.models import Flow, NetworkResult, Probe, Transfer
from sonar.notation.windows import Window

# By how much clocks of servers may differ from Sonar's.
CLOCKS = timedelta(seconds=5)
# No test takes longer: it would be lost before.
LONGEST_TEST = timedelta(hours=6)

# A connection that moved less only controlled others.
LEAST_BYTES = 1_000_000
NEWEST_FLOWS = 500

Link = tuple[int, int]
Times = tuple[datetime, datetime]
# The newest of a link that are looked at; beyond them nothing is learnt.
MOST_RESULTS = 500


def round_trip_ms(ends: Sequence[EndpointInfo], window: Window) -> float | None:
    """Return the median round trip of the connections between two endpoints that moved a file.

    Of each the shortest that was reported, of the newest in the window; None for none. One SQL
    query.
    """
    rows = Flow.objects.filter(
        _either_way(*(end.id for end in ends)),
        Q(sent_bytes__gte=LEAST_BYTES) | Q(received_bytes__gte=LEAST_BYTES),
        started_at__gte=window.start,
        started_at__lt=window.end,
    )
    numbers = rows.order_by("-started_at", "-id").values_list("tcp", flat=True)[:NEWEST_FLOWS]
    reported = [tcp.get("min_rtt", tcp.get("rtt")) for tcp in numbers]
    positive = [milliseconds for milliseconds in reported if milliseconds]
    return median(positive) if positive else None


def near(transfer: Transfer, scitag: int) -> list[Flow]:
    """Return the connections with a flow label at the time of a test, either way. One SQL query."""
    start, end = transfer.times()
    rows = Flow.objects.filter(
        _either_way(transfer.source_id, transfer.destination_id),
        scitag=scitag,
        started_at__gte=start - CLOCKS,
        started_at__lte=end + CLOCKS,
    )
    return list(rows.order_by("started_at", "source_port", "id"))


def _either_way(first: int, second: int) -> Q:
    return Q(source_endpoints__contains=[first], destination_endpoints__contains=[second]) | Q(
        source_endpoints__contains=[second], destination_endpoints__contains=[first]
    )


def tests_beside(flows: Sequence[Flow], transfer: Transfer) -> list[tuple[Link, Times]]:
    """Return the other tests with the same flow label at the time of these. Two SQL queries."""
    first = min(flow.started_at for flow in flows) - CLOCKS
    last = max(flow.started_at for flow in flows) + CLOCKS
    scitag = flows[0].scitag
    rows = Transfer.objects.filter(
        scitag=scitag, started_at__gte=first - LONGEST_TEST, started_at__lte=last
    )
    ended = rows.exclude(id=transfer.id).only("source_id", "destination_id", *Transfer.TIMES)
    tests = [((test.source_id, test.destination_id), test.times()) for test in ended]
    running = Probe.objects.filter(scitag=scitag, started_at__lte=last)
    for source, destination, started_at in running.values_list(
        "source_id", "destination_id", F("started_at")
    ):
        tests.append(((source, destination), (started_at, last)))
    return tests


@dataclass(frozen=True)
class NetworkSelection:
    """Which results a list shows. What is empty chooses all."""

    window: Window
    filters: tuple[Filter, ...] = ()
    states: tuple[str, ...] = ()

    def rows(self, endpoints: Iterable[EndpointInfo]) -> QuerySet[NetworkResult]:
        """Return the results in no order; ``endpoints`` are all there are, for filters on ends."""
        rows = within(self.window).filter(ends_condition(self.filters, list(endpoints)))
        return rows.filter(state__in=self.states) if self.states else rows


def listing(
    rows: QuerySet[NetworkResult], count: int, after: Cursor | None = None
) -> tuple[list[NetworkResult], Cursor | None]:
    """Return a page of results, and where the next one begins. One SQL query."""
    return keyset.page_by_time(rows, ("-started_at", "-id"), count, after)


def of_link(ends: Sequence[EndpointInfo], window: Window) -> list[NetworkResult]:
    """Return the newest between the sites of two endpoints, both ways. One SQL query.

    An end that has no files is itself a server of such tests: then only its own are meant.
    """
    there, back = (
        _at("source", first) & _at("destination", second)
        for first, second in (ends, tuple(reversed(ends)))
    )
    return list(within(window).filter(there | back).order_by("-started_at", "-id")[:MOST_RESULTS])


def by_id(result: UUID) -> NetworkResult | None:
    return _whole().filter(id=result).first()


def within(window: Window) -> QuerySet[NetworkResult]:
    return _whole().filter(started_at__gte=window.start, started_at__lt=window.end)


def _whole() -> QuerySet[NetworkResult]:
    return NetworkResult.objects.select_related(
        "source__site", "destination__site", "mesh", "size_class"
    )


def _at(end: str, endpoint: EndpointInfo) -> Q:
    if endpoint.has_files:
        return Q((f"{end}__site__name", endpoint.site))
    return Q((end, endpoint.id))
