"""Columns of how a link is now: its state and since when, and its rate against its usual."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np

from matrix.answers.link.rate_now import why_no_rate
from matrix.answers.link_table import LinkTable
from matrix.answers.ratio_words import with_interval
from matrix.pages.table.columns import ColumnFilter, Context, OfSize, Sort, TableCell
from matrix.pages.table.rows import TableRow, Values
from matrix.query.catalogue import RATE
from matrix.statistics.cells.standing import LEVEL_WORDS, LEVELS
from matrix.statistics.cells.states import MEASURED, STATE_WORDS, STATES
from sonar.notation.units import DASH, format_count, format_factor, format_span, three_digits
from sonar.notation.windows import format_moment


class StateColumn(OfSize):
    """How a link is, in words; where it fails or is not as usual, for how long."""

    field, title, place, look = "state", "state", "opens carded", "words"
    explained = "its state, and how its newest tests compare with usual"
    greatest_first = False

    def __init__(self, context: Context, size: str) -> None:
        super().__init__(context, size)
        since = f"{size} files: how long it has been failing, or slower or faster than usual"
        self.sorts.append(Sort("(since)", since, f"{size}.since"))
        self.filters = (ColumnFilter(f"{size}.state.is", f"{size} state is, like failing,slower"),)

    def render(self, record: TableRow) -> TableCell:
        values = record.classes[self.size]
        state, level = STATES[values.state], LEVELS[values.level]
        if values.state != MEASURED:
            look, words, title = state, state.replace("_", " "), STATE_WORDS[state]
        elif level in LEVEL_WORDS:
            look, words, title = level, f"{level} than usual", LEVEL_WORDS[level]
        else:
            words = "as usual" if level == "usual" else "measured"
            return TableCell(words, "", self.look)
        if math.isnan(values.since):
            return TableCell(words, title, f"{self.look} {look}")
        since = datetime.fromtimestamp(values.since, UTC)
        title = f"since {format_moment(since)}, {count_of(values.streak)} in a row; {title}"
        span = format_span(self.context.end - since)
        return TableCell(words, title, f"{self.look} {look}", marks=(span,))


class StandingColumn(OfSize):
    """A number of how a link is now; ``why_none`` says why there is none."""

    place = "carded"
    why_none = ""

    def render(self, record: TableRow) -> TableCell:
        values = record.classes[self.size]
        value = getattr(values, self.field)
        why_none = self.why_left_out(values) or (self.why_none if math.isnan(value) else "")
        if why_none:
            return TableCell(DASH, why_none, self.look)
        look = f"{self.look} {self.standing(values)}".strip()
        return TableCell(self.words(value), self.detail(values), look)

    def why_left_out(self, values: Values) -> str:
        """Return why a number that there is would mislead, or nothing."""
        return why_no_rate(STATES[values.state], values.since, self.context.end)

    def words(self, value: float) -> str:
        return three_digits(value)

    def detail(self, values: Values) -> str:
        """Return what hovering over the number says, or nothing."""
        return ""

    def standing(self, values: Values) -> str:
        """Return the look of what is not as usual, or nothing."""
        return ""


class NowColumn(StandingColumn):
    field, title = "now_mb_s", "now"
    explained = f"median of its newest three successful tests ({RATE.name})"
    why_none = "no recent successful test"


class UsualColumn(StandingColumn):
    field, title = "usual_mb_s", "usual"
    explained = f"median of the 28 days before the window ({RATE.name})"
    why_none = "fewer than 5 successful tests in the 28 days before the window"

    def constant(self, table: LinkTable) -> str:
        return no_usual(table, self.size)

    def why_left_out(self, values: Values) -> str:
        return ""


class RatioColumn(StandingColumn):
    field, title = "ratio", "ratio"
    explained = "rate now divided by the usual rate"
    why_none = "needs a rate now and a usual rate"
    greatest_first = False

    def constant(self, table: LinkTable) -> str:
        return no_usual(table, self.size)

    def words(self, value: float) -> str:
        return format_factor(value)

    def detail(self, values: Values) -> str:
        if math.isnan(values.ratio_low):
            return ""
        return with_interval(values.ratio, values.ratio_low, values.ratio_high)

    def standing(self, values: Values) -> str:
        level = LEVELS[values.level]
        return level if level in LEVEL_WORDS else ""


def no_usual(table: LinkTable, size: str) -> str:
    """Say so if no link has a usual rate, as in the first days."""
    is_missing = np.isnan(table.column(f"{size}.usual_mb_s")).all()
    return f"no usual rate yet with {size} files" if is_missing else ""


def count_of(tests: int) -> str:
    return f"{format_count(tests)} test{'s' * (tests != 1)}"
