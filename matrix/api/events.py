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
    """A link, endpoint, site or the whole grid that is or was slower, faster, failing or silent.

    `type` is what happened; `recovered` is a failure that has ended, and `silent` links have no
    results although tests are scheduled. `scope` is where it happened: a `link` has both endpoints;
    a `source` or a `destination` is one endpoint in that role; an `endpoint` in both roles is in
    `source` and in `destination`; a `site` is in `site`. One event covers all its size classes,
    `sizes`. It began between `earliest` and `latest`, most likely at `since`, and lasts while
    `until` is null. `factor` is the rate since then divided by the rate before, below 1 for slower;
    `low` and `high` are its 95 % interval; each is null if not known. `tests` counts the tests
    since the event began, only the failed ones if it is a failure. `links` of `of_links` tested
    links show it. `significant` events are confirmed, at `confirmed_at`; others may be chance.
    `condition` is the same number as `id`.
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
    "Events, newest first: slower, faster, failing, silent or recovered",
    answer=Listed(
        "events",
        EventRecord,
        also={
            "query": ECHO,
            "description": {"type": "string"},
            "sentence": {"type": "string", "description": "Summary of the current UTC day."},
            "assessed_at": {
                "type": ["string", "null"],
                "format": "date-time",
                "description": "When the results were last assessed.",
            },
        },
    ),
    parameters=[
        text("size", "Events that affect files of this size class; default: any.", SIZE),
        choice(
            "window",
            PRESETS,
            "Time range up to now that the events overlap; excludes from and to.",
            "7d",
        ),
        *BOUNDS[1:],
        text(
            "since",
            "Events that lasted at this time or later, ISO 8601; excludes window, from and to.",
            "2026-11-20T04:00:00Z",
        ),
        *LINKS_FILTERED,
        choice("type", TYPES, "Events of this type only; default: any."),
        choice("scope", SCOPES, "Events with this scope only; default: any."),
        number(
            "factor",
            "Events that changed a rate by at least this factor, in either direction.",
            minimum=1,
            maximum=MOST_FACTOR,
        ),
        choice("now", NOW, "Events that last (yes), or that have ended (no); default: both."),
        choice(
            "significant",
            SIGNIFICANT,
            "Confirmed events only (yes), or unconfirmed ones, too (any).",
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
        """A change that all links of an endpoint share is one event of that endpoint.

        Filters select events by the links that show them.
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
