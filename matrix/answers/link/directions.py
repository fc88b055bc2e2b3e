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
from matrix.statistics.cells import Frame
from matrix.statistics.reduce import Reduced
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
            place.id
            for one in downtimes
            if one.starts_at <= now < one.ends_at
            for place in ends
            if concerns(one, place)
        }
        return cls(now.timestamp(), frozenset(down))


def concerns(downtime: Downtime, place: EndpointInfo) -> bool:
    if downtime.endpoint_id:
        return downtime.endpoint_id == place.id
    return downtime.site is not None and downtime.site.name == place.site


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
    found = [run_of(results)] if len(results) else []
    newest = links.numbering.newest(found)
    frame = Frame.around(links, newest, promise, ("endpoint", "endpoint"))
    cells = numbers_of(frame, reduce.reduce(found, frame.pooling, LINK_QUANTILES), moment)
    return {
        (source.id, destination.id): Direction(
            source=source,
            destination=destination,
            size=size,
            **one_of(cells, frame.rows.of[row], frame.columns.of[column]),
            **usual(before.of_link(source, destination)),
        )
        for row, source in enumerate(links.places)
        for column, destination in enumerate(links.places)
        if source != destination
    }


def run_of(results: Results) -> Run:
    order = np.argsort(results.keys, kind="stable")
    keys = results.keys[order]
    links, first = np.unique((keys >> np.uint64(32)).astype(np.uint32), return_index=True)
    return Run(keys, links, np.maximum.reduceat(results.started[order], first), None)


def numbers_of(frame: Frame, reduced: Reduced, moment: StateInputs) -> dict[str, Any]:
    """Return arrays of what a Direction has, shape (rows, columns)."""
    places = frame.links.places
    down = frame.links.ends(place.id in moment.down for place in places)
    down = down.reshape(frame.links.shape)
    cells = frame.cells(reduced, down=down, stat="mean", moment=moment.now)
    return {
        "state": np.array(STATES, dtype=object)[cells.state],
        "ok": cells.ok,
        "failed": cells.failed,
        "mean": cells.mean,
        "std": cells.std,
        "last": cells.last,
        "quantiles": {name: reduced.extras[name] / MB for name in LINK_QUANTILES},
    }


# A direction that neither a mesh tests nor a result is of has no row or no column.
OUTSIDE = {
    "state": "not_applicable",
    "ok": 0,
    "failed": 0,
    "mean": np.nan,
    "std": np.nan,
    "last": np.nan,
    "quantiles": dict.fromkeys(LINK_QUANTILES, np.nan),
}


def one_of(cells: dict[str, Any], row: int, column: int) -> dict[str, Any]:
    if row < 0 or column < 0:
        return OUTSIDE
    quantiles = {name: values[row, column].item() for name, values in cells["quantiles"].items()}
    return {
        name: values[row, column] if name == "state" else values[row, column].item()
        for name, values in cells.items()
        if name != "quantiles"
    } | {"quantiles": quantiles}


def usual(before: Results) -> dict[str, Any]:
    """Return the median of what was measured before, if that is enough to say."""
    rates = before.rates[before.ok].astype(np.float64)
    enough = len(rates) >= FEWEST_USUAL
    return {"usual": float(np.median(rates)) / MB if enough else np.nan, "usual_count": len(rates)}


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
