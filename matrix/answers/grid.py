"""From a query to the answer that page, picture, API and CSV all show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers import standing
from matrix.query.catalogue import CARD_EXTRAS, EXTRAS, STATISTICS
from matrix.query.filters import Filter, on_links
from matrix.query.forms import read_age
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics import reduce
from matrix.statistics.arrays import Flags
from matrix.statistics.axes import AxisGroup, LinkIndex
from matrix.statistics.cells import CellArrays, Frame
from matrix.statistics.reduce import Averages
from matrix.statistics.run import Run
from matrix.statistics.standing import Standings
from matrix.statistics.states import STATES
from matrix.store import data_version, registry, runs
from matrix.store.cache import ANSWERS
from matrix.store.data_version import DataVersion
from sonar.models import Downtime
from sonar.windows import Window


@dataclass(frozen=True)
class Grid:
    """The answer to a query at a moment. Sources are rows, destinations are columns.

    Only endpoints with a link that a mesh tests, or that has results, make rows and columns;
    ``idle`` names the other endpoints in use that the filters let pass; ``shortest_promise``
    is the shortest interval in seconds at which a mesh tests one of these links, infinity
    for none; ``profiles`` are the ids of those that its results have, if they were asked for.
    ``left_out`` says of which cells the filters on ends let nothing pass, None if of none.
    Arrays are shared, and read-only.
    """

    query: MatrixQuery
    window: Window
    moment: datetime
    version: DataVersion
    sources: tuple[AxisGroup, ...]
    destinations: tuple[AxisGroup, ...]
    cells: CellArrays
    averages: Averages
    idle: tuple[str, ...]
    shortest_promise: float = np.inf
    profiles: frozenset[int] = frozenset()
    left_out: Flags | None = None

    def __post_init__(self) -> None:
        for values in self._arrays():
            values.flags.writeable = False

    def _arrays(self) -> list[NDArray[Any]]:
        cells = (*vars(self.cells).values(), *self.cells.extras.values())
        arrays = (*cells, self.averages.row, self.averages.column, self.left_out)
        # The statistic of the query is one of the others.
        return list(
            {id(values): values for values in arrays if isinstance(values, np.ndarray)}.values()
        )

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for values in self._arrays())

    @property
    def unit(self) -> str:
        return STATISTICS[self.query.stat].unit.name

    @property
    def simulated(self) -> bool:
        return any(group.simulated for group in (*self.sources, *self.destinations))

    def states(self) -> dict[str, int]:
        """Count the cells by state; those that the filters leave out have none."""
        states = self.cells.state
        shown = states.ravel() if self.left_out is None else states[~self.left_out]
        counts = np.bincount(shown, minlength=len(STATES))
        return dict(zip(STATES, counts.tolist(), strict=True))

    def links(self) -> dict[str, int]:
        """Count the links that are failing, slower, faster, and as usual."""
        kinds = ("failing", "slower", "faster", "judged")
        counts = {kind: int(getattr(self.cells, f"{kind}_links").sum()) for kind in kinds}
        counts["usual"] = counts.pop("judged") - counts["slower"] - counts["faster"]
        return counts


def version(query: MatrixQuery, now: datetime) -> DataVersion:
    """Return what changes whenever the answer may, for one small SQL query: also the ETag."""
    window = query.window_at(now)
    minute = now.replace(second=0, microsecond=0)
    reach = standing.reach(window)
    return data_version.read(query.size, reach).of_question((query, window, minute))


def build(
    query: MatrixQuery,
    now: datetime,
    known_version: DataVersion | None = None,
    *,
    whole: bool = False,
) -> Grid:
    """Answer the query; what is kept for its version is not built again.

    ``known_version`` is that of version(). A ``whole`` grid has all that the page and its numbers
    show: catalogue.CARD_EXTRAS and ``profiles``. It serves those who need less.
    """
    # Read before the data: an answer may be newer than its version, never older.
    known_version = known_version or version(query, now)
    whole = whole or ("grid", known_version, True) in ANSWERS
    extras = CARD_EXTRAS if whole else ()
    grid: Grid = ANSWERS.get(
        ("grid", known_version, whole),
        lambda: compute(query, now, known_version, extras, profiles=whole),
    )
    return grid


def compute(
    query: MatrixQuery,
    now: datetime,
    known_version: DataVersion,
    extras: Collection[str] = (),
    results: Sequence[Run] | None = None,
    *,
    standings: Standings | None = None,
    profiles: bool = False,
) -> Grid:
    """Answer the query from the transfers that started in its window.

    The number of SQL queries does not depend on the data. ``extras`` are quantiles (of
    catalogue.QUANTILES) that CellArrays.extras is to have beside the statistic of the query;
    ``results`` and ``standings`` are there where the caller has read them already; ``profiles``
    asks for Grid.profiles.
    """
    window = query.window_at(now)
    moment = min(now, window.end)
    links = LinkIndex(registry.read_places(known_version))
    allowed = links.matching(query.filters)
    narrowed = bool(on_links(query.filters))
    if results is None:
        results = runs.read(
            query.size,
            window,
            query.filters,
            sizes=STATISTICS[query.stat].needs_sizes,
            profiles=profiles and narrowed,
            distinct_profiles=profiles and not narrowed,
            failures=bool(query.max_age),
        )
    promise = np.where(allowed, registry.read_promises(query, links, known_version), np.inf)
    newest = links.numbering.newest(results) * allowed.reshape(links.shape)
    grouping = query.rows, query.columns
    frame = Frame.around(links, newest, promise.reshape(links.shape), grouping)
    if standings is None:
        standings = standing.read(
            query.size, query.filters, window, now, links, version=known_version
        )
    cells = fill(query, frame, results, moment, standings=standings, extras=extras)
    shown = (links.numbering, allowed.reshape(links.shape)) if narrowed else ()
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
        profiles=runs.profiles_of(results, *shown) if profiles else frozenset(),
        left_out=left_out(frame, query.filters) if narrowed else None,
    )


def fill(
    query: MatrixQuery,
    frame: Frame,
    results: Sequence[Run],
    moment: datetime,
    *,
    standings: Standings,
    extras: Collection[str] = (),
) -> CellArrays:
    """Compute the cells from the results, as they stand at a moment."""
    links = frame.links
    down = Downtime.endpoints_down(moment)
    outdated = None
    if query.max_age:
        # The cells that have no success as young as the query asks for.
        newest = links.numbering.newest([run.newest_ok() for run in results])
        started = frame.pool(np.maximum, np.where(frame.newest > 0, newest, 0)) / 1000
        outdated = np.asarray(moment.timestamp() - started > read_age(query.max_age))
    return frame.cells(
        reduce.reduce(results, frame.pooling, EXTRAS & {query.stat, *extras}),
        down=links.ends(place.id in down for place in links.places).reshape(links.shape),
        stat=query.stat,
        moment=moment.timestamp(),
        standings=standings,
        outdated=outdated,
    )


def left_out(frame: Frame, filters: Iterable[Filter]) -> Flags | None:
    """Say of which cells the filters on ends let nothing pass, if there are such cells."""
    passing = frame.links.passing(filters).reshape(frame.links.shape)
    missing = ~frame.pool(np.logical_or, passing)
    return missing if missing.any() else None


def idle(links: LinkIndex, allowed: Flags, applicable: Flags) -> tuple[str, ...]:
    """Name the endpoints in use that match the filters and have no row and no column."""
    used = np.logical_or(*links.touched(applicable))
    unused = np.logical_or(*links.touched(allowed)) & ~used
    places = (links.places[index] for index in np.flatnonzero(unused))
    return tuple(place.name for place in places if not place.retired)
