"""From a query to the answer that page, picture, API and CSV all show."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from matrix.query.filters import LINK_FILTERS
from matrix.query.forms import read_age
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics import reduce
from matrix.statistics.arrays import Flags
from matrix.statistics.axes import AxisGroup, LinkIndex
from matrix.statistics.cells import CellArrays, Frame
from matrix.statistics.reduce import Averages
from matrix.statistics.run import Run
from matrix.statistics.states import STATES
from matrix.store import registry, runs
from matrix.store.registry import Versions
from sonar.models import Downtime
from sonar.windows import Window

RATE_UNIT = "MB/s"
UNITS = {"success": "%", "count": "transfers", "last": "s"}


def unit_of(stat: str) -> str:
    return UNITS.get(stat, RATE_UNIT)


@dataclass(frozen=True)
class Grid:
    """The answer to a query at a moment. Sources are rows, destinations are columns.

    Only endpoints with a link that a mesh tests, or that has results, make rows and columns;
    ``idle`` names the other endpoints in use that the filters let pass; ``shortest_promise``
    is the shortest interval in seconds at which a mesh tests one of these links, infinity
    for none; ``profiles`` are the ids of those that its results have, if they were asked for.
    """

    query: MatrixQuery
    window: Window
    moment: datetime
    version: str
    sources: tuple[AxisGroup, ...]
    destinations: tuple[AxisGroup, ...]
    cells: CellArrays
    averages: Averages
    idle: tuple[str, ...]
    shortest_promise: float = np.inf
    profiles: frozenset[int] = frozenset()

    @property
    def unit(self) -> str:
        return unit_of(self.query.stat)

    @property
    def simulated(self) -> bool:
        return any(group.simulated for group in (*self.sources, *self.destinations))

    def states(self) -> dict[str, int]:
        """Count the cells by state."""
        counts = np.bincount(self.cells.state.ravel(), minlength=len(STATES))
        return dict(zip(STATES, counts.tolist(), strict=True))


def version(query: MatrixQuery, now: datetime) -> str:
    """Return what changes whenever the answer may, for one small SQL query: also the ETag."""
    window = query.window_at(now)
    asked = f"{query} {window} {now:%Y-%m-%dT%H:%M}"
    hashed = hashlib.sha256(asked.encode()).hexdigest()[:12]
    return f"{runs.fingerprint(query.size, window)}-{hashed}"


def build(
    query: MatrixQuery,
    now: datetime,
    known_version: str = "",
    extras: Collection[str] = (),
    found: Sequence[Run] | None = None,
    *,
    ways: bool = False,
) -> Grid:
    """Answer the query from the transfers that started in its window.

    The number of SQL queries does not depend on the data. ``known_version`` spares one of
    them where the caller has just asked for the version. ``extras`` are quantiles (of
    reduce.QUANTILES) that CellArrays.extras is to have beside the asked statistic; ``found``
    are the results, where the caller has read them already; ``ways`` asks for Grid.profiles.
    """
    # Read before the data: an answer may be newer than its version, never older.
    known_version = known_version or version(query, now)
    window = query.window_at(now)
    moment = min(now, window.end)
    versions = Versions(*known_version.split("-")[:2])
    links = LinkIndex(registry.read_places(versions))
    allowed = links.matching(query.filters)
    narrowed = any(one.parameter in LINK_FILTERS for one in query.filters)
    if found is None:
        found = runs.read(
            query.size,
            window,
            query.filters,
            sizes=query.stat == "throughput",
            profiles=ways and narrowed,
            distinct_profiles=ways and not narrowed,
            failures=bool(query.max_age),
        )
    frame = lay_out(query, links, found, allowed, versions)
    cells = fill(query, frame, found, moment, extras)
    return Grid(
        query=query,
        window=window,
        moment=moment,
        version=known_version,
        sources=frame.rows.groups,
        destinations=frame.columns.groups,
        cells=cells,
        averages=reduce.averages(cells.value),
        idle=idle(links, allowed, frame.applicable),
        shortest_promise=float(frame.promise.min(initial=np.inf)),
        profiles=occurring(found, links, allowed if narrowed else None) if ways else frozenset(),
    )


def occurring(found: Sequence[Run], links: LinkIndex, allowed: Flags | None) -> frozenset[int]:
    """Return the ids of the profiles that results have, of the allowed links if only some are."""
    if allowed is None:
        return runs.profiles_of(found)
    return runs.profiles_of(found, links.numbering, allowed.reshape(links.shape))


def lay_out(
    query: MatrixQuery, links: LinkIndex, found: Sequence[Run], allowed: Flags, versions: Versions
) -> Frame:
    """Make the rows and columns of the allowed links."""
    promise = np.where(allowed, registry.read_promises(query, links, versions), np.inf)
    newest = links.numbering.newest(found) * allowed.reshape(links.shape)
    return Frame.around(links, newest, promise.reshape(links.shape), (query.rows, query.columns))


def fill(
    query: MatrixQuery,
    frame: Frame,
    found: Sequence[Run],
    moment: datetime,
    extras: Collection[str] = (),
) -> CellArrays:
    """Compute the cells from the results, as they stand at a moment."""
    links = frame.links
    down = Downtime.endpoints_down(moment)
    return frame.cells(
        reduce.reduce(found, frame.pooling, reduce.EXTRAS & {query.stat, *extras}),
        down=links.ends(place.id in down for place in links.places).reshape(links.shape),
        stat=query.stat,
        moment=moment.timestamp(),
        outdated=outdated(query, frame, found, moment) if query.max_age else None,
    )


def outdated(query: MatrixQuery, frame: Frame, found: Sequence[Run], moment: datetime) -> Flags:
    """Say which cells have no success that is as young as the query asks for."""
    newest = frame.links.numbering.newest([run.newest_ok() for run in found])
    started = frame.pool(np.maximum, np.where(frame.newest > 0, newest, 0)) / 1000
    return np.asarray(moment.timestamp() - started > read_age(query.max_age))


def idle(links: LinkIndex, allowed: Flags, applicable: Flags) -> tuple[str, ...]:
    """Name the endpoints in use that match the filters and have no row and no column."""
    unused = links.touching(allowed) & ~links.touching(applicable)
    return tuple(
        place.name
        for place, is_unused in zip(links.places, unused, strict=True)
        if is_unused and not place.retired
    )
