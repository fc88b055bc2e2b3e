"""What the colours of a matrix need, in a part of the time that its whole answer takes.

Of how links are now it has which are failing alone: nothing is held against what is usual.
"""

from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.matrix import grid, standing
from matrix.answers.matrix.grid_cells import Grid
from matrix.query.filters import on_links
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.cells import CellArrays, Frame, value
from matrix.statistics.cells.standing import UNKNOWN
from matrix.statistics.cells.states import Evidence
from matrix.statistics.samples import reduce
from matrix.statistics.samples.reduce import Reduced
from matrix.store import registry
from matrix.store.data_version import DataVersion
from sonar.models import Downtime
from sonar.notation.units import MB


def suffices(query: MatrixQuery) -> bool:
    """Say whether the cells of a question are single links with a statistic of their own tests.

    All else (groups, comparisons, the newest rates, lines and models of all cells, an age) takes
    what is made for the whole answer.
    """
    statistic = query.statistic
    is_of_others = statistic.of_now or statistic.of_line or bool(statistic.base)
    is_of_links = (query.rows, query.columns) == ("endpoint", "endpoint")
    return is_of_links and not (is_of_others or query.compare or query.max_age)


def build(query: MatrixQuery, now: datetime, known_version: DataVersion) -> Grid:
    """Return the grid of a question for which this suffices(), with the parts that colours need.

    Its cells have value, state, counts, and which are failing; how they stand beside that is left
    blank, as are the facts of the grid about what is around the cells.
    """
    links = registry.read_links(known_version)
    window = query.window_at(now)
    moment = min(now, window.end)
    results, _ = grid.read_sides(query, now)
    allowed = links.matching(query.filters).reshape(links.shape)
    frame = grid.lay_out(query, links, allowed, results, known_version)
    reduced, _ = grid.reduce_cells(query, now, frame, results, (), extras=())
    up = frame.applicable & ~links.touching(Downtime.endpoints_down(moment))
    marks = standing.read_marks([query.size], window, now, links)[query.size]
    failing = up & marks.are("failing")
    cells = cells_of(query, frame, reduced, up=up, failing=failing, moment=moment.timestamp())
    return Grid(
        query=query,
        window=window,
        moment=moment,
        version=known_version,
        sources=frame.rows.groups,
        destinations=frame.columns.groups,
        cells=cells,
        averages=reduce.averages(cells.value),
        idle=(),
        left_out=frame.left_out(query.filters) if on_links(query.filters) else None,
    )


def cells_of(
    query: MatrixQuery,
    frame: Frame,
    reduced: Reduced,
    *,
    up: Flags,
    failing: Flags,
    moment: float,
) -> CellArrays:
    """Fill in value, state and counts at a moment (Unix s), of links that are ``up`` or failing."""

    def of_cells(values: NDArray[Any]) -> NDArray[Any]:
        # Each cell is one link: there is nothing to pool.
        return frame.pool(np.logical_or, values)

    def blank(kind: Any) -> NDArray[Any]:  # noqa: ANN401 - a number of any type
        return np.broadcast_to(kind, reduced.ok.shape)

    newest = of_cells(frame.newest)
    last = np.where(newest > 0, newest / 1000, np.nan)
    rates = {"mean": reduced.mean, "std": reduced.std} | reduced.extras
    rate = rates.get(query.stat)
    is_failing = of_cells(failing)
    evidence = Evidence(
        ok=reduced.ok,
        failed=reduced.failed,
        age=moment - last,
        promise=of_cells(frame.promise),
        applicable=of_cells(frame.applicable),
        up=of_cells(up),
        failing=is_failing,
    )
    none, few, zero = blank(np.nan), blank(np.float32(np.nan)), blank(np.int32(0))
    return CellArrays(
        value=value(query.stat, reduced, moment - last) if rate is None else rate / MB,
        state=evidence.states(),
        ok=reduced.ok,
        failed=reduced.failed,
        last=last,
        mean=none,
        std=none,
        partly=blank(False),
        level=blank(np.uint8(UNKNOWN)),
        usual=none,
        now=none,
        ratio_low=few,
        ratio_high=few,
        streak=zero,
        since=none,
        unconfirmed=blank(np.uint8(0)),
        condition=zero,
        failing_links=is_failing.astype(np.int32),
        tested_links=zero,
        judged_links=zero,
        silent_links=zero,
        slower_links=zero,
        faster_links=zero,
    )
