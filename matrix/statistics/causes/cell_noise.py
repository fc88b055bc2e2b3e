"""How noisy the cells of a matrix are, and how alike the errors of cells of one site are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from matrix.statistics.arrays import Floats, Integers, Places
from matrix.statistics.causes.candidates import MatrixCells
from matrix.statistics.estimates import two_way

# Rounds in which the two parts of a cell's variance are weighed against each other.
ROUNDS = 4
# A residual counts no more than so many of its standard deviations: a link that changed for its
# own reasons is no noise.
FARTHEST = 2.5
# A correlation above this would leave hardly anything to a cell of its own.
HIGHEST = 0.8
# By so many of its standard errors the correlation is taken for more where one window has to tell
# it: too little makes false alarms. Where the noise is known, more would make links stand out.
LEAN = 1.5
# With fewer windows a link has no history.
FEWEST_WINDOWS = 5
# Links whose scatter is alike are as good as this many windows of each.
MOST_LINK_DOF = 10_000.0
# Below so many pairs of cells that share their sites, nothing can be learned from them.
FEWEST_PAIRS = 10


@dataclass(frozen=True)
class CellNoise:
    """The covariance of the errors of n cells, up to a factor.

    ``scale`` are standard deviations; errors of two cells of one block correlate by
    ``correlation``, others not at all. ``block`` numbers the block of each cell.
    """

    scale: Floats
    block: Integers
    correlation: float

    @classmethod
    def of(
        cls, logs: Floats, spread: Floats | None, site_of_row: Integers, site_of_column: Integers
    ) -> Self:
        """Estimate it from what rows and columns leave unexplained.

        ``spread`` says how much more one cell scatters than another, shape of ``logs``, up to a
        factor; None for all alike. A block are the cells from one site to one site.
        """
        has_value = np.isfinite(logs)
        row, column = np.nonzero(has_value)
        row_site, column_site = site_of_row[row], site_of_column[column]
        scale, block = np.ones(len(row)), _blocks(row_site, column_site)
        differs = spread is not None and np.ptp(spread[has_value]) > 0
        if not differs and block.max(initial=-1) == len(row) - 1:
            return cls(scale, block, 0.0)
        model = two_way.fit(logs)
        spare = np.maximum(1 - model.leverage, 0)[has_value]
        rest = np.where(spare > 1e-6, model.rest[has_value], 0.0)
        if spread is not None and differs and model.dof > 0:
            scale = _scale(np.square(rest), spare, np.square(spread[has_value]))
        even = np.full((1, *logs.shape), np.nan)
        even[0, row, column] = rest / scale
        return cls(scale, block, _correlation(even, site_of_row, site_of_column, LEAN))

    @classmethod
    def of_history(
        cls, scatter: Floats, rest: Floats, site_of_row: Integers, site_of_column: Integers
    ) -> Self:
        """Take the standard deviations of the cells, which are known; shape (rows, columns).

        ``rest`` is what each of many windows has beyond the usual, in standard deviations, shape
        (windows, rows, columns): how alike errors are is learned from all of them.
        """
        row, column = np.nonzero(np.isfinite(scatter))
        block = _blocks(site_of_row[row], site_of_column[column])
        correlation = 0.0
        if block.max(initial=-1) < len(row) - 1:
            correlation = _correlation(rest, site_of_row, site_of_column)
        return cls(scatter[row, column], block, correlation)

    @classmethod
    def of_cells(cls, scatter: Floats, rest: Floats, cells: MatrixCells) -> Self:
        """Do as of_history() does with one window, whose holes cost nothing: by its cells."""
        row, column = cells.row, cells.column
        row_site, column_site = cells.site_of_row[row], cells.site_of_column[column]
        block = _blocks(row_site, column_site)
        if block.max(initial=-1) == len(row) - 1:
            return cls(scatter, block, 0.0)
        sites = int(max(row_site.max(), column_site.max())) + 1
        cut = np.clip(rest, *(FARTHEST * np.sqrt(np.square(rest).mean()) * np.array([-1, 1])))
        sums = []
        for every, near in ((row, row * sites + column_site), (column, column * sites + row_site)):
            groups = [np.unique(near, return_inverse=True)[1], every]
            sums.append(
                [
                    float(np.square(np.bincount(group, values)).sum())
                    for values in (None, cut)
                    for group in groups
                ]
            )
        return cls(scatter, block, _alike(sums, float(np.square(cut).sum()), len(rest)))

    @property
    def is_uneven(self) -> bool:
        """Say whether cells differ in their noise, or some errors resemble each other."""
        return self.correlation > 0 or bool(np.any(self.scale != self.scale[0]))

    def solve(self, values: Floats) -> Floats:
        """Return the inverse of the covariance times the values of n cells."""
        scaled = values / self.scale
        if self.correlation:
            scaled = scaled - (self._shrinkage * np.bincount(self.block, scaled))[self.block]
        return scaled / self.scale / (1 - self.correlation)

    def quadratic(self, cell: Places, member: Places, count: int) -> Floats:
        """Return c' V^-1 c of ``count`` sets: cell ``cell[k]`` is in set ``member[k]``, once."""
        inverse = 1 / self.scale[cell]
        if cell is member:  # each by itself
            own = np.square(inverse)
            shared = own * self._shrinkage[self.block] if self.correlation else 0.0
            return np.asarray((own - shared) / (1 - self.correlation))
        total = np.bincount(member, np.square(inverse), count)
        if self.correlation:
            blocks = int(self.block.max()) + 1
            block_of = member.astype(np.int64) * blocks + self.block[cell]
            pairs, pair = np.unique(block_of, return_inverse=True)
            shared = np.square(np.bincount(pair, inverse)) * self._shrinkage[pairs % blocks]
            total -= np.bincount(pairs // blocks, shared, count)
        return np.asarray(total / (1 - self.correlation))

    @cached_property
    def _shrinkage(self) -> Floats:
        size = np.bincount(self.block)
        return np.asarray(self.correlation / (1 + (size - 1) * self.correlation))


def _scale(squares: Floats, spare: Floats, relative: Floats) -> Floats:
    """Return standard deviations: a part that all cells share and one that is as ``relative``.

    ``squares`` are of residuals, which keep the share ``spare`` of their variance.
    """
    relative = relative / relative.mean()
    shared, own = 0.5, 0.5
    level = float(squares.sum() / spare.sum())
    if level <= 0:
        return np.ones(len(squares))
    design = np.stack([spare, spare * relative])
    for _ in range(ROUNDS):
        variance = level * (shared + own * relative)
        cut = np.minimum(squares, FARTHEST**2 * variance * spare)
        weight = 1 / np.square(variance)
        normal = (design * weight) @ design.T
        shared, own = np.linalg.lstsq(normal, (design * weight) @ cut, rcond=None)[0]
        level, whole, share = max(float(cut.sum() / spare.sum()), 1e-300), shared + own, 1.0
        if whole > 0:
            # Squares of normal numbers have twice the square of their mean as variance. Two errors
            # more of ``relative`` keep cells of few transfers from being taken for precise ones.
            slope = np.array([-own, shared]) / whole**2
            error = np.sqrt(max(float(2 * slope @ np.linalg.pinv(normal) @ slope), 0.0))
            share = float(np.clip(own / whole + 2 * error, 0, 1))
        shared, own = 1 - share, share
    return np.sqrt(shared + own * relative)


def _blocks(row_site: Integers, column_site: Integers) -> Integers:
    """Number the blocks of cells from one site to one site."""
    sites = int(column_site.max(initial=0)) + 1
    key = row_site * sites + column_site
    # As np.unique does, which sorts: of a million cells that takes nine times as long.
    is_there = np.zeros(int(key.max(initial=0)) + 1, dtype=bool)
    is_there[key] = True
    return np.asarray((np.cumsum(is_there) - 1)[key])


def _correlation(
    rest: Floats, site_of_row: Integers, site_of_column: Integers, lean: float = 0.0
) -> float:
    """Return how alike residuals of one site are, more than others of their row or column.

    ``rest`` has shape (windows, rows, columns), NaN for holes. What counts is how pairs of the same
    site differ from other pairs of the row, which are a little unlike where rows and columns have
    been taken out. It is taken for ``lean`` of its standard errors more.
    """
    has_value = np.isfinite(rest)
    ones = has_value.astype(float)
    values = np.where(has_value, rest, 0.0)
    farthest = FARTHEST * float(np.sqrt(np.square(values).sum() / max(ones.sum(), 1)))
    cut = np.clip(values, -farthest, farthest)
    whole = float(np.square(cut).sum())
    sums = [
        [
            float(np.square(each).sum())
            for part in (ones, cut)
            for each in (_by_site(part, site, axis), part.sum(axis))
        ]
        for axis, site in ((2, site_of_column), (1, site_of_row))
    ]
    return _alike(sums, whole, float(ones.sum()), lean)


def _alike(sums: Iterable[Sequence[float]], whole: float, count: float, lean: float = 0.0) -> float:
    """Return how alike residuals are, as _correlation() does, by sums of squares.

    ``sums`` are those of rows and of columns: of the numbers of cells by site and altogether, and
    of their residuals likewise. ``whole`` is the sum of the squares of ``count`` residuals.
    """
    covariance, pairs = 0.0, 0.0
    for near_pairs, row_pairs, near, row in sums:
        alike_pairs, every_pairs = near_pairs - count, row_pairs - count
        if alike_pairs and every_pairs > alike_pairs:
            alike, every = near - whole, row - whole
            other = (every - alike) / (every_pairs - alike_pairs)
            covariance += alike - other * alike_pairs
            pairs += alike_pairs
    if pairs < FEWEST_PAIRS or whole <= 0:
        return 0.0
    alike = covariance / pairs / (whole / count)
    return float(np.clip(alike + lean * np.sqrt(2 / pairs), 0, HIGHEST))


def _by_site(values: Floats, site: Integers, axis: int) -> Floats:
    """Return the sums of the values of each site along an axis."""
    order = np.argsort(site, kind="stable")
    first = np.flatnonzero(np.diff(site[order], prepend=-1))
    return np.asarray(np.add.reduceat(np.take(values, order, axis), first, axis))


@dataclass(frozen=True)
class LinkNoise:
    """What is usual for each link, and how far one window of it scatters; shape (rows, columns).

    ``usual`` is the mean of its windows, ``error`` its standard error; ``scatter`` is the standard
    deviation of a window of spread 1, from ``dof`` degrees of freedom. NaN for too little history.
    """

    usual: Floats
    error: Floats
    scatter: Floats
    dof: int

    @classmethod
    def of(cls, history: Floats, spread: Floats) -> Self:
        """Take logs of windows and their spread. Scatter is drawn to that of all links."""
        has_value = np.isfinite(history)
        weight = np.where(has_value, 1 / np.square(spread), 0.0)
        whole = np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
        values = np.where(has_value, history, 0.0)
        usual = (weight * values).sum(axis=0) / whole
        squares = (weight * np.square(values - usual)).sum(axis=0)
        count = has_value.sum(axis=0)
        enough, own_dof = count >= FEWEST_WINDOWS, count - 1
        if not enough.any():
            nothing = np.full(count.shape, np.nan)
            return cls(nothing, nothing, nothing, 1)
        pooled = float(squares[enough].sum() / own_dof[enough].sum())
        # Of how many dof all links together tell the variance of each. The variances of links
        # (about 1) scatter by chance with a variance of 2 / dof; what is beyond it is true.
        relative = squares[enough] / own_dof[enough] / max(pooled, np.finfo(float).tiny)
        prior = 0.0
        if len(relative) > 1:
            beyond = float(np.var(relative, ddof=1) - np.mean(2 / own_dof[enough]))
            prior = float(np.clip(4 + 2 / max(beyond, 1e-9), 0, MOST_LINK_DOF))
        scatter = np.sqrt((prior * pooled + squares) / (prior + np.maximum(own_dof, 0)))
        scatter = np.where(enough, scatter, np.nan)
        dof = int(prior + np.median(own_dof[enough]))
        return cls(np.where(enough, usual, np.nan), scatter / np.sqrt(whole), scatter, dof)
