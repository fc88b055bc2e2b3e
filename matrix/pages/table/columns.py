"""The columns of the table page, and how a link's values are written in them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import django_tables2 as tables

from matrix.answers.column_filters import how_of
from matrix.pages.table.rows import TableRow, Values
from matrix.query.addresses import link_url
from matrix.query.attributes import OF_ENDPOINTS
from matrix.query.catalogue import RATE, Statistic
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.axes import EndpointInfo
from matrix.statistics.states import DOWN, MEASURED, STATE_WORDS, STATES
from matrix.templatetags.figures import age_words
from sonar.units import DASH, format_bytes, format_count, three_digits
from sonar.windows import format_moment


@dataclass(frozen=True)
class Context:
    """What the cells of all rows are written with.

    ``now`` is what ages are counted from, ``end`` the moment as of which links are; ``marks`` says
    whether simulated endpoints are marked one by one, as where others stand beside them; ``ending``
    is what all names end with, which their column says once.
    """

    query: MatrixQuery
    now: datetime
    end: datetime
    marks: bool
    ending: str = ""


class TableCell(NamedTuple):
    """Text, what it says on hover, its look, where it leads to, and small words behind it."""

    text: str
    title: str = ""
    look: str = ""
    url: str = ""
    marks: tuple[str, ...] = ()


class Sort(NamedTuple):
    """A title in the head of a column, which orders the table."""

    title: str
    words: str
    ordering: str


class ColumnFilter(NamedTuple):
    """A field below the head of a column: a parameter of the listing."""

    name: str
    label: str
    hint: str = ""


class LinkColumn(tables.Column):  # type: ignore[misc]  # has no types
    """A column of cells, which ``render`` writes of a row, as the library calls it.

    ``group`` stands above it, ``filters`` are parameters below it.
    ``place`` says whether it opens a group, or stays in sight when the table is scrolled.
    """

    empty_values = ()
    group = ""
    place = ""
    look = ""
    greatest_first = False

    def __init__(self, context: Context, title: str, words: str, ordering: str) -> None:
        super().__init__(title, accessor="source")
        self.context = context
        self.sorts = [Sort(title, words, ordering)]
        self.filters: tuple[ColumnFilter, ...] = ()


class Priority(LinkColumn):
    look = "number"
    greatest_first = True

    def __init__(self, context: Context) -> None:
        words = "highest priority of the meshes (test schedules) of the link: the higher goes first"
        super().__init__(context, "priority", words, "priority")
        self.filters = bounds("priority", "priority")

    def render(self, record: TableRow) -> TableCell:
        if math.isnan(record.priority):
            return TableCell(DASH, "no mesh tests this link", self.look)
        return TableCell(f"{record.priority:.0f}", look=self.look)


class EndColumn(LinkColumn):
    def __init__(self, context: Context, end: str, attribute: str) -> None:
        name = end if attribute == "endpoint" else f"{end}.{attribute}"
        super().__init__(context, attribute, f"{attribute} of the {end}", name)
        self.end, self.attribute = end, attribute
        all_end = f", all …{context.ending}" if context.ending else ""
        self.group = f"{'from' if end == 'source' else 'to'} ({end}{all_end})"
        if attribute == "endpoint":
            self.place = "frozen" if end == "source" else "opens"
        how = how_of(OF_ENDPOINTS[attribute])
        words = "" if how == "is" else " contains"
        self.filters = (ColumnFilter(f"{name}.{how}", f"{attribute} of the {end}{words}"),)

    def render(self, record: TableRow) -> TableCell:
        place: EndpointInfo = getattr(record, self.end)
        if self.attribute != "endpoint":
            value = place.cell(OF_ENDPOINTS[self.attribute].key)
            return (
                TableCell(str(value))
                if value != ""
                else TableCell(DASH, f"no {self.attribute} is known")
            )
        title = f"{record.source.name} → {record.destination.name}, site {place.site}"
        url = link_url(record.source.name, record.destination.name, self.context.query)
        name = place.name.removesuffix(self.context.ending)
        return TableCell(name, title, "endpoint", url, tuple(self.marks(place)))

    def marks(self, place: EndpointInfo) -> Iterator[str]:
        if place.simulated and self.context.marks:
            yield "simulated"
        if place.retired:
            yield "retired"


class OfSize(LinkColumn):
    """A column of a size class."""

    look = "number"
    greatest_first = True
    field = ""
    title = ""
    explained = ""

    def __init__(self, context: Context, size: str) -> None:
        words = f"{size} files: {self.explained}"
        super().__init__(context, self.title, words, f"{size}.{self.field}")
        self.size = size
        self.group = f"{size} files"
        self.filters = bounds(f"{size}.{self.field}", f"{size} {self.title}")

    def render(self, record: TableRow) -> TableCell:
        values = record.classes[self.size]
        if values.ok + values.failed == 0:
            why = "no result in this window"
            if math.isinf(values.every):
                why = f"not tested with {self.size} files, and {why}"
            elif values.state == DOWN:
                why = f"{why}; {STATE_WORDS['down']}"
            return TableCell(DASH, why, self.look)
        return self.of(values)

    def of(self, values: Values) -> TableCell:
        """Write the values of a link that has results."""
        raise NotImplementedError

    def why_not_ok(self, values: Values) -> str:
        if values.failed == 1:
            return f"the only result failed; {self.last(values)}"
        return f"all {format_count(values.failed)} results failed; {self.last(values)}"

    def last(self, values: Values) -> str:
        words = f"last result {self.ago(values.last)}"
        if values.ok and values.last_ok < values.last:
            words += f", failed; last success {self.ago(values.last_ok)}"
        return words

    def ago(self, started: float) -> str:
        moment = format_moment(datetime.fromtimestamp(started, UTC))
        return f"{age_words(started, self.context.now)}, {moment}"


class RateColumn(OfSize):
    """The mean; ``tells`` says that its state stands here, as no other column has it."""

    field, title, look = "mean_mb_s", "MB/s", "number spread"
    explained = "mean rate of single transfers ± standard deviation"

    def __init__(self, context: Context, size: str, *, tells: bool) -> None:
        super().__init__(context, size)
        self.tells = tells
        self.place = "opens" if tells else ""

    def of(self, values: Values) -> TableCell:
        state = STATES[values.state]
        marks = (state,) if self.tells and values.state != MEASURED else ()
        look = " ".join((self.look, *marks))
        if values.ok == 0:
            return TableCell(DASH, self.why_not_ok(values), look, marks=marks)
        mean = three_digits(values.mean_mb_s)
        spread = (f"± {three_digits(values.std_mb_s)}",) if values.ok > 1 else ()
        count = f"(n = {format_count(values.ok)})"
        title = f"{' '.join((mean, *spread))} MB/s {count}; {self.last(values)}"
        if marks:
            title += f"; {STATE_WORDS[state]}"
        return TableCell(mean, title, look, marks=(*spread, *marks))


class QuantileColumn(OfSize):
    """A quantile of the rates, under its short name: the table is wide."""

    def __init__(self, context: Context, size: str, statistic: Statistic) -> None:
        self.field, self.title = statistic.field, statistic.name
        self.explained = f"{statistic.label} of the rates of single transfers ({RATE.name})"
        super().__init__(context, size)
        self.filters = bounds(f"{size}.{self.field}", f"{size} {statistic.label}")

    def of(self, values: Values) -> TableCell:
        if values.ok == 0:
            return TableCell(DASH, self.why_not_ok(values), self.look)
        count = f"(n = {format_count(values.ok)})"
        text = three_digits(values.quantiles[self.field])
        return TableCell(text, f"{text} {RATE.name} {count}; {self.last(values)}", self.look)


class Size(OfSize):
    field, title = "size_mean_bytes", "size"
    explained = "mean size of the files that arrived ± standard deviation"

    def of(self, values: Values) -> TableCell:
        if values.ok == 0:
            return TableCell(DASH, "no file arrived", self.look)
        has_spread = values.size_std_bytes > 0
        spread = (f"± {format_bytes(values.size_std_bytes)}",) if has_spread else ()
        return TableCell(format_bytes(values.size_mean_bytes), "", self.look, marks=spread)


class Count(OfSize):
    field, title, explained = "ok", "ok", "number of successful results"

    def __init__(self, context: Context, size: str) -> None:
        super().__init__(context, size)
        failed = f"{size}.failed"
        self.sorts.append(Sort("+ failed", f"{size} files: number of failed results", failed))
        ok, _ = self.filters
        self.filters = (ok, ColumnFilter(f"{failed}.min", f"{size} failed at least", "failed ≥"))

    def of(self, values: Values) -> TableCell:
        failed = (f"+ {format_count(values.failed)} failed",) if values.failed else ()
        look = f"{self.look} some" if failed else self.look
        return TableCell(format_count(values.ok), self.last(values), look, marks=failed)


def bounds(column: str, words: str) -> tuple[ColumnFilter, ...]:
    least = ColumnFilter(f"{column}.min", f"{words} at least", "≥")
    return least, ColumnFilter(f"{column}.max", f"{words} at most", "≤")
