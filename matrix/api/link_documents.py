"""Rows of a link table as a table for documents: what a report says of a link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matrix.answers.link_columns import ClassColumns
from matrix.answers.link_table import LinkTable
from matrix.api.documents import DOCUMENTS
from matrix.api.streaming import Pieces
from matrix.query.catalogue import RATE, TABLE_QUANTILES
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Integers
from matrix.statistics.states import STATES
from sonar.units import DASH, format_bytes, format_count, three_digits

BLOCK = 1000
# Of each size class, beside its quantiles.
TITLES = (RATE.name, "file size", "ok", "failed", "state")
LABELS = {quantile.field: quantile.label for quantile in TABLE_QUANTILES.values()}


def pieces(table: LinkTable, rows: Integers, query: MatrixQuery, form: str) -> Pieces:
    """Yield rows block by block in a form, `markdown` or `latex`."""
    document = DOCUMENTS[form]
    yield document.start(caption(table, query), heads(table), 2).encode()
    for start in range(0, len(rows), BLOCK):
        block = table.taken(rows[start : start + BLOCK])
        yield "".join(map(document.row, lines(block))).encode()
    yield document.end.encode()


def caption(table: LinkTable, query: MatrixQuery) -> str:
    window = query.replace(window="", start=table.window.start, end=table.window.end)
    filters = [condition.words() for condition in query.filters]
    subject = ", ".join(["Rates of links by size class", query.window_words(), *filters])
    return (
        f"{subject}. Window: {window.window_words()}. "
        "Rates and sizes are means of single transfers ± their standard deviation."
    )


def heads(table: LinkTable) -> list[str]:
    of_class = [TITLES[0], *quantile_titles(table), *TITLES[1:]]
    return ["from", "to", *(f"{size} {title}" for size in table.sizes for title in of_class)]


def quantile_titles(table: LinkTable) -> list[str]:
    fields: Sequence[str] = next(
        (tuple(columns.quantiles) for columns in table.links.classes.values()), ()
    )
    return [f"{LABELS[name]} ({RATE.name})" for name in fields]


def lines(table: LinkTable) -> Iterator[list[str]]:
    classes = [list(class_texts(of_class)) for of_class in table.classes.values()]
    ends = zip(table.source.tolist(), table.destination.tolist(), strict=True)
    for at, (source, destination) in enumerate(ends):
        texts = [text for of_class in classes for text in of_class[at]]
        yield [table.places[source].name, table.places[destination].name, *texts]


def class_texts(columns: ClassColumns) -> Iterator[list[str]]:
    """Yield the texts of one size class, link by link."""
    quantiles = [values.tolist() for values in columns.quantiles.values()]
    numbers = zip(
        columns.mean_mb_s.tolist(),
        columns.std_mb_s.tolist(),
        columns.size_mean_bytes.tolist(),
        columns.size_std_bytes.tolist(),
        columns.ok.tolist(),
        columns.failed.tolist(),
        columns.state.tolist(),
        strict=True,
    )
    for at, (mean, std, size, size_std, ok, failed, state) in enumerate(numbers):
        rates = [mean, *(values[at] for values in quantiles)] if ok else []
        texts = [three_digits(rate) for rate in rates] or [DASH] * (1 + len(quantiles))
        if ok > 1:
            texts[0] += f" ± {three_digits(std)}"
        volume = format_bytes(size) if ok else DASH
        if size_std > 0:
            volume += f" ± {format_bytes(size_std)}"
        counts = format_count(ok), format_count(failed)
        yield [*texts, volume, *counts, STATES[state].replace("_", " ")]
