"""How fast each end of the links of a matrix is against its peers, and what that leaves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags, Floats
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.cells import chances, explain
from matrix.statistics.estimates.moderation import discoveries
from matrix.statistics.estimates.student import two_sided
from matrix.statistics.estimates.two_way import FITS, TwoWay
from matrix.store.cache import ANSWERS
from matrix.store.data_version import DataVersion
from sonar.notation.enumeration import either

ENDS = ("source", "destination")
# What is made of the rates of each cell before the model is fitted.
OF = ("median", "mean")
# What is said of an end, see EndEffect.
KINDS = ("slow", "fast", "usual", "unknown")
# Smallest factor against its peers for which an end is called slow or fast. In a large matrix
# smaller factors are significant, too, but of no use to anybody.
NOTABLE = 1.5


@dataclass(frozen=True)
class EndEffect:
    """What a group does at one end, against all others there: ``factor``, 1 for as they do.

    ``low`` to ``high`` is the 95 % interval and ``p`` how probable the factor is by chance, NaN
    where it cannot be said. ``partners`` counts the cells that it is made of, ``component`` is the
    number of those that can be compared with each other. ``kind`` is `slow` or `fast` for what is
    significantly so (among all effects) and by NOTABLE, `usual` for what is not,
    `unknown` without an interval.
    """

    end: str
    group: AxisGroup
    factor: float
    low: float
    high: float
    p: float
    partners: int
    component: int
    kind: str


@dataclass(frozen=True)
class LinkRest:
    """A cell and what both ends do not explain of it: ``rate`` = ``predicted`` x ``factor``.

    In MB/s; ratios while comparing. ``significant`` is judged among all cells together.
    """

    source: AxisGroup
    destination: AxisGroup
    tests: int
    rate: float
    predicted: float
    factor: float
    p: float
    significant: bool


@dataclass(frozen=True)
class Attribution:
    """The two-way model of the rates, or ratios, of a grid.

    ``effects`` by end are the groups in the order of the grid, ``chances`` those of what is left.
    """

    grid: Grid
    values: Floats
    model: TwoWay
    effects: dict[str, list[EndEffect]]
    chances: Floats
    discoveries: Flags

    @property
    def nbytes(self) -> int:
        # The grid is kept beside it, too: whoever goes last takes its bytes along.
        arrays = (self.values, self.chances, self.discoveries, self.model)
        return self.grid.nbytes + sum(each.nbytes for each in arrays)

    def ranked(self, end: str) -> list[EndEffect]:
        """Return the groups of an end that have an effect, the slowest first."""
        effects = (effect for effect in self.effects[end] if not np.isnan(effect.factor))
        return sorted(effects, key=lambda effect: (effect.component, effect.factor))

    def links(self, most: int) -> list[LinkRest]:
        """Return the cells that the ends explain least, the furthest off first."""
        rest = self.model.rest
        distance = np.where(np.isnan(rest), -1.0, np.abs(rest)).ravel()
        first = np.argsort(-distance, kind="stable")[:most]
        return [
            LinkRest(
                source=self.grid.sources[row],
                destination=self.grid.destinations[column],
                tests=int(self.grid.cells.ok[row, column]),
                rate=float(self.values[row, column]),
                predicted=float(np.exp(self.model.fitted[row, column])),
                factor=float(np.exp(rest[row, column])),
                p=float(self.chances[row, column]),
                significant=bool(self.discoveries[row, column]),
            )
            for row, column in (divmod(int(cell), rest.shape[1]) for cell in first)
            if abs(rest[row, column]) > 0
        ]


def build(query: MatrixQuery, now: datetime, version: DataVersion, how: str) -> Attribution:
    """Explain the statistic of a query, or its ratio while comparing; kept for its version."""
    attribution: Attribution = ANSWERS.get(
        ("causes", version, how), lambda: attribute(grid.build(query, now, version), how)
    )
    return attribution


def attribute(grid: Grid, how: str = "means", values: Floats | None = None) -> Attribution:
    """Explain the values of a grid, or others of its cells."""
    values = grid.cells.value if values is None else values
    model = explain(values, grid.sources, grid.destinations, how)
    has_value = np.isfinite(model.rest)
    of_columns = model.column, model.column_error, model.column_component
    sides = [
        (grid.sources, model.row, model.row_error, model.row_component, has_value.sum(axis=1)),
        (grid.destinations, *of_columns, has_value.sum(axis=0)),
    ]
    logs, errors = (np.concatenate([side[at] for side in sides]) for at in (1, 2))
    odds = two_sided(logs / np.where(errors > 0, errors, np.nan), max(model.dof, 1))
    # Significance is judged among all effects of both ends.
    split = [len(grid.sources)]
    p, significant = np.split(odds, split), np.split(discoveries(odds), split)
    effects, reach = {}, model.reach()
    for end, (groups, logs, errors, component, partners), of_p, is_significant in zip(
        ENDS, sides, p, significant, strict=True
    ):
        # How much further each group is from its peers than from all, itself among them. Effects
        # of those that can be compared add up to 0: the mean of the others is as far on the other
        # side as so many of them share. A single group hardly moves the median of a polish.
        scale = np.ones(component.shape)
        if how == "means":
            peers = np.bincount(component[component >= 0], minlength=1)[component]
            scale = peers / np.maximum(peers - 1, 1)
        around = reach * errors
        factors = np.exp([scale * logs, scale * (logs - around), scale * (logs + around)])
        is_notable = is_significant & ((factors[0] <= 1 / NOTABLE) | (factors[0] >= NOTABLE))
        kinds = np.where(is_notable, np.where(factors[0] < 1, "slow", "fast"), "usual")
        kinds = np.where(np.isnan(of_p), "unknown", kinds)
        columns = (*factors, of_p, partners, component, kinds)
        lines = zip(groups, *(column.tolist() for column in columns), strict=True)
        effects[end] = [EndEffect(end, *line) for line in lines]
    of_cells = chances(model)
    return Attribution(grid, values, model, effects, of_cells, discoveries(of_cells))


OWN = ("stat", "fit")
FIT_LABELS = {"means": "means (least squares)", "polish": "medians (median polish)"}


def read_question(
    params: Mapping[str, Sequence[str]], also: Sequence[str] = ()
) -> tuple[MatrixQuery, str]:
    """Return the question to the matrix and how to fit it; medians unless means are asked for."""
    query = MatrixQuery.from_params(params, also=(*OWN, *also))
    return query.replace(stat=choice(params, "stat", OF)), choice(params, "fit", FITS)


def to_params(query: MatrixQuery, fit: str) -> dict[str, list[str]]:
    """Return the URL parameters, defaults left out."""
    own: Mapping[str, tuple[str, str]] = {"stat": (query.stat, OF[0]), "fit": (fit, FITS[0])}
    params = {name: [value] for name, (value, default) in own.items() if value != default}
    return query.replace(stat=MatrixQuery.stat).to_params() | params


def choice(params: Mapping[str, Sequence[str]], name: str, allowed: Sequence[str]) -> str:
    """Return the value of a parameter that is given once, or not at all for the first one."""
    values = params.get(name, ())
    if len(values) > 1:
        raise BadQueryError({name: [f"“{name}” is given {len(values)} times: give it only once."]})
    value = values[0] if values else ""
    if value and value not in allowed:
        sentence = f"{name} “{value}” is not allowed: use {either(allowed)}."
        raise BadQueryError({name: [sentence]})
    return value or allowed[0]
