"""Columns beside the rates: how a link is now, a comparison, and its overhead and bandwidth."""

import math

import numpy as np

from matrix.answers.conditions.words import sentence, since
from matrix.answers.table.link_table import LinkTable
from matrix.answers.words.phrases import why_no_rate
from matrix.answers.words.ratios import with_interval
from matrix.pages.parts.controls import own_words
from matrix.pages.table.columns import (
    ColumnFilter,
    Context,
    LinkColumn,
    OfSize,
    TableCell,
    TableRow,
    Values,
)
from matrix.query.catalogue import RATE
from matrix.statistics.cells.standing import (
    FASTER,
    FEWEST_SUCCESSES,
    LEVEL_WORDS,
    LEVELS,
    SLOWER,
    USUAL_DAYS,
)
from matrix.statistics.cells.states import MEASURED, STATE_WORDS, STATES
from matrix.statistics.compare.two_samples import FEWEST_TESTS
from matrix.statistics.transfers import overhead
from matrix.statistics.transfers.overhead import FITS, LEAST_RATIO, LINE
from sonar.notation.units import (
    DASH,
    factor_and_interval,
    format_bytes,
    format_chance,
    format_count,
    format_factor,
    three_digits,
)

TOO_FEW_LATELY = (
    f"too few tests: it needs {FEWEST_SUCCESSES} successes in {USUAL_DAYS} days before the window"
)


class StateColumn(OfSize):
    """How a link is, in words; since when, and its condition, where it is a member of one."""

    field, title, place, look = "state", "state", "opens carded", "words"
    explained = "its state, and what conditions say of it"
    second = "since", "(since)", "since when it has been failing, silent, slower or faster"
    greatest_first = False

    def __init__(self, context: Context, size: str) -> None:
        super().__init__(context, size)
        self.filters = (ColumnFilter(f"{size}.state.is", f"{size} state is, like failing,slower"),)

    def render(self, record: TableRow) -> TableCell:
        values = record.classes[self.size]
        state, level = STATES[values.state], LEVELS[values.level]
        look, words, title = state, state.replace("_", " "), STATE_WORDS[state]
        if level in LEVEL_WORDS:
            look, words, title = level, level, LEVEL_WORDS[level]
        elif values.state == MEASURED:
            look, title = "", ""
            words = "as usual" if level == "usual" else "unknown"
        marks: tuple[str, ...] = ()
        if condition := self.context.conditions.get(values.condition):
            title = ". ".join(filter(None, (sentence(condition)[:-1], title)))
            if values.unconfirmed:
                marks = (f"unconfirmed: {condition.type}",)
            elif not math.isnan(values.since):
                marks = (since(condition),)
        elif words == "unknown":
            title = TOO_FEW_LATELY
        return TableCell(words, title, f"{self.look} {look}".strip(), marks=marks)


class StandingColumn(OfSize):
    """A rate of a link now or usually; ``why_none`` says why there is none.

    Of one that ``is_now`` there may be a number that would mislead.
    """

    place = "carded"
    why_none = ""
    is_now = needs_usual = True

    def constant(self, table: LinkTable) -> str:
        """Say so if no link has a usual rate, as in the first days."""
        usual = table.column(f"{self.size}.usual_mb_s")
        is_missing = self.needs_usual and np.isnan(usual).all()
        return f"no usual rate yet with {self.size} files" if is_missing else ""

    def render(self, record: TableRow) -> TableCell:
        values = record.classes[self.size]
        value = getattr(values, self.field)
        why_none = ""
        if self.is_now:
            why_none = why_no_rate(STATES[values.state], values.since, self.context.end)
        if why_none or math.isnan(value):
            return TableCell(DASH, why_none or self.why_none, self.look)
        return self.of(values)

    def of(self, values: Values) -> TableCell:
        return TableCell(three_digits(getattr(values, self.field)), "", self.look)


class NowColumn(StandingColumn):
    field, title, needs_usual = "now_mb_s", "now", False
    explained = f"median of its newest three successful tests ({RATE.name})"
    why_none = "no recent successful test"


class UsualColumn(StandingColumn):
    field, title, is_now = "usual_mb_s", "usual", False
    explained = f"median of the 28 days before the window ({RATE.name})"
    why_none = "fewer than 5 successful tests in the 28 days before the window"


class RatioColumn(StandingColumn):
    field, title = "ratio", "ratio"
    explained = "rate now divided by the usual rate"
    why_none = "needs a rate now and a usual rate"
    greatest_first = False

    def of(self, values: Values) -> TableCell:
        ratio, low, high, level = values.ratio, values.ratio_low, values.ratio_high, values.level
        title = "" if math.isnan(low) else with_interval(ratio, low, high)
        look = LEVELS[level] if SLOWER <= level <= FASTER else ""
        return TableCell(format_factor(ratio), title, f"{self.look} {look}".strip())


TOO_FEW = f"fewer than {FEWEST_TESTS} successful tests on one side"


