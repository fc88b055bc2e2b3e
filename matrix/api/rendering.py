"""Answers as JSON, CSV or NDJSON, and figures: as Plotly JSON, or as an HTML file to be saved."""

import csv
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, timedelta
from io import StringIO
from typing import Any, TypeVar

import pandas as pd
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from matrix.api.encoding import csv_of, dumps
from matrix.http.negotiation import CONTENT_TYPES, ENDINGS
from matrix.plots import standalone
from matrix.plots.standalone import FigureTitle
from matrix.query.filters import LINK_FILTERS, alternatives
from matrix.query.matrix_query import MatrixQuery
from sonar.notation import csv_text
from sonar.notation.windows import Window

Json = dict[str, Any]
Answered = TypeVar("Answered", bound=HttpResponseBase)
# Of a file name: the values of one filter that it has, and its length without dates and ending.
MOST_VALUES, LONGEST_NAME = 3, 120
# Filters that a file name has.
PLACES = (*LINK_FILTERS, "mesh")
INSTANT = timedelta(microseconds=1)
UNSAFE = re.compile(r"[^\w.-]+")


def as_json(answer: Mapping[str, Any], status: int = 200) -> HttpResponse:
    return HttpResponse(dumps(answer), content_type=CONTENT_TYPES["json"], status=status)


def as_csv(rows: Sequence[Json], columns: Sequence[str], name: str) -> HttpResponse:
    """Write rows with these columns, even if there are none; what a row lacks is empty."""
    text = StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({field: flat(row.get(field)) for field in columns} for row in rows)
    return as_file(text.getvalue(), "csv", name)


def as_rows(rows: Sequence[Json], form: str, columns: Sequence[str], name: str) -> HttpResponse:
    """Answer with rows as CSV, or as NDJSON, a line of JSON for each."""
    if form == "csv":
        return as_csv(rows, columns, name)
    lines = b"".join(dumps(row) + b"\n" for row in rows)
    return as_file(lines, form, name)


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


def named(response: Answered, form: str, name: str) -> Answered:
    """Give an answer the name under which it is saved; ``name`` is that of `file_name`."""
    header = content_disposition_header(form == "html", f"{name}.{ENDINGS[form]}")
    response["Content-Disposition"] = str(header)
    return response


def file_name(*parts: str, query: MatrixQuery | None = None, window: Window | None = None) -> str:
    """Return a file name without its ending: `sonar-links-RAL-2026-11-28`.

    The parts are followed by the sites, other ends and meshes that the query chooses, up to three
    of each (`from-RAL-DESY`, `not-UK`, `to-tier-2`), by its size class
    unless that is the default, and by the dates (UTC) of the window. Every character but letters,
    digits and `_.-` becomes a hyphen.
    """
    words = ["sonar", *parts]
    if query:
        for options in alternatives(query.filters, PLACES):
            first, values = options[0], [option.value for option in options]
            left_out = len(values) - MOST_VALUES
            more = [f"and-{left_out}-more"] if left_out > 0 else []
            before = {"source": ["from"], "destination": ["to"]}.get(first.end, [])
            number = ["tier"] if first.attribute == "tier" else []
            words += [*["not"] * first.exclude, *before, *number, *values[:MOST_VALUES], *more]
        words += [query.size] if query.size != MatrixQuery.size else []
    name = UNSAFE.sub("-", "-".join(words))[:LONGEST_NAME].rstrip("-.")
    if window:
        # The end is outside: midnight belongs to the day before.
        dates = {window.start.astimezone(UTC).date(), (window.end - INSTANT).astimezone(UTC).date()}
        name += "-" + "-to-".join(map(str, sorted(dates)))
    return name


def as_table(table: pd.DataFrame, name: str) -> HttpResponse:
    """Answer with a table as CSV, its times to the second."""
    return as_file(csv_of(table), "csv", name)
