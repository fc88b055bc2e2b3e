"""Rows of a link table as a table for documents: what a report says of a link."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from matrix.answers.link_columns import COMPARED, SURE, ClassColumns
from matrix.answers.link_table import LinkTable
from matrix.answers.ratio_words import PairRatio
from matrix.api.documents import DOCUMENTS
from matrix.api.streaming import Pieces
from matrix.query.catalogue import RATE, TABLE_QUANTILES
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Integers
from matrix.statistics.cells.states import STATES
from matrix.statistics.compare.two_samples import Ratios
from sonar.notation.units import DASH, format_bytes, format_chance, format_count, three_digits

BLOCK = 1000
# Of each size class, beside its quantiles.
TITLES = (RATE.name, "file size", "ok", "failed", "state")
COMPARED_TITLES = ("this side MB/s", "other side MB/s", "ratio", "n", "p")
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
    parts = [condition.words() for condition in query.filters]
    if query.compare:
        parts.append(f"{query.size} files compared with {query.other_words()}")
    subject = ", ".join(["Rates of links by size class", query.window_words(), *parts])
    return (
        f"{subject}. Window: {window.window_words()}. "
        "Rates and sizes are means of single transfers ± their standard deviation."
    )


def heads(table: LinkTable) -> list[str]:
    of_class = [TITLES[0], *quantile_titles(table), *TITLES[1:]]
    titles = (
        f"{size} {title}"
        for size in table.sizes
        for title in (*of_class, *(COMPARED_TITLES if table.compared_fields(size) else ()))
    )
    return ["from", "to", *titles]


def quantile_titles(table: LinkTable) -> list[str]:
    fields: Sequence[str] = next(
        (tuple(columns.quantiles) for columns in table.links.classes.values()), ()
    )
    return [f"{LABELS[name]} ({RATE.name})" for name in fields]


def lines(table: LinkTable) -> Iterator[list[str]]:
    classes = [
        [[*texts, *compared] for texts, compared in zip(*columns, strict=True)]
        for of_class in table.classes.values()
        for columns in [(class_texts(of_class), compared_texts(of_class))]
    ]
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


def compared_texts(columns: ClassColumns) -> Iterator[list[str]]:
    """Yield what a comparison says of each link, nothing where nothing is compared."""
    if not columns.compared:
        yield from ([] for _ in columns.ok)
        return
    arrays = {field: columns.compared[name] for name, field in COMPARED.items()}
    ratios = Ratios(**arrays, ok=columns.ok, sure=columns.compared[SURE])
    for at in range(len(columns.ok)):
        pair = PairRatio.at(ratios, (at,))
        rates = [
            DASH if math.isnan(rate) else three_digits(rate) for rate in (pair.value, pair.other)
        ]
        ratio = DASH if math.isnan(pair.ratio) else pair.factor_words
        chance = DASH if math.isnan(pair.p) else format_chance(pair.p)
        yield [*rates, ratio, pair.n_words, chance]
