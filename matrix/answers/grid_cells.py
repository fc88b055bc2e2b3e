"""The stages from a query to the cells of its grid: what is read, laid out, reduced, filled in."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from matrix.answers.comparison import sides as comparing
from matrix.query.catalogue import EXTRAS, STATISTICS
from matrix.query.filters import on_links
from matrix.query.forms import read_age
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.cells.cells import CellArrays, Frame
from matrix.statistics.cells.standing import Standings
from matrix.statistics.cells.states import FAILING
from matrix.statistics.compare.two_samples import Ratios, Rule, Sides
from matrix.statistics.samples.reduce import Reduced
from matrix.statistics.samples.reduce import reduce as reduce_runs
from matrix.statistics.samples.run import Run
from matrix.statistics.transfers.overhead import Lines
from matrix.store import registry, runs
from matrix.store.data_version import DataVersion, snapshot
from sonar.models import Downtime


def read_sides(
    query: MatrixQuery, now: datetime, *, profiles: bool = False
) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """Read the results of a question, and of what it is compared with, as of one moment."""
    narrowed = bool(on_links(query.filters))
    with snapshot():
        results = runs.read(
            query.size,
            query.window_at(now),
            query.filters,
            sizes=query.statistic.needs_sizes,
            profiles=profiles and narrowed,
            distinct_profiles=profiles and not narrowed,
            failures=bool(query.max_age),
        )
        return results, comparing.read(query.other(now)) if query.compare else ()


def lay_out(
    query: MatrixQuery,
    links: LinkIndex,
    allowed: Flags,
    results: Sequence[Run],
    known_version: DataVersion,
) -> Frame:
    """Lay out the rows and columns of the links that are ``allowed``, of shape (places, places)."""
    promises = registry.read_promises(query, links, known_version).reshape(links.shape)
    newest = links.numbering.newest(results) * allowed
    grouping = query.rows, query.columns
    return Frame.around(links, newest, np.where(allowed, promises, np.inf), grouping)


def reduce(
    query: MatrixQuery,
    now: datetime,
    frame: Frame,
    results: Sequence[Run],
    others: Sequence[Run],
    *,
    extras: Collection[str],
    rule: Rule | None = None,
) -> tuple[Reduced, Sides | None]:
    """Reduce the results of each cell, and compare them if the question does, by ``rule``."""
    stat = shown_stat(query)
    extras = EXTRAS & {stat, STATISTICS[stat].base, *extras}
    if not query.compare:
        return reduce_runs(results, frame.pooling, extras), None
    sides = comparing.reduce_sides(query, now, frame, results, others, extras=extras, rule=rule)
    return sides.reduced, sides


def shown_stat(query: MatrixQuery) -> str:
    """Return the statistic of this side; what is shown while comparing is filled in afterwards."""
    return MatrixQuery.stat if query.compare else query.stat


def fill(
    query: MatrixQuery,
    frame: Frame,
    results: Sequence[Run],
    reduced: Reduced,
    now: datetime,
    *,
    standings: Standings,
    lines: Lines | None = None,
) -> CellArrays:
    """Compute the cells from the results, as they stand at the end of the window or now."""
    links, moment = frame.links, min(now, query.window_at(now).end)
    down = Downtime.endpoints_down(moment)
    outdated = None
    if query.max_age:
        # The cells that have no success as young as the query asks for.
        newest = links.numbering.newest([run.newest_ok() for run in results])
        started = frame.pool(np.maximum, np.where(frame.newest > 0, newest, 0)) / 1000
        outdated = np.asarray(moment.timestamp() - started > read_age(query.max_age))
    return frame.cells(
        reduced,
        down=links.ends(place.id in down for place in links.places).reshape(links.shape),
        stat=shown_stat(query),
        moment=moment.timestamp(),
        standings=standings,
        outdated=outdated,
        of_line=None if lines is None else lines.of(query.stat),
    )


def with_ratios(cells: CellArrays, comparison: Ratios | None) -> tuple[CellArrays, Ratios | None]:
    """Show the ratios to the other side, if there is one. What fails is neither slow nor fast."""
    if comparison is None:
        return cells, None
    # Without a mean it has no success, or none as young as was asked for.
    value = np.where(np.isnan(cells.mean), np.nan, comparison.ratio)
    sure = comparison.sure & ~np.isnan(value) & (cells.state != FAILING)
    return replace(cells, value=value), replace(comparison, sure=sure)
