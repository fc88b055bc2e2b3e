"""The other side of a comparison: its results, brought into the cells of this one."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from matrix.answers.matrix.grid_cells import OtherSide
from matrix.query.filters import on_links, on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Integers, each
from matrix.statistics.cells.axes import AxisGroup, LinkIndex
from matrix.statistics.cells.cells import Frame
from matrix.statistics.compare.two_samples import KnownScatter, Rule, SideRuns, Sides, compare_cells
from matrix.statistics.samples.run import Run, reversed_run
from matrix.store import data_version, runs
from matrix.store.data_version import DataVersion
from sonar.notation.windows import Window


def other_side(query: MatrixQuery, now: datetime, links: LinkIndex) -> OtherSide:
    other = query.other(now)
    ends = np.logical_or(*links.touched(links.matching(other.filters)))
    simulated = any(links.places[index].simulated for index in np.flatnonzero(ends))
    return OtherSide(other, other.window_at(now), simulated, query.other_words())


def read(other: MatrixQuery) -> tuple[Run, ...]:
    return runs.read(other.size, bounds_of(other), other.filters)


def with_other(version: DataVersion, other: MatrixQuery) -> DataVersion:
    """Add the results of the other side to the version of an answer, for one SQL statement."""
    of_other = data_version.read(other.size, bounds_of(other))
    return replace(version, results=(*version.results, *of_other.results))


def bounds_of(other: MatrixQuery) -> Window:
    if other.bounds is None:
        raise ValueError("the other side of a comparison needs a start and an end")
    return other.bounds


def reduce_sides(
    query: MatrixQuery,
    now: datetime,
    frame: Frame,
    results: Sequence[Run],
    others: Sequence[Run],
    *,
    extras: Collection[str],
    scatter: KnownScatter | None = None,
    rule: Rule | None = None,
) -> Sides:
    """Reduce the results of each cell, and compare them with those of the other side.

    Links of the other side that have no cell here, as other filters may choose them, are left out.
    They are judged by ``rule``, or by that which the cells make, where each link has one by how far
    its tests ``scatter``.
    """
    links = frame.links
    rows = groups_of(frame.rows.groups, links, query.rows)
    columns = groups_of(frame.columns.groups, links, query.columns)
    other = runs_of_other(query, now, links, others)
    other = replace(other, shown=other.shown & (rows >= 0)[:, None] & (columns >= 0))
    pooling = replace(frame.pooling, rows=rows, columns=columns)
    own = SideRuns(results, frame.newest > 0)
    known_scatter = None
    if scatter is not None:  # of links, brought into their cells
        places = np.ix_(np.flatnonzero(rows >= 0), np.flatnonzero(columns >= 0))
        cells = np.ix_(rows[rows >= 0], columns[columns >= 0])
        squares, dof = np.zeros((2, *pooling.shape))
        squares[cells], dof[cells] = scatter.squares[places], scatter.dof[places]
        known_scatter = KnownScatter(squares, dof)
    return compare_cells(
        pooling, own, other, centre(query), extras, known_scatter=known_scatter, rule=rule
    )


def all_links_query(query: MatrixQuery) -> MatrixQuery | None:
    """Return the question about all links that judges a narrower one; None if there is none."""
    compare = query.compare and query.compare.on_profiles()
    if not on_links(query.filters) or compare != query.compare:
        return None
    filters = tuple(on_profiles(query.filters))
    return query.replace(filters=filters, stat=MatrixQuery.stat, max_age="")


def centre(query: MatrixQuery) -> str:
    if query.compare is None:
        raise ValueError("the query has no comparison")
    return query.compare.of


def runs_of_other(
    query: MatrixQuery, now: datetime, links: LinkIndex, others: Sequence[Run]
) -> SideRuns:
    """Return the results of the other side under the links of this one that they stand against."""
    shown = links.matching(query.other(now).filters).reshape(links.shape)
    if query.compare and query.compare.reverse:
        return SideRuns(each(reversed_run, others), shown.T)
    return SideRuns(others, shown)


def groups_of(groups: Sequence[AxisGroup], links: LinkIndex, grouping: str) -> Integers:
    """Return the row or column of each place, whether it is shown there or not; -1 for none."""
    numbers = {group.name: number for number, group in enumerate(groups)}
    names = (place.group_name(grouping) for place in links.places)
    return np.array([numbers.get(name, -1) for name in names], dtype=np.int64)
