"""Rows of a link table as the API writes them: JSON and CSV."""

import math
from typing import Any

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray

from matrix.answers.table.column_filters import column_name
from matrix.answers.table.columns import SURE, Arrays
from matrix.answers.table.link_table import LinkTable
from matrix.api.encoding import csv_of, dumps
from matrix.api.matrix_formats import CHANCES, COUNTS, TIMES, WORDS, csv_column, unix_time
from matrix.api.streaming import Pieces
from matrix.query.attributes import BY_KEY, ENDS
from matrix.statistics.arrays import Floats, Integers, rounded, significant
from sonar.notation import csv_text

# So many rows are some 10 MB in memory while they are written, and a few of text.
BLOCK = 10_000
# What an end is, besides what a table can be ordered by.
FLAGS = ("simulated", "retired")
Records = list[dict[str, Any]]


def records(table: LinkTable) -> Records:
    """Return a record for each row; a NaN in it is written as null."""
    places = [orjson.Fragment(dumps(place.record)) for place in table.places]
    classes: dict[str, Records] = {}
    for size in table.sizes:
        columns = {name: json_column(name, of) for name, of in columns_of(table, size).items()}
        rows = zip(*columns.values(), strict=True)
        classes[size] = [dict(zip(columns, row, strict=True)) for row in rows]
    lines = {name: json_column(name, values) for name, values in table.lines.items()}
    numbers = zip(table.source.tolist(), table.destination.tolist(), strict=True)
    return [
        {
            "source": places[source],
            "destination": places[destination],
            "priority": priority,
            **{name: values[at] for name, values in lines.items()},
            **{size: of_size[at] for size, of_size in classes.items()},
        }
        for at, ((source, destination), priority) in enumerate(
            zip(numbers, whole(table.priority), strict=True)
        )
    ]


def columns_of(table: LinkTable, size: str) -> Arrays:
    """Return what is said of the links in a size class; what is sure is told by `change`."""
    return {name: values for name, values in table.of_class(size).items() if name != SURE}


def json_column(name: str, values: NDArray[Any]) -> list[Any]:
    if name in COUNTS:
        return list(values.tolist())
    if name in WORDS:
        return list(WORDS[name].take(values).tolist())
    if name in CHANCES:
        return list(significant(values).tolist())
    if name not in TIMES:
        return list(rounded(values).tolist())
    texts = np.datetime_as_string(unix_time(values)).tolist()
    return [None if text == "NaT" else f"{text}Z" for text in texts]


def whole(values: Floats) -> list[int | None]:
    return [None if math.isnan(value) else int(value) for value in values.tolist()]


def pieces(table: LinkTable, rows: Integers, form: str) -> Pieces:
    """Yield rows block by block as `ndjson`, or as `csv` with a header."""
    for start in range(0, max(len(rows), 1), BLOCK):
        block = table.taken(rows[start : start + BLOCK])
        if form == "ndjson":
            yield b"".join(dumps(record) + b"\n" for record in records(block))
        else:
            yield csv_of(pd.DataFrame(csv_columns(block)), header=start == 0)


def csv_columns(table: LinkTable) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for end, at in zip(ENDS, (table.source, table.destination), strict=True):
        names = [column_name(end, key) for key in BY_KEY]
        columns |= {name: texts(table.column(name)) for name in names}
        for name in FLAGS:
            words = [str(getattr(place, name)).lower() for place in table.places]
            columns[f"{end}.{name}"] = np.array(words, dtype=object)[at]
    columns["priority"] = pd.array(whole(table.priority), dtype="Int64")
    columns |= {name: csv_column(name, values) for name, values in table.lines.items()}
    for size in table.sizes:
        for name, values in columns_of(table, size).items():
            columns[f"{size}.{name}"] = csv_column(name, values)
    return columns


def texts(values: NDArray[Any]) -> NDArray[Any]:
    """Quote what an end is called or has written about it; a tier is a number."""
    written = {
        value: csv_text.quoted(value) for value in set(values.tolist()) if isinstance(value, str)
    }
    return np.array([written.get(value, value) for value in values.tolist()], dtype=object)
