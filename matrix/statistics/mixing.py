"""Which cells hold results that were made in several ways. Pure numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Integers

# Of more values of an attribute nobody could choose one: the rest counts as one value.
MOST_VALUES = 255


class Mixing:
    """Gathers which values of each attribute the results of each cell have.

    ``codes`` gives, by attribute, the number of the value of each profile by its id: from 1 on, 0
    where it is unknown and so differs from none.
    """

    def __init__(self, cells: int, codes: Mapping[str, Integers]) -> None:
        self._codes = {name: np.minimum(of_ids, MOST_VALUES) for name, of_ids in codes.items()}
        self._seen = {
            name: np.zeros((cells, int(of_ids.max(initial=0)) + 1), dtype=bool)
            for name, of_ids in self._codes.items()
        }

    def add(self, cells: Integers, profiles: NDArray[np.integer[Any]]) -> None:
        """Add results by their cell, -1 for none, and the id of their profile."""
        inside = np.flatnonzero(cells >= 0)
        cells, profiles = cells[inside], profiles[inside]
        for name, seen in self._seen.items():
            seen[cells, self._codes[name][profiles]] = True

    def mixed(self) -> dict[str, Flags]:
        """Say by attribute which cells have several values of it."""
        return {name: seen[:, 1:].sum(axis=1) > 1 for name, seen in self._seen.items()}

    def filled(self) -> Flags:
        """Say which cells have any result."""
        filled: Flags = np.logical_or.reduce([seen.any(axis=1) for seen in self._seen.values()])
        return filled

    def values(self, name: str) -> list[int]:
        """Return the numbers of the values that cells have of an attribute in which they mix."""
        seen = self._seen[name]
        codes = np.flatnonzero(seen[self.mixed()[name]].any(axis=0)).tolist()
        return [code for code in codes if code]
