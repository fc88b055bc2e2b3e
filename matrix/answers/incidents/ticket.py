"""The text of an incident for a ticket: all that a site needs to know, without anything secret."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from matrix.answers.conditions.words import SHARP, evidence
from matrix.answers.incidents import words
from matrix.answers.incidents.evidence import IncidentEvidence
from matrix.answers.words.phrases import WHERE, counted, shortened
from matrix.store.incidents import Member
from sonar.models import Incident
from sonar.notation.units import format_rate, format_share

MOST_ROWS, MOST_ERRORS, LONGEST = 10, 3, 300
HEAD = ("from", "to", "files", "before", "since", "of before", "since (UTC)")
NO_RATE = "-"


def text(facts: IncidentEvidence, url: str) -> str:
    """Return the whole text; ``url`` is that of the page of the incident.

    Of its errors it has the most frequent ones, and the end that they name.
    """
    incident, links = facts.incident, facts.links[:MOST_ROWS]
    ends = (incident.source, incident.destination)
    sites = [end.site for end in ends if end] + ([incident.site] if incident.site else [])
    worst = f"The {len(links)} worst of its {counted(facts.many, 'link')}:"
    parts = [
        [words.title(incident)],
        [f"Site: {name}" for name in dict.fromkeys(map(str, sites))],
        [
            "Sonar copies test files between storage endpoints and records the rates. It measured:",
            measured(incident),
            f"Sonar was certain at {dated(incident.opened_at)}.",
        ],
        [
            worst if facts.many > len(links) else "Its links:",
            *table([HEAD, *map(cells, links)]),
        ]
        if links
        else [],
        [
            f"{counted(group.count, 'test')} failed {WHERE.get(group.where, '')}".strip()
            + f", the last at {dated(group.last)}: {shortened(group.example.error, LONGEST)}"
            for group in facts.failures[:MOST_ERRORS]
        ],
        facts.beside.sentences() if facts.beside else [],
        [words.advice(incident), f"Evidence and what happened: {url}"],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def measured(incident: Incident) -> str:
    """Say what was measured, and when it began: between which times, where that is not sharp."""
    condition = words.condition_of(incident)
    low, high = condition.since_low, condition.since_high
    began = f"since {dated(condition.since)}"
    if high - low > SHARP:
        began = f"it began between {dated(low)} and {dated(high)}"
    parts = [words.title(incident), *evidence(condition), began]
    if condition.ended_at:
        parts.append(f"until {dated(condition.ended_at)}")
    return f"{', '.join(parts)}."


def dated(moment: datetime) -> str:
    """Write a time as it is understood next year, too."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def cells(row: Member) -> tuple[str, ...]:
    """Write a link as a row of the table."""
    rates = [format_rate(rate) if rate else NO_RATE for rate in (row.expected, row.rate)]
    share = row.condition if row.share is None else format_share(row.share)
    since = dated(row.since).removesuffix(" UTC")
    return str(row.source), str(row.destination), str(row.size_class), *rates, share, since


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows below each other, each column as wide as its widest."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
