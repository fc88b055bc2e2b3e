"""Which columns the table page has, the table of them, its cells, and the sheet of its filters."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from operator import itemgetter

import numpy as np
from django.http import QueryDict
from django.utils.safestring import SafeString

from matrix.answers.table.link_table import CHANGE, EVERY, Arrays, LinkTable
from matrix.answers.table.table_query import TableQuery
from matrix.pages.table.columns import (
    COMPARED,
    OF_LINES,
    STANDING,
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
    StateColumn,
    TableCell,
    TableRow,
    Values,
)
from matrix.query.catalogue import Statistic
from matrix.query.forms import BadQueryError
from matrix.statistics.compare.two_samples import CHANGE_KINDS
from matrix.templatetags.figures import pads
from matrix.templatetags.long_parts import joined
from sonar.notation.endpoint_attributes import OF_ENDPOINTS

PARAMETERS = ("filter_column", "filter_how", "filter_value")
# Each with its name in an ordering.
Columns = list[tuple[str, LinkColumn]]


def all_columns(
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
    if listing.constant or len(table) < 2:
        return every, []
    words = {name: text for name, column in every if (text := column.constant(table))}
    words.pop(listing.column, None)
    return [each for each in every if each[0] not in words], list(dict.fromkeys(words.values()))


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


def body(rows: Sequence[TableRow], shown: Columns, ordered_by: str) -> SafeString:
    """Write the rows of a page: there are thousands of cells, for which a template takes too long.

    The column they are ordered by is on cards.
    """
    columns = [written_column(name, head, rows, ordered_by) for name, head in shown]
    return joined(f"<tr>{''.join(cells)}</tr>\n" for cells in zip(*columns, strict=True))


def written_column(
    name: str, head: LinkColumn, rows: Sequence[TableRow], ordered_by: str
) -> Iterator[str]:
    """Yield the cells below one head.

    A number is as long as the longest fraction below its head makes it.
    """
    cells = [head.render(row) for row in rows]
    place, label = head.place, ""
    if "carded" in place or name == ordered_by:
        label = head.label
        place = place if "carded" in place else f"{place} carded"
    padding = pads([cell.text for cell in cells]) if "number" in head.look else [""] * len(cells)
    for cell, pad, row in zip(cells, padding, rows, strict=True):
        if name not in ("source", "destination"):
            yield written_cell(cell, place, label, pad)
            continue
        text, url, marks = escape(cell.text), escape(cell.url), written_marks(cell)
        looks = f'class="{place}" title="{escape(cell.title)}"'
        if name == "source":
            to = f'<span class="visually-hidden"> to {escape(row.destination.name)}</span>'
            yield f'<th scope="row" {looks}><a href="{url}">{text}{to}</a>{marks}</th>'
        else:
            arrow = '<span aria-hidden="true">→ </span>'
            yield f'<td {looks}>{arrow}<a href="{url}" tabindex="-1">{text}</a>{marks}</td>'


def written_cell(cell: TableCell, place: str, label: str, pad: str) -> str:
    title = f' title="{escape(cell.title)}"' if cell.title else ""
    on_card = f' data-label="{escape(label)}"' if label else ""
    lead = f'<small class="state-word">{escape(cell.lead)}</small> ' if cell.lead else ""
    text = escape(cell.text)
    padded = f'<span data-pad="{pad}">{text}</span>' if pad else text
    look = f"{cell.look} {place}"
    return f'<td class="{look}"{title}{on_card}>{lead}{padded}{written_marks(cell)}</td>'


def written_marks(cell: TableCell) -> str:
    return "".join(f" <small>{escape(mark)}</small>" for mark in cell.marks)


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
