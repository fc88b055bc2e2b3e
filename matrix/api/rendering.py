"""Answers as JSON, CSV or NDJSON, and figures: as Plotly JSON, or as an HTML file to be saved."""

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

import pandas as pd
from django.http import HttpResponse

from matrix.api.encoding import csv_of, dumps
from matrix.http.negotiation import CONTENT_TYPES, ENDINGS
from matrix.plots import standalone
from matrix.plots.standalone import FigureTitle
from sonar.notation import csv_text

Json = dict[str, Any]


def as_json(answer: Mapping[str, Any], status: int = 200) -> HttpResponse:
    return HttpResponse(dumps(answer), content_type=CONTENT_TYPES["json"], status=status)


def as_csv(rows: Sequence[Json], columns: Sequence[str], name: str) -> HttpResponse:
    """Write rows with these columns, even if there are none; what a row lacks is empty."""
    text = StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({field: flat(row.get(field)) for field in columns} for row in rows)
    return as_file(text.getvalue(), "csv", f"sonar-{name}")


def as_rows(rows: Sequence[Json], form: str, columns: Sequence[str], name: str) -> HttpResponse:
    """Answer with rows as CSV, or as NDJSON, a line of JSON for each."""
    if form == "csv":
        return as_csv(rows, columns, name)
    lines = b"".join(dumps(row) + b"\n" for row in rows)
    return HttpResponse(lines, content_type=CONTENT_TYPES["ndjson"])


def flat(value: object) -> object:
    """Put lists into one field, and what stands by name too: `small=600 tag=dc27,!tape`."""
    if isinstance(value, dict):
        parts = {
            name: ",".join(part) if isinstance(part, list) else part for name, part in value.items()
        }
        value = " ".join(f"{name}={part}" for name, part in parts.items())
    elif isinstance(value, list):
        value = " ".join(value)
    return csv_text.quoted(value) if isinstance(value, str) else value


def in_one(part: object) -> object:
    return ",".join(part) if isinstance(part, list) else part


WRITERS = {"plotly": standalone.as_json, "html": standalone.as_html}


def as_figure(figure: Json, title: FigureTitle, form: str, name: str) -> HttpResponse:
    """Answer with a figure of a page; ``name`` is that of the file without its ending.

    HTML is a file to be saved: what it runs must not run among the pages of Sonar.
    """
    written = WRITERS[form](standalone.standalone(figure, title))
    return as_file(written, form, name)


def as_file(content: str | bytes, form: str, name: str) -> HttpResponse:
    """Answer with a file; ``name`` is without its ending. HTML is to be saved, not opened here."""
    return named(HttpResponse(content, content_type=CONTENT_TYPES[form]), form, name)


def named(response: HttpResponse, form: str, name: str) -> HttpResponse:
    kind = "attachment" if form == "html" else "inline"
    response["Content-Disposition"] = f'{kind}; filename="{name}.{ENDINGS[form]}"'
    return response


def as_table(table: pd.DataFrame, name: str) -> HttpResponse:
    """Answer with a table as CSV, its times to the second."""
    return as_file(csv_of(table), "csv", name)
