"""What an incident is called, in a few words and in one sentence, for pages, API and messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from django.contrib.auth.models import User

from matrix.answers.events.event import ARROW
from matrix.answers.words.advice import LOOK, ONLY_THIS_LINK, PAIR, SONAR
from matrix.answers.words.names import NO_NAMES
from matrix.answers.words.phrases import counted, join
from matrix.query.addresses import address
from sonar.models import Incident, IncidentEvent
from sonar.notation.units import format_count, format_share, two_digits
from sonar.notation.windows import format_minute, parse_time
from sonar.people.roles import Anyone

Level, Condition = Incident.Level, Incident.Condition
Kind = IncidentEvent.Kind
# Whoever is called first asks whether it is theirs.
SONAR_ITSELF = "Sonar itself or its own network"
# By condition, of links, of what sends, of what takes files, and of both.
DOING = {
    Condition.SLOW: ("is slow", "sends slowly", "receives slowly", "is slow in both directions"),
    Condition.FAILING: (
        "fails",
        "fails to send files",
        "fails to take files",
        "fails in both directions",
    ),
    Condition.SILENT: (
        "has no new results",
        "has no new results as a source",
        "has no new results as a destination",
        "has no new results",
    ),
}
GRID_DOING = {
    Condition.SLOW: "too many links are slow at once",
    Condition.FAILING: "too many links fail at once",
    Condition.SILENT: "too many links have no new results",
}
LEVEL_WORDS = {
    Level.LINK: "a single link",
    Level.SOURCE: "an endpoint as a source",
    Level.DESTINATION: "an endpoint as a destination",
    Level.ENDPOINT: "an endpoint in both directions",
    Level.SITE: "a whole site",
    Level.GRID: SONAR_ITSELF,
}
# What to check first, of what is slow and of what fails; `{}` is what it is of.
SLOW_ADVICE = {
    Level.LINK: ONLY_THIS_LINK,
    Level.SOURCE: LOOK["source"],
    Level.DESTINATION: LOOK["destination"],
    Level.ENDPOINT: LOOK["both"],
    Level.SITE: LOOK["both"],
}
FAILING_ADVICE = "Check {} first: the errors of its tests say what it refuses."
SILENT_ADVICE = (
    "Check whether its tests are planned, and what they wait for: the page of operations says so."
)
# What Sonar itself saw, by the kind of event; `{}` are its values.
SEEN = {
    Kind.OPENED: "Opened: {condition}, {of}.",
    Kind.GREW: "Grew: {of}.",
    Kind.SHRANK: "Shrank: {of}.",
    Kind.WORSE: "Became worse: {condition}, {of}.",
    Kind.BETTER: "Became better: {condition}, {of}.",
    Kind.CAUSE: "Its cause is wider: it was that of {was}, and is that of {level}.",
    Kind.MERGED: "Became a part of incident {into}, which explains it.",
    Kind.CLOSED: "Closed: all is well again.",
    Kind.REOPENED: "Came back: {condition}, {of}.",
}
# What people did.
DONE = {
    Kind.ACKNOWLEDGED: "{who} has seen it",
    Kind.MUTED: "{who} muted it until {until}",
    Kind.UNMUTED: "{who} ended the mute",
    Kind.NOTE: "{who}",
    Kind.NEW_NORMAL: "{who} took this for the new normal, which closed it",
}
OF_LEVEL = {Level.LINK: 0, Level.SOURCE: 1, Level.DESTINATION: 2}


def subject(incident: Incident, short: Mapping[str, str] = NO_NAMES) -> str:
    """Name what it is of: `A → B`, `A`, a site, or Sonar itself; endpoints by ``short`` names."""
    source, destination = (
        short.get(str(end), str(end)) if end else ""
        for end in (incident.source, incident.destination)
    )
    if incident.level == Level.LINK:
        return f"{source} {ARROW} {destination}"
    if incident.level == Level.SITE:
        return f"All of {incident.site}"
    if incident.level == Level.GRID:
        return SONAR_ITSELF
    return source or destination


def title(incident: Incident, short: Mapping[str, str] = NO_NAMES) -> str:
    """Say it in a few words: `A sends slowly`."""
    condition = Condition(incident.condition)
    if incident.level == Level.GRID:
        return f"{SONAR_ITSELF}: {GRID_DOING[condition]}"
    return f"{subject(incident, short)} {DOING[condition][OF_LEVEL.get(Level(incident.level), 3)]}"


def sentence(incident: Incident, write: Callable[[datetime], str] = format_minute) -> str:
    """Say it with its figures: title, factor with interval, links, sizes, and since when."""
    return f"{title(incident)}: {', '.join(figures(incident, write))}."


def figures(incident: Incident, write: Callable[[datetime], str] = format_minute) -> list[str]:
    """Return the parts of the sentence behind its title."""
    parts = []
    if incident.condition == Condition.SLOW and incident.factor is not None:
        parts.append(f"at {share_words(incident)} of what is expected")
    if incident.level != Level.LINK:
        links = f"{format_count(incident.links)} of {counted(incident.of_links, 'link')}"
        parts.append(f"on {links}")
    parts.append(f"with {join(incident.sizes)} files")
    parts.append(f"since {write(incident.began_at)}")
    if incident.closed_at:
        parts.append(f"until {write(incident.clear_since or incident.closed_at)}")
    return parts


def share_words(incident: Incident) -> str:
    """Write its factor in percent, with its interval in brackets where there is one."""
    factor = incident.factor or 0.0
    if incident.low is None or incident.high is None:
        return format_share(factor)
    low, high = two_digits(100 * incident.low), format_share(incident.high)
    return f"{format_share(factor)} ({low}–{high})"


def advice(incident: Incident) -> str:
    """Say whom to ask and what to check first."""
    level = Level(incident.level)
    if level == Level.GRID:
        return SONAR
    if incident.condition == Condition.SLOW:
        return SLOW_ADVICE[level]
    if incident.condition == Condition.SILENT:
        return SILENT_ADVICE
    return PAIR if level == Level.LINK else FAILING_ADVICE.format(subject(incident))


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
        condition, into = values["condition"], values.get("into")
        return SEEN[kind].format(**said, of=of, condition=condition, into=into)
    person = name_of(event.by, reader)
    if kind == Kind.ASSIGNED:
        did = assigned_words(person, event, reader)
    else:
        until = values.get("until")
        did = DONE[kind].format(who=person, until=format_minute(parse_time(until)) if until else "")
    return f"{did}: {event.text}" if event.text else f"{did}."


def assigned_words(person: str, event: IncidentEvent, reader: Anyone) -> str:
    """Say to whom somebody gave it: `anna took it`, `anna gave it to bob`."""
    to = event.values["assignee"]
    if not to:
        return f"{person} gave it to nobody"
    if event.by and event.by.get_username() == to:
        return f"{person} took it"
    return f"{person} gave it to {to if reader.is_authenticated else 'somebody'}"


def path(incident: Incident) -> str:
    """Return the address of its page, without a host."""
    return address("incident", incident.pk)
