"""Which rows and columns of a matrix with holes its values connect. Pure numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrix.statistics.arrays import Flags, Floats, Integers


@dataclass(frozen=True)
class Components:
    """The component of each row and of each column, the one with most values first; -1 for none.

    Two rows are in one component if a path of values leads from one to the other.
    """

    row: Integers
    column: Integers
    count: int

    @classmethod
    def of(cls, has_value: Flags) -> Components:
        row, column = (np.full(length, -1) for length in has_value.shape)
        count = 0
        for first in np.flatnonzero(has_value.any(axis=1)).tolist():
            if row[first] < 0:
                _spread(has_value, first, count, row, column)
                count += 1
        values = np.bincount(row[row >= 0], has_value.sum(axis=1)[row >= 0], minlength=count)
        # The last of them stands for -1.
        rank = np.full(count + 1, -1)
        rank[np.argsort(-values, kind="stable")] = np.arange(count)
        return cls(rank[row], rank[column], count)

    def sizes(self) -> tuple[Integers, Integers]:
        """Return how many rows and how many columns each component has."""
        rows, columns = (
            np.bincount(of[of >= 0], minlength=self.count) for of in (self.row, self.column)
        )
        return rows, columns

    def same_columns(self) -> Floats:
        """Return what makes the normal matrix of the columns one that can be inverted.

        One over the number of columns, of two of the same component. It changes no difference
        between them. A column without a value stands for itself.
        """
        same = (self.column[:, None] == self.column) & (self.column >= 0)
        _, columns = self.sizes()
        share = same / np.append(columns, 1)[self.column]
        return np.asarray(share + np.diag((self.column < 0).astype(np.float64)))

    def centred(
        self, row: Floats, column: Floats, centre: Callable[[Floats], Any]
    ) -> tuple[Floats, Floats, Floats]:
        """Return the level of each component, and the effects less their centre there."""
        row, column = (
            np.where(self.row >= 0, row, np.nan),
            np.where(self.column >= 0, column, np.nan),
        )
        levels = np.zeros(self.count)
        for effects, component in ((row, self.row), (column, self.column)):
            for number in range(self.count):
                there = component == number
                middle = centre(effects[there])
                levels[number] += middle
                effects[there] -= middle
        return levels, row, column

    def levels_of(self, levels: Floats) -> Floats:
        """Return the level at each cell; NaN between components, where nothing can be compared."""
        same = (self.row[:, None] == self.column) & (self.row[:, None] >= 0)
        return np.where(same, np.append(levels, np.nan)[self.row][:, None], np.nan)

    def about_mean(self, values: Floats, has_value: Flags) -> Floats:
        """Return the values less the mean of their component; 0 for holes as ``values`` has."""
        rows = self.row >= 0
        total, number = (
            np.bincount(self.row[rows], of.sum(axis=1)[rows], minlength=self.count)
            for of in (values, has_value)
        )
        means = np.append(total / np.maximum(number, 1), 0.0)
        return np.where(has_value, values - means[self.row][:, None], 0.0)


def _spread(has_value: Flags, first: int, number: int, row: Integers, column: Integers) -> None:
    """Number all rows and columns that values connect with a row. Looks at each row once."""
    rows = np.array([first])
    while rows.size:
        row[rows] = number
        columns = has_value[rows].any(axis=0) & (column < 0)
        column[columns] = number
        rows = np.flatnonzero(has_value[:, columns].any(axis=1) & (row < 0))
