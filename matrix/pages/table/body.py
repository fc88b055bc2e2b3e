"""The rows of the table page as it writes them, with the decimals of each column in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matrix.pages.decimals import pads
from matrix.pages.table.columns import LinkColumn, TableCell
from matrix.statistics.cells.axes import EndpointInfo


@dataclass(frozen=True)
class BodyCell:
    """A cell of a row; ``pad`` is what its number lacks of the longest fraction below its head.

    ``label`` stands before it on a card.
    """

    name: str
    cell: TableCell
    place: str
    label: str
    pad: str


@dataclass(frozen=True)
class BodyRow:
    destination: EndpointInfo
    cells: list[BodyCell]


def body(rows: Iterable[Any], ordered_by: str) -> list[BodyRow]:
    """Return the rows of a page of the library's; the column they are ordered by is on cards."""
    listed = list(rows)
    texts = [[(bound.name, bound.column, cell) for bound, cell in row.items()] for row in listed]
    columns = [cells_of(column, ordered_by) for column in zip(*texts, strict=True)]
    return [
        BodyRow(row.record.destination, list(cells))
        for row, cells in zip(listed, zip(*columns, strict=True), strict=True)
    ]


def cells_of(
    column: Sequence[tuple[str, LinkColumn, TableCell]], ordered_by: str
) -> list[BodyCell]:
    """Return the cells below one head."""
    name, head, _ = column[0]
    cells = [cell for _, _, cell in column]
    is_carded = "carded" in head.place or name == ordered_by
    place = head.place if "carded" in head.place or not is_carded else f"{head.place} carded"
    label = head.label if is_carded else ""
    is_number = "number" in head.look
    padding = pads([cell.text for cell in cells]) if is_number else [""] * len(cells)
    return [
        BodyCell(name, cell, place, label, pad) for cell, pad in zip(cells, padding, strict=True)
    ]
