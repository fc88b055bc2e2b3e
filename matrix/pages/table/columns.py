"""The columns of the table page, and how a link's values are written in them.

Columns of ends, rates, sizes and counts; how a link is now, a comparison, and its overhead.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from matrix.answers.conditions.words import sentence, since
from matrix.answers.table.column_filters import how_of
from matrix.answers.table.link_table import CHANGE, EVERY, Arrays, LinkTable
from matrix.answers.words.phrases import why_no_rate
from matrix.answers.words.ratios import with_interval
from matrix.pages.parts.controls import own_words
from matrix.query.addresses import link_url
from matrix.query.catalogue import RATE, Statistic
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells import standing
from matrix.statistics.cells.axes import EndpointInfo
from matrix.statistics.cells.states import DOWN, MEASURED, STATE_WORDS, STATES
from matrix.statistics.compare.two_samples import CHANGE_KINDS, FEWEST_TESTS
from matrix.statistics.transfers import overhead
from matrix.statistics.transfers.overhead import FITS, LEAST_RATIO, LINE
from matrix.templatetags.figures import age_words
from sonar.models import Condition
from sonar.notation.endpoint_attributes import OF_ENDPOINTS
from sonar.notation.units import (
    DASH,
    factor_and_interval,
    format_bytes,
    format_chance,
    format_count,
    format_factor,
    three_digits,
)
from sonar.notation.windows import format_moment


@dataclass(frozen=True)
class Context:
    """What the cells of all rows are written with.

    ``now`` is what ages are counted from, ``end`` the moment as of which links are; ``marks`` says
    whether simulated endpoints are marked one by one, as where others stand beside them; ``ending``
    is what all names end with, which their column says once; ``names`` are shorter ones;
    ``conditions`` are those of the links shown, by id.
    """

    query: MatrixQuery
    now: datetime
    end: datetime
    marks: bool
    ending: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[int, Condition] = field(default_factory=dict)


# What a link has in a size class, or of the line through all of them: attributes by the names of
# LinkTable.of_class, and `every`; `change` is the word for it.
Values = SimpleNamespace
TOO_FEW_LATELY = (
    f"too few tests: needs {standing.FEWEST_SUCCESSES} successful tests in the "
    f"{standing.USUAL_DAYS} days before the time range"
)
TOO_FEW = f"fewer than {FEWEST_TESTS} successful tests on one side of the comparison"
WHY_NONE = {
    "few": f"needs {overhead.FEWEST_TRANSFERS} successful tests with each of two file sizes, one "
    f"at least {LEAST_RATIO:g} times the other",
    "bent": "no fit: the transfer times of the size classes do not lie on a straight line",
}


class TableRow(NamedTuple):
    """A link; ``lines`` are those of LinkTable, if they were asked for."""

    source: EndpointInfo
    destination: EndpointInfo
    priority: float
    classes: Mapping[str, Values]
    lines: Values


class TableCell(NamedTuple):
    """Text, what it says on hover, its look, where it leads to, and small words around it.

    ``marks`` stand behind it; ``lead`` before it, so that numbers stay below each other.
    """

    text: str
    title: str = ""
    look: str = ""
    url: str = ""
    marks: tuple[str, ...] = ()
    lead: str = ""


class Sort(NamedTuple):
    """A title in the head of a column, which orders the table."""

    title: str
    words: str
    ordering: str


class ColumnFilter(NamedTuple):
    """How a column is filtered: by a parameter of the listing or, a number, by its two bounds."""

    name: str
    label: str
    is_number: bool = False


class LinkColumn:
    """A column of cells, which ``render`` writes of a row.

    ``group`` stands above it; it can be filtered by its ``filters``.
    ``place`` says whether it opens a group, stays in sight when the table is scrolled, or is on the
    card that a link has on a narrow screen.
    """

    group = ""
    place = ""
    look = ""
    greatest_first = False

    def __init__(self, context: Context, title: str, words: str, ordering: str) -> None:
        self.context = context
        self.sorts = [Sort(title, words, ordering)]
        self.filters: tuple[ColumnFilter, ...] = ()

    @property
    def label(self) -> str:
        """Return what stands before a cell on a card; an empty text where the cell says it."""
        return "" if self.look == "words" else self.sorts[0].title

    def constant(self, table: LinkTable) -> str:
        """Say what all rows have here, if it is the same; a rate of each link never is."""
        return ""

    def render(self, record: TableRow) -> TableCell:
        raise NotImplementedError


class Priority(LinkColumn):
    look, place = "number", "opens"
    greatest_first = True

    def __init__(self, context: Context) -> None:
        words = (
            "highest priority of the meshes with this link; tests with a higher priority run first"
        )
        super().__init__(context, "priority", words, "priority")
        self.filters = (ColumnFilter("priority", "priority", is_number=True),)

    def constant(self, table: LinkTable) -> str:
        values = np.unique(table.priority)  # of which NaN is one
        if len(values) > 1:
            return ""
        return f"priority {DASH if math.isnan(values[0]) else f'{values[0]:.0f}'}"

    def render(self, record: TableRow) -> TableCell:
        if math.isnan(record.priority):
            return TableCell(DASH, "this link is not tested by a mesh", self.look)
        return TableCell(f"{record.priority:.0f}", look=self.look)


class EndColumn(LinkColumn):
    def __init__(self, context: Context, end: str, attribute: str) -> None:
        name = end if attribute == "endpoint" else f"{end}.{attribute}"
        super().__init__(context, attribute, f"{attribute} of the {end}", name)
        self.end, self.attribute = end, attribute
        all_end = f", all …{context.ending}" if context.ending else ""
        self.group = f"{'from' if end == 'source' else 'to'} ({end}{all_end})"
        if attribute == "endpoint":
            self.place = "frozen carded" if end == "source" else "opens carded"
        how = how_of(OF_ENDPOINTS[attribute])
        words = "is" if how == "is" else "contains"
        self.filters = (ColumnFilter(f"{name}.{how}", f"{end} {attribute} {words}"),)

    def constant(self, table: LinkTable) -> str:
        if self.attribute == "endpoint":
            return ""
        at = table.source if self.end == "source" else table.destination
        key = OF_ENDPOINTS[self.attribute].key
        values = {str(table.places[place].cell(key)) for place in np.unique(at).tolist()}
        text = values.pop() or DASH
        return "" if values else f"{self.attribute} of the {self.end} {text}"

    def render(self, record: TableRow) -> TableCell:
        place: EndpointInfo = getattr(record, self.end)
        if self.attribute != "endpoint":
            value = place.cell(OF_ENDPOINTS[self.attribute].key)
            missing = TableCell(DASH, f"no {self.attribute} is known")
            return TableCell(str(value)) if value != "" else missing
        title = f"{record.source.name} → {record.destination.name}, site {place.site}"
        url = link_url(record.source.name, record.destination.name, self.context.query)
        name = self.context.names.get(place.name, place.name)
        marks = {"simulated": place.simulated and self.context.marks, "retired": place.retired}
        shown = tuple(mark for mark, is_so in marks.items() if is_so)
        return TableCell(name, title, "endpoint", url, shown)


class OfSize(LinkColumn):
    """A column of a size class; ``filtered`` is what its filter is called, if not as its title.

    ``second`` is another title by which it can be ordered: its field, the title and what it means.
    """

    look = "number"
    greatest_first = True
    field = title = explained = filtered = ""
    second: tuple[str, str, str] | None = None

    def __init__(self, context: Context, size: str) -> None:
        words = f"{size} files: {self.explained}"
        super().__init__(context, self.title, words, f"{size}.{self.field}")
        if self.second:
            field, title, explained = self.second
            self.sorts.append(Sort(title, f"{size} files: {explained}", f"{size}.{field}"))
        self.size = size
        self.group = f"{size} files"
        label = f"{size} {self.filtered or self.title}"
        self.filters = (ColumnFilter(f"{size}.{self.field}", label, is_number=True),)

    def render(self, record: TableRow) -> TableCell:
        values = record.classes[self.size]
        if values.ok + values.failed == 0:
            why = "no result in this time range"
            if math.isinf(values.every):
                why = f"not tested with {self.size} files, and {why}"
            elif values.state == DOWN:
                why = f"{why}; {STATE_WORDS['down']}"
            return TableCell(DASH, why, self.look)
        return self.of(values)

    def of(self, values: Values) -> TableCell:
        """Write the values of a link that has results."""
        return TableCell(three_digits(getattr(values, self.field)), "", self.look)

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

    field, title = "mean_mb_s", "MB/s"
    explained = "mean rate of individual transfers ± standard deviation"

    def __init__(self, context: Context, size: str, *, tells: bool) -> None:
        super().__init__(context, size)
        self.tells = tells
        self.look = "number" if tells else "number spread"
        self.place = "opens" if tells else ""

    def of(self, values: Values) -> TableCell:
        state = STATES[values.state]
        lead = state if self.tells and values.state != MEASURED else ""
        look = f"{self.look} {lead}".strip()
        if values.ok == 0:
            return TableCell(DASH, self.why_not_ok(values), look, lead=lead)
        mean = three_digits(values.mean_mb_s)
        spread = (f"± {three_digits(values.std_mb_s)}",) if values.ok > 1 else ()
        # The class that is asked for has room for it, so that all classes fit on a screen.
        shown = () if self.tells else spread
        count = f"(n = {format_count(values.ok)})"
        title = f"{' '.join((mean, *spread))} MB/s {count}; {self.last(values)}"
        if lead:
            title += f"; {STATE_WORDS[state]}"
        return TableCell(mean, title, look, marks=shown, lead=lead)


class QuantileColumn(OfSize):
    """A quantile of the rates, under its short name: the table is wide."""

    def __init__(self, context: Context, size: str, statistic: Statistic) -> None:
        self.field, self.title = statistic.field, statistic.name
        self.explained = f"{statistic.label} of the rates of individual transfers ({RATE.name})"
        self.filtered = f"{statistic.label} ({RATE.name})"
        super().__init__(context, size)
        if size == context.query.size:
            self.place = "carded"

    def of(self, values: Values) -> TableCell:
        if values.ok == 0:
            return TableCell(DASH, self.why_not_ok(values), self.look)
        count = f"(n = {format_count(values.ok)})"
        text = three_digits(getattr(values, self.field))
        return TableCell(text, f"{text} {RATE.name} {count}; {self.last(values)}", self.look)


class Size(OfSize):
    field, title, filtered = "size_mean_bytes", "size", "size (e.g. 200MB)"
    explained = "mean size of the files that arrived ± standard deviation"

    def constant(self, table: LinkTable) -> str:
        sizes = table.column(f"{self.size}.size_mean_bytes")
        if np.isnan(sizes).all():
            return f"no {self.size} file"
        ends = {format_bytes(bound) for bound in (np.nanmin(sizes), np.nanmax(sizes))}
        vary = np.any(table.column(f"{self.size}.size_std_bytes") > 0)
        return "" if vary or len(ends) > 1 else f"{self.size} files of {ends.pop()}"

    def of(self, values: Values) -> TableCell:
        if values.ok == 0:
            return TableCell(DASH, "no file arrived", self.look)
        has_spread = values.size_std_bytes > 0
        spread = (f"± {format_bytes(values.size_std_bytes)}",) if has_spread else ()
        return TableCell(format_bytes(values.size_mean_bytes), "", self.look, marks=spread)


class Count(OfSize):
    field, title, explained = "ok", "ok", "number of successful results"
    second = "failed", "+ failed", "number of failed results"

    def __init__(self, context: Context, size: str) -> None:
        super().__init__(context, size)
        self.filters += (ColumnFilter(f"{size}.failed", f"{size} failed", is_number=True),)

    def of(self, values: Values) -> TableCell:
        failed = (f"+ {format_count(values.failed)} failed",) if values.failed else ()
        look = f"{self.look} some" if failed else self.look
        return TableCell(format_count(values.ok), self.last(values), look, marks=failed)


class StateColumn(OfSize):
    """How a link is, in words; since when, and its condition, where it is a member of one."""

    field, title, place, look = "state", "state", "opens carded", "words"
    explained = "state of the link, and its conditions"
    second = "since", "(since)", "start of the failing, silent, slower or faster state"
    greatest_first = False

    def __init__(self, context: Context, size: str) -> None:
        super().__init__(context, size)
        self.filters = (ColumnFilter(f"{size}.state.is", f"{size} state (e.g. failing)"),)

    def render(self, record: TableRow) -> TableCell:
        values = record.classes[self.size]
        state, level = STATES[values.state], standing.LEVELS[values.level]
        look, words, title = state, state.replace("_", " "), STATE_WORDS[state]
        if level in standing.LEVEL_WORDS:
            look, words, title = level, level, standing.LEVEL_WORDS[level]
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
        return f"no baseline yet for {self.size} files" if is_missing else ""

    def render(self, record: TableRow) -> TableCell:
        values = record.classes[self.size]
        value = getattr(values, self.field)
        why_none = ""
        if self.is_now:
            why_none = why_no_rate(STATES[values.state], values.since, self.context.end)
        if why_none or math.isnan(value):
            return TableCell(DASH, why_none or self.why_none, self.look)
        return self.of(values)


class NowColumn(StandingColumn):
    field, title, needs_usual = "now_mb_s", "now", False
    explained = f"median of the newest three successful tests ({RATE.name})"
    why_none = "no recent successful test"


class UsualColumn(StandingColumn):
    field, title, is_now = "usual_mb_s", "baseline", False
    explained = f"median of the 28 days before the time range ({RATE.name})"
    why_none = "fewer than 5 successful tests in the 28 days before the time range"


class RatioColumn(StandingColumn):
    field, title = "ratio", "ratio"
    explained = "rate now divided by the baseline"
    why_none = "no rate now or no baseline"
    greatest_first = False

    def of(self, values: Values) -> TableCell:
        ratio, low, high, level = values.ratio, values.ratio_low, values.ratio_high, values.level
        title = "" if math.isnan(low) else with_interval(ratio, low, high)
        look = standing.LEVELS[level] if standing.SLOWER <= level <= standing.FASTER else ""
        return TableCell(format_factor(ratio), title, f"{self.look} {look}".strip())


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
    field, title, counted = "this_mb_s", "this", "ok"
    explained = "{of} rate on this side of the comparison: {this} (MB/s)"

    def of(self, values: Values) -> TableCell:
        if math.isnan(rate := getattr(values, self.field)):
            return TableCell(DASH, "no successful test", self.look)
        number = f"n = {format_count(getattr(values, self.counted))}"
        return TableCell(three_digits(rate), "", self.look, marks=(number,))


class OtherColumn(ThisColumn):
    field, title, counted = "other_mb_s", "other", "other_ok"
    explained = "{of} rate on the other side of the comparison: {other} (MB/s)"

    def render(self, record: TableRow) -> TableCell:
        return self.of(record.classes[self.size])


class ComparedRatio(ComparedColumn):
    """The ratio, with its interval behind it, in the colour of a significant change."""

    field, title = "compared_ratio", "ratio"
    explained = (
        "rate on this side divided by the rate on the other side, with its 95 % interval. A ratio "
        "above 1 means that this side is faster"
    )
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
    explained = "p-value: probability that a difference this large occurs by chance"
    greatest_first = False

    def of(self, values: Values) -> TableCell:
        if math.isnan(values.compared_p):
            return TableCell(DASH, TOO_FEW, self.look)
        title = f"significantly {values.change}" if values.change else "not significant"
        chance = format_chance(values.compared_p)
        return TableCell(chance.removeprefix("p ").removeprefix("= "), title, self.look)


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
        upper = "or more" if math.isnan(high) else f"to {three_digits(high)}"
        title = f"95 % interval: {three_digits(low)} {upper} {self.unit}"
        return TableCell(three_digits(value), title, self.look)


class OverheadColumn(LineColumn):
    field, unit, title, place = "overhead_s", "s", "overhead (s)", "opens carded"
    explained = "seconds that each transfer takes, whatever its size"


class BandwidthColumn(LineColumn):
    field, unit, title = "bandwidth_mb_s", "MB/s", "bandwidth (MB/s)"
    explained = "transfer rate without the overhead (MB/s)"


class HalfSizeColumn(LineColumn):
    field, title = "half_size_bytes", "size at 50 % overhead"
    explained = "file size at which half of the transfer time is overhead"

    def of(self, value: float, lines: Values) -> TableCell:
        return TableCell(format_bytes(value), self.explained, self.look)


# What stands beside the rate: how it is to the usual, or to what it is compared with. Of both, two
# ratios would stand side by side.
STANDING = NowColumn, UsualColumn, RatioColumn
COMPARED = ThisColumn, OtherColumn, ComparedRatio, ChanceColumn
OF_LINES = OverheadColumn, BandwidthColumn, HalfSizeColumn
# Each with its name in an ordering.
Columns = list[tuple[str, LinkColumn]]


def all_columns(
    context: Context, sizes: Sequence[str], quantiles: Sequence[Statistic], *, lines: bool = False
) -> Columns:
    """Return all columns, with those of lines if they are asked for.

    The size class that is asked for comes first, and with how its links are now.
    """
    every: Columns = []
    for end in ("source", "destination"):
        every += [(end, EndColumn(context, end, "endpoint"))]
        every += [
            (f"{end}.{attribute.key}", EndColumn(context, end, name))
            for name, attribute in OF_ENDPOINTS.items()
            if attribute.listed
        ]
    every.append(("priority", Priority(context)))
    if lines:
        every += [(column.field, column(context)) for column in OF_LINES]
    standing: tuple[type[OfSize], ...] = COMPARED if context.query.compare else STANDING
    for size in sorted(sizes, key=lambda size: size != context.query.size):
        is_chosen = size == context.query.size
        of_size: list[OfSize] = [
            *([StateColumn(context, size)] if is_chosen else []),
            RateColumn(context, size, tells=not is_chosen),
            *(column(context, size) for column in standing if is_chosen),
            *(QuantileColumn(context, size, quantile) for quantile in quantiles),
            Size(context, size),
            Count(context, size),
        ]
        every += [(f"{size}.{column.field}", column) for column in of_size]
    return every


def rows_of(table: LinkTable) -> list[TableRow]:
    classes = {}
    for size in table.sizes:
        columns = table.of_class(size) | {EVERY: table.column(f"{size}.{EVERY}")}
        if CHANGE in columns:
            columns[CHANGE] = np.array(CHANGE_KINDS, dtype=object)[columns[CHANGE]]
        classes[size] = values_of(columns)
    lines = values_of(table.lines) or [Values()] * len(table)
    numbers = (table.source.tolist(), table.destination.tolist(), table.priority.tolist())
    return [
        TableRow(
            table.places[source],
            table.places[destination],
            priority,
            {size: values[at] for size, values in classes.items()},
            lines[at],
        )
        for at, (source, destination, priority) in enumerate(zip(*numbers, strict=True))
    ]


def values_of(columns: Arrays) -> list[Values]:
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [Values(**dict(zip(columns, row, strict=True))) for row in rows]
