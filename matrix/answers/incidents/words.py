"""Titles, sentences and timeline entries of incidents, for pages, API and notifications.

The condition of an incident is described by `matrix.answers.conditions.words`.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

from django.contrib.auth.models import User

from matrix.answers.conditions import words
from matrix.answers.words.names import NO_NAMES
from matrix.query.addresses import address
from sonar.alerting.subjects import SIZE
from sonar.models import Condition, Incident, IncidentEvent
from sonar.notation.units import format_factor
from sonar.notation.windows import format_minute, parse_time
from sonar.people.roles import Anyone

Scope = Incident.Scope
Type = IncidentEvent.Type
SCOPE_WORDS = {
    Scope.LINK: "a single link",
    Scope.SOURCE: "an endpoint as a source",
    Scope.DESTINATION: "an endpoint as a destination",
    Scope.ENDPOINT: "an endpoint in both directions",
    Scope.SITE: "a whole site",
    Scope.GRID: words.SONAR_ITSELF,
}
# What Sonar itself recorded, by the type of event; `{}` are its values.
SEEN = {
    Type.OPENED: "Opened: {type}, {of}.",
    Type.GREW: "Affects more links: {of}.",
    Type.SHRANK: "Affects fewer links: {of}.",
    Type.WORSE: "Got worse: {type}, {of}.",
    Type.BETTER: "Improved: {type}, {of}.",
    Type.CAUSE: "Scope {turned} from {was} to {scope}.",
    Type.MERGED: "Merged into incident {into}, which explains this incident.",
    Type.CLOSED: "Closed: the condition has ended.",
    Type.REOPENED: "Reopened: {type}, {of}.",
}
DONE = {
    Type.ACKNOWLEDGED: "{who} acknowledged the incident",
    Type.MUTED: "{who} muted the incident until {until}",
    Type.UNMUTED: "{who} unmuted the incident",
    Type.NOTE: "{who} added a note",
    Type.ACCEPTED: "{who} accepted the current rate as the baseline and closed the incident",
}


def condition_of(incident: Incident) -> Condition:
    """Return the condition in its words: with the figures that the incident has of it.

    Tests are counted where `matrix.store.incidents.rows` has read it.
    """
    cause = incident.cause
    is_slow = incident.type == Incident.Type.SLOW
    condition = Condition(
        pk=incident.cause_id,
        scope=incident.scope,
        type=incident.type,
        source=incident.source,
        destination=incident.destination,
        site=incident.site,
        size_classes=incident.sizes,
        since=incident.began_at,
        since_low=cause.since_low if cause else incident.began_at,
        since_high=cause.since_high if cause else incident.began_at,
        confirmed_at=incident.opened_at,
        ended_at=incident.clear_since or incident.closed_at,
        factor=incident.factor if is_slow else None,
        factor_low=incident.low,
        factor_high=incident.high,
        links=incident.links,
        of_links=incident.of_links,
    )
    for name in ("tests", "failed"):
        setattr(condition, name, getattr(incident, name, None) or 0)
    return condition


def title(incident: Incident, short: Mapping[str, str] = NO_NAMES) -> str:
    """Say it in a few words: `A receives at 0.34x (0.30-0.38)`."""
    return words.title(condition_of(incident), short)


def sentence(incident: Incident) -> str:
    """Say it with its figures: title, sizes, links, tests, and since when."""
    return words.sentence(condition_of(incident))


def advice(incident: Incident) -> str:
    return words.advice(condition_of(incident))


def name_of(person: User | None, reader: Anyone) -> str:
    """Return the name of a person for readers who have logged in, `somebody` for others."""
    return person.get_username() if person and reader.is_authenticated else "somebody"


def response(incident: Incident, reader: Anyone) -> str:
    """Say who responds: `assigned to anna`, `acknowledged by anna`, `unacknowledged`."""
    if incident.assignee:
        return f"assigned to {name_of(incident.assignee, reader)}"
    if incident.acknowledged_at:
        return f"acknowledged by {name_of(incident.acknowledged_by, reader)}"
    return "unacknowledged"


def assignment(incident: Incident, now: datetime, reader: Anyone) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each fact about who responds to an incident."""
    yield "assigned to", name_of(incident.assignee, reader) if incident.assignee else "no one"
    at = incident.acknowledged_at
    by = f"{name_of(incident.acknowledged_by, reader)}, {format_minute(at)}" if at else ""
    yield "acknowledged by", by or "no one yet"
    if words := muted(incident, now):
        yield "muted", words.removeprefix("muted ")


def muted(incident: Incident, now: datetime) -> str:
    """Say until when an incident is muted; return an empty string if it is not."""
    until = incident.muted_until
    return f"muted until {format_minute(until)}" if until and until > now else ""


def event_words(event: IncidentEvent, reader: Anyone) -> str:
    """Describe an event in a sentence, with the text that somebody wrote."""
    values, type_ = event.values, Type(event.type)
    if type_ in SEEN:
        said = {name: SCOPE_WORDS.get(values.get(name), "") for name in ("was", "scope")}
        of = words.affected_links(values.get("scope", ""), values["links"], values["of_links"])
        of += f" at {format_factor(values['factor'])}" if values["factor"] else ""
        into = values.get("into")
        was, is_now = (SIZE.get(values.get(name), 0) for name in ("was", "scope"))
        turned = "widened" if was < is_now else "narrowed"
        return SEEN[type_].format(**said, of=of, type=values["type"], into=into, turned=turned)
    person = name_of(event.by, reader)
    until = values.get("until")
    if type_ != Type.ASSIGNED:
        did = DONE[type_].format(
            who=person, until=format_minute(parse_time(until)) if until else ""
        )
    elif event.by and event.by.get_username() == values["assignee"]:
        did = f"{person} self-assigned the incident"
    elif values["assignee"]:
        to = values["assignee"] if reader.is_authenticated else "somebody"
        did = f"{person} assigned the incident to {to}"
    else:
        did = f"{person} unassigned the incident"
    return f"{did}: {event.text}" if event.text else f"{did}."


def path(incident: Incident) -> str:
    """Return the address of its page, without a host."""
    return address("incident", incident.pk)
