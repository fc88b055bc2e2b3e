"""Columns of a table of which some say the same in every row: that is said once, above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Column:
    """``cells`` are texts, one for each row; for an empty one a dash stands, with ``why``."""

    heading: str
    title: str
    cells: Sequence[str]
    why: str = ""


class SplitColumns(NamedTuple):
    """``varying`` tell rows apart; ``constant`` are headings and texts that all rows share."""

    varying: list[Column]
    constant: list[tuple[str, str]]

    def cells_of(self, row: int) -> list[tuple[str, str]]:
        """Return the cells of a row, each with why it may be empty."""
        return [(column.cells[row], column.why) for column in self.varying]


def split(columns: Sequence[Column]) -> SplitColumns:
    """Tell columns that differ between rows from those that do not; empty ones are left out."""
    varying = [column for column in columns if len(set(column.cells)) > 1]
    constant = [
        (column.heading, column.cells[0])
        for column in columns
        if column not in varying and any(column.cells)
    ]
    return SplitColumns(varying, constant)
