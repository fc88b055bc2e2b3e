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
    EVENT_TYPES,
    LONGEST_TEXT,
    RIGHT,
    DecisionError,
    DecisionRequest,
    decide,
)
from sonar.alerting.subjects import sites_of
from sonar.models import Incident, IncidentEvent
from sonar.notation.enumeration import either
from sonar.notation.windows import parse_time

Scope = Literal["link", "source", "destination", "endpoint", "site", "grid"]
Type = Literal["slow", "silent", "failing"]
EventType = Literal[
    "opened", "grew", "shrank", "worse", "better", "cause", "merged", "closed", "reopened",
    "acknowledged", "assigned", "muted", "unmuted", "note", "accepted",
]  # fmt: skip
Decision = Literal["acknowledge", "assign", "mute", "unmute", "note", "accept"]


class IncidentRecord(Answer):
    """An incident: a confirmed condition with its assignee and the decisions about it.

    An incident with the scope `link` has a source and a destination. An incident with the scope
    `source` or `destination` affects one endpoint in that role. An incident with the scope
    `endpoint` affects one endpoint in both roles. The event of a `slow` incident has the type
    `slower`.
    """

    id: int
    url: str
    scope: Scope
    source: NameOrNull
    destination: NameOrNull
    site: NameOrNull
    type: Type
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
    """A link that an incident affects, in one size class."""

    source: Name
    destination: Name
    size: Annotated[Name, At("size_class")]
    type: Type
    since: Moment
    until: MomentOrNull
    baseline_mb_s: Annotated[Digits, At("baseline"), As(lambda rate: rate and rate / 1e6)]
    rate_mb_s: Annotated[Digits, At("rate"), As(lambda rate: rate and rate / 1e6)]


class EventOfIncident(Answer):
    """An update to an incident, with the figures of the incident at that time."""

    id: int
    incident: Annotated[int, At("incident_id")]
    at: Moment
    type: EventType
    by: Text
    text: str
    scope: Scope
    incident_type: Type
    factor: Number
    links: int
    of_links: int
    was: Scope | None
    into: int | None
    assignee: Text
    until: Text


class WholeIncident(IncidentRecord):
    """An incident with its affected links, its updates and text for a ticket."""

    advice: str
    ticket: str
    members: list[IncidentMember]
    events: list[EventOfIncident]


class DecisionBody(Body, strict=True):
    """A decision about an incident."""

    decision: Decision
    text: str = ""
    assignee: str | None = None
    until: str | None = None


ALLOWED = {
    "decision": either(list(EVENT_TYPES)),
    "text": f"a string of at most {LONGEST_TEXT} characters",
    "assignee": "the name of an account, or null to unassign the incident",
    "until": "an ISO 8601 time (for example, 2026-11-20T04:00:00Z)",
}
# With which decision a field goes.
ONLY_WITH = {"assignee": "assign", "until": "mute"}
OWN = ("size", "open", "scope", "type", "mine", "unacknowledged")
MOST_ROWS = 100_000
# Of one answer; more events are asked for with the last id of these.
MOST_EVENTS = MOST_MEMBERS = 10_000

INCIDENTS = described(
    "List incidents",
    answer=Listed(
        "incidents",
        IncidentRecord,
        also={
            "query": echo_shape(",", ("size", "window", *OWN[1:])),
            "description": {"type": "string", "description": "The query in words."},
        },
    ),
    parameters=[
        *WINDOW,
        choice(
            "open",
            OPEN_OR_NOT,
            "`yes`: only open incidents. `no`: only closed incidents. Default: all incidents.",
        ),
        choice(
            "scope", Incident.Scope.values, "Only incidents with this scope. Default: all scopes."
        ),
        choice("type", Incident.Type.values, "Only incidents of this type. Default: all types."),
        text(
            "size", "Only incidents that affect this size class. Default: all size classes.", SIZE
        ),
        filter_of("site"),
        choice(
            "mine", YES, "`1`: only incidents that the caller has acknowledged or is assigned to."
        ),
        choice("unacknowledged", YES, "`1`: only unacknowledged incidents without an assignee."),
        *paging(OF_TRANSFERS),
    ],
    formats=LIST,
    tag="results",
)
INCIDENT = described(
    "Get an incident",
    answer=WholeIncident,
    errors=(404,),
    tag="results",
)
DECIDE = described(
    "Record a decision about an incident",
    answer=WholeIncident,
    body=DecisionBody,
    errors=(404, 409),
    tag="results",
)
EVENTS = described(
    "List updates to incidents",
    answer=Listed("events", EventOfIncident),
    parameters=[
        number(
            "since",
            "Only updates after the update with this id. 0 returns all updates.",
            "integer",
            0,
            minimum=0,
        ),
    ],
    formats=LIST,
    tag="results",
)


class IncidentsView(ApiView):
    @INCIDENTS
    def get(self, request: Request) -> HttpResponseBase:
        """Returns incidents that were open during the time range.

        Open incidents are listed first, starting with the worst. CSV and NDJSON contain all rows.
        """
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
        """Returns an incident with its affected links, its updates and text for a ticket."""
        check_names(request.query_params, ["format"])
        asked_format(request, ("json",))
        return whole(incident_of(id), request)

    @DECIDE
    def post(self, request: Request, id: int) -> HttpResponse:  # noqa: A002 - of the route
        """Records an acknowledgement, assignment, mute, note or new baseline.

        Operators and admins of an affected site may record decisions. Each decision adds an update
        to the incident. The response contains the whole incident. For a closed incident, only notes
        are accepted; other decisions get status 409.
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
        """Returns up to 10,000 updates in the order in which they were stored.

        To receive every update, poll with `since` set to the last id that was received.
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
            raise wrong(field, f"“{field}” is allowed only with the decision “{decision}”.")
        if field not in data and body.decision == decision:
            sentence = f"“{field}” is missing: the decision “{decision}” requires {ALLOWED[field]}."
            raise wrong(field, sentence)
    try:
        until = parse_time(body.until) if body.until else None
    except ValueError:
        raise wrong("until", f"“until” must be {ALLOWED['until']}.") from None
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
    names = ("scope", "factor", "links", "of_links", "was", "into")
    until = values.get("until")
    return record(
        EventOfIncident,
        event,
        **{name: values.get(name) for name in names},
        incident_type=values["type"],
        by=named(event.by, request),
        assignee=values.get("assignee") if is_known else None,
        until=moment(parse_time(until)) if until else None,
    )
