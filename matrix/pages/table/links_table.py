"""Which columns the table page has, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import django_tables2 as tables

from matrix.answers.link_table import LinkTable
from matrix.answers.table_query import TableQuery
from matrix.pages.table.columns import (
    Context,
    Count,
    EndColumn,
    LinkColumn,
    OfSize,
    Priority,
    QuantileColumn,
    RateColumn,
    Size,
)
from matrix.pages.table.compared_columns import (
    ChanceColumn,
    ComparedRatio,
    OtherColumn,
    ThisColumn,
)
from matrix.pages.table.line_columns import line_columns
from matrix.pages.table.rows import LinkData
from matrix.pages.table.standing_columns import NowColumn, RatioColumn, StateColumn, UsualColumn
from matrix.query.attributes import OF_ENDPOINTS
from matrix.query.catalogue import Statistic


def columns(
    context: Context, sizes: Sequence[str], quantiles: Sequence[Statistic], *, lines: bool = False
) -> list[tuple[str, LinkColumn]]:
    """Return the columns, each with its name in an ordering.

    The size class that is asked for comes first, and with how its links are now.
    """
    named_columns: list[tuple[str, LinkColumn]] = []
    for end in ("source", "destination"):
        named_columns += [(end, EndColumn(context, end, "endpoint"))]
        named_columns += [
            (f"{end}.{attribute.key}", EndColumn(context, end, name))
            for name, attribute in OF_ENDPOINTS.items()
            if attribute.listed
        ]
    named_columns.append(("priority", Priority(context)))
    if lines:
        named_columns += [(column.field, column) for column in line_columns(context)]
    for size in sorted(sizes, key=lambda size: size != context.query.size):
        is_chosen = size == context.query.size
        standing = of_standing(context) if is_chosen else []
        of_size: list[OfSize] = [
            *([StateColumn(context, size)] if is_chosen else []),
            RateColumn(context, size, tells=not is_chosen),
            *(column(context, size) for column in standing),
            *(QuantileColumn(context, size, quantile) for quantile in quantiles),
            Size(context, size),
            Count(context, size),
        ]
        named_columns += [(f"{size}.{column.field}", column) for column in of_size]
    return named_columns


def of_standing(context: Context) -> list[type[OfSize]]:
    """Return what stands beside the rate: how it is to the usual, or to what it is compared with.

    Of both, two ratios would stand side by side.
    """
    if context.query.compare:
        return [ThisColumn, OtherColumn, ComparedRatio, ChanceColumn]
    return [NowColumn, UsualColumn, RatioColumn]


@dataclass(frozen=True)
class ShownColumns:
    """The columns of a table by their names: ``shown``, and all that it can be filtered by.

    ``constant`` says what those that are not shown have in all rows.
    """

    every: list[tuple[str, LinkColumn]]
    shown: list[tuple[str, LinkColumn]]
    constant: list[str]

    @classmethod
    def of(
        cls, every: list[tuple[str, LinkColumn]], table: LinkTable, listing: TableQuery
    ) -> ShownColumns:
        """Leave out what all links have alike, unless it is asked for or ordered by."""
        words = {name: column.constant(table) for name, column in every if len(table) > 1}
        same = {name for name, text in words.items() if text and name != listing.column}
        if listing.constant:
            return cls(every, every, [])
        shown = [column for column in every if column[0] not in same]
        constant = dict.fromkeys(text for name, text in words.items() if name in same)
        return cls(every, shown, list(constant))


class LinksTable(tables.Table):  # type: ignore[misc]  # has no types
    """The rows of one page, with these columns."""

    def __init__(self, data: LinkData, columns: list[tuple[str, LinkColumn]]) -> None:
        super().__init__(data, extra_columns=columns)

    def groups(self) -> list[tuple[str, int]]:
        """Return what stands above the columns, and above how many."""
        groups: list[tuple[str, int]] = []
        for name in (column.column.group for column in self.columns):
            if groups and groups[-1][0] == name:
                groups[-1] = name, groups[-1][1] + 1
            else:
                groups.append((name, 1))
        return groups
