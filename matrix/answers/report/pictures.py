"""The matrix of a report: few enough rows and columns that each cell has its number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.report.parts import HeatTable
from matrix.answers.report.question import ReportQuestion
from matrix.answers.words.names import short_names_of
from matrix.query.attributes import DEFAULT_GROUPING, GROUPINGS
from matrix.query.filters import Filter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.states import NOT_APPLICABLE
from sonar.notation.windows import LATEST

# By site, or where those are too many for a page, by what they have in common.
SHARED = tuple(name for name in GROUPINGS if name != DEFAULT_GROUPING)
MOST_LINES, MOST_PARTNERS = 16, 40


def pictures(question: ReportQuestion, links: Grid) -> Iterator[HeatTable]:
    """Yield the matrix of the whole grid; of a cloud one each way; of a site all its partners.

    Of the size class of ``links``.
    """
    cloud, query = question.cloud, question.query(links.query.size)
    groups = [*links.sources, *links.destinations]
    every = grouping(groups, MOST_LINES)
    if question.site:
        yield of_partners(question.site, query, grouping(groups, MOST_PARTNERS))
    elif cloud:
        own = grouping([group for group in groups if group.cloud == cloud], MOST_LINES)
        sent = grouped(query, own, every, Filter("source_cloud", cloud))
        yield heat_table(sent, f"Sent by sites of cloud {cloud}")
        received = grouped(query, every, own, Filter("destination_cloud", cloud))
        yield heat_table(received, f"Received by sites of cloud {cloud}")
    else:
        yield heat_table(grouped(query, every, every), "")


def grouping(groups: Iterable[AxisGroup], most: int) -> str:
    """Return by what endpoints are put together, so that there are not too many lines."""
    present = list(groups)
    lines = {by: len({group.facts[by] for group in present}) for by in SHARED}
    return next((by for by in SHARED if lines[by] <= most), min(lines, key=lines.__getitem__))


def grouped(query: MatrixQuery, rows: str, columns: str, *filters: Filter) -> Grid:
    """Return a matrix by these lines, as it stood at the end of its window."""
    query = query.replace(rows=rows, columns=columns, filters=filters or query.filters)
    return grid.build(query, query.window_at(LATEST).end)


def heat_table(cells: Grid, title: str) -> HeatTable:
    rows, columns = ([group.name for group in side] for side in (cells.sources, cells.destinations))
    return HeatTable(
        title,
        "from ↓, to →",
        rows,
        columns,
        cells.short_names(),
        cells.cells.mean,
        cells.cells.state,
    )


def of_partners(site: str, query: MatrixQuery, by: str) -> HeatTable:
    """Return the partners of a site below each other, with both directions beside each other."""
    sent = grouped(query, "site", by, Filter("source_site", site))
    received = grouped(query, by, "site", Filter("destination_site", site))
    partners = {group.name: group for group in (*sent.destinations, *received.sources)}
    names = sorted(partners, key=str.casefold)
    value = np.full((len(names), 2), np.nan)
    state = np.full((len(names), 2), NOT_APPLICABLE, dtype=np.uint8)
    for column, (cells, groups) in enumerate(
        ((sent.cells, sent.destinations), (received.cells, received.sources))
    ):
        places = [names.index(group.name) for group in groups]
        value[places, column] = cells.mean.ravel()
        state[places, column] = cells.state.ravel()
    short = short_names_of(list(partners.values()))
    directions = ["to partner", "from partner"]
    return HeatTable("", "partner", names, directions, short, value, state, site)
