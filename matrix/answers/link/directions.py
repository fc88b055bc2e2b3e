"""The two directions between two endpoints side by side: how they stand, and what is usual.

State and numbers of a direction are those of its cell in the matrix: the same code makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import numpy as np

from matrix.answers.link.samples import Results
from matrix.answers.matrix.standing import marked
from matrix.query.catalogue import LINK_QUANTILES
from matrix.statistics.arrays import Floats
from matrix.statistics.cells import standing
from matrix.statistics.cells.axes import EndpointInfo, LinkIndex
from matrix.statistics.cells.cells import CellArrays, Frame
from matrix.statistics.cells.standing import LEVELS, UNKNOWN, Standings, UsualTests
from matrix.statistics.cells.states import STATES
from matrix.statistics.samples import reduce
from matrix.statistics.samples.newest import NewestTests
from matrix.statistics.samples.run import Run
from matrix.store.conditions import MARKS, LinkMarks
from sonar.models import Downtime
from sonar.notation.units import MB, format_factor, three_digits
from sonar.notation.windows import Window

COUNTS = ("ok", "failed", "streak", "condition")


@dataclass(frozen=True)
class Direction:
    """One direction in one size class. Rates in MB/s, NaN where there is none.

    ``last`` is when the newest result of the window started, in Unix s; ``quantiles`` are
    those that the catalogue has of a link, by name. How it is now (``level`` of LEVELS, ``now``,
    ``streak``, ``since``, ``unconfirmed`` of MARKS, ``condition``) is as CellStandings has it;
    ``usual``, known while it fails, too, is that of Standings. ``low`` and ``high`` bound the usual
    range, by ``usual_count`` successes in the four weeks before the window.
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
    level: str
    usual: float
    now: float
    streak: int
    since: float
    low: float
    high: float
    usual_count: int
    unconfirmed: str
    condition: int

    @property
    def tests(self) -> int:
        return self.ok + self.failed

    @property
    def ratio(self) -> float:
        """Return how many times its usual rate it has now; NaN where either is not known."""
        return self.now / self.usual

    @property
    def factor(self) -> str:
        return format_factor(self.ratio)

    @property
    def rate_words(self) -> str:
        return f"{three_digits(self.now)} MB/s"

    @property
    def standing_words(self) -> str:
        """Say how it is: its state, or where that is measured, how it compares with usual."""
        if self.state == "measured" and self.level == "usual":
            return "as usual"
        if self.state == "measured" and self.level in ("slower", "faster"):
            return f"{self.level} than usual"
        return self.state.replace("_", " ")

    @property
    def median(self) -> float:
        return self.quantiles["median"]

    @property
    def success(self) -> float:
        """Return the share of tests that succeeded."""
        return self.ok / self.tests if self.tests else np.nan

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
            if downtime.stops_tests and downtime.starts_at <= now < downtime.ends_at
            for endpoint in ends
            if endpoint.id == downtime.endpoint_id
            or (downtime.site is not None and downtime.site.name == endpoint.site)
        }
        return cls(now.timestamp(), frozenset(down))


def compare(
    links: LinkIndex,
    results: Results,
    marks: LinkMarks,
    *,
    window: Window,
    size: str,
    promise: Floats,
    moment: StateInputs,
    is_filtered: bool,
) -> dict[tuple[int, int], Direction]:
    """Return both directions, by the ids of source and destination.

    ``links`` are those between two places; ``results`` are those of one size class, of the window
    and of the days before it that say what is usual; ``promise`` is that of scheduled.promises.
    ``marks`` are those of standing.read_marks() for these links.
    """
    now, numbering = datetime.fromtimestamp(moment.now, UTC), links.numbering
    usual = results.during(standing.usual_window(window))
    usual_tests = UsualTests.of(runs_of(usual), numbering)
    recent_days, rest = standing.recent_windows(window, now)
    recent = results.during(Window(recent_days.start, rest.end))
    newest = NewestTests.of(reversed(runs_of(recent)), numbering)
    standings = Standings.of(newest, usual_tests.median, numbering)
    standings = marked(standings, marks, is_filtered=is_filtered)
    # Of a baseline the range is as wide; where that is unknown, it is the baseline alone.
    to_baseline = standings.usual / usual_tests.median
    low, high = (
        np.where(np.isnan(bound), standings.usual, bound * to_baseline)
        for bound in (usual_tests.low, usual_tests.high)
    )
    runs = runs_of(results.during(window))
    frame = Frame.around(links, numbering.newest(runs), promise, ("endpoint", "endpoint"))
    reduced = reduce.reduce(runs, frame.pooling, LINK_QUANTILES)
    down = links.touching(moment.down)
    cells = frame.cells(reduced, down, "mean", moment.now, standings=standings)
    directions = {}
    for row, column in permutations(range(len(links.places)), 2):
        source, destination = links.places[row], links.places[column]
        directions[source.id, destination.id] = Direction(
            source=source,
            destination=destination,
            size=size,
            **numbers_of(cells, (frame.rows.of[row], frame.columns.of[column])),
            now=float(standings.now[row, column]) / MB,
            usual=float(standings.usual[row, column]) / MB,
            low=float(low[row, column]) / MB,
            high=float(high[row, column]) / MB,
            usual_count=int(usual.of_link(source, destination).ok.sum()),
        )
    return directions


def numbers_of(cells: CellArrays, at: tuple[int, int]) -> dict[str, Any]:
    """Return what a Direction has of its cell.

    One that neither a mesh tests nor a result is of has no row or no column: -1.
    """
    if min(at) < 0:
        of_cell = dict.fromkeys(("mean", "std", "last", "since"), np.nan)
        none = {"state": "not_applicable", "level": LEVELS[UNKNOWN], "ok": 0, "failed": 0}
        none |= {"streak": 0, "unconfirmed": "", "condition": 0}
        return none | of_cell | {"quantiles": dict.fromkeys(LINK_QUANTILES, np.nan)}
    return {
        "state": STATES[cells.state[at]],
        "level": LEVELS[cells.level[at]],
        "unconfirmed": MARKS[cells.unconfirmed[at]],
        **{name: int(getattr(cells, name)[at]) for name in COUNTS},
        **{name: float(getattr(cells, name)[at]) for name in ("mean", "std", "last", "since")},
        "quantiles": {name: float(cells.extras[name][at]) for name in LINK_QUANTILES},
    }


def runs_of(results: Results) -> list[Run]:
    """Return results as one run, or as none if there are none."""
    if not len(results):
        return []
    order = np.argsort(results.keys, kind="stable")
    keys = results.keys[order]
    links, first = np.unique((keys >> np.uint64(32)).astype(np.uint32), return_index=True)
    started, start = results.started[order], int(results.started[0])
    lasts = np.maximum.reduceat(started, first)
    return [Run(keys, links, lasts, offsets=(started - start).astype(np.uint32), start=start)]


def compared(rate: float, other: float) -> str:
    """Say how many times another a rate is; a tenth more or less is about the same."""
    if not (rate > 0 and other > 0):
        return ""
    ratio = rate / other
    return "about the same" if abs(ratio - 1) <= 0.1 else format_factor(ratio)
