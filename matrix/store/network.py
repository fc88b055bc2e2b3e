"""Results of tests of the network alone, as lists show them: newest first, page by page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q, QuerySet

from matrix.query.filters import Filter
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import keyset
from matrix.store.transfers import Cursor, ends_condition
from sonar.models import NetworkResult
from sonar.notation.windows import Window

# The newest of a link that are looked at; beyond them nothing is learnt.
MOST = 500


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
    place = (after.started_at, after.id) if after else None
    page, last = keyset.page(rows, ("-started_at", "-id"), count, place)
    return page, Cursor(*last) if last else None


def of_link(ends: Sequence[EndpointInfo], window: Window) -> list[NetworkResult]:
    """Return the newest between the sites of two endpoints, both ways. One SQL query.

    An end that has no files is itself a server of such tests: then only its own are meant.
    """
    there, back = (
        _at("source", first) & _at("destination", second)
        for first, second in (ends, tuple(reversed(ends)))
    )
    return list(within(window).filter(there | back).order_by("-started_at", "-id")[:MOST])


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
