"""What static/js/matrix/ knows before the numbers arrive, where each cell leads, and the tables."""

import math
from collections.abc import Container
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np

from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.words.numbers import number
from matrix.answers.words.ratios import PairRatio
from matrix.pages.matrix.controls import NAMES
from matrix.pages.parts.controls import own_words
from matrix.plots import display
from matrix.plots.arrangement import LEFT_OUT_WORDS, Arrangement, Side
from matrix.plots.display import Display
from matrix.plots.matrix import Labels, figure
from matrix.query.addresses import about_link, address, link_url, table_url
from matrix.query.attributes import ENDS, NAME
from matrix.query.catalogue import CARD_EXTRAS, RATE, STATISTICS
from matrix.query.matrix_query import MatrixQuery
from matrix.query.url_text import encoded
from matrix.statistics.arrays import Floats, rounded
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.cell_targets import AGAINST, UNKNOWN
from matrix.statistics.cells.states import MEASURED, STALE, STATE_WORDS, STATES
from matrix.statistics.compare.two_samples import Ratios
from sonar.notation.endpoint_attributes import OF_ENDPOINTS
from sonar.notation.units import DASH
from sonar.notation.windows import format_window

Json = dict[str, Any]


@dataclass(frozen=True)
class CellLinks:
    """What clicking on the cells of a grid opens: its link, or the matrix of what it pools."""

    grid: Grid
    display: Display
    opens_groups: bool = False
    """Whether a label opens its row or column against all others."""

    @property
    def of_links(self) -> bool:
        return (self.grid.query.rows, self.grid.query.columns) == ("endpoint", "endpoint")

    def url(self, source: int, destination: int) -> str:
        ends = self.grid.sources[source], self.grid.destinations[destination]
        if self.of_links:
            return link_url(ends[0].name, ends[1].name, self.grid.query)
        added = self.narrowing("source", ends[0]), self.narrowing("destination", ends[1])
        return address("matrix") + "?" + "&".join(filter(None, [self.query()[1:], *added]))

    def query(self) -> str:
        """Return what stands behind the path for every cell: from `?` on, or nothing."""
        query = self.grid.query
        if self.of_links:
            return about_link(query).url("")
        kept = self.of_endpoints({f"source_{query.rows}", f"destination_{query.columns}"})
        return f"?{kept}" if kept else ""

    def of_endpoints(self, narrowed: Container[str]) -> str:
        """Return the parameters of the matrix of endpoints behind groups.

        What is ``narrowed`` is not widened by alternatives that the question has.
        """
        query = self.grid.query
        others = tuple(
            criterion
            for criterion in query.filters
            if criterion.exclude or criterion.parameter not in narrowed
        )
        bare = query.replace(rows="endpoint", columns="endpoint", filters=others)
        return encoded(display.write(bare, self.display))

    def side(self, end: str) -> tuple[str, tuple[AxisGroup, ...]]:
        query, grid = self.grid.query, self.grid
        is_source = end == "source"
        return (query.rows, grid.sources) if is_source else (query.columns, grid.destinations)

    def narrowing(self, end: str, group: AxisGroup) -> str | None:
        """Return the parameters that choose the endpoints of a row or column, none for all."""
        grouping, groups = self.side(end)
        if value := value_of(group, grouping):
            return urlencode({f"{end}_{grouping}": value})
        # Those without a cloud are those that are of no other.
        others = [f"!{value}" for group in groups if (value := value_of(group, grouping))]
        return urlencode({f"{end}_{grouping}": others}, True, "!") or None

    def opening(self) -> Json:
        """Return the same for a script, which puts the names of the cell in."""
        if self.of_links:
            return {"kind": "link", "query": self.query()}
        labels = {end: self.group_urls(end) for end in ENDS} if self.opens_groups else None
        return {"kind": "narrow", "query": self.query(), "labels": labels} | {
            end: {group.name: self.narrowing(end, group) for group in self.side(end)[1]}
            for end in ENDS
        }

    def group_urls(self, end: str) -> dict[str, str]:
        """Return by the name of each row or column where it is opened, against all others."""
        grouping, groups = self.side(end)
        kept, urls = self.of_endpoints({f"{end}_{grouping}"}), {}
        for group in groups:
            params = "&".join(filter(None, [kept, self.narrowing(end, group)]))
            urls[group.name] = f"{address('matrix')}?{params}"
        return urls


def value_of(group: AxisGroup, grouping: str) -> str:
    """Return the value that the endpoints of a group share in what it is made by."""
    key = OF_ENDPOINTS[grouping].key
    return group.name if key == NAME else str(group.facts[key])


def ordered_table(query: MatrixQuery, ordering: str) -> str:
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


