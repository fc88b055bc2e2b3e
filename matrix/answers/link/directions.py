"""The two directions between two endpoints side by side: how they stand, and what is usual.

State and numbers of a direction are those of its cell in the matrix: the same code makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from matrix.answers.link.samples import Results
from matrix.query.catalogue import LINK_QUANTILES
from matrix.statistics import reduce
from matrix.statistics.arrays import Floats
from matrix.statistics.axes import EndpointInfo, LinkIndex
from matrix.statistics.cells import CellArrays, Frame
from matrix.statistics.run import Run
from matrix.statistics.states import STATES
from sonar.models import Downtime
from sonar.units import MB, three_digits

# The median of fewer earlier results says little about what is usual.
FEWEST_USUAL = 5


@dataclass(frozen=True)
class Direction:
    """One direction in one size class. Rates in MB/s, NaN where there is none.

    ``last`` is when the newest result of the window started, in Unix s; ``usual`` the median
    of the ``usual_count`` transfers of the four weeks before the window; ``quantiles`` are
    those that the catalogue has of a link, by name.
    """

    source: EndpointInfo
    destination: EndpointInfo
    size: str
    state: str
    ok: int
    failed: int
    mean: float
    std: float
    quantiles: dict[str, float]
    last: float
    usual: float
    usual_count: int

    @property
    def median(self) -> float:
        return self.quantiles["median"]

    @property
    def success(self) -> float:
        """Return the share of tests that succeeded."""
        tests = self.ok + self.failed
        return self.ok / tests if tests else np.nan

    @property
    def against_usual(self) -> str:
        """Say how the median of the window compares with the usual one; nothing without both."""
        return compared(self.median, self.usual)

    def against(self, reverse: Direction) -> str:
        """Say how the median compares with that of the reverse direction."""
        return compared(self.median, reverse.median)


@dataclass(frozen=True)
class StateInputs:
    """What a state depends on beside results: the time (Unix s), and which endpoints are down."""

    now: float
    down: frozenset[int]

    @classmethod
    def at(
        cls, now: datetime, downtimes: Iterable[Downtime], ends: Sequence[EndpointInfo]
    ) -> StateInputs:
        down = {
            endpoint.id
            for downtime in downtimes
            if downtime.starts_at <= now < downtime.ends_at
            for endpoint in ends
            if endpoint.id == downtime.endpoint_id
            or (downtime.site is not None and downtime.site.name == endpoint.site)
        }
        return cls(now.timestamp(), frozenset(down))


def compare(
    links: LinkIndex,
    results: Results,
    before: Results,
    *,
    size: str,
    promise: Floats,
    moment: StateInputs,
) -> dict[tuple[int, int], Direction]:
    """Return both directions, by the ids of source and destination.

    ``links`` are those between two places; ``results`` those of one size class in the window,
    ``before`` those that say what is usual; ``promise`` is that of upcoming.promises.
    """
    runs = [run_of(results)] if len(results) else []
    newest = links.numbering.newest(runs)
    frame = Frame.around(links, newest, promise, ("endpoint", "endpoint"))
    reduced = reduce.reduce(runs, frame.pooling, LINK_QUANTILES)
    down = links.ends(endpoint.id in moment.down for endpoint in links.places)
    cells = frame.cells(reduced, down.reshape(links.shape), "mean", moment.now)
    directions = {}
    for row, source in enumerate(links.places):
        for column, destination in enumerate(links.places):
            if source != destination:
                earlier = before.of_link(source, destination)
                rates = earlier.rates[earlier.ok].astype(np.float64)
                usual = float(np.median(rates)) / MB if len(rates) >= FEWEST_USUAL else np.nan
                directions[source.id, destination.id] = Direction(
                    source=source,
                    destination=destination,
                    size=size,
                    **numbers_of(cells, (frame.rows.of[row], frame.columns.of[column])),
                    usual=usual,
                    usual_count=len(rates),
                )
    return directions


def numbers_of(cells: CellArrays, at: tuple[int, int]) -> dict[str, Any]:
    """Return what a Direction has of its cell.

    One that neither a mesh tests nor a result is of has no row or no column: -1.
    """
    is_outside = min(at) < 0

    def value(values: Floats) -> float:
        return np.nan if is_outside else float(values[at])

    return {
        "state": "not_applicable" if is_outside else STATES[cells.state[at]],
        "ok": 0 if is_outside else int(cells.ok[at]),
        "failed": 0 if is_outside else int(cells.failed[at]),
        "mean": value(cells.mean),
        "std": value(cells.std),
        "last": value(cells.last),
        "quantiles": {name: value(cells.extras[name]) for name in LINK_QUANTILES},
    }


def run_of(results: Results) -> Run:
    order = np.argsort(results.keys, kind="stable")
    keys = results.keys[order]
    links, first = np.unique((keys >> np.uint64(32)).astype(np.uint32), return_index=True)
    return Run(keys, links, np.maximum.reduceat(results.started[order], first), None)


def compared(rate: float, other: float) -> str:
    return in_words(rate / other) if rate > 0 and other > 0 else ""


# Shares that people have a word for; ratios up to a tenth from them are called so.
SHARES = {
    1 / 2: "half of it",
    1 / 3: "a third of it",
    1 / 4: "a quarter of it",
    1 / 5: "a fifth of it",
}


def in_words(ratio: float) -> str:
    """Say how much a rate is of another, by their ratio, as somebody on shift would."""
    if abs(ratio - 1) <= 0.1:
        return "as much"
    for share, words in SHARES.items():
        if abs(ratio / share - 1) <= 0.1:
            return words
    if ratio > 1:
        return f"{three_digits(ratio)} times as much"
    return f"{100 * ratio:.0f} % of it" if ratio >= 0.1 else f"{three_digits(100 * ratio)} % of it"
