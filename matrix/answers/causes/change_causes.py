"""Which source, destination, site or link explains what a comparison shows, in sentences."""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from matrix.answers.causes import words
from matrix.answers.causes.attribution import ENDS, Attribution
from matrix.answers.causes.words import VERBS, percent
from matrix.answers.comparison import sides
from matrix.answers.matrix.grid_cells import Grid, OtherSide
from matrix.answers.words.advice import LOOK, ONLY_THIS_LINK
from matrix.answers.words.phrases import counted, join
from matrix.query.comparison import A_MONTH, MONTH
from matrix.statistics.arrays import Flags, Integers
from matrix.statistics.causes.candidates import Kind
from matrix.statistics.causes.causes import SMALLEST_FACTOR, Cause, name_causes, name_slower
from matrix.statistics.causes.cell_noise import FEWEST_WINDOWS
from matrix.statistics.causes.daily_baseline import DailyBaseline
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.cells import within_sites
from matrix.statistics.samples.pooling import Pooling
from matrix.store import registry, runs
from matrix.store.cache import ANSWERS
from matrix.store.data_version import snapshot
from sonar.notation.units import format_count, two_digits

# Limit of the links that no cause explains.
MOST_LINKS = 50


@dataclass(frozen=True)
class NamedCause:
    """A cause of a change: the groups that it is about, and a sentence to quote.

    ``kind`` is `slow` or `fast`; a source has no ``destination``, and the other way round. ``ok``
    and ``other_ok`` count the successful tests on both sides that it rests on.
    """

    cause: Cause
    source: AxisGroup | None
    destination: AxisGroup | None
    kind: str
    ok: int
    other_ok: int
    sentence: str

    @property
    def full_names(self) -> str:
        """Return the names of which the sentence has short forms."""
        groups = dict.fromkeys(each.name for each in (self.source, self.destination) if each)
        return " → ".join(groups)

    @property
    def site(self) -> str:
        """Return the site that it is about; nothing for a link, which has two."""
        group = self.source or self.destination
        return "" if self.cause.kind == "link" or group is None else group.site or ""


@dataclass(frozen=True)
class ChangeCauses:
    """Causes of the change in a comparison, the most significant first; empty without a comparison.

    ``judged`` counts the links that have enough of the 30 days before to be judged by, ``unjudged``
    the others with a rate; None where the two sides are compared as wholes.
    """

    named: tuple[NamedCause, ...] = ()
    judged: int | None = None
    unjudged: int = 0

    @property
    def nbytes(self) -> int:
        return sys.getsizeof(self) + sum(sys.getsizeof(cause.sentence) for cause in self.named)


class TestCounts(NamedTuple):
    """How many successful tests each cell has on both sides, of those that are ``used``."""

    used: Flags
    ok: Integers
    other_ok: Integers


def scope_of(kind: Kind) -> str:
    """Return the scope of a cause, as events have it."""
    return "endpoint" if kind == "both" else kind


def cells_of(cause: Cause, grid: Grid) -> Flags:
    """Say which cells a cause is of: of a row and a column or, of a site, of all that are there."""
    members = []
    for groups, at in ((grid.sources, cause.row), (grid.destinations, cause.column)):
        flags = np.zeros(len(groups), dtype=bool)
        if at is not None:
            flags[at] = True
            if cause.kind == "site":
                flags[:] = [group.site == groups[at].site for group in groups]
        members.append(flags)
    source, destination = members[0][:, None], members[1]
    return source & destination if cause.kind == "link" else source | destination


def build(attribution: Attribution) -> ChangeCauses:
    """Name what explains a comparison; kept for the version of its grid."""
    grid, other = attribution.grid, attribution.grid.other
    if other is None:
        return ChangeCauses()
    causes: ChangeCauses = ANSWERS.get(
        ("causes of a change", grid.version),
        lambda: with_significant_links(find_causes(attribution, other), attribution, other),
    )
    return causes


