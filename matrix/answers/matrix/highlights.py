"""What stands out in a matrix: failing, slower, faster, stale, slow and asymmetric links."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.words.phrases import counted, minute
from matrix.answers.words.ratios import PairRatio, with_interval
from matrix.query.catalogue import AGE, PERCENT, RATE, STATISTICS, TIMES
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.cells.standing import LEVELS
from matrix.statistics.cells.states import FAILED, FAILING, MEASURED, STALE
from matrix.statistics.samples.reduce import ratio
from sonar.notation.units import format_age, format_count, format_factor, format_span, three_digits
from sonar.notation.windows import format_moment

MOST_ITEMS = 10
# Less of a difference between the directions is not remarkable.
MOST_OF_REVERSE = 1 / 1.5

Where = tuple[int, int]
# What is said of a cell, by its row and column.
Words = Callable[[int, int], str]


@dataclass(frozen=True)
class Item:
    """A cell and why it stands out: ``figure`` in a word (`30 h`); ``title`` has more."""

    source: str
    destination: str
    why: str
    figure: str
    title: str
    url: str

    @property
    def text(self) -> str:
        return f"from {self.source} to {self.destination}"


@dataclass(frozen=True)
class Highlight:
    """The first of the ``count`` cells of a kind.

    `changed` (of a comparison, certain) and `perhaps` (not), `failing` (now), `slower` and `faster`
    (than usual), `failed` (too few tests to say more), `stale`, `worst` or `asymmetric`. ``more``
    is where all of them are, if there is such a place.
    """

    kind: str
    title: str
    count: int
    items: list[Item]
    more: str


@dataclass(frozen=True)
class HighlightKind:
    """What a list of cells is called, and how each is told: ``why``, and ``figure`` in a word.

    ``detail`` is what its title says first, if anything.
    """

    name: str
    title: str
    why: Words
    figure: Words
    detail: Words = lambda row, column: ""


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
        failed = HighlightKind(
            "failed", "failed", self.counts, lambda *at: format_count(int(cells.failed[at]))
        )
        stale = HighlightKind("stale", "stale", self.age_words, self.age_figure)
        silent = [
            self.of(failed, cells.state == FAILED, lambda: -cells.failed),
            self.of(stale, cells.state == STALE, lambda: cells.last),
        ]
        if self.grid.comparison:
            kinds = [self.failing(), self.changed(), self.perhaps(), *silent]
        else:
            kinds = [
                self.failing(),
                self.shifted("slower", lambda: ratio(cells.now, cells.usual)),
                self.shifted("faster", lambda: -ratio(cells.now, cells.usual)),
                *silent,
                *self.worst(),
                *self.asymmetric(),
            ]
        return [highlight for highlight in kinds if highlight.count]

    def differing(self, kind: str, title: str, where: Flags) -> Highlight:
        """Find what differs from the other side, the most certain first, of these the largest.

        Of two directions that differ from each other alone it is the slow one, as of asymmetric():
        each comes with its opposite, which does by as much.
        """
        ratios = self.grid.comparison
        if ratios and self.grid.is_mirrored:
            where = where & (ratios.ratio < 1)
        first = ratios.most_certain(where)[:MOST_ITEMS].tolist() if ratios else []
        items = [self.difference(row, column) for row, column in first]
        return Highlight(kind, title, int(np.count_nonzero(where)), items, self.more.get(kind, ""))

    def difference(self, row: int, column: int) -> Item:
        """Say how a cell differs from the other side; the title can be quoted by itself."""
        grid, query = self.grid, self.grid.query
        if grid.comparison is None or grid.other is None:
            raise ValueError("the grid is compared with nothing")
        pair = PairRatio.at(grid.comparison, (row, column))
        source, destination = grid.sources[row].name, grid.destinations[column].name
        return Item(
            source=source,
            destination=destination,
            why=pair.sides_words,
            figure=format_factor(pair.ratio),
            title=(
                f"{query.size} files from {source} to {destination}: "
                f"{three_digits(pair.value)} MB/s, {query.window_words()}; "
                f"{three_digits(pair.other)} MB/s, {grid.other.words}: {pair.words}"
            ),
            url=self.url(row, column),
        )

    def changed(self) -> Highlight:
        """Find what surely differs from the other side."""
        compare = self.grid.query.compare
        title = "what changed" if compare and compare.window else "what differs"
        return self.differing("changed", title, self.grid.changed)

    def perhaps(self) -> Highlight:
        """Find what may differ from the other side: not certain, with so few tests."""
        title = "perhaps: too few tests to be certain"
        return self.differing("perhaps", title, self.grid.perhaps)

    def failing(self) -> Highlight:
        """Find what fails now, what began last first."""
        cells = self.grid.cells
        kind = HighlightKind(
            *("failing", "failing now", self.failing_words),
            figure=lambda *at: self.length(float(cells.since[at])),
        )
        return self.of(kind, cells.of_look("failing"), lambda: -cells.since)

    def shifted(self, level: str, badness: Callable[[], Floats]) -> Highlight:
        """Find what is slower or faster than usual, the furthest first."""
        cells = self.grid.cells

        def figure(row: int, column: int) -> str:
            if cells.level[row, column] == LEVELS.index(level):
                return format_factor(cells.now[row, column] / cells.usual[row, column])
            links = int(getattr(cells, f"{level}_links")[row, column])
            return f"{format_count(links)} of {format_count(int(cells.judged_links[row, column]))}"

        def words(row: int, column: int) -> str:
            if cells.level[row, column] == LEVELS.index(level):
                return self.shift_words(row, column)
            return f"links, since {minute(cells.since[row, column])}"

        kind = HighlightKind(level, f"{level} than usual", words, figure, self.ratio_words)
        return self.of(kind, cells.of_look(level), badness)

    def worst(self) -> Iterable[Highlight]:
        """Find the lowest values, or the oldest; never more than half of what is measured."""
        statistic = STATISTICS[self.grid.query.stat]
        if not statistic.worst:
            return
        values = self.grid.cells.value
        measured = (self.grid.cells.state == MEASURED) & ~np.isnan(values)
        badness = np.where(measured, -values if statistic.worse == "high" else values, np.nan)
        few = lowest(badness, min(MOST_ITEMS, (int(np.count_nonzero(measured)) + 1) // 2))
        bad = np.zeros(values.shape, dtype=bool)
        bad[tuple(np.transpose(few))] = bool(few)
        if statistic.greatest is not None:
            bad &= values < statistic.greatest
        if self.grid.cells.expectations:
            bad &= self.grid.of_look("below")
        kind = HighlightKind("worst", statistic.worst, self.value_words, self.value_figure)
        yield self.of(kind, bad, lambda: badness)

    def asymmetric(self) -> Iterable[Highlight]:
        """Compare both directions of each pair; the slow one is the item, in parts of the other."""
        if self.grid.query.rows != self.grid.query.columns:
            return
        there = measured_means(self.grid)
        back = reverse(self.grid, there)
        parts = ratio(there, back)

        def words(row: int, column: int) -> str:
            of_reverse = f"{figure(row, column)} of the reverse direction"
            return f"{rate(there[row, column])}, {of_reverse} ({rate(back[row, column])})"

        def figure(row: int, column: int) -> str:
            return format_factor(float(parts[row, column]))

        kind = HighlightKind("asymmetric", "most asymmetric", words, figure)
        yield self.of(kind, parts <= MOST_OF_REVERSE, lambda: parts)

    def of(
        self, kind: HighlightKind, where: Flags, badness: Callable[[], Floats | Integers]
    ) -> Highlight:
        """Find these cells, the lowest in ``badness`` first, which is not asked for without any."""
        count = int(np.count_nonzero(where))
        cells = lowest(np.where(where, badness(), np.nan), MOST_ITEMS) if count else []
        items = [self.item(cell, kind) for cell in cells]
        return Highlight(kind.name, kind.title, count, items, self.more.get(kind.name, ""))

    def item(self, where: Where, kind: HighlightKind) -> Item:
        last, said = self.grid.cells.last[where], [kind.detail(*where)]
        if not np.isnan(last):
            said.append(f"last result {format_moment(datetime.fromtimestamp(int(last), UTC))}")
        return Item(
            source=self.grid.sources[where[0]].name,
            destination=self.grid.destinations[where[1]].name,
            why=kind.why(*where),
            figure=kind.figure(*where),
            title=", ".join(filter(None, said)),
            url=self.url(*where),
        )

    def failing_words(self, row: int, column: int) -> str:
        cells = self.grid.cells
        tests = f"{format_count(int(cells.streak[row, column]))} failed in a row"
        since = f"since {minute(cells.since[row, column])}"
        if cells.state[row, column] == FAILING:
            return f"{tests}, {since}"
        links = format_count(int(cells.failing_links[row, column]))
        return f"{links} of its links, {tests}, {since}"

    def shift_words(self, row: int, column: int) -> str:
        cells = self.grid.cells
        now, usual = (three_digits(float(rates[row, column])) for rates in (cells.now, cells.usual))
        return f"{now} {RATE.name} now, {usual} usual, since {minute(cells.since[row, column])}"

    def ratio_words(self, row: int, column: int) -> str:
        """Say now / usual with its interval; nothing of a cell of several links."""
        cells = self.grid.cells
        low, high = float(cells.ratio_low[row, column]), float(cells.ratio_high[row, column])
        if np.isnan(low):
            return ""
        ratio = float(cells.now[row, column] / cells.usual[row, column])
        return with_interval(ratio, low, high)

    def length(self, since: float) -> str:
        """Say how long ago a moment was, as of that of the grid: `30 h`."""
        return format_span(timedelta(seconds=self.grid.moment.timestamp() - since))

    def value_figure(self, row: int, column: int) -> str:
        if STATISTICS[self.grid.query.stat].unit == AGE:
            return self.age_figure(row, column)
        value = float(self.grid.cells.value[row, column])
        is_factor = STATISTICS[self.grid.query.stat].unit == TIMES
        return format_factor(value) if is_factor else three_digits(value)

    def age_figure(self, row: int, column: int) -> str:
        return self.length(float(self.grid.cells.last[row, column]))

    def value_words(self, row: int, column: int) -> str:
        cells, stat = self.grid.cells, self.grid.query.stat
        unit = STATISTICS[stat].unit
        if unit == AGE:
            return self.age_words(row, column)
        if unit == PERCENT:
            share = three_digits(float(cells.value[row, column]))
            return f"{share} % succeeded, {self.counts(row, column)}"
        if STATISTICS[stat].of_line:
            value = three_digits(float(cells.value[row, column]))
            return f"{value} {unit.name}, from the times of all size classes"
        tests = counted(int(cells.ok[row, column]), "test")
        if unit == TIMES:
            return f"{format_factor(float(cells.value[row, column]))} the expected rate, {tests}"
        if STATISTICS[stat].of_now:
            usual = float(cells.usual[row, column])
            beside = "" if np.isnan(usual) else f", {three_digits(usual)} usual"
            return f"{rate(cells.value[row, column])} now{beside}"
        return f"{rate(cells.value[row, column])}, {stat} of {tests}"

    def counts(self, row: int, column: int) -> str:
        cells = self.grid.cells
        ok, failed = int(cells.ok[row, column]), int(cells.failed[row, column])
        return f"{format_count(ok)} ok, {format_count(failed)} failed"

    def age_words(self, row: int, column: int) -> str:
        age = self.grid.moment.timestamp() - float(self.grid.cells.last[row, column])
        ago = format_age(timedelta(seconds=age))
        is_past = self.grid.moment >= self.grid.window.end
        before = ago.removesuffix(" ago").replace("just now", "just")
        return f"last result {before} before the end" if is_past else f"last result {ago}"


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


def measured_means(grid: Grid) -> Floats:
    """Return the means of the measured cells, NaN for the others."""
    return np.where(grid.cells.state == MEASURED, grid.cells.mean, np.nan)


def reverse(grid: Grid, means: Floats) -> Floats:
    """Return for each cell the mean of the measured cell in the other direction, NaN for none."""
    if grid.sources == grid.destinations:
        return means.T
    # What does not stand at the other end is at -1, where the padding has no value.
    wide = np.pad(means, (0, 1), constant_values=np.nan)
    row_of = {group.name: row for row, group in enumerate(grid.sources)}
    column_of = {group.name: column for column, group in enumerate(grid.destinations)}
    rows = [row_of.get(group.name, -1) for group in grid.destinations]
    columns = [column_of.get(group.name, -1) for group in grid.sources]
    return wide[np.ix_(rows, columns)].T
