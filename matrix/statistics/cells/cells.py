"""The cells of a matrix: results and promises of links, pooled by row and column."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from matrix.query.catalogue import AGE, STATISTICS, TIMES, TRANSFERS
from matrix.query.filters import Filter
from matrix.statistics.arrays import Flags, Floats, Integers, nan_unless
from matrix.statistics.cells.axes import Axis, AxisGroup, Layout, LinkIndex
from matrix.statistics.cells.cell_targets import TARGET_LOOKS, CellTargets, TargetRates
from matrix.statistics.cells.standing import LEVELS, UNKNOWN, USUAL, Standings
from matrix.statistics.cells.states import MEASURED, STATES, CellStandings, Evidence, States
from matrix.statistics.estimates import two_way
from matrix.statistics.estimates.student import two_sided_of_many
from matrix.statistics.estimates.two_way import TwoWay
from matrix.statistics.samples import reduce
from matrix.statistics.samples.pooling import Pooling
from matrix.statistics.samples.reduce import Reduced
from sonar.notation.units import MB

# Of more values of an attribute nobody could choose one: the rest counts as one value.
MOST_VALUES = 255


@dataclass(frozen=True)
class CellArrays(CellStandings):
    """Arrays of shape (sources, destinations). All rates in MB/s; NaN where there is none.

    ``value`` is the asked statistic in Grid.unit; ``last`` is when the last result started,
    in Unix time; ``state`` indexes STATES. ``partly`` says that a part of its tests or links fails.
    ``extras`` are rates that were asked for by name, ``targets`` are there where they were.
    """

    value: Floats
    mean: Floats
    std: Floats
    ok: Integers
    failed: Integers
    last: Floats
    state: States
    partly: Flags
    extras: Mapping[str, Floats] = field(default_factory=dict)
    targets: CellTargets | None = None

    def of_look(self, look: str) -> Flags:
        """Say which cells have one of LOOKS as a whole, or, of several links, by some of them."""
        if look == "partly":
            return self.partly
        if look in TARGET_LOOKS:
            blank = np.zeros(self.state.shape, dtype=bool)
            return self.targets.of_look(look) if self.targets else blank
        if look in (LEVELS[USUAL], LEVELS[UNKNOWN]):
            whole = (self.state == MEASURED) & ~self.partly
            return np.asarray(whole & (self.level == LEVELS.index(look)))
        if look in LEVELS:
            return np.asarray(getattr(self, f"{look}_links") > 0)
        of_state: Flags = self.state == STATES.index(look)
        return of_state | (self.failing_links > 0) if look == "failing" else of_state


@dataclass(frozen=True)
class Frame(Layout):
    """Which links are in the matrix, in which row and column; arrays of shape (places, places).

    ``newest`` is when the last result of each link started, in Unix ms, 0 for none;
    ``promise`` the interval in seconds at which a mesh tests it, infinity for no mesh. Links
    with either are ``applicable``. Those that the filters keep out have neither.
    """

    links: LinkIndex
    rows: Axis
    columns: Axis
    newest: Integers
    promise: Floats
    applicable: Flags

    @classmethod
    def around(
        cls, links: LinkIndex, newest: Integers, promise: Floats, grouping: tuple[str, str]
    ) -> Self:
        """Lay out the rows and columns of the links that have a result or a promise."""
        applicable = np.isfinite(promise) | (newest > 0)
        sources, destinations = links.touched(applicable)
        rows = columns = links.axis(sources, grouping[0])
        if grouping[0] != grouping[1] or not np.array_equal(sources, destinations):
            columns = links.axis(destinations, grouping[1])
        return cls(links, rows, columns, newest, promise, applicable)

    @property
    def pooling(self) -> Pooling:
        shape = len(self.rows.groups), len(self.columns.groups)
        numbering = self.links.numbering
        return Pooling(numbering, self.rows.of, self.columns.of, self.newest > 0, shape)

    def left_out(self, filters: Iterable[Filter]) -> Flags | None:
        """Say of which cells the filters on ends let nothing pass, if there are such cells."""
        passing = self.links.passing(filters).reshape(self.links.shape)
        missing = ~self.pool(np.logical_or, passing)
        return missing if missing.any() else None

    def cells(
        self,
        reduced: Reduced,
        down: Flags,
        stat: str,
        moment: float,
        *,
        standings: Standings,
        outdated: Flags | None = None,
        of_line: Floats | None = None,
        targets: TargetRates | None = None,
    ) -> CellArrays:
        """Return the cells as they stand at a moment (Unix time).

        ``down`` says which links have an end in a declared downtime, ``outdated`` which cells
        have no success as young as was asked for: these have no value. ``of_line`` is the statistic
        where it is read off the lines of the cells, ``targets`` the rate targets of links if
        the statistic needs them.
        """
        newest = self.pool(np.maximum, self.newest)
        last = nan_unless(newest > 0, newest / 1000)
        mean, std = reduced.mean / MB, reduced.std / MB
        extras = {name: of_cells / MB for name, of_cells in reduced.extras.items()}
        rates = {"mean": mean, "std": std, **extras}
        base = STATISTICS[stat].base
        has_results = self.newest > 0
        now = CellStandings.of(standings, self.applicable & ~down, has_results, self)
        rate = rates.get(base or stat)
        if of_line is not None:
            rate = rates[stat] = of_line
        against: CellTargets | None = None
        if STATISTICS[stat].of_now:
            up = has_results & self.applicable & ~down & ~standings.failing
            both = now.now, now.usual
            if targets:
                against = CellTargets.of(targets, standings.now, up, self)
                both = against.now, against.target
            rate = self._of_now(stat, standings, both, up, reduced.ok > 0)
        shown = value(stat, reduced, moment - last) if rate is None else rate
        if outdated is not None:
            for numbers in (shown, *rates.values()):
                np.putmask(numbers, outdated, np.nan)
        if base:
            model = explain(shown, self.rows.groups, self.columns.groups)
            # What both ends explain of each rate, or the rate in parts of that.
            logs = model.rest if stat == "vs_predicted" else model.fitted + 0 * model.rest
            shown = np.exp(logs)
        evidence = Evidence(
            ok=reduced.ok,
            failed=reduced.failed,
            age=moment - last,
            promise=self.pool(np.minimum, self.promise),
            applicable=self.pool(np.logical_or, self.applicable),
            up=self.pool(np.logical_or, self.applicable & ~down),
            failing=now.failing,
            outdated=outdated,
        )
        return CellArrays(
            value=shown,
            mean=mean,
            std=std,
            ok=reduced.ok,
            failed=reduced.failed,
            last=last,
            state=evidence.states(),
            partly=now.fail_partly(reduced.ok, reduced.failed),
            extras=extras,
            targets=against and against.where(~np.isnan(shown)),
            **vars(now) | {"usual": now.usual / MB, "now": now.now / MB},
        )

    def _of_now(
        self, stat: str, standings: Standings, both: tuple[Floats, Floats], up: Flags, has_ok: Flags
    ) -> Floats:
        """Return the rate now of each cell in MB/s, or that over its usual rate or its target.

        The first is the mean of those of its links that are ``up``, the second is of ``both``: the
        mean of the rates now of those of which both are known, over that of what they are held
        against. What only came through before the window says nothing of now.
        """
        if STATISTICS[stat].unit == TIMES:
            values = reduce.ratio(*both)
        else:
            counted = up & ~np.isnan(standings.now)
            values = self.mean(standings.now, counted) / MB
        return nan_unless(has_ok, values)


def value(stat: str, reduced: Reduced, age: Floats) -> Floats:
    """Return a statistic that is no rate, in the unit that Grid gives it."""
    unit = STATISTICS[stat].unit
    if unit == AGE:
        return age
    tests = reduced.ok + reduced.failed
    if unit == TRANSFERS:
        return nan_unless(tests > 0, tests.astype(np.float64))
    return 100 * reduce.ratio(reduced.ok, tests)


def within_sites(rows: Sequence[AxisGroup], columns: Sequence[AxisGroup]) -> Flags:
    """Say which cells are of one site with itself: no wide-area network, so none to compare."""
    sites = [
        np.array([group.site or "" for group in side], dtype=object) for side in (rows, columns)
    ]
    return np.asarray((sites[0][:, None] == sites[1]) & (sites[0] != "")[:, None], dtype=bool)


def explain(
    rates: Floats, rows: Sequence[AxisGroup], columns: Sequence[AxisGroup], how: str = "means"
) -> TwoWay:
    """Fit the two-way model to the logs of rates or of ratios, but for those within a site."""
    is_shown = (rates > 0) & ~within_sites(rows, columns)
    return two_way.fit(np.log(np.where(is_shown, rates, np.nan)), how)


def chances(model: TwoWay) -> Floats:
    """Return how probable what is left of a value is, as far as it is from 0, by chance alone.

    By the t of each value against the scatter of all the others (for a polish, of all); NaN of
    what is alone in a row or column.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(model.leverage < 1 - 1e-9, 1 - model.leverage, np.nan)
        squares = np.square(model.rest) / free
        # Least squares let a value draw sigma itself: that of the others is of those alone.
        others = (model.dof * model.sigma**2 - squares) / (model.dof - 1)
        is_own = model.how == "means"
        t = np.sqrt(squares / (np.maximum(others, 0) if is_own else model.sigma**2))
    dof, p = max(model.dof - is_own, 0), np.full(model.rest.shape, np.nan)
    if dof:
        has_t = ~np.isnan(t)
        p[has_t] = two_sided_of_many(t[has_t], np.full(int(has_t.sum()), float(dof)))
    return p


