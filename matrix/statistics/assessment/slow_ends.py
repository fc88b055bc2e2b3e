"""Which endpoints, sites or links explain rates that have changed. Pure numpy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.assessment.grid_links import ENDPOINT, SITE, GridLinks, Subject
from matrix.statistics.causes.candidates import Kind, MatrixCells
from matrix.statistics.causes.causes import CauseSearch, Rules
from matrix.statistics.causes.cell_noise import CellNoise

# How often something of a kind is named by chance, each time that the judge looks closer.
SEEN: Mapping[Kind, float] = {
    "source": 0.02,
    "destination": 0.02,
    "both": 5e-3,
    "site": 5e-3,
    "link": 0.3,
}
# Fewer links than these have nothing to be told from.
FEWEST_CELLS = 4


class Changes(NamedTuple):
    """By how much the rates of ``links`` have changed (natural logs), with standard errors, and
    the number of ``tests`` since."""

    links: Integers
    shift: Floats
    error: Floats
    tests: Integers


def name_slow(changes: Changes, dof: int, links: GridLinks) -> Iterator[tuple[Subject, float]]:
    """Yield the ends, sites and links that explain what changed, with their shifts.

    Those that became faster are named, too: else all others would look slower.
    """
    ends = len(links.site)
    matrix, scatter = np.full((2, ends, ends), np.nan)
    cell = links.source[changes.links], links.destination[changes.links]
    matrix[cell], scatter[cell] = changes.shift, changes.error
    is_known = np.isfinite(matrix) & (scatter > 0)
    cells = MatrixCells.of(is_known, None, [f"{site:06}" for site in links.site])
    if len(cells) < FEWEST_CELLS:
        return
    scatter = np.where(is_known, scatter, np.nan)
    noise = CellNoise.of_history(
        scatter, (matrix / scatter)[None], cells.site_of_row, cells.site_of_column
    )
    rules = Rules(SEEN, slower_only=True, known_dof=dof, after_the_first=1.0)
    search = CauseSearch(matrix[cells.row, cells.column], cells, noise, rules)
    search.run()
    if not search.named:
        return
    effects = search.model(search.named).effects[1:].tolist()
    for candidate, shift in zip(search.named, effects, strict=True):
        row, column, kind = candidate.row, candidate.column, candidate.sets.kind
        end = row if row is not None else column
        if kind == "site":
            yield Subject(SITE, site=int(links.site[end])), shift
        elif kind == "both":
            yield Subject(ENDPOINT, end, end), shift
        else:
            yield Subject(kind, row, column), shift
