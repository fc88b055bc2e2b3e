"""What stands out in a matrix: conditions, and after them stale, slow and asymmetric links."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from matrix.answers.conditions import words
from matrix.answers.conditions.lines import KIND_OF
from matrix.answers.conditions.reading import Judgement
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.matrix.headline import SCOPES, TYPES, names_of, page_of, worst_first
from matrix.answers.words.phrases import counted
from matrix.answers.words.ratios import PairRatio
from matrix.query.catalogue import AGE, PERCENT, RATE, STATISTICS, TIMES
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.cells.states import FAILED, MEASURED, STALE
from matrix.statistics.samples.reduce import ratio
from sonar.models import Condition
from sonar.notation.units import format_age, format_count, format_factor, format_span, three_digits
from sonar.notation.windows import format_moment

MOST_ITEMS = 10
# Less of a difference between the directions is not remarkable.
MOST_OF_REVERSE = 1 / 1.5
# What is said of a cell, by its row and column.
Words = Callable[[int, int], str]
# What lists of conditions are called, by the look of what shows them.
TITLES = {
    "failing": "failing",
    "silent": "not tested",
    "slower": "slower than usual",
    "faster": "faster than usual",
}


@dataclass(frozen=True)
class Item:
    """A cell, or a condition, and why it stands out: ``figure`` in a word; ``title`` has more.

    What is not of one link has no ends, but a ``subject``.
    """

    source: str
    destination: str
    why: str
    figure: str
    title: str
    url: str
    subject: str = ""

    @property
    def text(self) -> str:
        return self.subject or f"from {self.source} to {self.destination}"


@dataclass(frozen=True)
class Highlight:
    """The first of the ``count`` cells or conditions of a kind.

    The kinds of conditions are `failing`, `silent`, `slower`, `faster` and `unconfirmed`, those of
    cells `changed` (of a comparison, significant) and `perhaps` (not significant), `worst`,
    `asymmetric`, `stale` and `failed` (too few tests to say more). ``more`` is where all cells are
    that show it, if there is such a place.
    """

    kind: str
    title: str
    count: int
    items: list[Item]
    more: str

    @property
    def more_words(self) -> str:
        """Return what leads to all: the cells of conditions are others than the items."""
        return "show links" if self.kind in TITLES else f"all {format_count(self.count)}"


@dataclass(frozen=True)
class Highlights:
    """Finds what stands out in a grid; ``url`` is where a cell leads, by row and column.

    ``more`` are the addresses of all cells of a kind.
    """

    grid: Grid
    judgement: Judgement
    url: Callable[[int, int], str]
    more: Mapping[str, str]

    def all(self) -> list[Highlight]:
        """Return what there is, the most serious first: numbers come after what is judged."""
        cells, compare = self.grid.cells, self.grid.query.compare
        unconfirmed = worst_first(self.judgement, self.judgement.unconfirmed)
        items = [self.condition(each) for each in unconfirmed]
        kinds = [*self.conditions()]
        if self.grid.comparison is not None:
            title = "what changed" if compare and compare.window else "what differs"
            kinds.append(self.differing("changed", title, self.grid.changed))
            title = "possibly different (too few tests to be sure)"
            kinds.append(self.differing("perhaps", title, self.grid.perhaps))
        # Conditions that too few tests show so far to be confirmed.
        kinds.append(Highlight("unconfirmed", "unconfirmed", len(items), items[:MOST_ITEMS], ""))
        if self.grid.comparison is None:
            kinds += [*self.worst(), *self.asymmetric()]
        say = self.age_words, self.age_figure
        kinds.append(self.of("stale", "stale", cells.state == STALE, lambda: cells.last, say=say))
        title = "no successful test, but too few tests to assess"
        say = self.counts, lambda *at: format_count(int(cells.failed[at]))
        is_failed = cells.state == FAILED
        kinds.append(self.of("failed", title, is_failed, lambda: -cells.failed, say=say))
        return [highlight for highlight in kinds if highlight.count]

    def conditions(self) -> Iterator[Highlight]:
        """List the confirmed conditions of each type, the worst first."""
        listed = worst_first(self.judgement, self.judgement.confirmed)
        for type_, look in KIND_OF.items():
            items = [self.condition(each) for each in listed if each.type == type_]
            # While comparing, these cells are those that differ from the other side.
            is_shown = self.grid.comparison is None or look == "failing"
            more = self.more.get(look, "") if is_shown else ""
            yield Highlight(look, TITLES[look], len(items), items[:MOST_ITEMS], more)

    def condition(self, each: Condition) -> Item:
        """Say a condition in a line; among unconfirmed ones of all types that says what it is."""
        ends = [end.name for end in (each.source, each.destination) if end]
        source, destination = ends if each.scope == SCOPES.LINK else ("", "")
        if each.factor is not None:
            figure = format_factor(each.factor)
        elif each.confirmed_at is None:
            figure = "fails" if each.type == TYPES.FAILING else "silent"
        else:
            figure = format_span(self.grid.moment - each.since)
        return Item(
            source=source,
            destination=destination,
            # Of which size classes it is says the title.
            why=", ".join([*words.evidence(each)[1:], words.since(each)]),
            figure=figure,
            title=words.sentence(each),
            url=page_of(each, self.grid.query),
            subject="" if source else words.subject(each, names_of(self.grid)),
        )

    def differing(self, kind: str, title: str, where: Flags) -> Highlight:
        """Find what differs from the other side, the most significant first, of these the largest.

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
            raise ValueError("the matrix has no comparison")
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
        if self.grid.cells.targets:
            bad &= self.grid.of_look("below")
        say = self.value_words, self.value_figure
        yield self.of("worst", statistic.worst, bad, lambda: badness, say=say)

    def asymmetric(self) -> Iterable[Highlight]:
        """Compare both directions of each pair; the slow one is the item, in parts of the other."""
        if self.grid.query.rows != self.grid.query.columns:
            return
        there = np.where(self.grid.cells.state == MEASURED, self.grid.cells.mean, np.nan)
        back = reverse(self.grid, there)
        parts = ratio(there, back)

        def words(row: int, column: int) -> str:
            of_reverse = f"{figure(row, column)} of the reverse direction"
            return f"{rate(there[row, column])}, {of_reverse} ({rate(back[row, column])})"

        def figure(row: int, column: int) -> str:
            return format_factor(float(parts[row, column]))

        where, say = parts <= MOST_OF_REVERSE, (words, figure)
        yield self.of("asymmetric", "most asymmetric", where, lambda: parts, say=say)

    def of(
        self,
        kind: str,
        title: str,
        where: Flags,
        badness: Callable[[], Floats | Integers],
        *,
        say: tuple[Words, Words],
    ) -> Highlight:
        """Find these cells, the lowest in ``badness`` first, which is not asked for without any.

        ``say`` gives of each why it stands out, and a figure in a word.
        """
        why, figure = say
        count = int(np.count_nonzero(where))
        cells = lowest(np.where(where, badness(), np.nan), MOST_ITEMS) if count else []
        lasts = [self.grid.cells.last[at] for at in cells]
        items = [
            Item(
                source=self.grid.sources[at[0]].name,
                destination=self.grid.destinations[at[1]].name,
                why=why(*at),
                figure=figure(*at),
                title=""
                if np.isnan(last)
                else f"last result {format_moment(datetime.fromtimestamp(int(last), UTC))}",
                url=self.url(*at),
            )
            for at, last in zip(cells, lasts, strict=True)
        ]
        return Highlight(kind, title, count, items, self.more.get(kind, ""))

    def value_figure(self, row: int, column: int) -> str:
        unit, value = STATISTICS[self.grid.query.stat].unit, self.grid.cells.value[row, column]
        if unit == AGE:
            return self.age_figure(row, column)
        return format_factor(float(value)) if unit == TIMES else three_digits(float(value))

    def age_figure(self, row: int, column: int) -> str:
        """Say how long before the moment of the grid its last result was: `30 h`."""
        age = self.grid.moment.timestamp() - float(self.grid.cells.last[row, column])
        return format_span(timedelta(seconds=age))

    def value_words(self, row: int, column: int) -> str:
        cells, stat = self.grid.cells, self.grid.query.stat
        unit, value = STATISTICS[stat].unit, float(cells.value[row, column])
        if unit == AGE:
            return self.age_words(row, column)
        if unit == PERCENT:
            return f"{three_digits(value)} % succeeded, {self.counts(row, column)}"
        if STATISTICS[stat].of_line:
            number = three_digits(value)
            return f"{number} {unit.name}, based on the transfer times in all size classes"
        tests = counted(int(cells.ok[row, column]), "test")
        if unit == TIMES:
            return f"{format_factor(value)} the {STATISTICS[stat].against} rate, {tests}"
        if STATISTICS[stat].of_now:
            usual = float(cells.usual[row, column])
            beside = "" if np.isnan(usual) else f", baseline {three_digits(usual)}"
            return f"{rate(value)} now{beside}"
        return f"{rate(value)}, {stat} of {tests}"

    def counts(self, row: int, column: int) -> str:
        cells = self.grid.cells
        ok, failed = int(cells.ok[row, column]), int(cells.failed[row, column])
        return f"{format_count(ok)} ok, {format_count(failed)} failed"

    def age_words(self, row: int, column: int) -> str:
        age = self.grid.moment.timestamp() - float(self.grid.cells.last[row, column])
        ago = format_age(timedelta(seconds=age))
        is_past = self.grid.moment >= self.grid.window.end
        before = ago.removesuffix(" ago").replace("just now", "just")
        return (
            f"last result {before} before the end of the time range"
            if is_past
            else f"last result {ago}"
        )


def rate(value: float) -> str:
    return f"{three_digits(float(value))} {RATE.name}"


def lowest(values: Floats, most: int) -> list[tuple[int, int]]:
    """Return the places of the lowest values, lowest first; NaN is none."""
    flat = values.ravel()
    at = np.flatnonzero(~np.isnan(flat))
    if at.size > most:
        at = np.sort(at[np.argpartition(flat[at], most)[:most]])
    first = at[np.argsort(flat[at], kind="stable")]
    rows, columns = np.unravel_index(first, values.shape)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))


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
