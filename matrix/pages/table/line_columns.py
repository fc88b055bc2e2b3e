"""Columns of the overhead and the bandwidth of a link, which are of all size classes."""

from __future__ import annotations

import math
from collections.abc import Callable

from matrix.answers.table_query import TableQuery
from matrix.pages.controls import Choice
from matrix.pages.table.columns import ColumnFilter, Context, LinkColumn, TableCell
from matrix.pages.table.rows import TableRow
from matrix.statistics.transfers.overhead import FEWEST_TRANSFERS, FITS, LEAST_RATIO, LINE
from sonar.notation.units import DASH, format_bytes, three_digits

WHY_NONE = {
    "few": f"needs {FEWEST_TRANSFERS} successes of two sizes, one {LEAST_RATIO:g} times the other",
    "bent": "does not fit: the times of the size classes are not on one line",
}


class LineColumn(LinkColumn):
    """A value with its 95 % interval on hover; a dash says why there is none."""

    group = "all size classes"
    look, place = "number", "carded"
    greatest_first = True
    field = unit = title = explained = ""

    def __init__(self, context: Context) -> None:
        super().__init__(context, self.title, self.explained, self.field)
        self.filters = (ColumnFilter(self.field, self.title, is_number=True),)

    def render(self, record: TableRow) -> TableCell:
        fit = int(record.lines["line"])
        if fit != LINE:
            marks = ("no fit",) if FITS[fit] == "bent" else ()
            return TableCell(DASH, WHY_NONE[FITS[fit]], self.look, marks=marks)
        value = record.lines[self.field]
        if math.isnan(value):
            return TableCell(DASH, "larger files take no longer than small ones", self.look)
        return self.of(value, record.lines)

    def of(self, value: float, lines: dict[str, float]) -> TableCell:
        name, _, unit = self.field.partition("_")
        low, high = (lines[f"{name}_{end}_{unit}"] for end in ("low", "high"))
        upper = "any more" if math.isnan(high) else f"{three_digits(high)} {self.unit}"
        title = f"95 % interval: {three_digits(low)} to {upper}"
        return TableCell(three_digits(value), title, self.look)


class OverheadColumn(LineColumn):
    field, unit, title, place = "overhead_s", "s", "overhead (s)", "opens carded"
    explained = "seconds that pass in each transfer whatever its size"


class BandwidthColumn(LineColumn):
    field, unit, title = "bandwidth_mb_s", "MB/s", "bandwidth (MB/s)"
    explained = "rate of the bytes alone, without the overhead (MB/s)"


class HalfSizeColumn(LineColumn):
    field, title = "half_size_bytes", "half at"
    explained = "file size at which half of the time is overhead"

    def of(self, value: float, lines: dict[str, float]) -> TableCell:
        return TableCell(format_bytes(value), self.explained, self.look)


def line_choice(listing: TableQuery, url: Callable[[TableQuery], str]) -> Choice:
    """Return what puts these columns into the table, or takes them out again."""
    changed = listing.without_lines() if listing.lines else listing.replace(overhead=True)
    title = "Columns with the overhead and the bandwidth of each link, from all size classes"
    return Choice("overhead and bandwidth", url(changed), listing.lines, title)


def line_columns(context: Context) -> list[LineColumn]:
    return [OverheadColumn(context), BandwidthColumn(context), HalfSizeColumn(context)]
