"""A Grid as the bytes of an answer: JSON, CSV with a line for each link, and wide tables.

Arrays are written as JSON block by block. A block fits the processor's cache and its temporary
arrays are reused by the next one: pages that the kernel has to clear first cost more than all the
writing.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray

from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.other_origins import NONE, OtherOrigins
from matrix.api import parameters
from matrix.api.encoding import csv_of, dumps
from matrix.query.catalogue import RATE
from matrix.query.filters import by_parameter
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats, rounded, rounded_deviations, significant
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.cell_targets import AGAINST
from matrix.statistics.cells.standing import LEVELS
from matrix.statistics.cells.states import NOT_APPLICABLE, STATES
from matrix.statistics.compare.two_samples import CHANGE_KINDS
from matrix.statistics.transfers.overhead import FITS
from matrix.store.conditions import MARKS
from sonar.notation import csv_text
from sonar.notation.units import MB
from sonar.notation.windows import format_time

BLOCK = 8192  # cells
# Arrays of numbers that stand for words.
WORDS = {
    "state": np.array(STATES, dtype=object),
    "level": np.array(LEVELS, dtype=object),
    "unconfirmed": np.array(MARKS, dtype=object),
    "line": np.array(FITS, dtype=object),
    "change": np.array(CHANGE_KINDS, dtype=object),
    "against": np.array(AGAINST, dtype=object),
}
# So many are written at once, as they follow each other.
AT_ONCE = 4

# From here on a float32 does not have every whole number.
WHOLE_FLOAT32 = 2.0**24

HOUR = 3600
# A time is fifteen letters of its hour, quote first, and eight of a second in it. They are copied
# in eights, which takes half the time of fifteen at once: those of the hour share one letter.
TIME = np.dtype(
    {
        "names": ["year", "hour", "second"],
        "formats": [np.uint64] * 3,
        "offsets": [0, 7, 15],
        "itemsize": 23,
    }
)
SECONDS = np.array([b'%02d:%02dZ",' % divmod(second, 60) for second in range(HOUR)]).view(np.uint64)
# Stands for null until a row is whole, as wide as a time and quick to find.
NO_TIME = b"~" * len('"2026-11-20T04:17:11Z"')

# Arrays of cells that an answer has, and those that it has for who names them: each that nobody
# reads is a sixth of the bytes. Those of a comparison it has while comparing.
CORNER, MEAN = r"from \ to", "mean"
DEFAULT_FIELDS = ("value", "std", "ok", "failed", "last", "state")
STANDING = (
    *("level", "since", "streak", "usual", "now", "ratio_low", "ratio_high"),
    *("unconfirmed", "condition"),
)
COMPARED = ("rate", "other", "ratio", "low", "high", "p", "other_ok", "change")
TARGET_FIELDS = ("target", "against")
PLAIN_FIELDS = (*DEFAULT_FIELDS, *STANDING)
FIELDS = (*PLAIN_FIELDS, *TARGET_FIELDS, *COMPARED)
TIMES = ("last", "last_ok", "last_failed", "since")
COUNTS = ("ok", "failed", "streak", "condition", "other_ok")
CHANCES = ("p", "compared_p")

RATES = ("std", "usual", "now", "target", "rate", "other")

# Writes rows of cells as `[..],[..]`.
Write = Callable[[NDArray[Any]], bytes]


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
        return words(name, array.shape[1])
    if name == "p":
        return lambda values: dumps(significant(values))[1:-1]
    if name == "std":
        return lambda values: dumps(rounded_deviations(values))[1:-1]
    if name in COUNTS:
        return lambda counts: dumps(np.ascontiguousarray(counts))[1:-1]
    return numbers(array)


def numbers(array: Floats) -> Write:
    """Return what writes rows of rounded numbers.

    Digits of a float32 take less time to find. Seven of them are the same unless one of the numbers
    has more.
    """
    largest = np.fmax.reduce(np.abs(array), axis=None, initial=0.0)
    kind = np.float32 if largest < WHOLE_FLOAT32 else np.float64
    return lambda values: dumps(rounded(values).astype(kind))[1:-1]


def words(name: str, width: int) -> Write:
    """Return what writes rows of so many numbers that stand for words, some of them at once."""
    table = of_some_words(name)
    blank = len(WORDS[name])
    powers = (blank + 1) ** np.arange(AT_ONCE)[::-1]

    def write(block: NDArray[Any]) -> bytes:
        padded = np.full((len(block), -(-width // AT_ONCE), AT_ONCE), blank, dtype=np.intp)
        padded.reshape(len(block), -1)[:, :width] = block
        return dumps(table.take(padded @ powers).tolist())[1:-1]

    return write


@lru_cache
def of_some_words(name: str) -> NDArray[np.object_]:
    """Return what each row of so many words is written as; a number too large is none of them."""
    rows = product([*map(dumps, WORDS[name].tolist()), b""], repeat=AT_ONCE)
    pieces = [orjson.Fragment(b",".join(filter(None, words))) for words in rows]
    return np.array(pieces, dtype=object)


def times(unix: Floats) -> Write:
    """Return what writes rows of these Unix times as ISO 8601 in UTC, to the second.

    It joins two tables, in half the time that orjson takes for datetime64, whose NaT would not
    even be JSON. Each year between the oldest and the newest costs 3 ms, once.
    """
    present = unix[~np.isnan(unix)]
    ends = (present.min(), present.max()) if present.size else (0, 0)
    first, last = (int(end) // HOUR for end in ends)
    years, hours = of_hours(first, last)

    def write(block: Floats) -> bytes:
        blank = np.isnan(block)
        since = np.where(blank, 0.0, block - first * HOUR).astype(np.intp)
        hour = since // HOUR
        texts = np.empty(block.shape, dtype=TIME)
        texts["year"] = years.take(hour)
        texts["hour"] = hours.take(hour)
        texts["second"] = SECONDS.take(since - hour * HOUR)
        texts.view(f"S{TIME.itemsize}")[blank] = NO_TIME + b","
        rows = b"],[".join(row.tobytes()[:-1] for row in texts)
        return b"[" + rows.replace(NO_TIME, b"null") + b"]"

    return write


@lru_cache(maxsize=8)
def of_hours(first: int, last: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the first and the last eight letters of hours, which are numbered since 1970."""
    starts = np.arange(first, last + 1).astype("datetime64[h]")
    texts = np.array([b'"%s:' % hour.encode() for hour in np.datetime_as_string(starts).tolist()])
    letters = texts.view(np.uint8).reshape(len(texts), texts.itemsize)
    year, hour = (np.ascontiguousarray(part) for part in (letters[:, :8], letters[:, -8:]))
    return year.view(np.uint64).ravel(), hour.view(np.uint64).ravel()


