"""GET /api/v1/events/: what happened, each thing once, newest first."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.changes.lines import notes_near
from matrix.answers.events import reading
from matrix.answers.events.event import KINDS, LEVELS, Event
from matrix.answers.events.questions import CERTAIN, NOW, EventCursor, EventsQuestion, page_of
from matrix.api.base import ApiView
from matrix.api.changes import SEARCHED, searched
from matrix.api.parameters import OF_TRANSFERS, PAGING, PageRequest, echo, following
from matrix.api.rendering import as_json, as_rows, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import LINKS_FILTERED, SIZE, choice, paging, text
from matrix.api.schema.parameters import WINDOW as BOUNDS
from matrix.api.schema.records import As, At, Moment, MomentOrNull, NameOrNull, Number, Text, record
from matrix.api.schema.schemas import Answer, Listed, echo_shape
from matrix.http.negotiation import LIST, asked_format
from matrix.store import registry
from matrix.store.changes import WrittenNear
from sonar.notation.windows import PRESETS


class EventRecord(Answer):
    """Something that happened to a link, an endpoint, a site or the whole grid.

    Of a link it has both ends; of an endpoint that sends or receives otherwise than before, that
    end; of one both ways it is at both ends; of several endpoints of a site it has the `site`.
    All size classes that show it are one event, `sizes`. It came to pass between `earliest` and
    `latest`; `since` is the start of the first test that shows it, `until` that of the first test
    that shows its end, null while it lasts. A link is failing once three tests in a row failed;
    a failure that ended is `recovered`. `factor` is the rate since divided by the rate before,
    below 1 for slower, `low` and `high` its interval of 95 %, null where there is none. `tests`
    are those since, failed ones of a failure. `certain` says that it is beyond chance among all
    that was searched; what is failing always is.
    """

    id: str
    kind: Literal["slower", "faster", "failing", "recovered"]
    level: Literal["link", "source", "destination", "endpoint", "site", "grid"]
    source: NameOrNull
    destination: NameOrNull
    site: Text
    sizes: Annotated[list[str], As(list)]
    since: Moment
    earliest: Moment
    latest: Moment
    until: MomentOrNull
    factor: Number
    low: Number
    high: Number
    certain: Annotated[bool, At("is_certain")]
    tests: int
    links: int
    sentence: str
    near: Annotated[list[str], As(lambda notes: [note.words for note in notes])]
    url: str
    comparison_url: str


ECHO = echo_shape(",", ("size", "window", "kind", "level", "now"), ("certain",))
COLUMNS = tuple(EventRecord.model_fields)

EVENTS = described(
    "What happened, newest first: what became slower or faster, fails or recovered",
    answer=Listed(
        "events",
        EventRecord,
        also={
            "query": ECHO,
            "description": {"type": "string"},
            "sentence": {"type": "string", "description": "What happened today (UTC)."},
            "searched": SEARCHED,
        },
    ),
    parameters=[
        text("size", "Only what shows with files of this size class; by default of any.", SIZE),
        choice("window", PRESETS, "When it happened: up to now; not with from and to.", "7d"),
        *BOUNDS[1:],
        text(
            "since",
            "What happened from this time, ISO 8601, up to now; not with a window.",
            "2026-11-20T04:00:00Z",
        ),
        *LINKS_FILTERED,
        choice("kind", KINDS, "What happened; by default anything."),
        choice("level", LEVELS, "To what it happened; by default to anything."),
        choice("now", NOW, "Only what lasts (yes), or what has ended (no)."),
        choice("certain", CERTAIN, "With any, what chance may explain, too.", CERTAIN[0]),
        *paging(OF_TRANSFERS),
    ],
    formats=("json", "csv", "ndjson"),
    tag="results",
)


# All events of a grid, in one CSV: more than this many nobody reads.
MOST_ROWS = 100_000


class EventsView(ApiView):
    @EVENTS
    def get(self, request: Request) -> HttpResponseBase:
        """What all links of an endpoint share is one event, of the endpoint."""
        now = timezone.now()
        question = EventsQuestion.read(dict(request.query_params.lists()), (*PAGING, "format"))
        form = asked_format(request, LIST)
        page = PageRequest.read(request, form, EventCursor.parse, OF_TRANSFERS)
        window = question.window_at(now)
        events = events_of(question, now)
        inside = [event for event in events if window.start <= event.at]
        listed, further = page_of(inside, page.size if form == "json" else MOST_ROWS, page.after)
        records = records_of(listed, request, now)
        if form != "json":
            name = file_name("events", query=question.query, window=window)
            return as_rows(records, form, COLUMNS, name)
        own = {
            "size": question.size or None,
            "window": None if question.since else question.query.window or None,
            "kind": question.kind or None,
            "level": question.level or None,
            "now": question.now or None,
            "certain": "any" if question.unsure else "yes",
        }
        return as_json(
            {
                "query": echo(question.query, window, **own),
                "description": question.describe(),
                "sentence": reading.today_words(events, now) + ".",
                "searched": searched(),
                "events": records,
                "next": following(request, further, window),
            }
        )


def events_of(question: EventsQuestion, now: datetime) -> list[Event]:
    """Return the events that are asked for, those that last from before, too."""
    places = registry.read_places(registry.read_versions())
    sizes = reading.size_names()
    events, _ = reading.events_at(question.window_at(now), now, places, sizes)
    return question.chosen(events, places)


def records_of(listed: list[Event], request: Request, now: datetime) -> list[dict[str, Any]]:
    near = WrittenNear.read(listed, request.user)
    return [
        record(
            EventRecord,
            event,
            **dict(zip(("factor", "low", "high"), event.factor or (None,) * 3, strict=True)),
            sentence=f"{event.words()}.",
            near=notes_near(event, event.sites, near),
            url=request.build_absolute_uri(event.url(now)),
            comparison_url=request.build_absolute_uri(event.comparison_url(now)),
        )
        for event in listed
    ]
