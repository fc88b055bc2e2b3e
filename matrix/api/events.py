"""GET /api/v1/events/: changes of the grid, each listed once, newest first."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.conditions import words
from matrix.answers.events import reading
from matrix.answers.events.event import SCOPES, TYPES, Event
from matrix.answers.events.nearby import notes_near
from matrix.answers.events.reading import MOST_FACTOR, NOW, SIGNIFICANT, EventsQuestion, page_of
from matrix.api.base import ApiView
from matrix.api.parameters import OF_TRANSFERS, PAGING, PageRequest, echo, following
from matrix.api.rendering import as_json, as_rows, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import LINKS_FILTERED, SIZE, choice, number, paging, text
from matrix.api.schema.parameters import WINDOW as BOUNDS
from matrix.api.schema.records import As, At, Moment, MomentOrNull, NameOrNull, Number, record
from matrix.api.schema.schemas import Answer, Listed, echo_shape
from matrix.http.negotiation import LIST, asked_format
from matrix.store import registry
from matrix.store.keyset import Cursor
from matrix.store.written_near import WrittenNear
from sonar.notation.windows import PRESETS, format_time


class EventRecord(Answer):
    """An event: a change that was found in the results, with its scope, type and start.

    An event with the scope `link` has a source and a destination. An event with the scope `source`
    or `destination` affects one endpoint in that role. An event with the scope `endpoint` affects
    one endpoint in both roles. All affected size classes belong to the same event. The condition of
    a `slower` event has the type `slow`. The condition of a `faster` event has the type `fast`.
    """

    id: Annotated[str, As(str)]
    type: Literal["slower", "faster", "failing", "silent", "recovered"]
    scope: Literal["link", "source", "destination", "endpoint", "site", "grid"]
    source: Annotated[NameOrNull, At("condition.source")]
    destination: Annotated[NameOrNull, At("condition.destination")]
    site: Annotated[NameOrNull, At("condition.site")]
    sizes: Annotated[list[str], As(list)]
    since: Moment
    earliest: Moment
    latest: Moment
    until: MomentOrNull
    factor: Number
    low: Number
    high: Number
    significant: Annotated[bool, At("is_significant")]
    tests: int
    links: Annotated[int, At("condition.links")]
    sentence: str
    near: Annotated[list[str], As(lambda notes: [note.words for note in notes])]
    url: str
    comparison_url: str
    condition: Annotated[int, At("id")]
    confirmed_at: Annotated[MomentOrNull, At("condition.confirmed_at")]
    of_links: Annotated[int, At("condition.of_links")]


ECHO = echo_shape(",", ("size", "window", "type", "scope", "factor", "now"), ("significant",))
COLUMNS = tuple(EventRecord.model_fields)

EVENTS = described(
    "List events",
    answer=Listed(
        "events",
        EventRecord,
        also={
            "query": ECHO,
            "description": {"type": "string", "description": "The query in words."},
            "sentence": {
                "type": "string",
                "description": "Summary of the events of the current UTC day.",
            },
            "assessed_at": {
                "type": ["string", "null"],
                "format": "date-time",
                "description": "Time of the last assessment of results, UTC. Null if no "
                "assessment has been made.",
            },
        },
    ),
    parameters=[
        text("size", "Only events that affect this size class. Default: all size classes.", SIZE),
        choice(
            "window",
            PRESETS,
            "Only events that were ongoing during this time range, which ends now. Cannot be "
            "combined with `from` or `to`.",
            "7d",
        ),
        *BOUNDS[1:],
        text(
            "since",
            "Only events that were ongoing at or after this time, ISO 8601. Cannot be combined "
            "with `window`, `from` or `to`.",
            "2026-11-20T04:00:00Z",
        ),
        *LINKS_FILTERED,
        choice("type", TYPES, "Only events of this type. Default: all types."),
        choice("scope", SCOPES, "Only events with this scope. Default: all scopes."),
        number(
            "factor",
            "Only events that changed a rate by at least this factor, in either direction. "
            "Default: any factor.",
            minimum=1,
            maximum=MOST_FACTOR,
        ),
        choice(
            "now", NOW, "`yes`: only ongoing events. `no`: only ended events. Default: all events."
        ),
        choice(
            "significant",
            SIGNIFICANT,
            "`yes`: only confirmed events. `any`: also unconfirmed events.",
            SIGNIFICANT[0],
        ),
        *paging(OF_TRANSFERS),
    ],
    formats=("json", "csv", "ndjson"),
    tag="results",
)


# Limit of a CSV or NDJSON answer, which is not paged.
MOST_ROWS = 100_000


class EventsView(ApiView):
    @EVENTS
    def get(self, request: Request) -> HttpResponseBase:
        """Returns the changes that were found in the results, newest first.

        A change that all links of an endpoint share is reported as one event for that endpoint.
        Filters select events by the links that they affect.
        """
        now = timezone.now()
        question = EventsQuestion.read(dict(request.query_params.lists()), (*PAGING, "format"))
        form = asked_format(request, LIST)
        page = PageRequest.read(request, form, Cursor.parse_numbered, OF_TRANSFERS)
        window = question.window_at(now)
        events, judgement = question.read_events(
            registry.read_places(registry.read_versions()), now
        )
        chosen = question.chosen(events)
        listed, further = page_of(chosen, page.size if form == "json" else MOST_ROWS, page.after)
        records = records_of(listed, request, now)
        if form != "json":
            name = file_name("events", query=question.query, window=window)
            return as_rows(records, form, COLUMNS, name)
        own = {
            "size": question.size or None,
            "window": None if question.since else question.query.window or None,
            "type": question.type or None,
            "scope": question.scope or None,
            "factor": question.factor or None,
            "now": question.now or None,
            "significant": "any" if question.with_unconfirmed else "yes",
        }
        return as_json(
            {
                "query": echo(question.query, window, **own),
                "description": question.describe(),
                "sentence": f"{reading.today_words(chosen, now)}.",
                "assessed_at": format_time(judgement.as_of) if judgement.as_of else None,
                "events": records,
                "next": following(request, further, window),
            }
        )


def records_of(listed: list[Event], request: Request, now: datetime) -> list[dict[str, Any]]:
    near = WrittenNear.read(listed, request.user)
    return [
        record(
            EventRecord,
            event,
            **dict(zip(("factor", "low", "high"), event.factor or (None,) * 3, strict=True)),
            sentence=words.sentence(event.condition),
            near=notes_near(event, event.sites, near),
            url=request.build_absolute_uri(event.url(now)),
            comparison_url=request.build_absolute_uri(event.comparison_url(now)),
        )
        for event in listed
    ]
