"""The link table: every link with its rate, file size, counts and last result by size class."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.comparison import sides as comparing
from matrix.answers.matrix import standing
from matrix.answers.table.columns import (
    COLUMNS,
    COMPARED,
    DERIVED,
    SURE,
    Arrays,
    LinkColumns,
    reduce_links,
)
from matrix.query.attributes import BY_KEY, ENDS, search_text
from matrix.query.catalogue import TABLE_QUANTILES
from matrix.query.filters import on_links, on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats, Integers
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.statistics.cells.standing import FASTER, SILENT, SLOWER
from matrix.statistics.cells.states import FAILED, FAILING, MEASURED, STATES, fail_partly
from matrix.statistics.compare.two_samples import CHANGE_KINDS, CHANGES
from matrix.store import data_version
from matrix.store.cache import ANSWERS
from matrix.store.conditions import MARKS
from matrix.store.data_version import DataVersion
from sonar.notation.windows import Window

ATTRIBUTES = tuple(BY_KEY)
# The field of what changed beyond chance, while comparing.
CHANGE = "change"
# An order of its own: how much trouble links are in, in the size class that is asked for.
TROUBLE = "trouble"
# What a link that fails does not have now: ordered by it, such a link is worse than any other.
NOT_WHILE_FAILING = ("now_mb_s", "ratio")


@dataclass(frozen=True)
class LinkTable:
    """Rows of the links of LinkColumns, in the order of the places until ordered otherwise.

    ``rows`` says which links they are, None for all of them. A column is only copied when it is
    asked for: of a million links all are 357 MB. While comparing, ``changed`` says of all links
    which differ from the other side by more than chance explains, among those of the question.
    ``size`` is the size class that is asked for.
    """

    links: LinkColumns
    rows: Integers | None = None
    changed: Flags | None = None
    size: str = MatrixQuery.size

    def __len__(self) -> int:
        return len(self.links) if self.rows is None else len(self.rows)

    @property
    def window(self) -> Window:
        return self.links.window

    @property
    def places(self) -> tuple[EndpointInfo, ...]:
        return self.links.places

    @property
    def sizes(self) -> list[str]:
        """Name the size classes."""
        return list(self.links.classes)

    @property
    def quantiles(self) -> tuple[str, ...]:
        """Name the columns of quantiles that were asked for."""
        arrays: Arrays = next(iter(self.links.classes.values()), {})
        return tuple(own.field for own in TABLE_QUANTILES.values() if own.field in arrays)

    def compared_fields(self, size: str) -> tuple[str, ...]:
        """Name what is said of a link beside COLUMNS while comparing, in a size class."""
        return (*COMPARED, SURE, CHANGE) if SURE in self.links.classes[size] else ()

    def of_class(self, size: str) -> Arrays:
        """Return all that is said of the links in a size class, by name."""
        names = (*COLUMNS, *self.quantiles, *self.compared_fields(size))
        return {name: self.column(f"{size}.{name}") for name in names}

    @cached_property
    def source(self) -> Integers:
        return self._of_rows(self.links.source)

    @cached_property
    def destination(self) -> Integers:
        return self._of_rows(self.links.destination)

    @property
    def priority(self) -> Floats:
        return self._of_rows(self.links.priority)

    @property
    def lines(self) -> Arrays:
        """Return the columns of the lines, if they were asked for."""
        return {name: self._of_rows(values) for name, values in self.links.lines.items()}

    def column(self, name: str) -> NDArray[Any]:
        """Return `source` or `destination` (names), `source.site`, `priority`, `large.mean_mb_s`.

        Those of LinkColumns.lines are called by their names: `overhead_s`. Raises KeyError for
        any other name.
        """
        of, _, field = name.rpartition(".")
        if (of or name) in ENDS:
            return np.array(self._of_places(name), dtype=object)[self._places_at(of or name)]
        if name == "priority":
            return self.priority
        if name in self.links.lines:
            return self._of_rows(self.links.lines[name])
        arrays = self.links.classes[of]
        if field in DERIVED:
            make, *made_of = DERIVED[field]
            return make(*(self._of_rows(arrays[name]) for name in made_of))
        if field == CHANGE and SURE in arrays:
            return self._changes(of)
        return self._of_rows(arrays[field])

    def _of_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.rows is None else values[self.rows]

    def _of_places(self, name: str) -> list[str | int]:
        attribute = name.partition(".")[2] or "name"
        if attribute not in ATTRIBUTES:
            raise KeyError(name)
        return [place.cell(attribute) for place in self.places]

    def _places_at(self, end: str) -> Integers:
        return self.source if end == "source" else self.destination

    def _ranks(self, name: str) -> NDArray[Any]:
        """Return numbers that order as a column does; links of one source by destination."""
        if name == TROUBLE:
            return trouble_of(self)
        if name.partition(".")[0] not in ENDS:
            return self._shown(name)
        columns = {"source": ("source", "destination"), "destination": ("destination", "source")}
        ranks: NDArray[Any] = np.zeros(len(self), dtype=np.int64)
        for column in columns.get(name, (name,)):
            # By text, without regard to case: places are few and links are many.
            texts = [str(value).casefold() for value in self._of_places(column)]
            of_places = np.unique(texts, return_inverse=True)[1]
            at = self._places_at(column.partition(".")[0])
            ranks = ranks * len(self.places) + of_places[at]
        return ranks

    def _shown(self, name: str) -> NDArray[Any]:
        """Return a column with what pages show: a rate of 0 for links that fail now."""
        values = self.column(name)
        size, _, field = name.rpartition(".")
        if field not in NOT_WHILE_FAILING:
            return values
        fails = np.isin(self.column(f"{size}.state"), (FAILING, FAILED))
        return np.where(fails, 0.0, values)

    def order(self, name: str, *, descending: bool = False, among: Flags | None = None) -> Integers:
        """Return rows sorted by a column: no value comes last, equal ones stay as they were.

        By TROUBLE, the most comes last unless ``descending``. All rows, or those ``among`` which
        are to be sorted.
        """
        rows = np.arange(len(self)) if among is None else np.flatnonzero(among)
        if name == TROUBLE:  # those in no trouble stand by name, whichever way
            rows = rows[np.argsort(self._ranks(ENDS[0])[rows], kind="stable")]
        ranks = self._ranks(name)[rows]
        if ranks.dtype == np.uint8:  # a state, whose negative would be another one
            ranks = ranks.astype(np.int16)
        # NaN sorts behind everything, whatever its sign.
        return rows[np.argsort(-ranks if descending else ranks, kind="stable")]

    def ordered_by(self, name: str, *, descending: bool = False) -> LinkTable:
        return self.taken(self.order(name, descending=descending))

    def taken(self, rows: Integers | Flags | slice) -> LinkTable:
        """Return some of the rows, in this order: a page, or what a search has found."""
        present = np.arange(len(self)) if self.rows is None else self.rows
        return LinkTable(self.links, present[rows], self.changed, self.size)

    def _changes(self, size: str) -> NDArray[np.uint8]:
        """Return of each link the number of its change in CHANGE_KINDS."""
        numbers = np.zeros(len(self), dtype=np.uint8)
        for look in CHANGES:
            numbers[self.of_change(size, look)] = CHANGE_KINDS.index(look)
        return numbers

    def of_change(self, size: str, look: str) -> Flags | None:
        """Say which links are `slower` or `faster` than on the other side, beyond chance.

        None for another look, and where nothing is compared.
        """
        if self.changed is None or look not in CHANGES or SURE not in self.links.classes[size]:
            return None
        ratio = self.column(f"{size}.compared_ratio")
        is_such = ratio < 1 if look == "slower" else ratio > 1
        return np.asarray(self._of_rows(self.changed) & is_such)

    def ends(self) -> list[EndpointInfo]:
        """Return the places that at least one of the links starts from or goes to."""
        used = np.zeros(len(self.places), dtype=bool)
        used[self.source] = used[self.destination] = True
        return [self.places[at] for at in np.flatnonzero(used).tolist()]

    def searched(self, text: str) -> Flags:
        """Say which links have every word of a text in some attribute of one of their ends."""
        texts = [
            search_text((attribute, place.value(key)) for key, attribute in BY_KEY.items())
            for place in self.places
        ]
        matches = np.ones(len(self), dtype=bool)
        for word in text.casefold().split():
            flags = np.array([word in endpoint_text for endpoint_text in texts], dtype=bool)
            matches &= flags[self.source] | flags[self.destination]
        return matches

    def where(self, name: str, holds: Callable[[str], bool]) -> Flags:
        """Say which links have an end whose attribute, as text, is such; `name` as in column."""
        flags = np.array([holds(str(value)) for value in self._of_places(name)], dtype=bool)
        return flags[self._places_at(name.partition(".")[0])]


def version(query: MatrixQuery, now: datetime) -> DataVersion:
    """Return what changes whenever the table may, for one SQL statement.

    Whatever links are filtered, tables of the same results share it.
    """
    window = query.window_at(now)
    minute = now.replace(second=0, microsecond=0)
    filters = on_profiles(query.filters)
    present = data_version.read(None, standing.reach(window))
    compared = None
    if query.compare:
        whole = comparing.all_links_query(query) or query
        other = whole.other(now)
        present, compared = comparing.with_other(present, other), (query.size, query.compare, other)
    return present.of_question((filters, window, minute, compared))


def build(
    query: MatrixQuery,
    now: datetime,
    known_version: DataVersion | None = None,
    quantiles: Collection[str] = (),
    *,
    lines: bool = False,
) -> LinkTable:
    """Answer for all size classes, whichever the query asks for.

    ``known_version`` is that of version(), for which the columns of all links are kept: filters
    on links only choose rows of them. ``quantiles`` are names out of TABLE_QUANTILES, columns
    that are there for who asks for them, as ``lines`` asks for those of overhead and bandwidth.
    """
    # Read before the data: an answer may be newer than its version, never older.
    known_version = known_version or version(query, now)
    key = ("links", known_version, frozenset(quantiles), lines)
    whole = comparing.all_links_query(query) or query
    links: LinkColumns = ANSWERS.get(key, lambda: reduce_links(whole, now, quantiles, lines=lines))
    filters = on_links(query.filters)
    shown = None
    if filters:
        matching = LinkIndex(links.places).matching(filters)
        shown = np.flatnonzero(matching[links.source * len(links.places) + links.destination])
    changed = links.classes[query.size].get(SURE)
    return LinkTable(links, shown, changed, query.size)


# The least trouble first: states, and how a link is beside that.
DEGREES = (
    *("not_applicable", "untested", "down", "measured", "stale"),
    *("faster", "partly", "failed", "unconfirmed", "silent", "slower", "failing"),
)


def trouble_of(table: LinkTable) -> Floats:
    """Return the place of each link in DEGREES, with a fraction for how bad it is among its like.

    What is certain is the most trouble. Of failing and silent links the first to be so is the
    worst, of slower ones the slowest, of those of unconfirmed conditions and those with too few
    tests for any the one with most failures, of those that fail partly the one with the largest
    share of them, of faster ones the one that changed most. They are compared with usual, or with
    what the question compares them with.
    """
    columns = table.of_class(table.size)
    slower, faster = (table.of_change(table.size, look) for look in CHANGES)
    level, state = columns["level"], columns["state"]
    measured = state == MEASURED
    if slower is None or faster is None:
        slower, faster = level == SLOWER, measured & (level == FASTER)
    else:
        slower, faster = measured & slower, measured & faster
    ratio = columns.get("compared_ratio", columns["ratio"])
    ok, failed, since = columns["ok"], columns["failed"], columns["since"]
    unconfirmed = columns["unconfirmed"] > MARKS.index("fast")
    badness = {
        "faster": (faster, ratio),
        "partly": (measured & fail_partly(ok, failed, False), failed / np.maximum(ok + failed, 1)),
        "failed": (state == FAILED, failed.astype(np.float64)),
        "unconfirmed": (unconfirmed, failed.astype(np.float64)),
        "silent": (level == SILENT, -since),
        "slower": (slower, -ratio),
        "failing": (state == FAILING, -since),
    }
    degrees = np.array([DEGREES.index(word) for word in STATES], dtype=np.float64)[state]
    for name, (links, values) in badness.items():
        degrees[links] = DEGREES.index(name) + shares(values[links])
    return degrees


def shares(values: Floats) -> Floats:
    """Return the ranks of values as shares below 1; where there is none, it is 0."""
    ranks: NDArray[np.int64] = np.unique(values, return_inverse=True)[1] + 1
    return np.asarray(np.where(np.isnan(values), 0, ranks / (len(values) + 1)))
