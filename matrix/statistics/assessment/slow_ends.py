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
    # By source, then by destination.
    order = np.lexsort((links.destination[changes.links], links.source[changes.links]))
    order = order[np.isfinite(changes.shift[order]) & (changes.error[order] > 0)]
    if len(order) < FEWEST_CELLS:
        return
    place, shift, error = changes.links[order], changes.shift[order], changes.error[order]
    ends, site = np.arange(len(links.site)), np.unique(links.site, return_inverse=True)[1]
    cells = MatrixCells(links.source[place], links.destination[place], ends, ends, site, site)
    noise = CellNoise.of_cells(error, shift / error, cells)
    rules = Rules(SEEN, slower_only=True, known_dof=dof, after_the_first=1.0)
    search = CauseSearch(shift, cells, noise, rules)
    search.run()
    if not search.named:
        return
    effects = search.model(search.named).effects[1:].tolist()
    for candidate, effect in zip(search.named, effects, strict=True):
        row, column, kind = candidate.row, candidate.column, candidate.sets.kind
        end = row if row is not None else column
        if kind == "site":
            yield Subject(SITE, site=int(links.site[end])), effect
        elif kind == "both":
            yield Subject(ENDPOINT, end, end), effect
        else:
            yield Subject(kind, row, column), effect
