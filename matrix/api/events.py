"""GET /api/v1/events/: what happened, each thing once, newest first."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.request import Request

from matrix.answers.conditions import words
from matrix.answers.events import reading
from matrix.answers.events.event import KINDS, LEVELS, Event
from matrix.answers.events.nearby import notes_near
from matrix.answers.events.reading import CERTAIN, NOW, EventsQuestion, page_of
from matrix.api.base import ApiView
from matrix.api.parameters import OF_TRANSFERS, PAGING, PageRequest, echo, following
from matrix.api.rendering import as_json, as_rows, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import LINKS_FILTERED, SIZE, choice, paging, text
from matrix.api.schema.parameters import WINDOW as BOUNDS
from matrix.api.schema.records import As, At, Moment, MomentOrNull, NameOrNull, Number, record
from matrix.api.schema.schemas import Answer, Listed, echo_shape
from matrix.http.negotiation import LIST, asked_format
from matrix.store import registry
from matrix.store.keyset import Cursor
from matrix.store.written_near import WrittenNear
from sonar.notation.windows import PRESETS, format_time


class EventRecord(Answer):
    """A condition: what is or was the matter with a link, an endpoint, a site or the whole grid.

    A link has both ends, an endpoint as source or destination that end, an endpoint in both
    directions is both ends, and a site is the `site`. All size classes that show it are one event,
    `sizes`. It began between `earliest` and `latest`, most likely at `since`, and lasts while
    `until` is null. A failure that has ended is `recovered`; `silent` links are not tested as
    planned. `factor` is the rate since divided by the rate before, below 1 for slower, `low` and
    `high` its interval of 95 %, null where there is none. `tests` are those since it began, failed
    ones of a failure; it shows on `links` of `of_links`. `certain` events are confirmed, at
    `confirmed_at`; the others may be chance. `condition` is the same number as `id`.
    """

    id: Annotated[str, As(str)]
    kind: Literal["slower", "faster", "failing", "silent", "recovered"]
    level: Literal["link", "source", "destination", "endpoint", "site", "grid"]
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
    certain: Annotated[bool, At("is_certain")]
    tests: int
    links: Annotated[int, At("condition.links")]
    sentence: str
    near: Annotated[list[str], As(lambda notes: [note.words for note in notes])]
    url: str
    comparison_url: str
    condition: Annotated[int, At("id")]
    confirmed_at: Annotated[MomentOrNull, At("condition.confirmed_at")]
    of_links: Annotated[int, At("condition.of_links")]


ECHO = echo_shape(",", ("size", "window", "kind", "level", "now"), ("certain",))
COLUMNS = tuple(EventRecord.model_fields)

EVENTS = described(
    "What happened, newest first: what is slower, faster, failing or not tested, or recovered",
    answer=Listed(
        "events",
        EventRecord,
        also={
            "query": ECHO,
            "description": {"type": "string"},
            "sentence": {"type": "string", "description": "What happened today (UTC)."},
            "assessed_at": {
                "type": ["string", "null"],
                "format": "date-time",
                "description": "When the results were last assessed.",
            },
        },
    ),
    parameters=[
        text("size", "Only what shows with files of this size class; by default of any.", SIZE),
        choice(
            "window",
            PRESETS,
            "What lasted at some time of it: up to now; not with from and to.",
            "7d",
        ),
        *BOUNDS[1:],
        text(
            "since",
            "What lasted at some time since this one, ISO 8601; not with a window.",
            "2026-11-20T04:00:00Z",
        ),
        *LINKS_FILTERED,
        choice("kind", KINDS, "What happened; by default anything."),
        choice("level", LEVELS, "To what it happened; by default to anything."),
        choice("now", NOW, "Only what lasts (yes), or what has ended (no)."),
        choice("certain", CERTAIN, "With any, unconfirmed ones, too.", CERTAIN[0]),
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
        """What all links of an endpoint share is one event, of the endpoint.

        Filters choose events by the links that show them.
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
            "kind": question.kind or None,
            "level": question.level or None,
            "now": question.now or None,
            "certain": "any" if question.unsure else "yes",
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
