"""Events on pages of links and sites: their newest, and the marks of jumps in pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from matrix.answers.events.event import Event
from matrix.answers.events.near import events_of_link, events_of_site
from matrix.answers.link.report import LinkReport
from matrix.answers.short_names import short_names_of
from matrix.answers.site.reports import Report
from matrix.pages.events.rows import EventRow, rows_of
from matrix.plots.over_time import TimeSpan, marks_of
from matrix.query.addresses import address
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from sonar.notation.windows import Window

# A page of something else shows so many of them.
MOST = 8


@dataclass(frozen=True)
class EventsPart:
    """The newest events that a page has, and the page of all that are like them."""

    events: list[Event]
    rows: list[EventRow]
    url: str

    @classmethod
    def of_link(cls, answer: LinkReport) -> Self:
        """Read those of a link, of its ends, and of all links. Three SQL queries."""
        source, destination = answer.question.ends
        filters = (
            Filter("destination_endpoint", destination.name),
            Filter("source_endpoint", source.name),
        )
        return cls.of(
            events_of_link(answer),
            answer.question.ends,
            window=answer.window,
            sizes=[part.size for part in answer.classes],
            now=answer.now,
            filters=filters,
        )

    @classmethod
    def of_site(cls, report: Report, now: datetime) -> Self:
        """Read those of a site, of its endpoints and links, and of all links. Three queries."""
        return cls.of(
            events_of_site(report),
            report.all_endpoints,
            window=report.window,
            sizes=[*report.sites],
            now=now,
            filters=(Filter("site", report.name),),
        )

    @classmethod
    def of(
        cls,
        events: list[Event],
        places: Sequence[EndpointInfo],
        *,
        window: Window,
        sizes: Sequence[str],
        now: datetime,
        filters: tuple[Filter, ...],
    ) -> Self:
        rows = rows_of(events[:MOST], now, sizes, short_names_of(places))
        query = MatrixQuery(window="", start=window.start, end=window.end, filters=filters)
        return cls(events, rows, query.url(address("events"), certain="any"))

    def spans(self, size: str) -> list[TimeSpan]:
        """Return marks of the jumps of a size class, for a picture."""
        return marks_of(self.events, size)
