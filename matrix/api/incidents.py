"""/api/v1/incidents/: confirmed conditions of links and endpoints, and decisions about them."""

from typing import Annotated, Any, Literal, cast

from django.contrib.auth.models import User
from django.http.response import HttpResponse, HttpResponseBase
from django.utils import timezone
from pydantic import ValidationError
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from matrix.answers.incidents import evidence, words
from matrix.answers.incidents.questions import OPEN_OR_NOT, YES, IncidentCursor, IncidentsQuestion
from matrix.answers.ordering.probe_requests import refusal
from matrix.api.base import ApiView, body_of
from matrix.api.parameters import (
    OF_TRANSFERS,
    PAGING,
    PageRequest,
    echo,
    event_id,
    following,
    text_of,
    wrong,
)
from matrix.api.registry.views import refuse_parameters
from matrix.api.rendering import as_json, as_rows, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import SIZE, WINDOW, choice, filter_of, number, paging, text
from matrix.api.schema.records import (
    As,
    At,
    Digits,
    Json,
    Moment,
    MomentOrNull,
    Name,
    NameOrNull,
    Number,
    Text,
    moment,
    record,
)
from matrix.api.schema.schemas import Answer, Body, Listed, echo_shape
from matrix.http.exceptions import Conflict
from matrix.http.negotiation import LIST, asked_format
from matrix.http.permissions import allow, reader_of
from matrix.query.forms import BadQueryError, check_names
from matrix.store import incidents, keyset
from sonar.alerting.decisions import (
    KINDS,
    LONGEST_TEXT,
    RIGHT,
    DecisionError,
    DecisionRequest,
    decide,
)
from sonar.alerting.incidents import FIGURES
from sonar.alerting.subjects import sites_of
from sonar.models import Incident, IncidentEvent
from sonar.notation.enumeration import either
from sonar.notation.windows import parse_time

Level = Literal["link", "source", "destination", "endpoint", "site", "grid"]
Condition = Literal["slow", "silent", "failing"]
EventKind = Literal[
    "opened", "grew", "shrank", "worse", "better", "cause", "merged", "closed", "reopened",
    "acknowledged", "assigned", "muted", "unmuted", "note", "accepted",
]  # fmt: skip
Decision = Literal["acknowledge", "assign", "mute", "unmute", "note", "accept"]


class IncidentRecord(Answer):
    """A confirmed condition with its assignee and decisions.

    Of a link it has both ends, of an endpoint as a source or as a destination that end, of one
    both ways it is at both ends, of a site the `site`; `grid` is Sonar itself or its own network.
    `condition` is what is wrong, `condition_id` the condition that it follows, null for older ones.
    It began between `since_low` and `since_high`, most likely at `began_at`.
    `factor` is the rate since over the rate before, `low` and `high` its interval of 95 %, null
    where there is none. `links` show it, of `of_links` that were tested; of the `tests` of its
    subject since it began so many `failed`, null for older ones. People have names for those who
    have logged in, else they are null; `acknowledged_at` and `assigned` are there for all.
    """

    id: int
    url: str
    level: Level
    source: NameOrNull
    destination: NameOrNull
    site: NameOrNull
    condition: Condition
    title: str
    sentence: str
    began_at: Moment
    opened_at: Moment
    clear_since: MomentOrNull
    closed_at: MomentOrNull
    merged_into: Annotated[int | None, At("merged_into_id")]
    factor: Number
    low: Number
    high: Number
    links: int
    of_links: int
    sizes: Annotated[list[str], As(list)]
    acknowledged_at: MomentOrNull
    acknowledged_by: Text
    assigned: bool
    assignee: Text
    muted_until: MomentOrNull
    condition_id: Annotated[int | None, At("cause_id")]
    since_low: Moment
    since_high: Moment
    confirmed_at: MomentOrNull
    tests: int | None
    failed: int | None


class IncidentMember(Answer):
    """A link that an incident explains, with one size class; `until` is null while it does.

    `baseline_mb_s` is the rate before the incident, `rate_mb_s` the rate of a slow link since.
    In an incident of many links, the first 100 have a `rate_mb_s`, and of these the worst come
    first.
    """

    source: Name
    destination: Name
    size: Annotated[Name, At("size_class")]
    condition: Condition
    since: Moment
    until: MomentOrNull
    baseline_mb_s: Annotated[Digits, At("baseline"), As(lambda rate: rate and rate / 1e6)]
    rate_mb_s: Annotated[Digits, At("rate"), As(lambda rate: rate and rate / 1e6)]


