"""What a cell says under the pointer: static/js/matrix.js makes the sentences of it."""

from __future__ import annotations

from typing import Any

from matrix.grid import Grid
from matrix.packed import packed

STATE_WORDS = {
    "measured": "measured",
    "failed": "failed: tests ran and none succeeded",
    "stale": "stale: its last result is older than its mesh promises",
    "untested": "untested: scheduled, without a result in this window",
    "down": "down: declared downtime of one end",
    "not_applicable": "not applicable: no mesh tests it and it has no results",
}


def cells(grid: Grid) -> dict[str, Any]:
    """Return the numbers of all cells, row by row, and the words that go with them.

    Made into text by the browser: as sentences, 200 x 200 cells are 5 MB.
    """
    arrays = grid.cells
    return {
        "stat": grid.query.stat,
        "unit": grid.unit,
        "moment": grid.moment.timestamp(),
        "past": grid.moment >= grid.window.end,
        "sources": [group.name for group in grid.sources],
        "destinations": [group.name for group in grid.destinations],
        "states": list(STATE_WORDS.values()),
        "value": packed(arrays.value, "f4"),
        "mean": packed(arrays.mean, "f4"),
        "std": packed(arrays.std, "f4"),
        "ok": packed(arrays.ok, "u4"),
        "failed": packed(arrays.failed, "u4"),
        "last": packed(arrays.last, "f8"),
        "state": packed(arrays.state, "u1"),
    }
