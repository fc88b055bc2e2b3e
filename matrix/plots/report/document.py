"""A report as text: HTML for a page, a mail or a printer, and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string

from matrix.answers.report.parts import HeatTable, PeriodReport, ReportSection, ReportTable
from matrix.plots.report import heat
from sonar.notation.units import THIN_SPACE
from sonar.notation.windows import format_window

STYLE_SHEET = "css/report.css"
MARKDOWN_SIGNS = re.compile(r"([\\`*_\[\]<>|~&$#])")


def context(report: PeriodReport, base: str = "") -> dict[str, Any]:
    """Return what the templates show. Links go to ``base``, where Sonar's pages are.

    On a page it is ``/``, as they then lead on from there; without it there are none.
    """
    question = report.question
    return {
        "report": report,
        "window": format_window(question.period.window),
        "sections": [section_context(section, base) for section in report.sections],
        "page_url": f"{base.rstrip('/')}{question.url}" if base else "",
    }


def section_context(section: ReportSection, base: str) -> dict[str, Any]:
    table = section.table
    return {
        "section": section,
        "pictures": [
            (picture, list(heat.cell_rows(picture)), heat.legend(picture), heat.head_em(picture))
            for picture in section.pictures
        ],
        "heads": table.columns if table else [],
        "rows": list(table_rows(table, base)) if table else [],
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
        lines += [part for picture in section.pictures for part in picture_lines(picture)]
        if section.table:
            lines.append(table_lines(section.table))
        lines += map(markdown_text, section.notes)
    lines += [f"<{base.rstrip('/')}{question.url}>"] if base else []
    return "\n\n".join(lines) + "\n"


def picture_lines(picture: HeatTable) -> Iterator[str]:
    if picture.title:
        yield f"**{markdown_text(picture.title)}**"
    heads = [picture.corner, *(picture.short.get(name, name) for name in picture.columns)]
    rows = [[name, *(cell.text for cell in cells)] for name, cells in heat.cell_rows(picture)]
    yield markdown_table(heads, rows, ["--:"] * len(picture.columns))
    if signs := heat.legend(picture):
        yield markdown_text(f"{'; '.join(signs)}.")


def table_lines(table: ReportTable) -> str:
    sides = ["--:" if column.is_number else ":--" for column in table.columns]
    return markdown_table([column.title for column in table.columns], table.texts(), sides[1:])


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
