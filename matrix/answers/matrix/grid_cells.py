"""What a query answers: cells by source and destination, alone or against another side."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.words.names import short_names_of
from matrix.query.comparison import Comparison
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.cells import CellArrays
from matrix.statistics.cells.states import FAILING, MEASURED, STALE, STATES
from matrix.statistics.compare.two_samples import CHANGE_KINDS, CHANGES, Ratios, Rule
from matrix.statistics.samples.reduce import Averages
from matrix.statistics.transfers.overhead import Lines
from matrix.store.data_version import DataVersion
from sonar.notation.windows import Window


@dataclass(frozen=True)
class OtherSide:
    """What a grid is compared with: a question, its window, and ``words`` for it.

    ``simulated`` says that one of its endpoints is.
    """

    query: MatrixQuery
    window: Window
    simulated: bool
    words: str


@dataclass(frozen=True)
class Grid:
    """The answer to a query at a moment. Sources are rows, destinations are columns.

    Only endpoints with a link that a mesh tests, or that has results, make rows and columns;
    ``idle`` names the other endpoints in use that the filters let pass; ``shortest_promise``
    is the shortest interval in seconds at which a mesh tests one of these links, infinity
    for none; ``profiles`` are the ids of those that its results have, if they were asked for.
    ``left_out`` says of which cells the filters on ends let nothing pass, None if of none;
    ``lines`` are those of the cells where the statistic is read off them.
    While comparing there are ``comparison`` and ``other``, what it is compared with: then the
    value of a cell is its ratio where there are enough results, and all else is of this side;
    ``rule`` is what they were judged by.
    Arrays are shared, and read-only.
    """

    query: MatrixQuery
    window: Window
    moment: datetime
    version: DataVersion
    sources: tuple[AxisGroup, ...]
    destinations: tuple[AxisGroup, ...]
    cells: CellArrays
    averages: Averages
    idle: tuple[str, ...]
    shortest_promise: float = np.inf
    profiles: frozenset[int] = frozenset()
    left_out: Flags | None = None
    lines: Lines | None = None
    comparison: Ratios | None = None
    other: OtherSide | None = None
    rule: Rule | None = None

    def __post_init__(self) -> None:
        for values in self._arrays():
            values.flags.writeable = False

    def _arrays(self) -> list[NDArray[Any]]:
        cells = (*vars(self.cells).values(), *self.cells.extras.values())
        lines = vars(self.lines).values() if self.lines else ()
        targets = self.cells.targets
        of_targets = targets.arrays().values() if targets else ()
        compared = vars(self.comparison).values() if self.comparison else ()
        means = self.averages.row, self.averages.column
        arrays = (*cells, *lines, *of_targets, *compared, *means, self.left_out)
        # The statistic of the query is one of the others.
        return list(
            {id(values): values for values in arrays if isinstance(values, np.ndarray)}.values()
        )

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for values in self._arrays())

    @property
    def unit(self) -> str:
        return self.query.statistic.unit.name

    @property
    def simulated(self) -> bool:
        return any(group.simulated for group in (*self.sources, *self.destinations))

    @property
    def has_results(self) -> bool:
        return bool(self.cells.ok.any() or self.cells.failed.any())

    def short_names(self) -> dict[str, str]:
        return short_names_of([*self.sources, *self.destinations])

    def states(self) -> dict[str, int]:
        """Count the cells by state; those that the filters leave out have none."""
        states = self.cells.state
        shown = states.ravel() if self.left_out is None else states[~self.left_out]
        counts = np.bincount(shown, minlength=len(STATES))
        return dict(zip(STATES, counts.tolist(), strict=True))

    @property
    def _nowhere(self) -> Flags:
        return np.zeros(self.cells.state.shape, dtype=bool)

    @property
    def changed(self) -> Flags:
        """Say which cells surely differ from the other side, and are not failing.

        Of all that do, whichever are shown, one in thirty may differ by chance.
        """
        return self.comparison.sure if self.comparison else self._nowhere

    @property
    def perhaps(self) -> Flags:
        """Say which cells differ from the other side without being sure, and are not failing."""
        shown = ~np.isnan(self.cells.value) & (self.cells.state != FAILING)
        return np.asarray(shown & self.comparison.perhaps) if self.comparison else self._nowhere

    @property
    def too_few(self) -> Flags:
        """Say which cells have results, but too few of them on a side to compare."""
        if self.comparison is None:
            return self._nowhere
        return np.isin(self.cells.state, (MEASURED, STALE)) & ~self.comparison.enough

    @property
    def is_mirrored(self) -> bool:
        """Say whether each pair of directions is compared twice: one with the other, and back."""
        compare = self.query.compare
        return compare is not None and compare == Comparison(reverse=True, of=compare.of)

    def of_look(self, look: str) -> Flags:
        """Say which cells have one of LOOKS; while comparing, `slower` and `faster` are changes."""
        if self.comparison is None or look not in CHANGES:
            return self.cells.of_look(look)
        ratio = self.comparison.ratio
        return self.changed & ((ratio < 1) if look == "slower" else (ratio > 1))

    def change_kinds(self) -> NDArray[np.uint8]:
        """Return of each cell the number in CHANGE_KINDS of its change, 0 for none for sure."""
        kinds = np.zeros(self.cells.state.shape, dtype=np.uint8)
        for kind in CHANGES:
            kinds[self.of_look(kind)] = CHANGE_KINDS.index(kind)
        return kinds

    def changes(self) -> dict[str, int]:
        """Count the cells that are compared, that have too few results to be, and that changed."""
        flags = {"compared": ~np.isnan(self.cells.value), "too_few": self.too_few}
        flags |= {kind: self.of_look(kind) for kind in CHANGES}
        return {name: int(np.count_nonzero(of_cells)) for name, of_cells in flags.items()}

    def links(self) -> dict[str, int]:
        kinds = ("failing", "silent", "slower", "faster", "judged")
        counts = {kind: int(getattr(self.cells, f"{kind}_links").sum()) for kind in kinds}
        counts["usual"] = counts.pop("judged") - counts["slower"] - counts["faster"]
        return counts
