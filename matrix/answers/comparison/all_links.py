"""All links of a size class compared at once: what is said of one is said among all of them.

Whichever page asks, and whatever it filters: so the same link is slower on all of them or on none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from matrix.answers import grid
from matrix.answers.grid import Grid
from matrix.answers.ratio_words import PairRatio
from matrix.query.filters import on_profiles
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.compare.two_samples import Ratios

Link = tuple[str, str]


def build(query: MatrixQuery, now: datetime) -> Grid:
    """Compare all links as a question compares some of them."""
    if query.compare is None:
        raise ValueError("the question is compared with nothing")
    whole = query.replace(
        stat=MatrixQuery.stat,
        rows="endpoint",
        columns="endpoint",
        max_age="",
        filters=tuple(on_profiles(query.filters)),
        compare=query.compare.on_profiles() or query.compare,
    )
    return grid.build(whole, now)


def ratios_of(whole: Grid, links: Sequence[Link]) -> Ratios:
    """Return how some links compare, given by the names of their ends; NaN for unknown ones."""
    ratios = whole.comparison
    if ratios is None:
        raise ValueError("the question is compared with nothing")
    rows = {group.name: row for row, group in enumerate(whole.sources)}
    columns = {group.name: column for column, group in enumerate(whole.destinations)}
    places = [(rows.get(source, -1), columns.get(there, -1)) for source, there in links]
    row, column = np.array(places, dtype=np.int64).reshape(-1, 2).T
    is_known = (row >= 0) & (column >= 0)
    return Ratios.blank(len(links)).put(is_known, ratios.taken((row[is_known], column[is_known])))


def of_link(query: MatrixQuery, now: datetime, source: str, destination: str) -> PairRatio:
    """Return how one link compares."""
    return PairRatio.at(ratios_of(build(query, now), [(source, destination)]), (0,))
