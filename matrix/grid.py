"""From a query to the answer that page, picture, API and CSV all show."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from matrix import raw, records, statistics
from matrix.cells import STATES, Cells, Frame
from matrix.places import Group, Links
from matrix.query import MatrixQuery
from matrix.statistics import Averages, Flags, Floats, Samples
from sonar.models import Downtime
from sonar.windows import Window

RATE_UNIT = "MB/s"
UNITS = {"success": "%", "count": "transfers", "last": "s"}


@dataclass(frozen=True)
class Grid:
    """The answer to a query at a moment. Sources are rows, destinations are columns.

    Only endpoints with a link that a mesh tests, or that has results, make rows and columns;
    ``idle`` names the other endpoints in use that the filters let pass.
    """

    query: MatrixQuery
    window: Window
    moment: datetime
    version: str
    sources: tuple[Group, ...]
    destinations: tuple[Group, ...]
    cells: Cells
    averages: Averages
    idle: tuple[str, ...]

    @property
    def unit(self) -> str:
        return UNITS.get(self.query.stat, RATE_UNIT)

    @property
    def simulated(self) -> bool:
        return any(group.simulated for group in (*self.sources, *self.destinations))

    def states(self) -> dict[str, int]:
        """Count the cells by state."""
        counts = np.bincount(self.cells.state.ravel(), minlength=len(STATES))
        return dict(zip(STATES, counts.tolist(), strict=True))


def version(query: MatrixQuery, now: datetime) -> str:
    """Return what changes whenever the answer may, for one small SQL query: also the ETag."""
    asked = f"{query} {query.window_at(now)} {now:%Y-%m-%dT%H:%M}"
    return f"{records.read_versions()}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"


def build(query: MatrixQuery, now: datetime, known_version: str = "") -> Grid:
    """Answer the query from the transfers that started in its window.

    The number of SQL queries does not depend on the data. ``known_version`` spares one of
    them where the caller has just asked for the version.
    """
    # Read before the data: an answer may be newer than its version, never older.
    known_version = known_version or version(query, now)
    window = query.window_at(now)
    moment = min(now, window.end)
    links = Links(records.read_places())
    allowed = links.matching(query.filters)
    frame, samples, started = lay_out(query, window, links, allowed)
    down = Downtime.endpoints_down(moment)
    cells = frame.cells(
        samples,
        started,
        down=links.ends(place.id in down for place in links.places),
        stat=query.stat,
        moment=moment.timestamp(),
    )
    return Grid(
        query=query,
        window=window,
        moment=moment,
        version=known_version,
        sources=frame.rows.groups,
        destinations=frame.columns.groups,
        cells=cells,
        averages=statistics.averages(cells.value),
        idle=idle(links, allowed, frame.applicable),
    )


def lay_out(
    query: MatrixQuery, window: Window, links: Links, allowed: Flags
) -> tuple[Frame, Samples, Floats]:
    """Read results and promises of the allowed links; return also when each result started."""
    results = records.read_results(query, window)
    number = links.numbers(results)
    results, number = results[allowed[number]], number[allowed[number]]
    promise = np.where(allowed, records.read_promises(query, links), np.inf)
    frame = Frame.around(links, number, promise, (query.rows, query.columns))
    samples = Samples(frame.cell[number], results["ok"], results["bytes"], results["seconds"])
    return frame, samples, raw.unix_time(results["started_at"])


def idle(links: Links, allowed: Flags, applicable: Flags) -> tuple[str, ...]:
    """Name the endpoints in use that match the filters and have no row and no column."""
    unused = links.touching(allowed) & ~links.touching(applicable)
    return tuple(
        place.name
        for place, is_unused in zip(links.places, unused, strict=True)
        if is_unused and not place.retired
    )
