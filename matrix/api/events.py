"""GET /api/v1/events/: what happened, each thing once, newest first."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.changes.near import notes_near
from matrix.answers.events import reading, today
from matrix.answers.events.event import Event
from matrix.answers.events.question import EventCursor, EventsQuestion, page_of
from matrix.api.base import ApiView
from matrix.api.numbers import known_number
from matrix.api.pagination import PAGING, TRANSFERS, PageRequest, following
from matrix.api.registry.rendering import as_csv, as_json, as_ndjson, moment
from matrix.api.schema.events import COLUMNS, EVENTS
from matrix.http.negotiation import LIST, asked_format
from matrix.query.filters import by_parameter
from matrix.store import changes, registry
from matrix.store.changes import WrittenNear
from sonar.notation.windows import format_time

# All events of a grid, in one CSV: more than this many nobody reads.
MOST_ROWS = 100_000


class EventsView(ApiView):
    @EVENTS
    def get(self, request: Request) -> HttpResponseBase:
        """What all links of an endpoint share is one event, of the endpoint."""
        now = timezone.now()
        question = EventsQuestion.read(dict(request.query_params.lists()), (*PAGING, "format"))
        form = asked_format(request, LIST)
        page = PageRequest.read(request, form, EventCursor.parse, TRANSFERS)
        window = question.window_at(now)
        events, sizes = events_of(question, now)
        inside = [event for event in events if window.start <= event.at]
        listed, further = page_of(inside, page.size if form == "json" else MOST_ROWS, page.after)
        records = records_of(listed, sizes, request, now)
        if form != "json":
            return as_csv(records, COLUMNS, "events") if form == "csv" else as_ndjson(records)
        bounds = {
            "window": None,
            "since": None,
            "from": format_time(window.start),
            "to": format_time(window.end),
        }
        return as_json(
            {
                "query": echo(question, now),
                "description": question.describe(),
                "sentence": today.sentence(events, now) + ".",
                "searched": {
                    search.size_class.name: format_time(search.searched_at)
                    for search in changes.searches()
                },
                "events": records,
                "next": following(request, str(further), **bounds) if further else None,
            }
        )


def events_of(question: EventsQuestion, now: datetime) -> tuple[list[Event], list[str]]:
    """Return the events that are asked for, those that last from before, too, and all sizes."""
    places = registry.read_places(registry.read_versions())
    sizes, window = reading.size_names(), question.window_at(now)
    is_past = window.end < now
    present = reading.UNKNOWN if is_past else reading.present_at(now, sizes, places)
    return question.chosen(reading.read(window, places, sizes, present), places), sizes


def records_of(
    listed: list[Event], sizes: list[str], request: Request, now: datetime
) -> list[dict[str, Any]]:
    near = WrittenNear.read(listed, request.user)
    return [
        record(event)
        | {
            "near": [note.words for note in notes_near(event, near)],
            "url": request.build_absolute_uri(event.url(now)),
            "comparison_url": request.build_absolute_uri(event.comparison_url(now)),
        }
        for event in listed
    ]


def record(event: Event) -> dict[str, Any]:
    """Return an event as answers have it, but for addresses and what is near it."""
    factor, low, high = event.factor or (None, None, None)
    return {
        "id": event.id,
        "kind": event.kind,
        "level": event.level,
        "source": event.source.name if event.source else None,
        "destination": event.destination.name if event.destination else None,
        "site": event.site or None,
        "sizes": list(event.sizes),
        "since": moment(event.since),
        "earliest": moment(event.earliest),
        "latest": moment(event.latest),
        "until": moment(event.until) if event.until else None,
        "factor": known_number(factor),
        "low": known_number(low),
        "high": known_number(high),
        "certain": event.is_certain,
        "tests": event.tests,
        "links": event.links,
        "sentence": f"{event.words()}.",
    }


def echo(question: EventsQuestion, now: datetime) -> dict[str, Any]:
    """Say what was asked, defaults included; the window as the two times it stands for."""
    window = question.window_at(now)
    return {
        "size": question.size or None,
        "window": None if question.since else question.query.window or None,
        "start": format_time(window.start),
        "end": format_time(window.end),
        "kind": question.kind or None,
        "level": question.level or None,
        "now": question.now or None,
        "certain": "any" if question.unsure else "yes",
        **by_parameter(question.query.filters),
    }
