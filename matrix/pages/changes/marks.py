"""Changes of level on pages of links and sites: marks in their pictures, and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from matrix.answers.changes.lines import ChangeLine, lines_of
from matrix.plots.bands import TimeSpan
from matrix.query.addresses import address
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.axes import EndpointInfo
from matrix.store import changes
from matrix.store.changes import WrittenNear
from sonar.models import Change
from sonar.windows import Window

NOTHING = WrittenNear([], [])


@dataclass(frozen=True)
class ChangesPart:
    """The changes that a page has, newest first, and the page of all that are like them."""

    lines: list[ChangeLine]
    url: str
    now: datetime

    @property
    def rows(self) -> list[tuple[ChangeLine, str]]:
        """Return each with the page that compares before it with after it."""
        return [(line, line.comparison_url(self.now)) for line in self.lines]

    @classmethod
    def of_link(
        cls,
        ends: tuple[EndpointInfo, EndpointInfo],
        window: Window,
        size: str,
        now: datetime,
    ) -> Self:
        """Read those of a link, of its ends, and of all links. One SQL query."""
        source, destination = ends
        rows = changes.of_link(source.id, destination.id, window, size)
        filters = (
            Filter("destination_endpoint", destination.name),
            Filter("source_endpoint", source.name),
        )
        return cls(lines_of(rows, ends, NOTHING), url_of(window, size, filters), now)

    @classmethod
    def of_site(
        cls,
        name: str,
        endpoints: Sequence[EndpointInfo],
        window: Window,
        size: str,
        now: datetime,
    ) -> Self:
        """Read those of the endpoints of a site, at either end, and of all links. One query."""
        own = [endpoint for endpoint in endpoints if endpoint.site == name]
        rows = changes.of_endpoints([endpoint.id for endpoint in own], window, size)
        url = url_of(window, size, (Filter("site", name),))
        return cls(lines_of(rows, own, NOTHING), url, now)

    def spans(self, end: str = "") -> list[TimeSpan]:
        """Return marks for a picture, of one end of a site's links or of all that there is."""
        return [
            TimeSpan(line.level, line.change.at, None, f"{line.mark} {line.factor_words}")
            for line in self.lines
            if not end or line.change.kind in (end, Change.Kind.GRID)
        ]


def url_of(window: Window, size: str, filters: tuple[Filter, ...]) -> str:
    query = MatrixQuery(window="", start=window.start, end=window.end, filters=filters)
    return query.url(address("changes"), size=size, sure="any")
