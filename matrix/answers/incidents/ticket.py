"""The text of an incident for a ticket: all that a site needs to know, without anything secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from matrix.answers.incidents import words
from matrix.answers.words.phrases import WHERE, counted, shortened
from matrix.store.transfers import SimilarFailures
from sonar.models import Incident, IncidentLink
from sonar.notation.units import format_rate, format_share

MOST_ROWS, MOST_ERRORS, LONGEST = 10, 3, 300
HEAD = ("from", "to", "files", "expected", "now", "of expected", "since (UTC)")
NO_RATE = "-"


def text(
    incident: Incident,
    links: Sequence[IncidentLink],
    many: int,
    *,
    failures: Sequence[SimilarFailures],
    elsewhere: Sequence[str],
    url: str,
) -> str:
    """Return the whole text; ``links`` are the worst of ``many``, ``url`` is that of its page.

    ``failures`` are what they fail with, ``elsewhere`` says how other links are.
    """
    parts = [
        [words.title(incident)],
        [f"Site: {name}" for name in site_names(incident)],
        [
            "Sonar copies test files between storage endpoints and records the rates. It measured:",
            words.sentence(incident, dated),
            f"First seen {dated(incident.opened_at)}.",
        ],
        links_of(links[:MOST_ROWS], many),
        [*errors(failures[:MOST_ERRORS])],
        list(elsewhere),
        [words.advice(incident), f"Evidence and what happened: {url}"],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def dated(moment: datetime) -> str:
    """Write a time as it is understood next year, too."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def links_of(links: Sequence[IncidentLink], many: int) -> list[str]:
    if not links:
        return []
    worst = f"The {len(links)} worst of its {counted(many, 'link')}"
    head = worst if many > len(links) else "Its links"
    return [f"{head}:", *table([HEAD, *map(cells, links)])]


def errors(failures: Sequence[SimilarFailures]) -> Iterator[str]:
    """Yield what its tests failed with, the most frequent first."""
    for group in failures:
        tests = f"{counted(group.count, 'test')} failed {WHERE.get(group.where, '')}".strip()
        yield f"{tests}, the last at {dated(group.last)}: {shortened(group.example.error, LONGEST)}"


def site_names(incident: Incident) -> list[str]:
    """Name the sites that it is of."""
    ends = (incident.source, incident.destination)
    sites = [end.site for end in ends if end] + ([incident.site] if incident.site else [])
    return list(dict.fromkeys(map(str, sites)))


def cells(row: IncidentLink) -> tuple[str, ...]:
    """Write a link as a row of the table."""
    rates = [format_rate(rate) if rate else NO_RATE for rate in (row.expected, row.rate)]
    share = format_share(row.rate / row.expected) if row.rate and row.expected else row.condition
    since = dated(row.since).removesuffix(" UTC")
    return str(row.source), str(row.destination), str(row.size_class), *rates, share, since


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows below each other, each column as wide as its widest."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
