"""Events on pages of links and sites: their newest, and the marks of jumps in pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from django.db.models import Q

from matrix.answers.events import reading
from matrix.answers.events.event import Event
from matrix.answers.events.happening import FAILING, Happening
from matrix.answers.events.present import LOOKS, going_on
from matrix.answers.events.reading import UNKNOWN, Present
from matrix.answers.link.report import LinkReport
from matrix.answers.site.reports import Report
from matrix.pages.events.rows import EventRow, rows_of
from matrix.plots.bands import TimeSpan
from matrix.plots.labels import short_names_of
from matrix.query.addresses import address
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.axes import EndpointInfo
from sonar.units import format_factor
from sonar.windows import Window

# A page of something else shows so many of them.
MOST = 8
OF_GRID = Q(source=None, destination=None)


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
        ends = Q(source=source.id, destination=destination.id)
        ends |= Q(source=source.id, destination=None) | Q(source=None, destination=destination.id)
        sizes = [part.size for part in answer.classes]
        filters = (
            Filter("destination_endpoint", destination.name),
            Filter("source_endpoint", source.name),
        )
        return cls.of(
            answer.question.ends,
            answer.window,
            sizes,
            answer.now,
            condition=ends | OF_GRID,
            filters=filters,
            present=present_of(answer),
        )

    @classmethod
    def of_site(cls, report: Report, now: datetime) -> Self:
        """Read those of a site, of its endpoints and links, and of all links. Three queries."""
        ids = [place.id for place in report.endpoints]
        condition = Q(source__in=ids) | Q(destination__in=ids) | OF_GRID
        places = report.all_endpoints
        return cls.of(
            places,
            report.window,
            [*report.sites],
            now,
            condition=condition,
            filters=(Filter("site", report.name),),
            present=Present.of_grids([report.links], places),
        )

    @classmethod
    def of(
        cls,
        places: Sequence[EndpointInfo],
        window: Window,
        sizes: Sequence[str],
        now: datetime,
        *,
        condition: Q,
        filters: tuple[Filter, ...],
        present: Present = UNKNOWN,
    ) -> Self:
        events = reading.read(window, places, sizes, present, condition)
        rows = rows_of(events[:MOST], now, sizes, short_names_of(places))
        query = MatrixQuery(window="", start=window.start, end=window.end, filters=filters)
        return cls(events, rows, query.url(address("events"), certain="any"))

    def spans(self, size: str, end: str = "") -> list[TimeSpan]:
        """Return marks of the jumps of a size class, of one end of a site's links or of all."""
        return [
            TimeSpan(part.kind, part.since, None, f"{mark_of(event)} {factor_words(part)}")
            for event in self.events
            if not end or event.level in (end, "endpoint", "site", "grid")
            for part in event.parts
            if part.size == size and part.kind != FAILING
        ]


def mark_of(event: Event) -> str:
    """Say in few words, for a picture, what it is of."""
    return "link" if event.level == "link" else f"{event.where()} {event.role}".strip()


def factor_words(part: Happening) -> str:
    return format_factor(part.factor, part.low, part.high) if part.factor else ""


def present_of(answer: LinkReport) -> Present:
    """Return how the link is at the end of the window, in each size class."""
    happenings = [
        going_on(
            kind,
            (there.source.id, there.destination.id),
            there.size,
            since=there.since,
            tests=there.streak,
            factor=(there.ratio, there.ratio_low, there.ratio_high),
        )
        for there in (part.there for part in answer.classes)
        for kind in LOOKS
        if kind in (there.state, there.level)
    ]
    return Present(happenings, frozenset(part.size for part in answer.classes))
