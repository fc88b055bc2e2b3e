"""What an incident is called, in a few words and in one sentence, for pages, API and messages.

Its condition is described by the words of `matrix.answers.conditions`.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

from django.contrib.auth.models import User

from matrix.answers.conditions import words
from matrix.answers.words.names import NO_NAMES
from matrix.answers.words.phrases import counted
from matrix.query.addresses import address
from sonar.models import Condition, Incident, IncidentEvent
from sonar.notation.units import format_count, format_factor
from sonar.notation.windows import format_minute, parse_time
from sonar.people.roles import Anyone

Level = Incident.Level
Kind = IncidentEvent.Kind
LEVEL_WORDS = {
    Level.LINK: "a single link",
    Level.SOURCE: "an endpoint as a source",
    Level.DESTINATION: "an endpoint as a destination",
    Level.ENDPOINT: "an endpoint in both directions",
    Level.SITE: "a whole site",
    Level.GRID: words.SONAR_ITSELF,
}
# What Sonar itself saw, by the kind of event; `{}` are its values.
SEEN = {
    Kind.OPENED: "Opened: {condition}, {of}.",
    Kind.GREW: "Grew: {of}.",
    Kind.SHRANK: "Shrank: {of}.",
    Kind.WORSE: "Became worse: {condition}, {of}.",
    Kind.BETTER: "Became better: {condition}, {of}.",
    Kind.CAUSE: "It was that of {was}, and is that of {level}.",
    Kind.MERGED: "Became a part of incident {into}, which explains it.",
    Kind.CLOSED: "Closed: all is well again.",
    Kind.REOPENED: "Came back: {condition}, {of}.",
}
DONE = {
    Kind.ACKNOWLEDGED: "{who} has seen it",
    Kind.MUTED: "{who} muted it until {until}",
    Kind.UNMUTED: "{who} ended the mute",
    Kind.NOTE: "{who}",
    Kind.NEW_NORMAL: "{who} took this for the new normal, which closed it",
}


def condition_of(incident: Incident) -> Condition:
    """Return the condition in its words: with the figures that the incident has of it.

    Tests are counted where `matrix.store.incidents.rows` has read it.
    """
    cause = incident.cause
    is_slow = incident.condition == Incident.Condition.SLOW
    condition = Condition(
        pk=incident.cause_id,
        scope=incident.level,
        type=incident.condition,
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
    """Name somebody to whoever has logged in; to others people have no names."""
    return person.get_username() if person and reader.is_authenticated else "somebody"


def who(incident: Incident, reader: Anyone) -> str:
    """Say who is on it: `anna is on it`, `anna has seen it`, `nobody is on it yet`."""
    if incident.assignee:
        return f"{name_of(incident.assignee, reader)} is on it"
    if incident.acknowledged_at:
        return f"{name_of(incident.acknowledged_by, reader)} has seen it"
    return "nobody is on it yet"


def at_it(incident: Incident, now: datetime, reader: Anyone) -> Iterator[tuple[str, str]]:
    """Yield what its page says of the people who are on it, each with its name."""
    yield "given to", name_of(incident.assignee, reader) if incident.assignee else "nobody"
    seen = incident.acknowledged_at
    at = f"{name_of(incident.acknowledged_by, reader)}, {format_minute(seen)}" if seen else ""
    yield "seen by", at or "nobody yet"
    if words := muted(incident, now):
        yield "muted", words.removeprefix("muted ")


def muted(incident: Incident, now: datetime) -> str:
    """Say until when nobody is called for it; nothing if somebody is."""
    until = incident.muted_until
    return f"muted until {format_minute(until)}" if until and until > now else ""


def event_words(event: IncidentEvent, reader: Anyone) -> str:
    """Say what happened in a sentence, with what somebody wrote."""
    values, kind = event.values, Kind(event.kind)
    if kind in SEEN:
        said = {name: LEVEL_WORDS.get(values.get(name), "") for name in ("was", "level")}
        of = f"{format_count(values['links'])} of {counted(values['of_links'], 'link')}"
        of += f" at {format_factor(values['factor'])}" if values["factor"] else ""
        condition, into = values["condition"], values.get("into")
        return SEEN[kind].format(**said, of=of, condition=condition, into=into)
    person = name_of(event.by, reader)
    until = values.get("until")
    if kind != Kind.ASSIGNED:
        did = DONE[kind].format(who=person, until=format_minute(parse_time(until)) if until else "")
    elif event.by and event.by.get_username() == values["assignee"]:
        did = f"{person} took it"
    else:
        to = values["assignee"] if reader.is_authenticated else "somebody"
        did = f"{person} gave it to {to if values['assignee'] else 'nobody'}"
    return f"{did}: {event.text}" if event.text else f"{did}."


def path(incident: Incident) -> str:
    """Return the address of its page, without a host."""
    return address("incident", incident.pk)