class EventOfIncident(Answer):
    """Something that happened to an incident, with what was so of it then.

    `by` is who did it, null for Sonar itself, and for those who have not logged in. `was` is the
    level that the cause had before, `into` the incident that it became a part of, `assignee` the
    account that it was assigned to, `until` the end of its mute: null for other kinds.
    """

    id: int
    incident: Annotated[int, At("incident_id")]
    at: Moment
    kind: EventKind
    by: Text
    text: str
    level: Level
    condition: Condition
    factor: Number
    links: int
    of_links: int
    was: Level | None
    into: int | None
    assignee: Text
    until: Text


class WholeIncident(IncidentRecord):
    """An incident with its links, the worst first, what happened to it, and text for a ticket."""

    advice: str
    ticket: str
    members: list[IncidentMember]
    events: list[EventOfIncident]


class DecisionBody(Body, strict=True):
    """The decision: `assign` needs `assignee`, where null unassigns; `mute` needs `until`.

    A `note` needs a `text`. So does `accept`, which accepts the current rates as baselines.
    """

    decision: Decision
    text: str = ""
    assignee: str | None = None
    until: str | None = None


ALLOWED = {
    "decision": either(list(KINDS)),
    "text": f"a text of at most {LONGEST_TEXT} characters",
    "assignee": "the name of an account, or null to unassign the incident",
    "until": "a time, like 2026-11-20T04:00:00Z",
}
# With which decision a field goes.
ONLY_WITH = {"assignee": "assign", "until": "mute"}
OWN = ("size", "open", "level", "condition", "mine", "unacknowledged")
MOST_ROWS = 100_000
# Of one answer; more events are asked for with the last id of these.
MOST_EVENTS = MOST_MEMBERS = 10_000

INCIDENTS = described(
    "Incidents, open ones first, of these the worst",
    answer=Listed(
        "incidents",
        IncidentRecord,
        also={
            "query": echo_shape(",", ("size", "window", *OWN[1:])),
            "description": {"type": "string"},
        },
    ),
    parameters=[
        *WINDOW,
        choice("open", OPEN_OR_NOT, "Only what is open (yes), or what is closed (no)."),
        choice("level", Incident.Level.values, "Only of this; by default of anything."),
        choice("condition", Incident.Condition.values, "Only with this trouble."),
        text("size", "Only what shows with files of this size class.", SIZE),
        filter_of("site"),
        choice("mine", YES, "Only incidents that the caller has acknowledged or is assigned to."),
        choice("unacknowledged", YES, "Only unacknowledged incidents without an assignee."),
        *paging(OF_TRANSFERS),
    ],
    formats=LIST,
    tag="results",
)
INCIDENT = described(
    "An incident with its links and what happened to it",
    answer=WholeIncident,
    errors=(404,),
    tag="results",
)
DECIDE = described(
    "Take a decision about an incident",
    answer=WholeIncident,
    body=DecisionBody,
    errors=(404, 409),
    tag="results",
)
EVENTS = described(
    "What happened to incidents, in the order in which it was stored",
    answer=Listed("events", EventOfIncident),
    parameters=[
        number("since", "Only events behind the one with this id.", "integer", 0, minimum=0),
    ],
    formats=LIST,
    tag="results",
)


class IncidentsView(ApiView):
    @INCIDENTS
    def get(self, request: Request) -> HttpResponseBase:
        """Those that were open at some time of the window; CSV and NDJSON have all of them."""
        now, reader = timezone.now(), reader_of(request)
        question = IncidentsQuestion.read(dict(request.query_params.lists()), (*PAGING, "format"))
        form = asked_format(request, LIST)
        page = PageRequest.read(request, form, IncidentCursor.parse, OF_TRANSFERS)
        size = page.size if form == "json" else MOST_ROWS
        after = page.after.values if page.after else None
        page_rows, last = keyset.page(question.rows(now, reader), incidents.ORDER, size, after)
        records = [record(IncidentRecord, each, **more_of(each, request)) for each in page_rows]
        window = question.query.window_at(now)
        if form != "json":
            name = file_name("incidents", query=question.query, window=window)
            return as_rows(records, form, tuple(IncidentRecord.model_fields), name)
        own = {name: getattr(question, name) or None for name in OWN}
        flags = {name: YES[0] for name in ("mine", "unacknowledged") if own[name]}
        query = echo(question.query, window, **own | flags)
        return as_json(
            {
                "query": query,
                "description": question.describe(),
                "incidents": records,
                "next": following(request, IncidentCursor.of(last) if last else None, window),
            }
        )


