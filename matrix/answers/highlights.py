"""What stands out in a matrix: slow, failing, stale and asymmetric links. Pure numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from matrix.answers.grid import Grid
from matrix.query.catalogue import AGE, PERCENT, RATE, STATISTICS
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.states import FAILED, MEASURED, STALE
from sonar.units import format_age, format_count, three_digits
from sonar.windows import format_moment

MOST = 10
# Less of a difference between the directions is not remarkable.
LEAST_RATIO = 1.5

Where = tuple[int, int]


@dataclass(frozen=True)
class Item:
    """A cell and why it stands out; ``title`` has more of it."""

    source: str
    destination: str
    why: str
    title: str
    url: str

    @property
    def text(self) -> str:
        return f"from {self.source} to {self.destination}"


@dataclass(frozen=True)
class Highlight:
    """The first of the ``count`` cells of a kind: `worst`, `failed`, `stale` or `asymmetric`.

    ``more`` is where all of them are, if there is such a place.
    """

    kind: str
    title: str
    count: int
    items: list[Item]
    more: str


@dataclass(frozen=True)
class Highlights:
    """Finds cells of a grid; ``url`` is where a cell leads, by row and column.

    ``more`` are the addresses of all cells of a kind.
    """

    grid: Grid
    url: Callable[[int, int], str]
    more: Mapping[str, str]

    def all(self) -> list[Highlight]:
        cells = self.grid.cells
        kinds = [
            *self.worst(),
            self.of("failed", "failing", cells.state == FAILED, -cells.failed, self.counts),
            self.of("stale", "stale", cells.state == STALE, cells.last, self.age_words),
            *self.asymmetric(),
        ]
        return [highlight for highlight in kinds if highlight.count]

    def worst(self) -> Iterable[Highlight]:
        """Find the lowest values, or the oldest; never more than half of what is measured."""
        statistic = STATISTICS[self.grid.query.stat]
        if not statistic.worst:
            return
        values = self.grid.cells.value
        measured = (self.grid.cells.state == MEASURED) & ~np.isnan(values)
        badness = np.where(measured, -values if statistic.worse == "high" else values, np.nan)
        few = lowest(badness, min(MOST, (int(measured.sum()) + 1) // 2))
        bad = np.zeros(values.shape, dtype=bool)
        bad[tuple(np.transpose(few))] = bool(few)
        if statistic.greatest is not None:
            bad &= values < statistic.greatest
        yield self.of("worst", statistic.worst, bad, badness, self.value_words)

    def asymmetric(self) -> Iterable[Highlight]:
        """Compare both directions of each pair; the slow one is the item."""
        if self.grid.query.rows != self.grid.query.columns:
            return
        back = reverse(self.grid)
        ratio = back / np.where(self.grid.cells.state == MEASURED, self.grid.cells.mean, np.nan)

        def words(row: int, column: int) -> str:
            there, times = self.grid.cells.mean[row, column], float(ratio[row, column])
            slower = f"{three_digits(times)} times slower"
            return f"{rate(there)}, but {rate(back[row, column])} back: {slower}"

        yield self.of("asymmetric", "most asymmetric", ratio >= LEAST_RATIO, -ratio, words)

    def of(
        self,
        kind: str,
        title: str,
        where: Flags,
        badness: Floats | Integers,
        why: Callable[[int, int], str],
    ) -> Highlight:
        cells = lowest(np.where(where, badness, np.nan), MOST)
        items = [self.item(cell, why(*cell)) for cell in cells]
        return Highlight(kind, title, int(where.sum()), items, self.more.get(kind, ""))

    def item(self, where: Where, why: str) -> Item:
        last = self.grid.cells.last[where]
        if np.isnan(last):
            title = ""
        else:
            title = f"last result {format_moment(datetime.fromtimestamp(int(last), UTC))}"
        return Item(
            source=self.grid.sources[where[0]].name,
            destination=self.grid.destinations[where[1]].name,
            why=why,
            title=title,
            url=self.url(*where),
        )

    def value_words(self, row: int, column: int) -> str:
        cells, stat = self.grid.cells, self.grid.query.stat
        unit = STATISTICS[stat].unit
        if unit == AGE:
            return self.age_words(row, column)
        if unit == PERCENT:
            share = three_digits(float(cells.value[row, column]))
            return f"{share} % succeeded, {self.counts(row, column)}"
        of = f"{stat} of {format_count(int(cells.ok[row, column]))}"
        return f"{rate(cells.value[row, column])}, {of}"

    def counts(self, row: int, column: int) -> str:
        cells = self.grid.cells
        ok, failed = int(cells.ok[row, column]), int(cells.failed[row, column])
        return f"{format_count(ok)} ok, {format_count(failed)} failed"

    def age_words(self, row: int, column: int) -> str:
        age = self.grid.moment.timestamp() - float(self.grid.cells.last[row, column])
        ago = format_age(timedelta(seconds=age))
        is_past = self.grid.moment >= self.grid.window.end
        before = ago.removesuffix(" ago").replace("just now", "just")
        return f"last {before} before the end" if is_past else f"last {ago}"


def rate(value: float) -> str:
    return f"{three_digits(float(value))} {RATE.name}"


def lowest(values: Floats, most: int) -> list[Where]:
    """Return the places of the lowest values, lowest first; NaN is none."""
    flat = values.ravel()
    at = np.flatnonzero(~np.isnan(flat))
    if at.size > most:
        at = np.sort(at[np.argpartition(flat[at], most)[:most]])
    first = at[np.argsort(flat[at], kind="stable")]
    rows, columns = np.unravel_index(first, values.shape)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


def reverse(grid: Grid) -> Floats:
    """Return for each cell the mean of the measured cell in the other direction, NaN for none."""
    means = np.where(grid.cells.state == MEASURED, grid.cells.mean, np.nan)
    # What does not stand at the other end is at -1, where the padding has no value.
    wide = np.pad(means, (0, 1), constant_values=np.nan)
    row_of = {group.name: row for row, group in enumerate(grid.sources)}
    column_of = {group.name: column for column, group in enumerate(grid.destinations)}
    rows = [row_of.get(group.name, -1) for group in grid.destinations]
    columns = [column_of.get(group.name, -1) for group in grid.sources]
    return wide[np.ix_(rows, columns)].T