class Mixing:
    """Gathers which values of each attribute the results of each cell have.

    ``codes`` gives, by attribute, the number of the value of each profile by its id: from 1 on, 0
    where it is unknown and so differs from none.
    """

    def __init__(self, cells: int, codes: Mapping[str, Integers]) -> None:
        self._codes = {name: np.minimum(of_ids, MOST_VALUES) for name, of_ids in codes.items()}
        self._seen = {
            name: np.zeros((int(of_ids.max(initial=0)) + 1, cells), dtype=bool)
            for name, of_ids in self._codes.items()
        }

    def add(self, cells: Integers, profiles: NDArray[np.integer[Any]]) -> None:
        """Add results by their cell, -1 for none, and the id of their profile."""
        inside = np.flatnonzero(cells >= 0)
        cells, profiles = cells[inside], profiles[inside]
        for name, seen in self._seen.items():
            seen[self._codes[name][profiles], cells] = True

    def mixed(self) -> dict[str, Flags]:
        """Say by attribute which cells have several values of it."""
        # Along the cells: across the few values of each it takes ten times as long.
        return {name: seen[1:].sum(axis=0, dtype=np.uint8) > 1 for name, seen in self._seen.items()}

    def filled(self) -> Flags:
        filled: Flags = np.logical_or.reduce([seen.any(axis=0) for seen in self._seen.values()])
        return filled

    def values(self, name: str, mixed: Flags) -> list[int]:
        """Return the numbers of the values that these cells have of an attribute."""
        codes = np.flatnonzero((self._seen[name] & mixed).any(axis=1)).tolist()
        return [code for code in codes if code]
