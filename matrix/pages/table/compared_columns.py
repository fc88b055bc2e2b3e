"""The columns of a comparison: rates of both sides, their ratio, and whether chance makes it."""

from __future__ import annotations

import math

from matrix.pages.compare import own_words
from matrix.pages.table.columns import Context, OfSize, TableCell
from matrix.pages.table.rows import TableRow, Values
from matrix.statistics.compare.two_samples import FEWEST_TESTS
from sonar.notation.units import (
    DASH,
    factor_and_interval,
    format_chance,
    format_count,
    format_factor,
    three_digits,
)

TOO_FEW = f"fewer than {FEWEST_TESTS} successful tests on one side"


class ComparedColumn(OfSize):
    """A number of a comparison."""

    place = "carded"

    def __init__(self, context: Context, size: str) -> None:
        super().__init__(context, size)
        query = context.query
        of = query.compare.of if query.compare else ""
        sides = {"this": own_words(query), "other": query.other_words(), "of": of}
        self.explained = self.explained.format(**sides)
        self.sorts = [sort._replace(words=f"{size} files: {self.explained}") for sort in self.sorts]


class ThisColumn(ComparedColumn):
    field, title = "this_mb_s", "this"
    explained = "{of} rate of this side of the comparison, {this} (MB/s)"

    def of(self, values: Values) -> TableCell:
        return side_cell(values.compared["this_mb_s"], values.ok, self.look)


class OtherColumn(ComparedColumn):
    field, title = "other_mb_s", "other"
    explained = "{of} rate of the other side, {other} (MB/s)"

    def render(self, record: TableRow) -> TableCell:
        compared = record.classes[self.size].compared
        return side_cell(compared["other_mb_s"], int(compared["other_ok"]), self.look)


class ComparedRatio(ComparedColumn):
    """The ratio, with its interval behind it, in the colour of a change beyond chance."""

    field, title = "compared_ratio", "ratio"
    explained = "this side divided by the other, with its 95 % interval: above 1 is faster"
    greatest_first = False

    def of(self, values: Values) -> TableCell:
        compared = values.compared
        ratio, low, high = (compared[f"compared_{name}"] for name in ("ratio", "low", "high"))
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
        p = values.compared["compared_p"]
        if math.isnan(p):
            return TableCell(DASH, TOO_FEW, self.look)
        title = f"certainly {values.change}" if values.change else "not certain"
        return TableCell(format_chance(p).removeprefix("p ").removeprefix("= "), title, self.look)


def side_cell(rate: float, ok: int, look: str) -> TableCell:
    if math.isnan(rate):
        return TableCell(DASH, "no successful test", look)
    return TableCell(three_digits(rate), "", look, marks=(f"n = {format_count(ok)}",))
