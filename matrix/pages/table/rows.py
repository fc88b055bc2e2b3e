"""The rows of the table page: what the columns are written from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from django_tables2.data import TableData
from numpy.typing import NDArray

from matrix.answers.grid import CHANGES
from matrix.answers.link_columns import ClassColumns
from matrix.answers.link_table import LinkTable
from matrix.statistics.arrays import Integers
from matrix.statistics.cells.axes import EndpointInfo


class Values(NamedTuple):
    """What a link has in one size class: see ClassColumns; its quantiles by field.

    Of a comparison it has the numbers in COMPARED, and in ``change`` a word if it is a change
    beyond chance.
    """

    mean_mb_s: float
    std_mb_s: float
    size_mean_bytes: float
    size_std_bytes: float
    ok: int
    failed: int
    state: int
    last: float
    last_ok: float
    level: int
    usual_mb_s: float
    now_mb_s: float
    ratio: float
    ratio_low: float
    ratio_high: float
    since: float
    streak: int
    every: float
    quantiles: dict[str, float]
    compared: dict[str, float]
    change: str


@dataclass(frozen=True)
class TableRow:
    """A link; ``lines`` are LinkColumns.lines, if they were asked for."""

    source: EndpointInfo
    destination: EndpointInfo
    priority: float
    classes: dict[str, Values]
    lines: dict[str, float]


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
    ends = zip(table.source.tolist(), table.destination.tolist(), strict=True)
    classes = {
        size: values_of(of_class, changes_of(table, size))
        for size, of_class in table.classes.items()
    }
    lines = {name: values.tolist() for name, values in table.lines.items()}
    return [
        TableRow(
            table.places[source],
            table.places[destination],
            priority,
            {size: values[at] for size, values in classes.items()},
            {name: values[at] for name, values in lines.items()},
        )
        for at, ((source, destination), priority) in enumerate(
            zip(ends, table.priority.tolist(), strict=True)
        )
    ]


def values_of(of_class: ClassColumns, changes: list[str]) -> list[Values]:
    columns = [getattr(of_class, name).tolist() for name in Values._fields[:-3]]
    quantiles, compared = (
        by_row(of, len(changes)) for of in (of_class.quantiles, of_class.compared)
    )
    return list(map(Values, *columns, quantiles, compared, changes))


def by_row(columns: Mapping[str, NDArray[Any]], count: int) -> list[dict[str, Any]]:
    if not columns:
        return [{} for _ in range(count)]
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def changes_of(table: LinkTable, size: str) -> list[str]:
    """Return of each link the word for how it differs from the other side beyond chance, if so."""
    changes = np.full(len(table), "", dtype=object)
    for look in CHANGES:
        if (where := table.of_change(size, look)) is not None:
            changes[where] = look
    return list(changes)
