"""Which endpoint, site or link explains what changed between two windows. Pure numpy.

A few causes have each changed the rates of all of their links by one factor. They are named one
after the other, the one that explains most first: forward selection with studentised t.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from types import MappingProxyType
from typing import Self

import numpy as np

from matrix.statistics.arrays import Floats
from matrix.statistics.causes.candidates import (
    Candidate,
    CandidateSets,
    Kind,
    MatrixCells,
    Summed,
    every_candidate,
)
from matrix.statistics.causes.cell_noise import CellNoise, LinkNoise
from matrix.statistics.cells.standing import Rates
from matrix.statistics.estimates.student import quantile, survival

# How often something of a kind may be named in a comparison in which nothing changed. Tried on
# simulated grids (docs/diagnosis.md): all together less than 2 %.
FALSE_ALARMS: Mapping[Kind, float] = MappingProxyType(
    {"source": 0.008, "destination": 0.008, "both": 0.0005, "site": 0.001, "link": 0.0005}
)
# Of more endpoints than these each stands out more, and less need be spent: by the root of both.
MANY_ENDPOINTS = 20
# Where the noise had to be learned, something stands out by chance a little more easily.
LEARNED = 0.5
# With a history, endpoints stand out anyhow: single links need what may be spent.
OF_HISTORY: Mapping[Kind, float] = MappingProxyType(
    {"source": 0.0003, "destination": 0.0003, "both": 0.0001, "site": 0.0002, "link": 0.0125}
)
# Beside what has been named already, something more is named so much less easily.
AFTER_THE_FIRST = 1 / 8
# Smaller factors than this one are no news, however certain they are.
SMALLEST_FACTOR = 1.2
# So many causes at most: what has more of them has changed altogether.
MOST_CAUSES = 12
# A set that keeps less than this of its weight is a mixture of what has been named.
OWN = 1e-9


@dataclass(frozen=True)
class Cause:
    """What all links of an endpoint or site, or one link, have that other links have not.

    ``factor`` is by how much their rates changed beyond those of all others, ``low`` to ``high``
    its 95 % interval, ``n`` the number of its links. ``p`` is how probable it is that anything of
    this kind looks as changed by chance. A source has no ``column``, a destination no ``row``. A
    site has its first ones, but none of a direction that has not changed.
    """

    kind: Kind
    row: int | None
    column: int | None
    factor: float
    low: float
    high: float
    p: float
    n: int


@dataclass(frozen=True)
class Rules:
    """What is named: ``alarms`` are how often each kind may be named by chance.

    ``known_dof`` are the degrees of freedom of a noise that is known, and not up to a factor. With
    ``slower_only``, what is faster is named only to tell the others from it.
    """

    alarms: Mapping[Kind, float]
    slower_only: bool = False
    known_dof: int | None = None
    after_the_first: float = AFTER_THE_FIRST


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
    up to a factor: the root of 1 / n of their transfers. A link is judged by its own scatter. Else
    as name_causes().
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


def _named(logs: Floats | Rates, cells: MatrixCells, noise: CellNoise, rules: Rules) -> list[Cause]:
    values = logs[cells.row, cells.column].astype(float, copy=False)
    search = CauseSearch(values, cells, noise, rules)
    search.run()
    causes = sorted(search.causes(), key=lambda cause_and_t: (cause_and_t[0].p, -cause_and_t[1]))
    return [cause for cause, _ in causes if cause.factor < 1 or not rules.slower_only]


@dataclass(frozen=True)
class Model:
    """What is left of n cells beside a level and the causes named so far, by least squares.

    ``solved`` are the regressors, and ``rest`` the residuals, times the inverse of the covariance
    of the cells; ``inverse`` is the covariance of the ``effects``, ``squares`` are weighted.
    """

    solved: Sequence[Summed]
    inverse: Floats
    effects: Floats
    rest: Summed
    squares: float

    @classmethod
    def of(cls, values: Floats, regressors: Floats, cells: MatrixCells, noise: CellNoise) -> Self:
        solved = np.stack([noise.solve(regressor) for regressor in regressors])
        inverse = np.asarray(np.linalg.pinv(solved @ regressors.T, hermitian=True), dtype=float)
        effects = inverse @ (solved @ values)
        left = values - effects @ regressors
        rest = noise.solve(left)
        squares = float(left @ rest)
        return cls([*map(cells.summed, solved)], inverse, effects, cells.summed(rest), squares)

    @property
    def dof(self) -> int:
        return len(self.rest.of_cell) - len(self.effects)

    def added(
        self, sets: CandidateSets, weight: Floats, known_dof: int | None
    ) -> tuple[Floats, Floats]:
        """Return the effect of each set if it were added, and its t.

        ``weight`` are the sets' quadratic forms of the inverse covariance. The variance is that
        of what would be left, with ``dof`` - 1, if it is not known.
        """
        crossed = np.stack([sets.sums(solved) for solved in self.solved])
        own = weight - np.einsum("pm,pq,qm->m", crossed, self.inverse, crossed)
        usable = sets.possible & (own > OWN * weight)
        own = np.where(usable, own, 1.0)
        effect = np.where(usable, sets.sums(self.rest) / own, 0.0)
        if known_dof:
            return effect, effect * np.sqrt(own)
        left = np.maximum(self.squares - np.square(effect) * own, 1e-12 * self.squares)
        variance = left / (self.dof - 1)
        return effect, effect * np.sqrt(own / np.where(variance > 0, variance, 1.0))


class CauseSearch:
    """Names causes of the values of n cells; ``named`` are those found so far."""

    def __init__(self, values: Floats, cells: MatrixCells, noise: CellNoise, rules: Rules) -> None:
        self.values = values
        self.cells = cells
        self.noise = noise
        self.rules = rules
        self.named: list[Candidate] = []
        self.kinds = [sets for sets in every_candidate(cells) if sets.possible.any()]
        self.weights = [
            noise.quadratic(sets.cell, sets.member, len(sets.possible)) for sets in self.kinds
        ]
        self.directions = 1 if rules.slower_only else 2
        self.counts = Counter[Kind]()
        for sets in self.kinds:
            self.counts[sets.kind] += int(sets.possible.sum())

    def run(self) -> None:
        while len(self.named) < MOST_CAUSES and (candidate := self.likeliest(self.named)):
            self.named.append(candidate)
            # Beside the newest, another than what was named before may be likelier.
            for place in range(len(self.named) - 1):
                others = self.named[:place] + self.named[place + 1 :]
                self.named[place] = self.likeliest(others) or self.named[place]

    def model(self, named: Sequence[Candidate]) -> Model:
        cells = len(self.values)
        flags = [candidate.flags(cells) for candidate in named]
        regressors = np.stack([np.ones(cells), *flags])
        return Model.of(self.values, regressors, self.cells, self.noise)

    def likeliest(self, named: Sequence[Candidate]) -> Candidate | None:
        """Return what explains most beside what is named, of what is beyond chance."""
        model = self.model(named)
        dof = self.rules.known_dof or model.dof - 1
        if dof < 1 or model.dof < 2:
            return None
        best, candidate = 0.0, None
        tails = self.tails(bool(named))
        for sets, weight in zip(self.kinds, self.weights, strict=True):
            effect, t = model.added(sets, weight, self.rules.known_dof)
            # What became faster is looked for, too: unnamed, it would make all others look slower.
            matters = np.abs(effect) > np.log(SMALLEST_FACTOR)
            place = int(np.where(matters, np.abs(t), 0.0).argmax())
            # Beyond chance is farther out than of the normal distribution, which costs little.
            if not matters[place] or abs(t[place]) < _normal_quantile(1 - tails[sets.kind]):
                continue
            critical = _quantiles(tuple(1 - tail for tail in tails.values()), dof)
            limits = dict(zip(tails, critical, strict=True))
            gain = _gain(t[place], dof) - _gain(limits[sets.kind], dof)
            if gain > best:
                best, candidate = gain, Candidate(sets, place)
        return candidate

    def tails(self, is_further: bool) -> dict[Kind, float]:
        """Return how often one thing of each kind may be as far out by chance."""
        share = (self.rules.after_the_first if is_further else 1) / self.directions
        return {
            kind: self.rules.alarms[kind] * share / count for kind, count in self.counts.items()
        }

    def causes(self) -> Iterator[tuple[Cause, float]]:
        """Return what was named, each as one of all, with its |t|."""
        model = self.model(self.named)
        dof = self.rules.known_dof or model.dof
        if dof < 1:
            return
        variance = 1.0 if self.rules.known_dof else model.squares / max(model.dof, 1)
        errors = np.sqrt(np.maximum(np.diag(model.inverse) * variance, 1e-300))[1:]
        effects = model.effects[1:]
        ts = np.abs(effects / errors)
        tails = self.directions * survival(ts, dof)
        (reach,) = _quantiles((0.975,), dof)
        bounds = np.exp([effects, effects - errors * reach, effects + errors * reach])
        for candidate, (factor, low, high), t, tail in zip(
            self.named, bounds.T.tolist(), ts.tolist(), tails.tolist(), strict=True
        ):
            kind, row, column = candidate.sets.kind, candidate.row, candidate.column
            p = min(tail * self.counts[kind], 1.0)
            yield Cause(kind, row, column, factor, low, high, p, candidate.n), t


@lru_cache(maxsize=4096)
def _quantiles(probabilities: tuple[float, ...], dof: int) -> list[float]:
    return [float(value) for value in quantile(probabilities, dof)]


@lru_cache(maxsize=4096)
def _normal_quantile(probability: float) -> float:
    return NormalDist().inv_cdf(probability)


def _gain(t: float, dof: int) -> float:
    """Return twice the gain in log likelihood by an effect with this t."""
    return (dof + 1) * math.log1p(t * t / dof)
