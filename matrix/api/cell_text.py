"""Arrays of cells as rows of JSON, written block by block.

A block fits the processor's cache and its temporary arrays are reused by the next one: pages
that the kernel has to clear first cost more than all the writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from matrix.answers.comparison.changes import KINDS
from matrix.statistics.arrays import Floats, rounded, significant
from matrix.statistics.cells.standing import LEVELS
from matrix.statistics.cells.states import STATES
from matrix.statistics.transfers.overhead import FITS

BLOCK = 4096  # cells
# Arrays of numbers that stand for words.
WORDS = {
    "state": np.array(STATES, dtype=object),
    "level": np.array(LEVELS, dtype=object),
    "line": np.array(FITS, dtype=object),
    "change": np.array(KINDS, dtype=object),
}

HOUR = 3600
# A time is the text of its hour, quote first, and one of these.
ENDS = np.array([b'%02d:%02dZ",' % divmod(second, 60) for second in range(HOUR)])
# Stands for null until a row is whole, as wide as a time and quick to find.
NO_HOUR, NO_END = b"~" * len('"2026-11-20T04:'), b"~" * len('00:00Z"')

# Writes rows of cells as `[..],[..]`.
Write = Callable[[NDArray[Any]], bytes]


def dumps(answer: object) -> bytes:
    """Write JSON; NaN in an array is null."""
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


def blocks(name: str, array: NDArray[Any]) -> Iterator[bytes]:
    """Write an array of cells, by name, as blocks `[..],[..]` of rows; blank is null."""
    write = writer(name, array)
    height = max(1, BLOCK // max(1, array.shape[1]))
    for top in range(0, len(array), height):
        yield write(array[top : top + height])


def writer(name: str, array: NDArray[Any]) -> Write:
    if name in ("last", "since"):
        return times(array)
    if name in WORDS:
        return lambda numbers: dumps(WORDS[name][numbers].tolist())[1:-1]
    if name == "p":
        return lambda values: dumps(significant(values))[1:-1]
    if name in ("ok", "failed", "streak", "other_ok"):
        return lambda counts: dumps(np.ascontiguousarray(counts))[1:-1]
    return numbers


def numbers(values: Floats) -> bytes:
    return dumps(rounded(values))[1:-1]


def times(unix: Floats) -> Write:
    """Return what writes rows of these Unix times as ISO 8601 in UTC, to the second.

    It joins two tables, in half the time that orjson takes for datetime64, whose NaT would not
    even be JSON. Each year between the oldest and the newest costs 3 ms.
    """
    present = unix[~np.isnan(unix)]
    ends = (present.min(), present.max()) if present.size else (0, 0)
    first, last = (int(end) // HOUR for end in ends)
    starts = np.arange(first, last + 1).astype("datetime64[h]")
    hours = np.array([b'"%s:' % hour.encode() for hour in np.datetime_as_string(starts).tolist()])

    def write(block: Floats) -> bytes:
        blank = np.isnan(block)
        hour, second = np.divmod(np.where(blank, 0.0, block).astype(np.int64), HOUR)
        texts = np.empty(block.shape, dtype=[("hour", hours.dtype), ("end", ENDS.dtype)])
        texts["hour"] = hours.take(hour - first, mode="clip")
        texts["end"] = ENDS.take(second)
        texts[blank] = NO_HOUR, NO_END + b","
        rows = b"],[".join(row.tobytes()[:-1] for row in texts)
        return b"[" + rows.replace(NO_HOUR + NO_END, b"null") + b"]"

    return write
