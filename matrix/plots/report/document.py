"""A report as text: HTML for a page, a mail or a printer, and Markdown.

Cells of a matrix have colours and, so that it reads without them, numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string

from matrix.answers.report.parts import HeatTable, PeriodReport, ReportTable
from matrix.answers.words.numbers import number
from matrix.plots.palettes import DEFAULT_PALETTE, INKS, PALETTES, inks_on, ramp
from matrix.plots.scales import scale_for
from matrix.query.catalogue import STATISTICS
from matrix.statistics.cells.states import (
    DOWN,
    FAILED,
    FAILING,
    MEASURED,
    NOT_APPLICABLE,
    STALE,
    STATES,
    UNTESTED,
)
from sonar.notation.units import THIN_SPACE
from sonar.notation.windows import format_window

STYLE_SHEET = "css/report.css"
MARKDOWN_SIGNS = re.compile(r"([\\`*_\[\]<>|~&$#])")

STEPS = 64
LETTER_EM = 0.58
RATE = STATISTICS["mean"]
# What stands in a cell in place of a rate, and what the sign means.
SIGNS = {
    FAILING: ("✕", "the newest tests all failed"),
    FAILED: ("✕", "the newest tests all failed"),
    UNTESTED: ("○", "planned, but not tested"),
    DOWN: ("▽", "in a declared downtime at the end of the period"),
    NOT_APPLICABLE: ("", ""),
}
OLD = "*", "the newest result was older than two intervals of the schedule"


def context(report: PeriodReport, base: str = "") -> dict[str, Any]:
    """Return what the templates show. Links go to ``base``, where Sonar's pages are.

    On a page it is ``/``, as they then lead on from there; without it there are none.
    """
    question = report.question
    return {
        "report": report,
        "window": format_window(question.period.window),
        "sections": [
            {
                "section": section,
                "pictures": [
                    (each, list(cell_rows(each)), legend(each), head_em(each))
                    for each in section.pictures
                ],
                "heads": section.table.columns if section.table else [],
                "rows": list(table_rows(section.table, base)) if section.table else [],
            }
            for section in report.sections
        ],
        "page_url": f"{base.rstrip('/')}{question.url}" if base else "",
    }


def table_rows(table: ReportTable, base: str) -> Iterator[list[tuple[str, bool, str]]]:
    """Yield the cells of each row: a text, whether it is a number, and where the first leads."""
    for row, texts in zip(table.rows, table.texts(), strict=True):
        url = f"{base.rstrip('/')}{row['url']}" if base and "url" in row else ""
        yield [
            (text, column.is_number, "" if at else url)
            for at, (text, column) in enumerate(zip(texts, table.columns, strict=True))
        ]


@lru_cache(maxsize=1)
def style_sheet() -> str:
    path = finders.find(STYLE_SHEET)
    if path is None:
        raise FileNotFoundError(f"{STYLE_SHEET} is not among the static files.")
    return Path(path).read_text(encoding="utf-8")


def html(report: PeriodReport, base: str = "") -> str:
    """Write a whole document, with its style sheet inside: it needs no other file."""
    return render_to_string(
        "report/document.html", context(report, base) | {"style_sheet": style_sheet()}
    )


def markdown(report: PeriodReport, base: str = "") -> str:
    """Write it as GitHub's Markdown, which reads as plain text, too."""
    question = report.question
    lines = [f"# {markdown_text(question.title)}", format_window(question.period.window)]
    lines += [f"**Simulated.** {report.simulated}"] if report.simulated else []
    lines += ["\n".join(f"- {markdown_text(sentence)}" for sentence in report.summary)]
    for section in report.sections:
        lines += [f"## {markdown_text(section.title)}", *map(markdown_text, section.sentences)]
        for picture in section.pictures:
            lines += [f"**{markdown_text(picture.title)}**"] if picture.title else []
            heads = [picture.corner, *(picture.short.get(name, name) for name in picture.columns)]
            rows = [[name, *(cell.text for cell in of)] for name, of in cell_rows(picture)]
            lines.append(markdown_table(heads, rows, ["--:"] * len(picture.columns)))
            signs = legend(picture)
            lines += [markdown_text(f"{'; '.join(signs)}.")] if signs else []
        if section.table:
            columns = section.table.columns
            sides = ["--:" if column.is_number else ":--" for column in columns[1:]]
            heads = [column.title for column in columns]
            lines.append(markdown_table(heads, section.table.texts(), sides))
        lines += map(markdown_text, section.notes)
    lines += [f"<{base.rstrip('/')}{question.url}>"] if base else []
    return "\n\n".join(lines) + "\n"


def markdown_table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], sides: Sequence[str]
) -> str:
    """Write a table whose first column has words; ``sides`` says where the others are aligned."""
    written = [[markdown_text(text) for text in row] for row in (heads, *rows)]
    return "\n".join(
        f"| {' | '.join(cells)} |" for cells in (written[0], [":--", *sides], *written[1:])
    )


def markdown_text(text: str) -> str:
    """Escape a text, without what would break its line or cannot be printed."""
    line = "".join(sign if sign.isprintable() or sign == THIN_SPACE else " " for sign in text)
    return MARKDOWN_SIGNS.sub(r"\\\1", line)


class HeatCell(NamedTuple):
    """What stands in a cell, its colours as a style, and the name of its state."""

    text: str
    style: str
    state: str


def cell_rows(table: HeatTable) -> Iterator[tuple[str, list[HeatCell]]]:
    """Yield the short name of each row with its cells."""
    shares = scale_for(RATE, table.value).shares(table.value)
    steps = np.rint(np.nan_to_num(shares) * (STEPS - 1)).astype(int)
    colours = np.rint(ramp(PALETTES[DEFAULT_PALETTE], STEPS) * 255).astype(int)
    inks = inks_on(PALETTES[DEFAULT_PALETTE], STEPS)
    for row, name in enumerate(table.rows):
        cells = []
        for column in range(len(table.columns)):
            at = row, column
            state, style = int(table.state[at]), ""
            # The rate, or the sign of the state.
            text = number(float(table.value[at]), RATE) + (OLD[0] if state == STALE else "")
            text = SIGNS[state][0] if state in SIGNS else text
            if state in (MEASURED, STALE) and text:
                red, green, blue = colours[steps[at]].tolist()
                ink = INKS[inks[steps[at]]]
                style = f"background:#{red:02x}{green:02x}{blue:02x};color:{ink}"
            cells.append(HeatCell(text, style, STATES[state]))
        yield table.short.get(name, name), cells


def head_em(table: HeatTable) -> int:
    """Return how high the head is, whose names stand on their side."""
    longest = max(len(table.short.get(name, name)) for name in table.columns)
    return 2 + math.ceil(LETTER_EM * longest)


def legend(table: HeatTable) -> list[str]:
    """Say what the signs mean that a table has, and the colours."""
    states = set(np.unique(table.state).tolist())
    signs = dict(sign for state, sign in SIGNS.items() if state in states and sign[0])
    signs |= dict([OLD]) if STALE in states else {}
    said = [f"{sign} {words}" for sign, words in signs.items()]
    return [*said, "empty: no tests are planned"] if NOT_APPLICABLE in states else said
