"""The sites that a site exchanges files with, both directions side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matrix.answers.site.reports import Report, ReportCell
from matrix.query.addresses import link_url, matrix_url
from matrix.query.filters import Filter, on_profiles
from matrix.query.matrix_query import MatrixQuery


@dataclass(frozen=True)
class PartnerDirection:
    """One direction with a partner, and the page that has more of it."""

    cell: ReportCell
    url: str


@dataclass(frozen=True)
class Partner:
    """``sent`` is from the site to the partner, ``received`` from the partner to the site."""

    name: str
    sent: PartnerDirection | None
    received: PartnerDirection | None

    @property
    def directions(self) -> tuple[PartnerDirection | None, PartnerDirection | None]:
        return self.sent, self.received

    @property
    def ratio(self) -> float:
        """Return how many times faster sending to it is than receiving from it."""
        if self.sent is None or self.received is None or not self.received.cell.mean:
            return math.nan
        return self.sent.cell.mean / self.received.cell.mean


def partners_of(report: Report) -> list[Partner]:
    """Return all partners by name, in the size class asked for."""
    groups = {group.name: group for group in (*report.links.sources, *report.links.destinations)}
    # Of each site that links lead to or from here.
    endpoints: dict[str, list[str]] = {}
    for group in groups.values():
        endpoints.setdefault(group.site or "", []).append(group.name)
    sent, received = (
        {
            getattr(cell, other): PartnerDirection(cell, url_of(cell, endpoints, report.query))
            for cell in report.cells(end)
        }
        for end, other in (("source", "destination"), ("destination", "source"))
    )
    names = sorted(sent.keys() | received.keys(), key=str.casefold)
    return [Partner(name, sent.get(name), received.get(name)) for name in names]


def url_of(cell: ReportCell, endpoints: dict[str, list[str]], query: MatrixQuery) -> str:
    """Return the link between two sites, or the matrix of the links if there are several."""
    sources, destinations = endpoints.get(cell.source, []), endpoints.get(cell.destination, [])
    if len(sources) == len(destinations) == 1:
        return link_url(sources[0], destinations[0], query)
    filters = (
        Filter("source_site", cell.source),
        Filter("destination_site", cell.destination),
        *on_profiles(query.filters),
    )
    return matrix_url(query.replace(filters=filters))
