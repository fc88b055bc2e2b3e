"""A report as PDF. The library that makes it is loaded with the first one."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from matrix.answers.report.parts import PeriodReport
from matrix.plots.report import document
from matrix.store.cache import ANSWERS
from matrix.store.data_version import DataVersion

# Of a process: one takes a second or two of a processor, which the pages need, too.
LONGEST_WAIT_SECONDS = 10.0
_turn = Lock()


class PdfError(RuntimeError):
    """None can be made now: the sentence says why, and what to do."""


@dataclass(frozen=True)
class Pdf:
    content: bytes

    @property
    def nbytes(self) -> int:
        return len(self.content)


def pdf_of(report: PeriodReport, base: str = "") -> bytes:
    """Make it, of A4 pages; raise PdfError if others take too long, or a library is missing."""
    html = document.html(report, base)
    if not _turn.acquire(timeout=LONGEST_WAIT_SECONDS):
        raise PdfError("Other PDF files are being generated. Try again in a moment.")
    try:
        return written(html)
    finally:
        _turn.release()


def kept(report: PeriodReport, base: str, version: DataVersion) -> bytes:
    """Return that of a version, made now unless it is kept; raise PdfError as pdf_of."""
    pdf: Pdf = ANSWERS.get(("report pdf", base, version), lambda: Pdf(pdf_of(report, base)))
    return pdf.content


def written(html: str) -> bytes:
    """Turn a document into PDF with tags, for those who have it read to them.

    It fetches nothing, be it of this machine or another: a report has all that it needs in it.
    """
    try:
        from weasyprint import HTML  # takes most of a second
        from weasyprint.urls import URLFetcher
    except OSError as error:
        sentence = (
            "PDF files require the Pango library, which is not installed (see docs/deployment.md)"
        )
        raise PdfError(f"{sentence}: {error}.") from error
    page = HTML(string=html, url_fetcher=URLFetcher(allowed_protocols=()), media_type="print")
    content: bytes = page.write_pdf(pdf_tags=True)
    return content
