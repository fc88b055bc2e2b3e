"""The numbers behind the picture, for static/js/matrix/numbers.js: arrays that need no decoding."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from matrix.plots.arrangement import Arrangement
from matrix.query.catalogue import CARD_EXTRAS
from matrix.statistics.states import NOT_APPLICABLE, STATE_WORDS

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
}
Arrays = dict[str, NDArray[Any]]


def encode(arrangement: Arrangement) -> bytes:
    """Return the length of the header (uint32, little-endian), the header, and the arrays.

    The header is JSON; it names each array with its dtype and its offset from the start of
    the file. Arrays have a number for each drawn cell, row by row and without gaps; rates in
    MB/s, ``last`` in Unix s, NaN for none. The grid needs the extras catalogue.CARD_EXTRAS.
    """
    cells = arrangement.grid.cells
    named = vars(cells) | dict(cells.extras)
    arrays = {
        name: np.ascontiguousarray(arrangement.drawn(named[name]), dtype=f"<{kind}")
        for name, kind in KINDS.items()
    }
    # The offsets are part of the header, whose length they depend on: leave room for them.
    room = aligned(4 + len(orjson.dumps(header(arrangement, arrays, 10**9))))
    head = orjson.dumps(header(arrangement, arrays, room)).ljust(room - 4)
    padded = (array.tobytes().ljust(aligned(array.nbytes), b"\0") for array in arrays.values())
    return b"".join([struct.pack("<I", len(head)), head, *padded])


def header(arrangement: Arrangement, arrays: Arrays, start: int) -> dict[str, Any]:
    grid = arrangement.grid
    offsets = np.cumsum([start, *(aligned(array.nbytes) for array in arrays.values())]).tolist()
    return {
        "arrangement": arrangement.digest,
        "version": arrangement.version.text,
        "stat": grid.query.stat,
        "unit": grid.unit,
        "moment": grid.moment.timestamp(),
        "past": grid.moment >= grid.window.end,
        "rows": len(arrangement.rows.groups),
        "columns": len(arrangement.columns.groups),
        "states": list(STATE_WORDS.values()),
        "leads_nowhere": NOT_APPLICABLE,
        "arrays": [
            {"name": name, "kind": KINDS[name], "offset": offset}
            for name, offset in zip(arrays, offsets, strict=False)
        ],
    }


def aligned(length: int) -> int:
    return -(-length // ALIGNED) * ALIGNED
