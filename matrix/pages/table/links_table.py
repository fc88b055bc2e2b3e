"""Which columns the table page has, the table of them, its cells, and the sheet of its filters."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import django_tables2 as tables
import numpy as np
from django.http import QueryDict
from django_tables2.data import TableData

from matrix.answers.table.columns import EVERY, Arrays
from matrix.answers.table.link_table import CHANGE, LinkTable
from matrix.answers.table.table_query import TableQuery
from matrix.pages.table.columns import (
    ColumnFilter,
    Context,
    Count,
    EndColumn,
    LinkColumn,
    OfSize,
    Priority,
    QuantileColumn,
    RateColumn,
    Size,
    TableCell,
    TableRow,
    Values,
)
from matrix.pages.table.standing_columns import COMPARED, OF_LINES, STANDING, StateColumn
from matrix.query.catalogue import Statistic
from matrix.query.forms import BadQueryError
from matrix.statistics.arrays import Integers
from matrix.statistics.compare.two_samples import CHANGE_KINDS
from matrix.templatetags.figures import pads
from sonar.notation.endpoint_attributes import OF_ENDPOINTS

PARAMETERS = ("filter_column", "filter_how", "filter_value")
# Each with its name in an ordering.
Columns = list[tuple[str, LinkColumn]]


def columns(
    context: Context, sizes: Sequence[str], quantiles: Sequence[Statistic], *, lines: bool = False
) -> Columns:
    """Return all columns, with those of lines if they are asked for.

    The size class that is asked for comes first, and with how its links are now.
    """
    every: Columns = []
    for end in ("source", "destination"):
        every += [(end, EndColumn(context, end, "endpoint"))]
        every += [
            (f"{end}.{attribute.key}", EndColumn(context, end, name))
            for name, attribute in OF_ENDPOINTS.items()
            if attribute.listed
        ]
    every.append(("priority", Priority(context)))
    if lines:
        every += [(column.field, column(context)) for column in OF_LINES]
    standing: tuple[type[OfSize], ...] = COMPARED if context.query.compare else STANDING
    for size in sorted(sizes, key=lambda size: size != context.query.size):
        is_chosen = size == context.query.size
        of_size: list[OfSize] = [
            *([StateColumn(context, size)] if is_chosen else []),
            RateColumn(context, size, tells=not is_chosen),
            *(column(context, size) for column in standing if is_chosen),
            *(QuantileColumn(context, size, quantile) for quantile in quantiles),
            Size(context, size),
            Count(context, size),
        ]
        every += [(f"{size}.{column.field}", column) for column in of_size]
    return every


def shown_columns(
    every: Columns, table: LinkTable, listing: TableQuery
) -> tuple[Columns, list[str]]:
    """Leave out what all links have alike, unless it is asked for or ordered by; say it instead."""
    if listing.constant:
        return every, []
    words = {name: column.constant(table) for name, column in every if len(table) > 1}
    same = {name for name, text in words.items() if text and name != listing.column}
    shown = [column for column in every if column[0] not in same]
    return shown, list(dict.fromkeys(text for name, text in words.items() if name in same))


class LinkData(TableData):  # type: ignore[misc]  # has no types
    """Rows of a link table in some order, of which only those that are looked at are made."""

    def __init__(self, table: LinkTable, rows: Integers) -> None:
        super().__init__(table)
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: slice) -> list[TableRow]:
        return rows_of(self.data.taken(self.rows[key]))

    def __iter__(self) -> Iterator[TableRow]:
        return iter(self[:])


def rows_of(table: LinkTable) -> list[TableRow]:
    classes = {}
    for size in table.sizes:
        columns = table.of_class(size) | {EVERY: table.column(f"{size}.{EVERY}")}
        if CHANGE in columns:
            columns[CHANGE] = np.array(CHANGE_KINDS, dtype=object)[columns[CHANGE]]
        classes[size] = values_of(columns)
    lines = values_of(table.lines) or [Values()] * len(table)
    numbers = (table.source.tolist(), table.destination.tolist(), table.priority.tolist())
    return [
        TableRow(
            table.places[source],
            table.places[destination],
            priority,
            {size: values[at] for size, values in classes.items()},
            lines[at],
        )
        for at, (source, destination, priority) in enumerate(zip(*numbers, strict=True))
    ]


def values_of(columns: Arrays) -> list[Values]:
    """Return each row of columns by their names."""
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [Values(**dict(zip(columns, row, strict=True))) for row in rows]


class LinksTable(tables.Table):  # type: ignore[misc]  # has no types
    """The rows of one page, with these columns."""

    def __init__(self, data: LinkData, columns: Columns) -> None:
        super().__init__(data, extra_columns=columns)

    def groups(self) -> list[tuple[str, int]]:
        """Return what stands above the columns, and above how many."""
        names = [column.column.group for column in self.columns]
        return [(name, len(list(members))) for name, members in groupby(names)]


# Its name, what is written in it, where it stands, what stands before it on a card, and what its
# number lacks of the longest fraction below its head.
Cell = tuple[str, TableCell, str, str, str]


def body(rows: Iterable[Any], ordered_by: str) -> list[tuple[str, tuple[Cell, ...]]]:
    """Return the rows of a page of the library's: the name of their destination, and their cells.

    The column they are ordered by is on cards.
    """
    listed = list(rows)
    texts = [[(bound.name, bound.column, cell) for bound, cell in row.items()] for row in listed]
    columns = [column_cells(column, ordered_by) for column in zip(*texts, strict=True)]
    names = [row.record.destination.name for row in listed]
    return list(zip(names, zip(*columns, strict=True), strict=True))


def column_cells(
    column: Sequence[tuple[str, LinkColumn, TableCell]], ordered_by: str
) -> list[Cell]:
    """Return the cells below one head."""
    name, head, _ = column[0]
    cells = [cell for _, _, cell in column]
    place, label = head.place, ""
    if "carded" in place or name == ordered_by:
        label = head.label
        place = place if "carded" in place else f"{place} carded"
    is_number = "number" in head.look
    padding = pads([cell.text for cell in cells]) if is_number else [""] * len(cells)
    return [(name, cell, place, label, pad) for cell, pad in zip(cells, padding, strict=True)]


def filter_forms(
    columns: Iterable[LinkColumn],
) -> Mapping[str, list[tuple[str, list[ColumnFilter]]]]:
    """Return what can be filtered, as two forms: columns of text, and of numbers with two bounds.

    Each by what stands above it.
    """
    offered = [(column.group or "link", own) for column in columns for own in column.filters]
    return {
        words: [
            (group, [own for _, own in members])
            for group, members in groupby(
                (pair for pair in offered if pair[1].is_number is is_number), itemgetter(0)
            )
        ]
        for words, is_number in (("text", False), ("number", True))
    }


def added(params: QueryDict, conditions: Collection[str]) -> QueryDict:
    """Turn the fields of the sheet into the parameter of their filter; without a value it is none.

    Raises BadQueryError for a column that has no such condition; the value is for it to check.
    """
    whole = params.copy()
    column, how, value = (whole.pop(name, [""])[-1].strip() for name in PARAMETERS)
    if not value:
        return whole
    name = f"{column}.{how}" if how else column
    if name not in conditions:
        raise BadQueryError({"filter_column": [f"“{name}” is no filter: choose one of the list."]})
    whole[name] = value
    return whole
