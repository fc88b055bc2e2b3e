"""What is kept of all links: their ends, their priority, and columns for each size class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.cells.standing import Rates
from matrix.statistics.cells.states import States
from sonar.notation.windows import Window

# What the line through the times of all size classes says of a link, for who asks for it.
LINE_COLUMNS = (
    *("overhead_s", "overhead_low_s", "overhead_high_s"),
    *("bandwidth_mb_s", "bandwidth_low_mb_s", "bandwidth_high_mb_s"),
    *("half_size_bytes", "line"),
)
# What is said of a link in a size class.
COLUMNS = (
    *("mean_mb_s", "std_mb_s", "size_mean_bytes", "size_std_bytes", "ok", "failed", "last"),
    *("state", "last_ok", "last_failed"),
    *("level", "usual_mb_s", "now_mb_s", "ratio", "ratio_low", "ratio_high", "since", "streak"),
)

# And while comparing, in the size class that is asked for: the rates of this side and of the other
# (medians, or means), their ratio, its interval, the p of chance, and the successes there.
COMPARED = {
    "this_mb_s": "value",
    "other_mb_s": "other",
    "compared_ratio": "ratio",
    "compared_low": "low",
    "compared_high": "high",
    "compared_p": "p",
    "other_ok": "other_ok",
}
SURE = "compared_sure"
"""Beside them, which of these differ beyond chance among all links."""


@dataclass(frozen=True)
class ClassColumns:
    """What the links have in one size class, a value for each; NaN where there is none.

    Rates are in MB/s, sizes in bytes and those of ok transfers alone; ``last_ok`` and
    ``last_failed`` are when the newest success and the newest failure started, in Unix s;
    ``state`` indexes STATES, ``level`` LEVELS; where there is a level, ``ratio_low`` and
    ``ratio_high`` bound ``ratio`` with 95 % confidence; ``since`` (Unix s) and ``streak`` say since
    when and for how many tests a link is failing, slower or faster, as CellArrays has it; ``every``
    is the shortest interval in seconds at which a mesh tests the link, infinity for none;
    ``quantiles`` are rates in MB/s that are there for who asks, by field, and ``compared`` is what
    is said of the links while comparing, by the names in COMPARED.
    """

    mean_mb_s: Floats
    std_mb_s: Floats
    size_mean_bytes: Floats
    size_std_bytes: Floats
    ok: Integers
    failed: Integers
    state: States
    last_ok: Floats
    last_failed: Floats
    level: NDArray[np.uint8]
    usual_mb_s: Floats
    now_mb_s: Floats
    ratio_low: Rates
    ratio_high: Rates
    since: Floats
    streak: NDArray[np.int32]
    every: Floats
    quantiles: Mapping[str, Floats] = field(default_factory=dict)
    compared: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def last(self) -> Floats:
        """Return when the newest result started, in Unix s."""
        return np.fmax(self.last_ok, self.last_failed)

    @property
    def ratio(self) -> Floats:
        """Return the rate now divided by the usual one."""
        return self.now_mb_s / self.usual_mb_s

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all that is kept but what is there for who asks, by name."""
        return {column.name: getattr(self, column.name) for column in fields(self)[:-2]}

    def taken(self, rows: Integers | Flags | slice) -> ClassColumns:
        columns = {name: values[rows] for name, values in self.arrays().items()}
        quantiles = {name: values[rows] for name, values in self.quantiles.items()}
        compared = {name: values[rows] for name, values in self.compared.items()}
        return ClassColumns(**columns, quantiles=quantiles, compared=compared)


@dataclass(frozen=True)
class LinkColumns:
    """A value for each link that has a result in the window or that a mesh tests.

    ``source`` and ``destination`` are places in ``places``, ``priority`` is the highest of the
    meshes that test the link, NaN for none. The links are in the order of the places;
    ``profiles`` are the ids of those that the results of all links have. ``lines`` are
    LINE_COLUMNS by name, for who asks for them: `line` indexes FITS, the others are numbers where
    the line fits. Arrays are shared, and read-only: 342 bytes a link.
    """

    window: Window
    places: tuple[EndpointInfo, ...]
    source: Integers
    destination: Integers
    priority: Floats
    classes: dict[str, ClassColumns]
    profiles: frozenset[int] = frozenset()
    lines: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for values in self._arrays():
            values.flags.writeable = False

    def __len__(self) -> int:
        return len(self.source)

    def _arrays(self) -> Iterator[NDArray[Any]]:
        yield from (self.source, self.destination, self.priority)
        yield from self.lines.values()
        for of_class in self.classes.values():
            yield from of_class.arrays().values()
            yield from of_class.quantiles.values()
            yield from of_class.compared.values()

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for values in self._arrays())
