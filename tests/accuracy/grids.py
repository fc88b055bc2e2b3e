"""Simulated grids: which links are tested, how often, and how noisy what is measured is."""

from dataclasses import dataclass

import numpy as np

from matrix.statistics.arrays import Flags, Floats

# Noise is what is given where a cell has so many transfers in both windows.
TRANSFERS = 10
FEWEST, MOST = 3, 60
# Of the logarithm of the number of transfers, where cells differ in it.
UNEVENNESS = 0.6
# The correlation of the errors of links between the same two sites, where they are alike.
LIKENESS = 0.2
# How many endpoints the sites have, in turn.
ENDPOINTS = (1, 2, 1, 3, 1, 1)


@dataclass(frozen=True)
class Windows:
    """Errors of log rates in windows, and how many transfers each cell has; (windows, n, n)."""

    errors: Floats
    transfers: Floats

    def change(self, new: int, old: int) -> tuple[Floats, Floats]:
        """Return the mean of the first ``new`` windows less that of the next ``old``; its spread.

        The spread is given up to a factor, as from numbers of transfers.
        """
        later, earlier = self.errors[:new], self.errors[new : new + old]
        shares = 1 / self.transfers
        variance = shares[:new].mean(axis=0) / new + shares[new : new + old].mean(axis=0) / old
        return later.mean(axis=0) - earlier.mean(axis=0), np.sqrt(variance)


@dataclass(frozen=True)
class Grid:
    """``missing`` is the share of links that are not tested. A full one has its diagonal too.

    In a ``hard`` one cells have different numbers of transfers, and errors of links between the
    same two sites resemble each other.
    """

    size: int
    missing: float = 0.0
    hard: bool = False

    @property
    def name(self) -> str:
        words = f"{self.size} × {self.size}"
        words += f", {self.missing:.0%} missing" if self.missing else ", full"
        return words + (", uneven and alike" if self.hard else "")

    def sites(self) -> list[str]:
        """Return the site of each endpoint: several have one only in a hard grid."""
        sizes = [ENDPOINTS[site % len(ENDPOINTS)] if self.hard else 1 for site in range(self.size)]
        return [f"site {site}" for site, size in enumerate(sizes) for _ in range(size)][: self.size]

    def tested(self, rng: np.random.Generator) -> Flags:
        shape = (self.size, self.size)
        if not self.missing:
            return np.ones(shape, dtype=bool)
        return (rng.random(shape) >= self.missing) & ~np.eye(self.size, dtype=bool)

    def windows(self, rng: np.random.Generator, noise: float, count: int) -> Windows:
        """Draw windows; ``noise`` is the factor by which the change between two scatters."""
        shape = (count, self.size, self.size)
        errors, transfers = rng.normal(size=shape), np.full(shape, float(TRANSFERS))
        if self.hard:
            group = np.unique(self.sites(), return_inverse=True)[1]
            sites = int(group.max()) + 1
            shared = rng.normal(size=(count, sites, sites))[:, group[:, None], group]
            errors = np.sqrt(1 - LIKENESS) * errors + np.sqrt(LIKENESS) * shared
            drawn = TRANSFERS * np.exp(UNEVENNESS * rng.normal(size=shape))
            transfers = np.clip(np.round(drawn), FEWEST, MOST)
        # In a mean of squares over the cells, all grids are as noisy.
        scatter = np.sqrt(1 / transfers / np.mean(1 / transfers))
        return Windows(np.log(noise) / np.sqrt(2) * scatter * errors, transfers)