def payload(arrangement: Arrangement, cell_links: CellLinks, labels: Labels) -> Json:
    """Return the figure, and the names and means of rows and columns as they are drawn."""
    grid = arrangement.grid
    query, statistic = grid.query, grid.query.statistic
    drawn = display.write(query, arrangement.display)
    compared = None
    if query.compare:
        # What the card calls both sides.
        words = {"here": own_words(query), "there": query.other_words()}
        compared = {side: f"{query.compare.of}, {text}" for side, text in words.items()}
    return {
        "figure": figure(arrangement, labels),
        "cells_url": address("cells") + (f"?{encoded(drawn)}" if drawn else ""),
        # Of another window the codes are for other rows and columns, where values decide these.
        "codes_url": None if arrangement.display.follows_values else address("cell-codes"),
        "arrangement": arrangement.digest,
        "version": arrangement.version.text,
        "transposed": arrangement.display.transpose,
        # Of two strips, how many rows (columns, if transposed) are sources; the others receive.
        "sending": arrangement.own and arrangement.own.sending,
        "rows": side_numbers(arrangement.rows, labels.rows),
        "columns": side_numbers(arrangement.columns, labels.columns),
        "average": numbers(grid.averages.grand)[0],
        "period": f"From {format_window(grid.window)}",
        "stat": statistic.name,
        # What the card of a cell calls the statistic, unless it says it anyway.
        "said": None if statistic.on_card else statistic.words,
        "unit": statistic.unit.behind,
        "written": statistic.unit.written,
        "rate_unit": RATE.name,
        "card_extras": {STATISTICS[name].words: name for name in CARD_EXTRAS},
        "compared": compared,
        "open": cell_links.opening(),
        "link_url": address("link", ":source", ":destination"),
        "square": query.rows == query.columns,
    }


def side_numbers(side: Side, labels: list[str]) -> Json:
    return {
        "names": side.names,
        "labels": labels,
        "at": side.at.tolist(),
        "average": numbers(side.average),
    }


def numbers(values: Floats | float) -> list[float | None]:
    """Return numbers for JSON, which has no NaN."""
    of_all = rounded(np.atleast_1d(np.asarray(values))).tolist()
    return [None if math.isnan(value) else value for value in of_all]


# Larger tables are of no use to a reader and cost the browser seconds.
LARGEST = 30
CORNERS = {
    "source": r"from \ to",
    "destination": r"to \ from",
    "own": "partner",
    "partner": "partner",
}
# The name and the words of each state that a cell is drawn in.
WORDS = [*((state, STATE_WORDS[state]) for state in STATES), ("left_out", LEFT_OUT_WORDS)]


def number_tables(arrangement: Arrangement) -> dict[str, Any]:
    """Return the `table` of the drawn cells; of a matrix too large for one, a `summary`.

    Cells have a text, a state and the state in words, rows their name, cells and average. In the
    summary stand rows and columns, each with its name, number of measured cells, and average.
    Nothing of an empty matrix.
    """
    grid, rows, columns = arrangement.grid, arrangement.rows, arrangement.columns
    statistic = grid.query.statistic

    def texts(values: Floats) -> list[str]:
        return [number(value, statistic) or DASH for value in values.tolist()]

    if not rows.groups:
        return {}
    averages, below = texts(rows.average), texts(columns.average)
    grand = number(grid.averages.grand, statistic) or DASH
    if max(arrangement.state.shape) > LARGEST:
        measured = arrangement.state == MEASURED
        sides = ("rows", rows, 1, averages), ("columns", columns, 0, below)
        return {
            "summary": {"average": grand}
            | {
                name: [*zip(headings(side), measured.sum(axis=axis).tolist(), means, strict=True)]
                for name, side, axis, means in sides
            }
        }
    written = map(texts, arrangement.value)
    lines = zip(headings(rows), written, looks_of(arrangement), averages, strict=True)
    return {
        "table": {
            "corner": CORNERS[rows.end],
            "columns": headings(columns),
            "rows": [
                (name, [(text, *look) for text, look in zip(cells, looks, strict=True)], average)
                for name, cells, looks, average in lines
            ],
            "averages": below,
            "average": grand,
        }
    }


def looks_of(arrangement: Arrangement) -> list[list[tuple[str, str]]]:
    """Return the name and the words of how each drawn cell is; of a comparison, of both sides."""
    looks = [[WORDS[state] for state in states] for states in arrangement.state.tolist()]
    if targets := arrangement.grid.cells.targets:
        against = arrangement.drawn(targets.against)
        for row, column in np.argwhere(against != UNKNOWN).tolist():
            name = AGAINST[against[row, column]]
            looks[row][column] = name, NAMES[name]
    if arrangement.grid.comparison is None:
        return looks
    ratios = Ratios(*map(arrangement.drawn, vars(arrangement.grid.comparison).values()))
    for row, column in np.argwhere(np.isin(arrangement.state, (MEASURED, STALE))).tolist():
        name = "too_few" if arrangement.too_few[row, column] else looks[row][column][0]
        looks[row][column] = name, PairRatio.at(ratios, (row, column)).sides_words
    return looks


def headings(side: Side) -> list[str]:
    """Return the names of rows or columns, those of strips with their direction."""
    if not side.directions:
        return side.names
    return [f"{to} {name}" for to, name in zip(side.directions, side.names, strict=True)]