def with_significant_links(
    causes: ChangeCauses, attribution: Attribution, other: OtherSide
) -> ChangeCauses:
    """Add the links that are significantly slower or faster, and that no cause explains.

    So nothing that the matrix says is missing here. What all links did is no link's own.
    """
    grid, level = attribution.grid, attribution.model.level
    if grid.comparison is None:
        return causes
    ratios = grid.comparison
    with np.errstate(divide="ignore"):  # a median of 0
        logs = np.log(ratios.ratio)
    beyond = logs - level
    is_own = grid.changed & (np.abs(beyond) >= np.log(SMALLEST_FACTOR))
    is_own &= np.sign(beyond) == np.sign(logs)
    for named in causes.named:
        is_slow = named.cause.factor < 1
        is_own &= ~(cells_of(named.cause, grid) & ((ratios.ratio < 1) == is_slow))
    if causes.judged is not None:
        is_own &= ratios.ratio < 1  # only what became slower is named by its own days
    tests = TestCounts(is_own, ratios.ok, ratios.other_ok)
    links = []
    for row, column in ratios.most_certain(is_own)[:MOST_LINKS].tolist():
        numbers = (ratios.ratio, ratios.low, ratios.high, ratios.p)
        factor, low, high, p = (float(values[row, column]) for values in numbers)
        cause = Cause("link", row, column, factor, low, high, p, n=1)
        links.append(named_cause(cause, grid, tests, other.words))
    return replace(causes, named=(*causes.named, *links))


def find_causes(attribution: Attribution, other: OtherSide) -> ChangeCauses:
    """Name what differs between the two sides, or what is slower than in its own 30 days before."""
    grid, model, compare = attribution.grid, attribution.model, attribution.grid.query.compare
    groups = (*grid.sources, *grid.destinations)
    names = {
        "endpoints": [group.name for group in groups],
        "sites": [group.site or group.name for group in groups],
    }
    # Links are judged by their own 30 days where they are compared with these in nothing else.
    if compare is not None and compare.is_of_time and compare.window == MONTH:
        days, judged, unjudged = read_history(grid, other)
        # How far window and days scatter, up to a factor: by the root of their tests.
        spread = 1 / np.sqrt(np.maximum(days.ok, 1)), 1 / np.sqrt(np.maximum(days.other_ok, 1))
        slower = name_slower(days.window, days.days, spread=spread, **names)
        tests = TestCounts(judged, days.ok, days.other_ok.sum(axis=0))
        usual = f"its {A_MONTH.days}-day rate"
        named = tuple(named_cause(cause, grid, tests, usual, counts=True) for cause in slower)
        return ChangeCauses(named, int(judged.sum()), int(unjudged.sum()))
    if grid.comparison is None:
        return ChangeCauses()
    tests = TestCounts(~np.isnan(model.rest), grid.comparison.ok, grid.comparison.other_ok)
    causes = name_causes(
        np.where(tests.used, model.fitted + model.rest, np.nan),
        spread=np.sqrt(1 / np.maximum(tests.ok, 1) + 1 / np.maximum(tests.other_ok, 1)),
        **names,
    )
    return ChangeCauses(tuple(named_cause(cause, grid, tests, other.words) for cause in causes))


def headline(attribution: Attribution, causes: ChangeCauses) -> str:
    """Say first what a comparison with the days before found, or else what ends explain."""
    if not causes.judged:
        return words.headline(attribution)
    compared = f"Compared with the {A_MONTH.days} days before"
    if not causes.named:
        return f"{compared}, no rate fell significantly."
    nouns = (scope_of(named.cause.kind) for named in causes.named)
    subject = join(counted(count, noun) for noun, count in Counter(nouns).items())
    return f"{compared}, the rate{'s' * (len(causes.named) > 1)} of {subject} fell."


