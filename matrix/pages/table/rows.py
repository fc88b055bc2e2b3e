"""The rows of the table page: what the columns are written from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from django_tables2.data import TableData

from matrix.answers.link_columns import ClassColumns
from matrix.answers.link_table import LinkTable
from matrix.statistics.arrays import Integers
from matrix.statistics.axes import EndpointInfo


class Values(NamedTuple):
    """What a link has in one size class: see ClassColumns; its quantiles by field."""

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
    since: float
    streak: int
    every: float
    quantiles: dict[str, float]


@dataclass(frozen=True)
class TableRow:
    source: EndpointInfo
    destination: EndpointInfo
    priority: float
    classes: dict[str, Values]


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
    classes = {size: values_of(of_class) for size, of_class in table.classes.items()}
    return [
        TableRow(
            table.places[source],
            table.places[destination],
            priority,
            {size: values[at] for size, values in classes.items()},
        )
        for at, ((source, destination), priority) in enumerate(
            zip(ends, table.priority.tolist(), strict=True)
        )
    ]


def values_of(of_class: ClassColumns) -> list[Values]:
    columns = [getattr(of_class, name).tolist() for name in Values._fields[:-1]]
    quantiles = [
        dict(zip(of_class.quantiles, row, strict=True))
        for row in zip(*(values.tolist() for values in of_class.quantiles.values()), strict=True)
    ]
    return list(map(Values, *columns, quantiles or [{} for _ in columns[0]]))
