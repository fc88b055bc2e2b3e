"""The two directions between two endpoints, as the cells of the matrix have them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
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
from sonar.notation.units import MB, format_factor
from sonar.notation.windows import Window

# What a cell says of a direction.
COUNTS = ("ok", "failed", "streak", "condition")
NUMBERS = ("mean", "std", "last", "since")


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
    def standing_words(self) -> str:
        """Say its state or, where that is measured, how it compares with usual."""
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
        return self.ok / self.tests if self.tests else np.nan

    @property
    def against_usual(self) -> str:
        return compared(self.median, self.usual)


def compare(
    links: LinkIndex,
    results: Results,
    marks: LinkMarks,
    *,
    window: Window,
    size: str,
    promise: Floats,
    moment: datetime,
    downtimes: Iterable[Downtime],
    is_filtered: bool,
) -> dict[tuple[int, int], Direction]:
    """Return both directions, by the ids of source and destination.

    ``links`` are those between two places; ``results`` are those of one size class, of the window
    and of the days before it that say what is usual; ``promise`` is that of report.promises().
    ``marks`` are those of standing.read_marks() for these links. States are those at ``moment``.
    """
    numbering = links.numbering
    usual = results.during(standing.usual_window(window))
    usual_tests = UsualTests.of(runs_of(usual), numbering)
    recent_days, rest = standing.recent_windows(window, moment)
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
    down = {
        endpoint.id
        for downtime in downtimes
        if downtime.stops_tests and downtime.starts_at <= moment < downtime.ends_at
        for endpoint in links.places
        if endpoint.id == downtime.endpoint_id
        or (downtime.site is not None and downtime.site.name == endpoint.site)
    }
    cells = frame.cells(
        reduced, links.touching(down), "mean", moment.timestamp(), standings=standings
    )
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
    """Return what a Direction has of its cell; -1 is no row, or no column: nothing tests it."""
    if min(at) < 0:
        return {
            "state": "not_applicable",
            "level": LEVELS[UNKNOWN],
            "unconfirmed": "",
            **dict.fromkeys(COUNTS, 0),
            **dict.fromkeys(NUMBERS, np.nan),
            "quantiles": dict.fromkeys(LINK_QUANTILES, np.nan),
        }
    return {
        "state": STATES[cells.state[at]],
        "level": LEVELS[cells.level[at]],
        "unconfirmed": MARKS[cells.unconfirmed[at]],
        **{name: int(getattr(cells, name)[at]) for name in COUNTS},
        **{name: float(getattr(cells, name)[at]) for name in NUMBERS},
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
