"""What an incident is called, in a few words and in one sentence, for pages, API and messages."""

from __future__ import annotations

from matrix.answers.events.event import ARROW
from matrix.answers.words.phrases import counted, join
from matrix.query.addresses import address
from sonar.models import Incident
from sonar.notation.units import format_count, format_share, two_digits
from sonar.notation.windows import format_typed

Level, Condition = Incident.Level, Incident.Condition
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
OF_LEVEL = {Level.LINK: 0, Level.SOURCE: 1, Level.DESTINATION: 2}


def subject(incident: Incident) -> str:
    """Name what it is of: `A → B`, `A`, a site, or Sonar itself."""
    if incident.level == Level.LINK:
        return f"{incident.source} {ARROW} {incident.destination}"
    if incident.level == Level.SITE:
        return f"All of {incident.site}"
    if incident.level == Level.GRID:
        return SONAR_ITSELF
    return str(incident.source or incident.destination)


def title(incident: Incident) -> str:
    """Say it in a few words: `A sends slowly`."""
    condition = Condition(incident.condition)
    if incident.level == Level.GRID:
        return f"{SONAR_ITSELF}: {GRID_DOING[condition]}"
    return f"{subject(incident)} {DOING[condition][OF_LEVEL.get(Level(incident.level), 3)]}"


def sentence(incident: Incident) -> str:
    """Say it with its figures: title, factor with interval, links, sizes, and since when."""
    return f"{title(incident)}: {', '.join(figures(incident))}."


def figures(incident: Incident) -> list[str]:
    """Return the parts of the sentence behind its title."""
    parts = []
    if incident.condition == Condition.SLOW and incident.factor is not None:
        parts.append(f"at {share_words(incident)} of what is expected")
    if incident.level != Level.LINK:
        links = f"{format_count(incident.links)} of {counted(incident.of_links, 'link')}"
        parts.append(f"on {links}")
    parts.append(f"with {join(incident.sizes)} files")
    parts.append(f"since {format_typed(incident.began_at)}")
    if incident.closed_at:
        parts.append(f"until {format_typed(incident.clear_since or incident.closed_at)}")
    return parts


def share_words(incident: Incident) -> str:
    """Write its factor in percent, with its interval in brackets where there is one."""
    factor = incident.factor or 0.0
    if incident.low is None or incident.high is None:
        return format_share(factor)
    low, high = two_digits(100 * incident.low), format_share(incident.high)
    return f"{format_share(factor)} ({low}–{high})"


def path(incident: Incident) -> str:
    """Return the address of its page, without a host."""
    return address("incident", incident.pk)
