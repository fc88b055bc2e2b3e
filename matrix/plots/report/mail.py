"""A report as a mail. Who sends it, to whom and when is a matter of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from matrix.answers.report.parts import PeriodReport
from matrix.answers.words.phrases import lower_first
from matrix.plots.report import document
from matrix.plots.report.pdf import pdf_of


@dataclass(frozen=True)
class ReportMail:
    """What a mail has in it; ``pdf`` is to be attached under ``file_name``."""

    subject: str
    text: str
    html: str
    pdf: bytes
    file_name: str

    @classmethod
    def of(cls, report: PeriodReport, base: str) -> Self:
        """Write it, with links to Sonar's pages at ``base``; raise PdfError as pdf_of."""
        question = report.question
        return cls(
            f"Sonar: {lower_first(question.title)}",
            document.markdown(report, base),
            document.html(report, base),
            pdf_of(report, base),
            f"{question.file_name}.pdf",
        )