def judged_words(causes: ChangeCauses) -> str:
    """Say how many links could be judged by their own days; nothing without a history."""
    days, few = f"the {A_MONTH.days} days before", FEWEST_WINDOWS
    if causes.judged is None:
        return ""
    if not causes.judged:
        return (
            "Too few results: no link has results both in this time range and on at least "
            f"{few} of {days}."
        )
    verb = "is compared with its" if causes.judged == 1 else "are compared with their"
    said = f"{counted(causes.judged, 'link')} {verb} own results on each of {days}."
    if causes.unjudged:
        verb = "has" if causes.unjudged == 1 else "have"
        said += (
            f" {counted(causes.unjudged, 'link')} {verb} results on fewer than {few} of these days."
        )
    return said


def named_cause(
    cause: Cause, grid: Grid, tests: TestCounts, other: str, *, counts: bool = False
) -> NamedCause:
    """Say a cause in a sentence, with ``counts`` of its tests where it is judged by them."""
    source = None if cause.row is None else grid.sources[cause.row]
    destination = None if cause.column is None else grid.destinations[cause.column]
    kind = "slow" if cause.factor < 1 else "fast"
    cells = cells_of(cause, grid) & tests.used
    ok, other_ok = int(tests.ok[cells].sum()), int(tests.other_ok[cells].sum())
    evidence = [f"{two_digits(100 * cause.low)}–{percent(cause.high)}"]
    if cause.kind != "link":
        evidence += [counted(cause.n, "link")]
    if counts or cause.kind == "link":
        evidence += [
            counted(ok, "test"),
            f"{format_count(other_ok)} {'before' if counts else 'there'}",
        ]
    ends = [end for end, side in zip(ENDS, (source, destination), strict=True) if side]
    subject = subject_of(cause, source, destination, grid.short_names())
    sentence = f"{subject} at {percent(cause.factor)} of {other}"
    sentence += f" ({', '.join(evidence)})."
    if kind == "slow":
        look = LOOK[ends[0] if len(ends) == 1 else "both"]
        sentence += f" {ONLY_THIS_LINK if cause.kind == 'link' else look}"
    return NamedCause(cause, source, destination, kind, ok, other_ok, sentence)


def subject_of(
    cause: Cause,
    source: AxisGroup | None,
    destination: AxisGroup | None,
    short: Mapping[str, str],
) -> str:
    """Say what changed, up to the factor: `RAL sends`."""
    if cause.kind == "link" and source and destination:
        return f"{short[source.name]} → {short[destination.name]} is"
    group = source or destination
    name = "" if group is None else short[group.name]
    if cause.kind == "site" and group is not None:
        name = f"All of {group.site or group.name}"
    doing = [VERBS[end] for end, side in zip(ENDS, (source, destination), strict=True) if side]
    return f"{name} {' and '.join(doing)}"


def read_history(grid: Grid, other: OtherSide) -> tuple[DailyBaseline, Flags, Flags]:
    """Read the window of a grid and the days before it, as of one moment.

    Return the days of each cell, which cells have enough of them to be judged by, and which others
    have a rate; both have shape (rows, columns).
    """
    query = grid.query
    with snapshot():
        results = runs.read(query.size, grid.window, query.filters)
        before = sides.read(other.query)
    has_rate = np.isfinite(grid.cells.mean) & ~within_sites(grid.sources, grid.destinations)
    # Which links make these cells.
    links = registry.read_links(grid.version)
    rows = sides.groups_of(grid.sources, links, query.rows)
    columns = sides.groups_of(grid.destinations, links, query.columns)
    shape = len(grid.sources), len(grid.destinations)
    # A place that is not shown has the number -1, which is that of a cell after the last.
    shown = np.pad(has_rate, (0, 1))[rows[:, None], columns]
    shown &= links.matching(query.filters).reshape(links.shape)
    pooling = Pooling(links.numbering, rows, columns, shown, shape)
    days = DailyBaseline.of(results, before, pooling)
    enough = np.isfinite(days.days).sum(axis=0) >= FEWEST_WINDOWS
    judged = enough & np.isfinite(days.window)
    return days, judged, has_rate & ~judged
