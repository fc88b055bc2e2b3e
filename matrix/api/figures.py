"""Figures as answers: as Plotly JSON, or as one HTML file that is saved, never opened here."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from matrix.http.negotiation import CONTENT_TYPES, ENDINGS
from matrix.plots import standalone
from matrix.plots.standalone import FigureTitle

Json = dict[str, Any]
WRITERS = {"plotly": standalone.as_json, "html": standalone.as_html}


def answer(figure: Json, title: FigureTitle, form: str, name: str) -> HttpResponse:
    """Answer with a figure of a page; ``name`` is that of the file without its ending.

    HTML is a file to be saved: what it runs must not run among the pages of Sonar.
    """
    written = WRITERS[form](standalone.standalone(figure, title))
    response = HttpResponse(written, content_type=CONTENT_TYPES[form])
    kind = "attachment" if form == "html" else "inline"
    response["Content-Disposition"] = f'{kind}; filename="{name}.{ENDINGS[form]}"'
    return response
