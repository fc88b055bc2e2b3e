"""The numbers behind the picture, for static/js/matrix/numbers.js: arrays that need no decoding."""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from matrix.answers.matrix.grid_cells import Grid
from matrix.plots.arrangement import LEFT_OUT_WORDS, Arrangement
from matrix.query.catalogue import CARD_EXTRAS, VS_TARGET
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.cell_targets import AGAINST
from matrix.statistics.cells.cells import CellArrays
from matrix.statistics.cells.standing import LEVELS
from matrix.statistics.cells.states import NOT_APPLICABLE, STATE_WORDS
from matrix.statistics.compare.two_samples import CHANGE_KINDS
from sonar.notation.units import MB

# Typed arrays of a browser begin at a multiple of the size of their items.
ALIGNED = 8
KINDS = {
    "state": "u1",
    "value": "f4",
    "mean": "f4",
    "std": "f4",
    **dict.fromkeys(CARD_EXTRAS, "f4"),
    "ok": "u4",
    "failed": "u4",
    "last": "f8",
    "level": "u1",
    "partly": "u1",
    "usual": "f4",
    "now": "f4",
    "since": "f8",
    "streak": "u4",
    "condition": "u4",
}
# Of a comparison: the rate of this side and of the other, the interval of their ratio (which is the
# value), p of chance, how many successes there are, and as what a change stands out.
COMPARED = {
    **dict.fromkeys(("here", "there", "low", "high", "p"), "f4"),
    **dict.fromkeys(("here_ok", "there_ok"), "u4"),
    "change": "u1",
}
# With stat=vs_target: the rate target, and how the cell compares with it.
TARGET_FIELDS = {"target": "f4", "against": "u1"}
# Of cells that may pool several links; else they would say of each cell what it says anyway.
LINK_COUNTS = ("tested_links", "failing_links", "silent_links", "slower_links", "faster_links")
TARGET_COUNTS = ("below_links", "near_links")
Arrays = dict[str, NDArray[Any]]
NO_CONDITIONS: Mapping[int, str] = {}


def encode(arrangement: Arrangement, conditions: Mapping[int, str] = NO_CONDITIONS) -> bytes:
    """Return the facts() of a matrix and its numbers, as packed() does.

    Arrays have a number for each drawn cell, row by row and without gaps; rates in MB/s,
    ``last`` and ``since`` in Unix s, NaN for none; ``condition`` is the id of one of the
    ``conditions``, which are in words, or 0. The grid needs the extras catalogue.CARD_EXTRAS.
    """
    cells, kinds = arrangement.grid.cells, kinds_for(arrangement.grid.query)
    whole = target_arrays(cells) | vars(cells) | dict(cells.extras) | compared(arrangement.grid)
    drawn = {name: arrangement.drawn(values) for name, values in whole.items() if name in kinds} | {
        "state": arrangement.state
    }
    arrays = {
        name: np.ascontiguousarray(drawn[name], dtype=f"<{kind}") for name, kind in kinds.items()
    }
    named = {"conditions": {str(number): text for number, text in conditions.items()}}
    return packed(facts(arrangement) | named, arrays)


def packed(facts: dict[str, Any], arrays: Arrays) -> bytes:
    """Return the length of the header (uint32, little-endian), the header, and the arrays.

    The header is JSON: facts, and as `arrays` the name, dtype and offset of each.
    """

    def header(start: int) -> bytes:
        sizes = [aligned(array.nbytes) for array in arrays.values()]
        offsets = np.cumsum([start, *sizes]).tolist()
        named = [
            {"name": name, "kind": array.dtype.str.lstrip("<|"), "offset": offset}
            for (name, array), offset in zip(arrays.items(), offsets, strict=False)
        ]
        return orjson.dumps(facts | {"arrays": named})

    # The offsets are part of the header, whose length they depend on: leave room for them.
    room = aligned(4 + len(header(10**9)))
    head = header(room).ljust(room - 4)
    padded = (array.tobytes().ljust(aligned(array.nbytes), b"\0") for array in arrays.values())
    return b"".join([struct.pack("<I", len(head)), head, *padded])


def kinds_for(query: MatrixQuery) -> dict[str, str]:
    """Return the arrays of a file with their dtypes."""
    pools = (query.rows, query.columns) != ("endpoint", "endpoint")
    counts = LINK_COUNTS if pools else ()
    kinds = KINDS | dict.fromkeys(counts, "u4")
    if query.compare:
        return kinds | COMPARED
    if query.stat != VS_TARGET.name:
        return kinds
    return kinds | TARGET_FIELDS | dict.fromkeys(TARGET_COUNTS if pools else (), "u4")


def target_arrays(cells: CellArrays) -> Arrays:
    """Return the rate target of each cell in MB/s and how it compares, with stat=vs_target."""
    if cells.targets is None:
        return {}
    return cells.targets.arrays() | {"target": cells.targets.target / MB}


def compared(grid: Grid) -> Arrays:
    """Return what a comparison has of each cell, by the names in COMPARED."""
    ratios = grid.comparison
    if ratios is None:
        return {}
    return {
        "here": ratios.value,
        "there": ratios.other,
        "low": ratios.low,
        "high": ratios.high,
        "p": ratios.p,
        "here_ok": ratios.ok,
        "there_ok": ratios.other_ok,
        "change": grid.change_kinds(),
    }


def facts(arrangement: Arrangement) -> dict[str, Any]:
    grid = arrangement.grid
    return {
        "arrangement": arrangement.digest,
        "version": arrangement.version.text,
        "stat": grid.query.stat,
        "unit": grid.unit,
        "moment": grid.moment.timestamp(),
        "past": grid.moment >= grid.window.end,
        "rows": len(arrangement.rows.groups),
        "columns": len(arrangement.columns.groups),
        "states": [*STATE_WORDS.values(), LEFT_OUT_WORDS],
        "levels": list(LEVELS),
        "against_words": list(AGAINST),
        "changes": list(CHANGE_KINDS),
        "leads_nowhere": NOT_APPLICABLE,
    }


def aligned(length: int) -> int:
    return -(-length // ALIGNED) * ALIGNED
