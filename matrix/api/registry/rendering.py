"""Rows of a list as JSON, CSV or NDJSON."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from typing import Any

from django.http import HttpResponse

from matrix.api.cell_text import dumps
from matrix.http.negotiation import CONTENT_TYPES
from sonar.notation import csv_text

Json = dict[str, Any]


def as_json(answer: Mapping[str, Any], status: int = 200) -> HttpResponse:
    return HttpResponse(dumps(answer), content_type=CONTENT_TYPES["json"], status=status)


def as_ndjson(rows: Sequence[Json]) -> HttpResponse:
    lines = b"".join(dumps(row) + b"\n" for row in rows)
    return HttpResponse(lines, content_type=CONTENT_TYPES["ndjson"])


def as_csv(rows: Sequence[Json], columns: Sequence[str], name: str) -> HttpResponse:
    """Write rows with these columns, even if there are none; what a row lacks is empty."""
    response = HttpResponse(csv_lines(rows, columns), content_type=CONTENT_TYPES["csv"])
    response["Content-Disposition"] = f'inline; filename="sonar-{name}.csv"'
    return response


def csv_lines(rows: Iterable[Json], columns: Sequence[str]) -> str:
    text = StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({field: flat(value) for field, value in row.items()} for row in rows)
    return text.getvalue()


def flat(value: object) -> object:
    """Put lists into one field, and what stands by name too: `small=600 large=86400`."""
    if isinstance(value, dict):
        value = " ".join(f"{name}={part}" for name, part in value.items())
    elif isinstance(value, list):
        value = " ".join(value)
    return csv_text.quoted(value) if isinstance(value, str) else value


def moment(value: datetime | None) -> str | None:
    """Write a time in UTC, exactly as it is kept."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z") if value else None
