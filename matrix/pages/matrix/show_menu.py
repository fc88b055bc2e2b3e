"""The menus that say what the cells show, and by what rows and columns are grouped."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from matrix.pages.compare import OF_LABELS
from matrix.pages.controls import Choice
from matrix.pages.matrix.address import MatrixAddress
from matrix.plots.display import BOUNDS
from matrix.query.attributes import GROUPINGS
from matrix.query.catalogue import STATISTICS
from matrix.query.comparison import OF
from matrix.query.matrix_query import MatrixQuery


def shows(page: MatrixAddress) -> Iterator[Choice]:
    """Yield what cells may show: a statistic or, while comparing, a ratio of which."""
    compare = page.query.compare
    if compare is None:
        for name, statistic in STATISTICS.items():
            chosen = name == page.query.stat
            yield Choice(statistic.label, of_statistic(page, name), chosen, statistic.purpose)
        return
    for name in OF:
        query = page.query.replace(compare=dataclasses.replace(compare, of=name))
        yield Choice(f"ratio of {OF_LABELS[name]}", page.asking(query).url(), name == compare.of)


def of_statistic(page: MatrixAddress, name: str) -> str:
    """Return the address of another statistic, without bounds that are in another unit."""
    display = page.display
    if STATISTICS[name].unit != page.query.statistic.unit:
        display = display.replace(**dict.fromkeys(BOUNDS))
    return page.asking(page.query.replace(stat=name)).displaying(display).url()


def groupings(page: MatrixAddress) -> Iterator[Choice]:
    """Yield by what both rows and columns may be grouped."""
    query = page.query
    for name in GROUPINGS:
        url = page.asking(query.replace(rows=name, columns=name)).url()
        yield Choice(name, url, query.rows == query.columns == name)


def grouping_words(query: MatrixQuery) -> str:
    return query.rows if query.rows == query.columns else f"{query.rows} × {query.columns}"