def as_json(grid: Grid, fields: Sequence[str], others: OtherOrigins = NONE) -> bytes:
    comparison: dict[str, Any] = {}
    if other := grid.other:
        # What the cells are compared with, and how many of them differ significantly.
        comparison["comparison"] = {
            "description": other.words,
            "size": other.query.size,
            "start": format_time(other.window.start),
            "end": format_time(other.window.end),
            "simulated": other.simulated,
            "filters": by_parameter(other.query.filters),
            **grid.changes(),
        }
    before_cells = {
        "query": echo(grid),
        "description": grid.query.describe(),
        "unit": grid.unit,
        "version": grid.version.text,
        "simulated": grid.simulated,
        "other_origins": others.counts,
        **comparison,
        "sources": [group.record for group in grid.sources],
        "destinations": [group.record for group in grid.destinations],
    }
    pieces = [dumps(before_cells).removesuffix(b"}"), b',"cells":{']
    for position, name in enumerate(fields):
        pieces.append(b'%s"%s":[' % (b"," if position else b"", name.encode()))
        for place, block in enumerate(blocks(name, array_of(grid, name))):
            pieces += (b",", block) if place else (block,)
        pieces.append(b"]")
    averages = {
        "source_average": rounded(grid.averages.row),
        "destination_average": rounded(grid.averages.column),
        "average": rounded(np.asarray(grid.averages.grand)),
    }
    return b"".join([*pieces, b"},", dumps(averages).removeprefix(b"{")])


def array_of(grid: Grid, name: str) -> NDArray[Any]:
    if name in TARGET_FIELDS and grid.cells.targets:
        values: NDArray[Any] = getattr(grid.cells.targets, name)
        return values / MB if name == "target" else values
    if name not in COMPARED:
        array: NDArray[Any] = getattr(grid.cells, name)
        return array
    if grid.comparison is None:
        raise ValueError(f"{name} requires a comparison")
    if name == "change":
        return grid.change_kinds()
    of_ratios: NDArray[Any] = getattr(grid.comparison, {"rate": "value"}.get(name, name))
    return of_ratios


def echo(grid: Grid) -> dict[str, Any]:
    query: MatrixQuery = grid.query
    own = {"stat": query.stat, "rows": query.rows, "columns": query.columns}
    answer = parameters.echo(query, grid.window, **own, max_age=query.max_age or None)
    return answer | (query.compare.to_params() if query.compare else {})


def as_csv(grid: Grid, fields: Sequence[str]) -> bytes:
    """Write one line for each link, row by row; cells that are not applicable are left out."""
    shown = grid.cells.state != NOT_APPLICABLE
    row, column = np.nonzero(shown)
    units = {
        "value": f"value_{grid.query.statistic.unit.suffix}",
        **{name: f"{name}_{RATE.suffix}" for name in RATES},
    }
    frame = pd.DataFrame(
        {
            "source": names(grid.sources)[row],
            "destination": names(grid.destinations)[column],
            **{
                units.get(name, name): csv_column(name, array_of(grid, name)[shown])
                for name in fields
            },
        }
    )
    return csv_of(frame)


def csv_column(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return what stands in CSV of cells or of links, by the name of their array."""
    if name in TIMES:
        return unix_time(values)
    if name in WORDS:
        return WORDS[name].take(values)
    if name in CHANCES:
        return significant(values)
    if name == "std":
        return rounded_deviations(values)
    return values if name in COUNTS else rounded(values)


def unix_time(seconds: Floats) -> NDArray[np.datetime64]:
    """Turn Unix times into dates to the second; NaN into none."""
    dates = np.full(seconds.shape, np.datetime64("NaT"), dtype="datetime64[s]")
    present = ~np.isnan(seconds)
    dates[present] = np.floor(seconds[present]).astype(np.int64).astype("datetime64[s]")
    return dates


def names(groups: Sequence[AxisGroup]) -> NDArray[np.object_]:
    return np.array([csv_text.quoted(group.name) for group in groups], dtype=object)


def as_wide_csv(grid: Grid) -> bytes:
    """Write a row for each source; the last row and column have means of measured cells."""
    averages = grid.averages
    rows = np.column_stack([grid.cells.value, averages.row])
    numbers = np.vstack([rows, np.append(averages.column, averages.grand)])
    frame = pd.DataFrame(
        rounded(numbers),
        index=[*names(grid.sources), MEAN],
        columns=[*names(grid.destinations), MEAN],
    )
    corner = f"{CORNER} ({grid.query.statistic.name}, {grid.unit})"
    return str(frame.to_csv(index_label=corner, lineterminator="\n")).encode()
