"""GET /api/v1/changes/: changes of level, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.changes.lines import ChangeLine, lines_of
from matrix.answers.changes.question import ChangesQuestion
from matrix.api.base import ApiView
from matrix.api.numbers import number
from matrix.api.pagination import PAGING, TRANSFERS, PageRequest, following
from matrix.api.registry.rendering import as_csv, as_json, as_ndjson, moment
from matrix.api.schema.changes import CHANGES, COLUMNS
from matrix.http.negotiation import LIST, asked_format
from matrix.query.filters import by_parameter
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import changes, registry
from matrix.store.changes import WrittenNear
from matrix.store.keyset import Cursor
from sonar.models import Change
from sonar.notation.units import MB
from sonar.notation.windows import format_time

# All of a Sonar's changes, in one CSV: more than this many nobody has, nor reads.
MOST_ROWS = 100_000


class ChangesView(ApiView):
    @CHANGES
    def get(self, request: Request) -> HttpResponseBase:
        """A jump that is common to the links of an endpoint is one change, of the endpoint."""
        now = timezone.now()
        params = dict(request.query_params.lists())
        question = ChangesQuestion.read(params, (*PAGING, "format"))
        form = asked_format(request, LIST)
        page = PageRequest.read(request, form, Cursor.parse_numbered, TRANSFERS)
        endpoints = registry.read_places(registry.read_versions())
        size = page.size if form == "json" else MOST_ROWS
        rows = question.selection(now).rows(endpoints)
        listed, further = changes.listing(rows, size, page.after)
        records = records_of(listed, endpoints, request)
        if form != "json":
            return as_csv(records, COLUMNS, "changes") if form == "csv" else as_ndjson(records)
        window = question.query.window_at(now)
        bounds = {"window": None, "from": format_time(window.start), "to": format_time(window.end)}
        return as_json(
            {
                "query": echo(question, now),
                "description": question.describe(),
                "searched": {
                    search.size_class.name: format_time(search.searched_at)
                    for search in changes.searches()
                },
                "changes": records,
                "next": following(request, str(further), **bounds) if further else None,
            }
        )


def records_of(
    listed: Sequence[Change], endpoints: Sequence[EndpointInfo], request: Request
) -> list[dict[str, Any]]:
    near, now = WrittenNear.read(listed, request.user), timezone.now()
    return [
        record(line) | {"comparison_url": request.build_absolute_uri(line.comparison_url(now))}
        for line in lines_of(listed, endpoints, near)
    ]


def record(line: ChangeLine) -> dict[str, Any]:
    """Return a change as answers have it, but for addresses; rates in MB/s."""
    change = line.change
    return {
        "id": change.id,
        "kind": change.kind,
        "source": line.source.name if line.source else None,
        "destination": line.destination.name if line.destination else None,
        "size": line.size,
        "at": moment(change.at),
        "earliest": moment(change.earliest),
        "latest": moment(change.latest),
        "factor": number(change.factor),
        "low": number(change.low),
        "high": number(change.high),
        "before_mb_s": None if change.before is None else number(change.before / MB),
        "after_mb_s": None if change.after is None else number(change.after / MB),
        "ok_before": change.ok_before,
        "ok_after": change.ok_after,
        "links": change.links,
        "chance": number(change.chance),
        "sure": change.sure,
        "found_at": moment(change.found_at),
        "sentence": line.sentence,
        "near": [note.words for note in line.near],
    }


def echo(question: ChangesQuestion, now: datetime) -> dict[str, Any]:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    window = question.query.window_at(now)
    return {
        "size": question.size or None,
        "window": question.query.window or None,
        "start": format_time(window.start),
        "end": format_time(window.end),
        "kind": question.kind or None,
        "level": question.level or None,
        "factor": question.factor or None,
        "sure": "any" if question.unsure else "yes",
        **by_parameter(question.query.filters),
    }
