"""Where a cell leads: to the page of its link, or to the matrix of what it pools."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from matrix.answers.grid import Grid
from matrix.plots import display
from matrix.plots.display import Display
from matrix.query.addresses import about_link, address, link_url, table_url
from matrix.query.attributes import NAME, OF_ENDPOINTS
from matrix.query.catalogue import STATISTICS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import AxisGroup


@dataclass(frozen=True)
class CellLinks:
    """What clicking on the cells of a grid opens."""

    grid: Grid
    display: Display

    @property
    def of_links(self) -> bool:
        """Say whether each cell is one link."""
        return (self.grid.query.rows, self.grid.query.columns) == ("endpoint", "endpoint")

    def url(self, source: int, destination: int) -> str:
        """Return where a cell of the grid leads."""
        ends = self.grid.sources[source], self.grid.destinations[destination]
        if self.of_links:
            return link_url(ends[0].name, ends[1].name, self.grid.query)
        added = self.narrowing("source", ends[0]), self.narrowing("destination", ends[1])
        return address("matrix") + "?" + "&".join(filter(None, [self.query()[1:], *added]))

    def query(self) -> str:
        """Return what stands behind the path for every cell: from `?` on, or nothing."""
        if self.of_links:
            return about_link(self.grid.query).url("")
        return parameters(display.write(narrowed(self.grid.query), self.display))

    def narrowing(self, end: str, group: AxisGroup) -> str | None:
        """Return the parameters that choose the endpoints of a row or column, none for all."""
        grouping, groups = self.grid.query.rows, self.grid.sources
        if end == "destination":
            grouping, groups = self.grid.query.columns, self.grid.destinations
        if value := value_of(group, grouping):
            return urlencode({f"{end}_{grouping}": value})
        # Those without a cloud are those that are of no other.
        others = [f"!{value}" for group in groups if (value := value_of(group, grouping))]
        return urlencode({f"{end}_{grouping}": others}, True, "!") or None


def value_of(group: AxisGroup, grouping: str) -> str:
    """Return the value that the endpoints of a group share in what it is made by."""
    key = OF_ENDPOINTS[grouping].key
    return group.name if key == NAME else str(group.facts[key])


def narrowed(query: MatrixQuery) -> MatrixQuery:
    """Ask for endpoints; what a cell narrows is not widened by alternatives given before."""
    replaced = {f"source_{query.rows}", f"destination_{query.columns}"}
    others = tuple(
        criterion
        for criterion in query.filters
        if criterion.exclude or criterion.parameter not in replaced
    )
    return query.replace(rows="endpoint", columns="endpoint", filters=others)


def parameters(params: dict[str, list[str]]) -> str:
    return f"?{urlencode(params, True, ':!')}" if params else ""


def ordered_table(query: MatrixQuery, ordering: str) -> str:
    """Return the table of a matrix's links, ordered by one of its columns."""
    url = table_url(query)
    return f"{url}{'&' if '?' in url else '?'}ordering={ordering}"


def worst_first(query: MatrixQuery) -> str:
    """Return the ordering of the table that has the worst links of a statistic first, if any."""
    statistic = STATISTICS[query.stat]
    if statistic.of_line:
        return f"{'-' * (statistic.worse == 'high')}{statistic.field}"
    column = statistic.field if statistic.in_table else statistic.worst_first
    if not column:
        return ""
    sign = "-" if column.startswith("-") else ""
    return f"{sign}{query.size}.{column.removeprefix('-')}"
