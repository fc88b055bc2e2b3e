"""Grids made of a few values, for what is drawn and said of them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrix.answers.matrix.grid_cells import Grid
from matrix.query.attributes import FACTS
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import AxisGroup, EndpointInfo
from matrix.statistics.cells.cells import CellArrays
from matrix.statistics.cells.standing import FASTER, SILENT, SLOWER
from matrix.statistics.cells.states import FAILING, STATES
from matrix.statistics.samples.reduce import averages
from matrix.store.data_version import DataVersion
from sonar.notation.windows import Window
from tests.matrix.world import NOW

Rows = Sequence[Sequence[float | None]]


def group(name: str, cloud: str | None = "", tier: int | None = 2) -> AxisGroup:
    facts = blank_facts() | {"site": name, "cloud": cloud, "tier": tier}
    return AxisGroup(name, facts, simulated=False)


def blank_facts() -> dict[str, Any]:
    """What an endpoint has beside its name where nothing is known, of whatever there is."""
    return {key: attribute.value([attribute.kind()]) for key, attribute in FACTS.items()}


def endpoint_info(number: int, name: str, **facts: Any) -> EndpointInfo:
    """Return an endpoint in use with these facts, blank in all others."""
    return EndpointInfo(number, name, blank_facts() | facts, simulated=False, retired=False)


def grid_of(
    values: Rows,
    sources: Sequence[AxisGroup],
    destinations: Sequence[AxisGroup],
    states: Sequence[str] = (),
    query: MatrixQuery | None = None,
    **arrays: Sequence[Sequence[int]],
) -> Grid:
    """Make a grid; ``states`` are words by row, `mxfsud-` for those of STATES (x is failing).

    Without them a cell with a value is measured, and one without is untested. Each cell is of one
    link. How it is now is in ``arrays``: `level`, `usual`, `now`, `ratio_low` and so on, `since` in
    Unix s.
    """
    value = np.array(values, dtype=float).reshape(len(sources), len(destinations))
    letters = [list(row) for row in states] or np.where(np.isnan(value), "u", "m").tolist()
    state = np.array([["mxfsud-".index(letter) for letter in row] for row in letters], np.uint8)
    state = state.reshape(value.shape)
    known = ~np.isnan(value)
    cells = CellArrays(
        value=value,
        mean=value,
        std=value / 2,
        ok=np.array(arrays.get("ok", known * 3), dtype=np.int64),
        failed=np.array(arrays.get("failed", state * 0), dtype=np.int64),
        last=np.where(known, NOW.timestamp() - np.array(arrays.get("age", state * 0.0)), np.nan),
        state=state,
        **standings_of(state, arrays),
        extras={"median": value},
    )
    assert len(STATES) == len("mxfsud-")
    return Grid(
        query=query or MatrixQuery(),
        window=Window(NOW - timedelta(days=7), NOW + timedelta(seconds=30)),
        moment=NOW,
        version=DataVersion("1.2", "3.4", question="abc"),
        sources=tuple(sources),
        destinations=tuple(destinations),
        cells=cells,
        averages=averages(value),
        idle=(),
    )


def standings_of(
    state: NDArray[np.uint8], arrays: Mapping[str, Sequence[Sequence[float]]]
) -> dict[str, NDArray[Any]]:
    """Return what CellArrays has of how cells are now, where each is of one link."""

    def array(name: str, blank: float, kind: type = float) -> NDArray[Any]:
        return np.array(arrays.get(name, np.full(state.shape, blank)), dtype=kind)

    level = array("level", 0, np.uint8)
    failed, ok = array("failed", 0, int), array("ok", 3, int)
    return {
        "level": level,
        "usual": array("usual", np.nan),
        "now": array("now", np.nan),
        "ratio_low": array("ratio_low", np.nan, np.float32),
        "ratio_high": array("ratio_high", np.nan, np.float32),
        "since": array("since", np.nan),
        "streak": array("streak", 0, int),
        "unconfirmed": array("unconfirmed", 0, np.uint8),
        "condition": array("condition", 0, np.int32),
        "failing_links": (state == FAILING).astype(int),
        "tested_links": np.ones(state.shape, dtype=int),
        "judged_links": ((level > 0) & (level < SILENT)).astype(int),
        "silent_links": (level == SILENT).astype(int),
        "slower_links": (level == SLOWER).astype(int),
        "faster_links": (level == FASTER).astype(int),
        "partly": (ok > 0) & (failed > 0) & (failed >= 0.1 * (ok + failed)) & (state != FAILING),
    }


def square() -> Grid:
    """Three places in two clouds and tiers; a to c is stale, b to a failed, c is down."""
    places = [group("a", "UK", 2), group("B", "DE", 1), group("c", "UK", 1)]
    values = [[None, 10.0, 20.0], [None, None, 5.0], [1.0, None, None]]
    return grid_of(values, places, places, ["-ms", "f-m", "du-"])