class IncidentView(ApiView, of_primary=True):
    needs = {"POST": RIGHT}

    @INCIDENT
    def get(self, request: Request, id: int) -> HttpResponse:  # noqa: A002 - of the route
        """Times of its links and events are UTC; `ticket` is plain text."""
        check_names(request.query_params, ["format"])
        asked_format(request, ("json",))
        return whole(incident_of(id), request)

    @DECIDE
    def post(self, request: Request, id: int) -> HttpResponse:  # noqa: A002 - of the route
        """Operators may, and admins of a site that it is of; each decision is an event.

        A decision about an incident that is closed already is a 409, but for a note.
        """
        incident = incident_of(id)
        allow(request, RIGHT, sites_of(incident))
        refuse_parameters(request)
        choice = decision_of(cast("dict[str, Any]", body_of(request)))
        try:
            decide(incident, cast(User, request.user), timezone.now(), choice)
        except DecisionError as error:
            errors = {error.parameter: [str(error)]}
            raise (Conflict if error.parameter == "incident" else BadQueryError)(errors) from None
        return whole(incident_of(id), request)


class IncidentEventsView(ApiView, of_primary=True):
    @EVENTS
    def get(self, request: Request) -> HttpResponse:
        """An answer has at most 10,000: go on with the last id. Ids are in the order of commits.

        So whoever asks again and again with the last id that they have misses none.
        """
        check_names(request.query_params, ["since", "format"])
        form = asked_format(request, LIST)
        text_given = text_of(request.query_params, "since")
        since = event_id("since", text_given, incidents.last_event())
        rows = IncidentEvent.objects.filter(pk__gt=since).select_related("by").order_by("pk")
        records = [event_record(event, request) for event in rows[: MOST_EVENTS + 1]]
        listed, params, further = records[:MOST_EVENTS], request.query_params.copy(), None
        if form != "json":
            columns = tuple(EventOfIncident.model_fields)
            return as_rows(listed, form, columns, file_name("incident-events"))
        if len(records) > MOST_EVENTS:
            params["since"] = str(listed[-1]["id"])
            further = request.build_absolute_uri(f"{request.path}?{params.urlencode()}")
        return as_json({"events": listed, "next": further})


def incident_of(number: int) -> Incident:
    incident = incidents.by_id(number)
    if incident is None:
        raise NotFound(f"No incident has the id {number}.")
    return incident


def decision_of(data: dict[str, Any]) -> DecisionRequest:
    """Read what is decided; raise BadQueryError with sentences by field."""
    try:
        body = DecisionBody.model_validate(data)
    except ValidationError as error:
        raise refusal(error, ALLOWED) from error
    for field, decision in ONLY_WITH.items():
        if field in data and body.decision != decision:
            raise wrong(field, f"{field} is allowed only with the decision {decision}.")
        if field not in data and body.decision == decision:
            raise wrong(field, f"{field} is missing: give {ALLOWED[field]}.")
    try:
        until = parse_time(body.until) if body.until else None
    except ValueError:
        raise wrong("until", f"until must be {ALLOWED['until']}.") from None
    return DecisionRequest(body.decision, body.text, body.assignee or "", until)


def more_of(incident: Incident, request: Request) -> Json:
    """Return what a record has besides columns; names of people only for those who logged in."""
    condition = words.condition_of(incident)
    return {
        "url": request.build_absolute_uri(words.path(incident)),
        "title": words.title(incident),
        "sentence": words.sentence(incident),
        "since_low": condition.since_low,
        "since_high": condition.since_high,
        "confirmed_at": incident.cause and incident.cause.confirmed_at,
        "acknowledged_by": named(incident.acknowledged_by, request),
        "assigned": incident.assignee_id is not None,
        "assignee": named(incident.assignee, request),
    }


def named(person: User | None, request: Request) -> str:
    return person.get_username() if person and reader_of(request).is_authenticated else ""


def whole(incident: Incident, request: Request) -> HttpResponse:
    own = more_of(incident, request)
    events = [event_record(event, request) for event in incidents.events_of(incident)]
    facts = evidence.read(incident, timezone.now(), MOST_MEMBERS)
    more = {
        "advice": words.advice(incident),
        "ticket": evidence.Ticket.of(facts).text(own["url"]),
        "members": facts.links,
        "events": events,
    }
    return as_json(record(WholeIncident, incident, **own, **more))


def event_record(event: IncidentEvent, request: Request) -> Json:
    values = event.values
    is_known = reader_of(request).is_authenticated
    names = (*FIGURES, "was", "into")
    until = values.get("until")
    return record(
        EventOfIncident,
        event,
        **{name: values.get(name) for name in names},
        by=named(event.by, request),
        assignee=values.get("assignee") if is_known else None,
        until=moment(parse_time(until)) if until else None,
    )
