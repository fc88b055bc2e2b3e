"""A report as a mail: plain text, and HTML that reads in any program for mail.

These know no style sheets, have narrow windows, and choose light or dark themselves.
"""

from __future__ import annotations

from string import ascii_uppercase
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

from django.template.loader import render_to_string

from matrix.answers.report.parts import HeatTable, PeriodReport
from matrix.plots.report import document
from matrix.query.addresses import home, outside

# Names of more columns take too much room: letters stand for them.
MOST_NAMED = 4


class ReportMail(NamedTuple):
    """What is sent, with links to Sonar's pages and to the PDF."""

    subject: str
    text: str
    html: str

    @classmethod
    def of(cls, report: PeriodReport, name: str) -> Self:
        question, base = report.question, home()
        params = urlencode({"format": "pdf", **question.scope})
        context = document.context(report, base)
        for section in context["sections"]:
            section["pictures"] = [picture_context(each) for each in section["section"].pictures]
        context |= {
            "name": name,
            "page": outside("subscriptions"),
            "pdf_url": f"{outside('api-report', question.period.name)}?{params}",
            "markdown": document.markdown(report, base),
        }
        return cls(
            question.title,
            render_to_string("mail/report.txt", context),
            render_to_string("mail/report.html", context),
        )


def picture_context(picture: HeatTable) -> dict[str, Any]:
    """Return a picture as a table that is narrow: with letters for its columns if it has many."""
    names = [picture.short.get(name, name) for name in picture.columns]
    is_square, letters = list(picture.rows) == list(picture.columns), [*ascii_uppercase]
    with_letters = MOST_NAMED < len(names) <= len(letters)
    signs = dict(zip(names, letters, strict=False)) if with_letters else {}
    return {
        "picture": picture,
        "heads": [signs.get(name, name) for name in names],
        "rows": [
            (f"{signs[name]} {name}" if signs and is_square else name, cells)
            for name, cells in document.cell_rows(picture)
        ],
        "columns": [] if is_square else [f"{letter} {name}" for name, letter in signs.items()],
        "legend": document.legend(picture),
    }