class ComparedColumn(OfSize):
    """A number of a comparison."""

    place = "carded"

    def __init__(self, context: Context, size: str) -> None:
        query = context.query
        of = query.compare.of if query.compare else ""
        sides = {"this": own_words(query), "other": query.other_words(), "of": of}
        self.explained = self.explained.format(**sides)
        super().__init__(context, size)


class ThisColumn(ComparedColumn):
    field, title = "this_mb_s", "this"
    explained = "{of} rate of this side of the comparison, {this} (MB/s)"

    def of(self, values: Values) -> TableCell:
        return side_cell(values.this_mb_s, values.ok, self.look)


class OtherColumn(ComparedColumn):
    field, title = "other_mb_s", "other"
    explained = "{of} rate of the other side, {other} (MB/s)"

    def render(self, record: TableRow) -> TableCell:
        values = record.classes[self.size]
        return side_cell(values.other_mb_s, values.other_ok, self.look)


class ComparedRatio(ComparedColumn):
    """The ratio, with its interval behind it, in the colour of a change beyond chance."""

    field, title = "compared_ratio", "ratio"
    explained = "this side divided by the other, with its 95 % interval: above 1 is faster"
    greatest_first = False

    def of(self, values: Values) -> TableCell:
        ratio, low, high = values.compared_ratio, values.compared_low, values.compared_high
        if math.isnan(ratio):
            return TableCell(DASH, TOO_FEW, self.look)
        look = f"{self.look} {values.change}".strip()
        if math.isnan(low):
            return TableCell(format_factor(ratio), "", look)
        factor, interval = factor_and_interval(ratio, low, high)
        return TableCell(f"{factor}×", "", look, marks=(f"({interval})",))


class ChanceColumn(ComparedColumn):
    field, title = "compared_p", "p"
    explained = "how probable a difference like this is by chance alone"
    greatest_first = False

    def of(self, values: Values) -> TableCell:
        if math.isnan(values.compared_p):
            return TableCell(DASH, TOO_FEW, self.look)
        title = f"certainly {values.change}" if values.change else "not certain"
        chance = format_chance(values.compared_p)
        return TableCell(chance.removeprefix("p ").removeprefix("= "), title, self.look)


def side_cell(rate: float, ok: int, look: str) -> TableCell:
    if math.isnan(rate):
        return TableCell(DASH, "no successful test", look)
    return TableCell(three_digits(rate), "", look, marks=(f"n = {format_count(ok)}",))


WHY_NONE = {
    "few": f"needs {overhead.FEWEST_TRANSFERS} successes of two sizes, one {LEAST_RATIO:g} times "
    "the other",
    "bent": "does not fit: the times of the size classes are not on one line",
}


class LineColumn(LinkColumn):
    """A value with its 95 % interval on hover; a dash says why there is none."""

    group = "all size classes"
    look, place = "number", "carded"
    greatest_first = True
    field = unit = title = explained = ""

    def __init__(self, context: Context) -> None:
        super().__init__(context, self.title, self.explained, self.field)
        self.filters = (ColumnFilter(self.field, self.title, is_number=True),)

    def render(self, record: TableRow) -> TableCell:
        fit = FITS[record.lines.line]
        if fit != FITS[LINE]:
            marks = ("no fit",) if fit == "bent" else ()
            return TableCell(DASH, WHY_NONE[fit], self.look, marks=marks)
        value = getattr(record.lines, self.field)
        if math.isnan(value):
            return TableCell(DASH, "larger files take no longer than small ones", self.look)
        return self.of(value, record.lines)

    def of(self, value: float, lines: Values) -> TableCell:
        name, _, unit = self.field.partition("_")
        low, high = (getattr(lines, f"{name}_{end}_{unit}") for end in ("low", "high"))
        upper = "any more" if math.isnan(high) else f"{three_digits(high)} {self.unit}"
        title = f"95 % interval: {three_digits(low)} to {upper}"
        return TableCell(three_digits(value), title, self.look)


class OverheadColumn(LineColumn):
    field, unit, title, place = "overhead_s", "s", "overhead (s)", "opens carded"
    explained = "seconds that pass in each transfer whatever its size"


class BandwidthColumn(LineColumn):
    field, unit, title = "bandwidth_mb_s", "MB/s", "bandwidth (MB/s)"
    explained = "rate of the bytes alone, without the overhead (MB/s)"


class HalfSizeColumn(LineColumn):
    field, title = "half_size_bytes", "half at"
    explained = "file size at which half of the time is overhead"

    def of(self, value: float, lines: Values) -> TableCell:
        return TableCell(format_bytes(value), self.explained, self.look)


# What stands beside the rate: how it is to the usual, or to what it is compared with. Of both, two
# ratios would stand side by side.
STANDING = NowColumn, UsualColumn, RatioColumn
COMPARED = ThisColumn, OtherColumn, ComparedRatio, ChanceColumn
OF_LINES = OverheadColumn, BandwidthColumn, HalfSizeColumn
