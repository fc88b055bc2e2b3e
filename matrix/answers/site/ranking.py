"""How sites stand at one end of their links: their means, their rank, their fastest transfer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrix.answers.matrix.grid import Grid
from matrix.statistics.arrays import Floats, Integers
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.samples.reduce import averages, ratio
from sonar.notation.units import MB

ENDS = ("source", "destination")


@dataclass(frozen=True)
class RankedSide:
    """A matrix seen from one end: the groups of that end are the rows of all arrays.

    Rates are in MB/s; ``fastest`` is the best single one. ``failing`` and ``slower`` count links,
    ``to_usual`` is what is now over what is usual.
    """

    end: str
    groups: tuple[AxisGroup, ...]
    partners: tuple[AxisGroup, ...]
    mean: Floats
    fastest: Floats
    ok: Integers
    failed: Integers
    last: Floats
    failing: Integers
    slower: Integers
    to_usual: Floats

    @classmethod
    def of(cls, grid: Grid, end: str) -> RankedSide:
        """Turn a grid with the extra `max` so that this end is first."""
        cells = grid.cells
        is_source = end == "source"
        groups, partners = grid.sources, grid.destinations
        if not is_source:
            groups, partners = partners, groups
        arrays = (
            *(cells.mean, cells.extras["max"], cells.ok, cells.failed, cells.last),
            *(cells.failing_links, cells.slower_links, ratio(cells.now, cells.usual)),
        )
        turned = arrays if is_source else [array.T for array in arrays]
        return cls(end, groups, partners, *turned)

    def row_of(self, name: str) -> int | None:
        names = [group.name for group in self.groups]
        return names.index(name) if name in names else None

    @property
    def tiers(self) -> Integers:
        """Return the tier of each group; a site has one."""
        tiers = [-1 if group.tier is None else group.tier for group in self.groups]
        return np.array(tiers, dtype=np.int64)


@dataclass(frozen=True)
class Standing:
    """A site at one end of its links in one size class. Rates in MB/s, NaN where there is none.

    ``mean`` is that of its ``cells`` measured cells, as the matrix of sites has it beside its
    row or column. ``rank`` counts from the fastest of the ``ranked`` sites of its tier that
    have one; ``peers_median`` is that of the others' means. ``failing`` and ``slower`` are how many
    of its links are, ``to_usual`` the median of what its cells are to their usual.
    """

    mean: float = np.nan
    cells: int = 0
    ok: int = 0
    failed: int = 0
    last: float = np.nan
    rank: int | None = None
    ranked: int = 0
    peers_median: float = np.nan
    fastest: float = np.nan
    fastest_partner: str = ""
    failing: int = 0
    slower: int = 0
    to_usual: float = np.nan

    @property
    def success(self) -> float:
        """Return the share of tests that were ok."""
        return float(ratio(np.int64(self.ok), np.int64(self.ok + self.failed)))

    @property
    def to_peers(self) -> float:
        return float(ratio(np.float64(self.mean), np.float64(self.peers_median)))

    def of_capacity(self, wan_gbit_s: float | None) -> float:
        """Return which share of the nominal WAN capacity the fastest transfer took."""
        return self.fastest / capacity(wan_gbit_s) if wan_gbit_s else np.nan


def capacity(wan_gbit_s: float) -> float:
    """Turn Gbit/s into MB/s."""
    return wan_gbit_s * 1e9 / 8 / MB


def standings(side: RankedSide) -> list[Standing]:
    """Return the standing of each group at this end."""
    means = averages(side.mean).row
    return [standing(side, row, means, side.tiers) for row in range(len(side.groups))]


def standing_of(side: RankedSide, name: str, tier: int) -> Standing:
    """Return the standing of one site; without a row at this end it still has peers."""
    row, means = side.row_of(name), averages(side.mean).row
    if row is not None:
        return standing(side, row, means, side.tiers)
    peers = means[(side.tiers == tier) & ~np.isnan(means)]
    median = float(np.median(peers)) if peers.size else np.nan
    return Standing(ranked=len(peers), peers_median=median)


def standing(side: RankedSide, row: int, means: Floats, tiers: Integers) -> Standing:
    ranked = (tiers == tiers[row]) & ~np.isnan(means)
    peers = means[ranked & (np.arange(len(means)) != row)]
    fastest, partner = best(side, row)
    ratios = side.to_usual[row][~np.isnan(side.to_usual[row])]
    return Standing(
        mean=float(means[row]),
        cells=int((side.ok[row] > 0).sum()),
        ok=int(side.ok[row].sum()),
        failed=int(side.failed[row].sum()),
        last=float(np.fmax.reduce(side.last[row], initial=np.nan)),
        rank=None if np.isnan(means[row]) else int((peers > means[row]).sum()) + 1,
        ranked=int(ranked.sum()),
        peers_median=float(np.median(peers)) if peers.size else np.nan,
        fastest=fastest,
        fastest_partner=partner,
        failing=int(side.failing[row].sum()),
        slower=int(side.slower[row].sum()),
        to_usual=float(np.median(ratios)) if ratios.size else np.nan,
    )


def best(side: RankedSide, row: int) -> tuple[float, str]:
    """Return the best single rate, and with whom; what stays within the site is no WAN."""
    own = side.groups[row].name
    outside = np.array([group.name != own for group in side.partners], dtype=bool)
    rates = np.where(outside, side.fastest[row], np.nan)
    if np.isnan(rates).all():
        return np.nan, ""
    at = int(np.nanargmax(rates))
    return float(rates[at]), side.partners[at].name
