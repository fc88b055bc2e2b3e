"""Which results of other origins there are where tests alone count, so that pages can say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from django.db.models import Count

from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.table.link_table import LinkTable
from matrix.answers.words.phrases import join
from matrix.query.attributes import ORIGIN
from matrix.query.filters import OTHER_ORIGINS, Filter, counted
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import LinkIndex
from matrix.statistics.samples.pooling import Numbering
from matrix.store import registry, runs
from matrix.store.cache import ANSWERS
from matrix.store.data_version import DataVersion
from matrix.store.profiles import made_so
from sonar.models import Transfer
from sonar.notation.units import format_count
from sonar.notation.windows import Window


@dataclass(frozen=True)
class OtherOrigins:
    """How many results do not count, by their origin; only origins that have any."""

    counts: Mapping[str, int]

    @classmethod
    def of(cls, counts: Iterable[tuple[str, int]]) -> Self:
        """Put the origin of most results first."""
        ordered = sorted(counts, key=lambda pair: (-pair[1], pair[0]))
        return cls({origin: count for origin, count in ordered if count})

    @property
    def nbytes(self) -> int:
        return 500

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def words(self) -> str:
        """Say how many there are of each: `60 production and 1 external results`."""
        parts = [f"{format_count(count)} {origin}" for origin, count in self.counts.items()]
        return f"{join(parts)} result{'s' * (self.total != 1)}"


NONE = OtherOrigins({})


def of_grid(grid: Grid) -> OtherOrigins:
    """Count the results of the links that a matrix shows, in its size class."""
    query, links = grid.query, registry.read_links(grid.version)
    shown = links.matching(query.filters).reshape(links.shape)
    return of_links(
        [query.size], query.filters, grid.window, links.numbering, shown, version=grid.version
    )


def of_table(table: LinkTable, query: MatrixQuery, version: DataVersion | None) -> OtherOrigins:
    """Count the results of the links that a table is about, in every size class."""
    links = LinkIndex(table.places)
    shown = links.matching(query.filters).reshape(links.shape)
    return of_links(
        table.sizes, query.filters, table.window, links.numbering, shown, version=version
    )


def of_links(
    sizes: Iterable[str],
    filters: Sequence[Filter],
    window: Window,
    numbering: Numbering,
    shown: Flags,
    *,
    version: DataVersion | None,
) -> OtherOrigins:
    """Count the results of some links, ``shown`` by the numbers of their places.

    The answer is kept as long as the ``version`` holds; before it takes what runs.others() does.
    """
    sizes = tuple(sizes)

    def look() -> OtherOrigins:
        is_shown, counts = np.pad(shown, (0, 1)).ravel(), Counter[str]()
        for origin, keys in runs.others(sizes, window, filters):
            counts[origin] += int(np.count_nonzero(is_shown[numbering.numbers(keys)]))
        return OtherOrigins.of(counts.items())

    if version is None:
        return look()
    key = ("other origins", version, sizes, tuple(filters), window)
    others: OtherOrigins = ANSWERS.get(key, look)
    return others


def of_link(
    ends: tuple[int, int], filters: Sequence[Filter], window: Window, size: str = ""
) -> OtherOrigins:
    """Count the results of one direction of a link, of one size class or of all.

    One SQL query or, where the filters name an origin, none.
    """
    if any(condition.parameter == ORIGIN for condition in filters):
        return NONE
    rows = Transfer.objects.filter(
        source=ends[0],
        destination=ends[1],
        started_at__gte=window.start,
        started_at__lt=window.end,
        state__in=[Transfer.State.DONE, Transfer.State.FAILED],
    )
    if size:
        rows = rows.filter(size_class__name=size)
    others = made_so(rows, counted((*filters, OTHER_ORIGINS))).order_by()
    return OtherOrigins.of(others.values_list("profile__origin").annotate(Count("id")))
