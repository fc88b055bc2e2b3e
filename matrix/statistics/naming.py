"""Which endpoint, site or link explains what changed between two windows. Pure numpy.

Most of a grid has not changed: there are a few causes, and each has changed the rates of all of its
links by one factor. They are named one after the other, the one that explains most first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from matrix.statistics.arrays import Floats
from matrix.statistics.cause_search import CauseSearch, Rules
from matrix.statistics.cell_noise import CellNoise, LinkNoise
from matrix.statistics.suspects import Kind, MatrixCells, every_suspect

# How often something of a kind may be named in a comparison in which nothing changed. Tried on
# simulated grids (docs/diagnosis.md): all together less than 2 %.
FALSE_ALARMS: Mapping[Kind, float] = MappingProxyType(
    {"source": 0.008, "destination": 0.008, "both": 0.0005, "site": 0.001, "link": 0.0005}
)
# Of more endpoints than these each stands out more, and less need be spent: by the root of both.
MANY_ENDPOINTS = 20
# Where it had to be learned which cells are noisier or alike, what stands out does so a little more
# easily by chance.
LEARNED = 0.5
# With a history, endpoints stand out anyhow: single links need what may be spent.
OF_HISTORY: Mapping[Kind, float] = MappingProxyType(
    {"source": 0.0003, "destination": 0.0003, "both": 0.0001, "site": 0.0002, "link": 0.0125}
)


@dataclass(frozen=True)
class Cause:
    """What all links of an endpoint or site, or one link, have that other links have not.

    ``factor`` is by how much their rates changed beyond those of all others, ``low`` to ``high``
    its 95 % interval, ``n`` the number of links that it rests on. ``p`` is how probable it is that
    anything of this kind looks as changed by chance. A source has no ``column``, a destination no
    ``row``. A site has its first ones, and no row, say, if only what it receives has changed.
    """

    kind: Kind
    row: int | None
    column: int | None
    factor: float
    low: float
    high: float
    p: float
    n: int


def name_causes(
    logs: Floats,
    *,
    sites: Sequence[str] | None = None,
    spread: Floats | float | None = None,
    endpoints: Sequence[str] | None = None,
) -> list[Cause]:
    """Return what changed, most certain first; nothing for 98 in 100 comparisons without a change.

    ``logs`` are logs of the ratio this / other of each cell, NaN for holes, shape (rows, columns).
    ``spread`` says how much more one cell scatters than another, up to a factor: for medians of n
    and m transfers, the root of 1/n + 1/m. ``sites`` are the sites of the rows, then of the columns
    (or of both at once, if there are as many), and ``endpoints`` their endpoints: without them, the
    rows of a square matrix are the endpoints of its columns. Raises ValueError for other numbers.
    """
    cells = MatrixCells.of(np.isfinite(logs), endpoints, sites)
    if not len(cells):
        return []
    relative = None if spread is None else np.broadcast_to(np.asarray(spread, float), logs.shape)
    noise = CellNoise.of(logs, relative, cells.site_of_row, cells.site_of_column)
    share = min(1.0, np.sqrt(MANY_ENDPOINTS / max(logs.shape)))
    if noise.is_uneven:
        share *= LEARNED
    alarms = {kind: share * often for kind, often in FALSE_ALARMS.items()}
    return _named(logs, cells, noise, Rules(alarms))


def name_slower(
    logs: Floats,
    history: Floats,
    *,
    spread: tuple[Floats, Floats] | None = None,
    sites: Sequence[str] | None = None,
    endpoints: Sequence[str] | None = None,
) -> list[Cause]:
    """Return what is slower than in its own history, most certain first.

    ``logs`` are log rates of a window, shape (rows, columns), and ``history`` those of earlier
    windows as long, shape (windows, rows, columns), NaN for holes; ``spread`` has how both scatter,
    up to a factor: the root of 1 / n of their transfers. A link is judged by its own scatter, and
    30 windows of it make single links stand out that one comparison cannot tell from noise. Else as
    name_causes().
    """
    spread_now, spread_then = spread or (np.ones_like(logs), np.ones_like(history))
    link = LinkNoise.of(history, spread_then)
    scatter = np.sqrt(np.square(link.scatter * spread_now) + np.square(link.error))
    changes = np.where(scatter > 0, logs - link.usual, np.nan)
    cells = MatrixCells.of(np.isfinite(changes), endpoints, sites)
    if not len(cells):
        return []
    rest = (history - link.usual) / (link.scatter * spread_then)
    scatter = np.where(np.isfinite(changes), scatter, np.nan)
    noise = CellNoise.of_history(scatter, rest, cells.site_of_row, cells.site_of_column)
    return _named(changes, cells, noise, Rules(OF_HISTORY, slower_only=True, known_dof=link.dof))


def _named(logs: Floats, cells: MatrixCells, noise: CellNoise, rules: Rules) -> list[Cause]:
    search = CauseSearch(logs[cells.row, cells.column], noise, list(every_suspect(cells)), rules)
    search.run()
    return [
        Cause(
            kind=effect.suspect.sets.kind,
            row=effect.suspect.row,
            column=effect.suspect.column,
            factor=float(np.exp(effect.value)),
            low=float(np.exp(effect.value - effect.reach)),
            high=float(np.exp(effect.value + effect.reach)),
            p=effect.p,
            n=effect.suspect.n,
        )
        for effect in sorted(search.effects(), key=lambda effect: (effect.p, -abs(effect.t)))
        if effect.value < 0 or not rules.slower_only
    ]
