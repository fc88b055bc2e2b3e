"""Rows of a link table as the API writes them: JSON, CSV, and tables for documents."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import orjson
import pandas as pd
from numpy.typing import NDArray

from matrix.answers.table.column_filters import column_name
from matrix.answers.table.link_table import COMPARED, SURE, Arrays, LinkTable
from matrix.answers.words.documents import DOCUMENTS
from matrix.answers.words.ratios import PairRatio
from matrix.api.encoding import csv_of, dumps
from matrix.api.matrix_formats import CHANCES, COUNTS, TIMES, WORDS, csv_column, unix_time
from matrix.api.streaming import Pieces
from matrix.query.attributes import BY_KEY, ENDS
from matrix.query.catalogue import RATE, TABLE_QUANTILES
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Floats, Integers, rounded, significant
from matrix.statistics.cells.states import STATES
from matrix.statistics.compare.two_samples import Ratios
from sonar.notation import csv_text
from sonar.notation.units import DASH, format_bytes, format_chance, format_count, three_digits

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


def pieces(table: LinkTable, rows: Integers, query: MatrixQuery, form: str) -> Pieces:
    """Yield rows block by block in a form: `csv` (with a header), `ndjson`, or a document."""
    if form in DOCUMENTS:
        document = DOCUMENTS[form]
        yield document.start(caption(table, query), heads(table), 2).encode()
        for start in range(0, len(rows), BLOCK_OF_TEXT):
            block = table.taken(rows[start : start + BLOCK_OF_TEXT])
            yield "".join(map(document.row, lines(block))).encode()
        yield document.end.encode()
        return
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


BLOCK_OF_TEXT = 1000
# Of each size class, beside its quantiles.
TITLES = (RATE.name, "file size", "ok", "failed", "state")
COMPARED_TITLES = ("this side MB/s", "other side MB/s", "ratio", "n", "p")
LABELS = {quantile.field: quantile.label for quantile in TABLE_QUANTILES.values()}


def caption(table: LinkTable, query: MatrixQuery) -> str:
    window = query.replace(window="", start=table.window.start, end=table.window.end)
    parts = [condition.words() for condition in query.filters]
    if query.compare:
        parts.append(f"{query.size} files compared with {query.other_words()}")
    subject = ", ".join(["Rates of links by size class", query.window_words(), *parts])
    return (
        f"{subject}. Window: {window.window_words()}. "
        "Rates and sizes are means of single transfers ± their standard deviation."
    )


def heads(table: LinkTable) -> list[str]:
    quantiles = [f"{LABELS[name]} ({RATE.name})" for name in table.quantiles]
    of_class = [TITLES[0], *quantiles, *TITLES[1:]]
    titles = (
        f"{size} {title}"
        for size in table.sizes
        for title in (*of_class, *(COMPARED_TITLES if table.compared_fields(size) else ()))
    )
    return ["from", "to", *titles]


def lines(table: LinkTable) -> Iterator[list[str]]:
    """Yield the texts of each link: its ends, and what is said of it in each size class."""
    classes = [class_texts(table.of_class(size), table.quantiles) for size in table.sizes]
    ends = (table.source.tolist(), table.destination.tolist())
    for source, destination, *texts in zip(*ends, *classes, strict=True):
        yield [table.places[source].name, table.places[destination].name, *chain(*texts)]


def class_texts(columns: Arrays, quantiles: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts of one size class, link by link; while comparing, with the comparison."""
    shown = ("mean_mb_s", "std_mb_s", "size_mean_bytes", "size_std_bytes", "ok", "failed", "state")
    numbers = zip(*(columns[name].tolist() for name in shown), strict=True)
    ratios = None
    if SURE in columns:
        arrays = {field: columns[name] for name, field in COMPARED.items()}
        ratios = Ratios(**arrays, ok=columns["ok"], sure=columns[SURE])
    for at, (mean, std, size, size_std, ok, failed, state) in enumerate(numbers):
        rates = [mean, *(columns[name][at] for name in quantiles)] if ok else []
        texts = [three_digits(rate) for rate in rates] or [DASH] * (1 + len(quantiles))
        if ok > 1:
            texts[0] += f" ± {three_digits(std)}"
        volume = format_bytes(size) if ok else DASH
        if size_std > 0:
            volume += f" ± {format_bytes(size_std)}"
        texts += [volume, format_count(ok), format_count(failed), STATES[state].replace("_", " ")]
        yield texts + (pair_texts(PairRatio.at(ratios, (at,))) if ratios else [])


def pair_texts(pair: PairRatio) -> list[str]:
    rates = [DASH if math.isnan(rate) else three_digits(rate) for rate in (pair.value, pair.other)]
    ratio = DASH if math.isnan(pair.ratio) else pair.factor_words
    return [*rates, ratio, pair.n_words, DASH if math.isnan(pair.p) else format_chance(pair.p)]
