"""What rows and columns explain of a matrix with holes: level + row + column + rest. Pure numpy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from matrix.statistics.arrays import ArrayFields, Flags, Floats, Integers
from matrix.statistics.estimates.student import quantile

FITS = ("means", "polish")
# How often the noise of a polish is drawn, for errors right to about 3 %.
DRAWS = 500
# A polish that still moves by more than this after so many rounds is left as it stands.
ROUNDS = 30
STILL = 1e-12
# The square of the standard error of a median against that of a mean, of normal numbers.
OF_A_MEDIAN = np.pi / 2
# The standard deviation of normal numbers over their median distance from 0.
OF_A_DISTANCE = 1.4826


@dataclass(frozen=True)
class Components:
    """The component of each row and of each column, the one with most values first; -1 for none.

    Two rows are in one component if a path of values leads from one to the other.
    """

    row: Integers
    column: Integers
    count: int

    @classmethod
    def of(cls, has_value: Flags) -> Self:
        row, column = (np.full(length, -1) for length in has_value.shape)
        count = 0
        for first in np.flatnonzero(has_value.any(axis=1)).tolist():
            if row[first] >= 0:
                continue
            # All rows and columns that values connect with it; each row is looked at once.
            rows = np.array([first])
            while rows.size:
                row[rows] = count
                columns = has_value[rows].any(axis=0) & (column < 0)
                column[columns] = count
                rows = np.flatnonzero(has_value[:, columns].any(axis=1) & (row < 0))
            count += 1
        values = np.bincount(row[row >= 0], has_value.sum(axis=1)[row >= 0], minlength=count)
        # The last of them stands for -1.
        rank = np.full(count + 1, -1)
        rank[np.argsort(-values, kind="stable")] = np.arange(count)
        return cls(rank[row], rank[column], count)

    def sizes(self) -> tuple[Integers, Integers]:
        """Return how many rows and how many columns each component has."""
        rows, columns = (
            np.bincount(of[of >= 0], minlength=self.count) for of in (self.row, self.column)
        )
        return rows, columns

    def centred(
        self, row: Floats, column: Floats, centre: Callable[[Floats], Any]
    ) -> tuple[Floats, Floats, Floats]:
        """Return the level of each component, and the effects less their centre there."""
        row, column = (
            np.where(self.row >= 0, row, np.nan),
            np.where(self.column >= 0, column, np.nan),
        )
        levels = np.zeros(self.count)
        for effects, component in ((row, self.row), (column, self.column)):
            for number in range(self.count):
                there = component == number
                middle = centre(effects[there])
                levels[number] += middle
                effects[there] -= middle
        return levels, row, column

    def about_mean(self, values: Floats, has_value: Flags) -> Floats:
        """Return the values less the mean of their component; 0 for holes as ``values`` has."""
        rows = self.row >= 0
        total, number = (
            np.bincount(self.row[rows], of.sum(axis=1)[rows], minlength=self.count)
            for of in (values, has_value)
        )
        means = np.append(total / np.maximum(number, 1), 0.0)
        return np.where(has_value, values - means[self.row][:, None], 0.0)


@dataclass(frozen=True)
class TwoWay(ArrayFields):
    """The two-way model of a matrix of logs of shape (rows, columns), NaN for its holes.

    ``row`` and ``column`` are the effects, NaN of what has no value. Their means (of a polish:
    their medians) are 0 in each component: rows and columns that values connect. What no values
    connect cannot be compared: ``levels`` has the level of each component, the one with most
    values first, and ``level`` is that of the first. ``row_component`` and ``column_component``
    number them, -1 for no value. ``fitted`` is level + row + column, of holes in a component too,
    and ``rest`` the values less that.

    ``row_error`` and ``column_error`` are standard errors with ``dof`` degrees of freedom; NaN
    where nothing is left to estimate them from, and of effects without a peer. ``leverage`` is by
    how much a value draws its own fit, 1 for one that alone decides it.

    ``r2`` is the share of the squares about the means of the components that is explained,
    ``r2_adjusted`` that less what as many effects would explain of noise, ``r2_left_out`` the share
    for values that are predicted by all the others (by least squares, whatever the fit). NaN
    where there is nothing to explain.
    """

    level: float
    levels: Floats
    row: Floats
    column: Floats
    fitted: Floats
    rest: Floats
    row_error: Floats
    column_error: Floats
    leverage: Floats
    sigma: float
    dof: int
    cells: int
    r2: float
    r2_adjusted: float
    r2_left_out: float
    row_component: Integers
    column_component: Integers
    how: str = FITS[0]

    @property
    def components(self) -> int:
        return len(self.levels)

    def reach(self, confidence: float = 0.95) -> float:
        """Return how many standard errors to either side an interval reaches; NaN without dof."""
        return float(quantile(0.5 + confidence / 2, self.dof)) if self.dof else np.nan

    def flipped(self) -> Self:
        return replace(
            self,
            row=self.column,
            column=self.row,
            fitted=self.fitted.T,
            rest=self.rest.T,
            row_error=self.column_error,
            column_error=self.row_error,
            leverage=self.leverage.T,
            row_component=self.column_component,
            column_component=self.row_component,
        )


def fit(logs: Floats, how: str = "means") -> TwoWay:
    """Fit the model by least squares (`means`) or by Tukey's median polish (`polish`).

    Takes any matrix, also without a value, a row or a column; what is not finite is a hole.
    1,000 x 1,000 values take about half a second.
    """
    # What is solved has the size of the shorter side.
    if logs.shape[0] < logs.shape[1]:
        return _fit(logs.T, how, (1, 0)).flipped()
    return _fit(logs, how, (0, 1))


def _fit(logs: Floats, how: str, axes: Sequence[int]) -> TwoWay:
    has_value = np.isfinite(logs)
    components, values = Components.of(has_value), np.where(has_value, logs, 0.0)
    rows, columns = components.row, components.column
    of_rows, of_columns = components.sizes()
    # The normal equations with the rows eliminated: each value's share in its row, the inverse of
    # the matrix of the columns, and the product of both.
    ones = has_value.astype(np.float64)
    in_row = np.maximum(ones.sum(axis=1), 1)
    shares = ones / in_row[:, None]
    normal = np.diag(ones.sum(axis=0)) - ones.T @ shares
    # One over the number of columns, of two of the same component, makes this one that can be
    # inverted, and changes no difference between them. A column without a value stands for itself.
    same = (columns[:, None] == columns) & (columns >= 0)
    normal += same / np.append(of_columns, 1)[columns]
    inverse = np.linalg.inv(normal + np.diag((columns < 0).astype(np.float64)))
    paths = shares @ inverse
    of_row = 1 / in_row + np.einsum("ij,ij->i", paths, shares)
    leverage = of_row[:, None] - 2 * paths + np.diag(inverse)
    dof = int(ones.sum() - (of_rows.sum() + of_columns.sum() - components.count))
    mean = values.sum(axis=1) / in_row
    by_column = inverse @ (values.sum(axis=0) - ones.T @ mean)
    by_row = mean - shares @ by_column
    row, column = (by_row, by_column) if how == "means" else _polished(logs, has_value, axes)
    centre = np.mean if how == "means" else np.median
    level, row, column = components.centred(row, column, centre)
    # Between components nothing can be compared.
    same = (rows[:, None] == columns) & (rows[:, None] >= 0)
    levels = np.where(same, np.append(level, np.nan)[rows][:, None], np.nan)
    fitted = levels + row[:, None] + column
    rest = np.where(has_value, logs - fitted, np.nan)
    sigma = np.nan
    if dof and how == "means":
        sigma = float(np.sqrt(np.square(rest[has_value]).sum() / dof))
    elif dof:
        # That of normal numbers. As many as there are effects are 0, or nearly: they say nothing.
        distances = np.sort(np.abs(rest[has_value]))[-dof:]
        sigma = float(OF_A_DISTANCE * np.median(distances))
    row_sum = 1 / in_row + paths @ shares[rows >= 0].sum(axis=0)
    row_error = sigma * _centred_error(of_row, row_sum, rows, of_rows)
    column_sum = inverse[:, columns >= 0].sum(axis=1)
    column_error = sigma * _centred_error(np.diag(inverse), column_sum, columns, of_columns)
    if how == "polish":
        row_error = _polished_error(row, row_error, rows)
        column_error = _polished_error(column, column_error, columns)
    about_mean = components.about_mean(values, has_value)
    r2 = _share(rest[has_value], about_mean[has_value])
    # A value that alone decides a row or column is predicted by no others.
    shared = has_value & (leverage < 1 - 1e-9)
    by_others = values - by_row[:, None] - by_column
    left_out = by_others[shared] / (1 - leverage[shared])
    return TwoWay(
        level=float(level[0]) if level.size else np.nan,
        levels=level,
        row=row,
        column=column,
        fitted=fitted,
        rest=rest,
        row_error=row_error,
        column_error=column_error,
        leverage=np.where(has_value, leverage, np.nan),
        sigma=sigma,
        dof=dof,
        cells=int(has_value.sum()),
        r2=r2,
        r2_adjusted=1 - (1 - r2) * (has_value.sum() - len(level)) / dof if dof else np.nan,
        r2_left_out=_share(left_out, about_mean[shared]),
        row_component=rows,
        column_component=columns,
        how=how,
    )


def _share(rest: Floats, whole: Floats) -> float:
    """Return the share of the squares that is explained."""
    total = float(np.square(whole).sum())
    return 1 - float(np.square(rest).sum()) / total if total > 0 else np.nan


def _polished_error(effects: Floats, of_means: Floats, component: Integers) -> Floats:
    """Return standard errors of effects that are medians, less the median of their component.

    What that median contributes depends on how close to it others are: it is tried out.
    """
    errors = np.sqrt(OF_A_MEDIAN) * of_means
    noise = np.random.default_rng(0).normal(size=(DRAWS, len(effects))) * errors
    for number in range(component.max(initial=-1) + 1):
        there = component == number
        centre = np.median(effects[there] + noise[:, there], axis=1, keepdims=True)
        errors[there] = (noise[:, there] - centre).std(axis=0)
    return np.asarray(errors)


def _centred_error(own: Floats, sums: Floats, component: Integers, sizes: Integers) -> Floats:
    """Return standard errors of centred effects, by their variances and sums of covariances."""
    errors = np.full(len(own), np.nan)
    used = component >= 0
    of = component[used]
    peers = sizes[of]
    grand = np.bincount(of, sums[used], minlength=len(sizes))[of] / peers**2
    variance = own[used] - 2 * sums[used] / peers + grand
    errors[used] = np.where(peers > 1, np.sqrt(np.maximum(variance, 0)), np.nan)
    return errors


def _polished(logs: Floats, has_value: Flags, axes: Sequence[int]) -> tuple[Floats, Floats]:
    """Take medians off rows and columns in turn; ``axes`` says which of them comes first."""
    rest = np.where(has_value, logs, np.nan)
    effects = [np.zeros(length) for length in rest.shape]
    for _ in range(ROUNDS):
        moved = 0.0
        for axis in axes:
            lines = rest if axis == 0 else rest.T
            # The median of each, 0 for one without a value.
            count, line = np.isfinite(lines).sum(axis=1), np.arange(len(lines))
            medians = np.zeros(len(lines))
            if lines.size:
                ordered, last = np.sort(lines, axis=1), np.maximum(count - 1, 0)
                middle = (ordered[line, last // 2] + ordered[line, (last + 1) // 2]) / 2
                medians = np.where(count > 0, middle, 0.0)
            effects[axis] += medians
            rest -= medians[:, None] if axis == 0 else medians
            moved = max(moved, float(np.abs(medians).max(initial=0)))
        if moved < STILL:
            break
    return effects[0], effects[1]
