"""The evidence of an incident: its links, their tests and other links; also as a ticket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Self

import numpy as np
from django.db.models import Q

from matrix.answers import registry_history
from matrix.answers.conditions import words as condition_words
from matrix.answers.diagnosis.evidence import beside_query
from matrix.answers.events.nearby import NearbyNote, notes_near
from matrix.answers.incidents import words
from matrix.answers.link import samples
from matrix.answers.link.samples import Results
from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.registry_history import HistoryLine
from matrix.answers.words.phrases import WHERE, counted, shortened
from matrix.query import filters
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.standing import FASTER, UNKNOWN, USUAL
from matrix.store import incidents, transfers
from matrix.store.incidents import Member
from matrix.store.profiles import made_so
from matrix.store.transfers import SimilarFailures
from matrix.store.written_near import WrittenNear
from sonar.models import HistoryEntry, Incident, Transfer
from sonar.notation.units import format_count, format_counted, format_rate, format_share
from sonar.notation.windows import Window, unix_ms
from sonar.people.roles import Anyone

Scope = Incident.Scope
# Tests are read and rows shown for at most this many links, pictures for the worst of them.
MOST_LINKS, MOST_DRAWN = 100, 12
# With fewer links nothing is said about the others.
FEWEST_JUDGED = 3
# The window is as long before the start as since then, within these bounds.
SHORTEST, LONGEST = timedelta(hours=12), timedelta(days=7)
# Changes this long before the start may be its reason; notes are written a little later.
BEFORE, AFTER = timedelta(days=1), timedelta(hours=1)
MOST_CHANGES = 20


@dataclass(frozen=True)
class Beginning:
    """The start and the endpoints of an incident, to find what was written about that time."""

    earliest: datetime
    latest: datetime
    source_id: int | None
    destination_id: int | None


@dataclass(frozen=True)
class IncidentEvidence:
    """``links`` are rows of ``many`` links: first those whose tests were read, the worst first.

    ``failures`` groups the errors of its links since the start. ``beside`` has the other links of
    an open incident.
    """

    incident: Incident
    links: Sequence[Member]
    many: int
    window: Window
    tests: Results
    failures: Sequence[SimilarFailures]
    beside: Beside | None


def tests_of(row: Member, tests: Results) -> Results:
    link = row.source.pk << 16 | row.destination.pk
    return tests.taken((tests.keys >> np.uint64(32)) == link).of_class(row.size_class.pk)


def read(incident: Incident, now: datetime, most: int = MOST_LINKS) -> IncidentEvidence:
    """Read the evidence of an incident, with at most ``most`` links.

    The number of SQL queries does not depend on the data.
    """
    links, many = incidents.members(incident, most)
    window = window_of(incident, now)
    tests = samples.read_links(pairs_of(links), window, ())
    if incident.cause_id is not None and incident.type == Incident.Type.SLOW:
        first = []
        for row in links[:MOST_LINKS]:
            own, until = tests_of(row, tests), unix_ms(row.until) if row.until else np.inf
            since = own.ok & (own.started >= unix_ms(row.since)) & (own.started < until)
            rates = own.rates[since]
            first.append(replace(row, rate=float(np.median(rates)) if len(rates) else None))
        first.sort(key=lambda row: (row.share is None, row.share))
        links = [*first, *links[MOST_LINKS:]]
    failures, beside = failures_of(incident, links, now), None
    if incident.is_open:
        size = links[0].size_class.name if links else incident.sizes[0]
        beside = Beside(incident, grid.build(beside_query(MatrixQuery(size=size)), now))
    return IncidentEvidence(incident, links, many, window, tests, failures, beside)


def pairs_of(links: Sequence[Member]) -> list[tuple[int, int]]:
    return [(row.source.pk, row.destination.pk) for row in links[:MOST_LINKS]]


def window_of(incident: Incident, now: datetime) -> Window:
    end = incident.closed_at or now
    since = min(max(end - incident.began_at, SHORTEST), LONGEST)
    return Window(max(incident.began_at, end - LONGEST) - since, end)


def failures_of(
    incident: Incident, links: Sequence[Member], now: datetime
) -> list[SimilarFailures]:
    """Group the failed tests of the links of a failing incident. Two SQL queries."""
    if incident.type != Incident.Type.FAILING:
        return []
    window = window_of(incident, now)
    start = max(incident.began_at, window.start)
    tests = Transfer.objects.filter(
        transfers.between_ends(pairs_of(links)), started_at__gte=start, started_at__lt=window.end
    )
    return transfers.failures(made_so(tests, filters.counted(())))


@dataclass(frozen=True)
class Beside:
    """An open incident among all links of its size class."""

    incident: Incident
    links: Grid

    def sentences(self) -> list[str]:
        """Describe the other direction, and the links that share no endpoint with the incident."""
        incident = self.incident
        if incident.scope == Scope.GRID:
            return []
        rows, columns = self.own(self.links.sources), self.own(self.links.destinations)
        others = {}
        if incident.scope == Scope.SOURCE:
            others["As a destination,"] = np.logical_and.outer(~rows, columns)
        if incident.scope == Scope.DESTINATION:
            others["As a source,"] = np.logical_and.outer(rows, ~columns)
        others["Elsewhere,"] = np.logical_and.outer(~rows, ~columns)
        return [self.words(*each) for each in others.items()]

    def own(self, groups: Sequence[AxisGroup]) -> Flags:
        incident = self.incident
        ends = {str(end) for end in (incident.source, incident.destination) if end}
        site = incident.site.name if incident.site else ""
        own = [each.name in ends or each.site == site for each in groups]
        return np.array(own, dtype=bool)

    def words(self, subject: str, links: Flags) -> str:
        """Say how many links work, or have their usual rate or more, of those with results."""
        cells, fails = self.links.cells, self.links.cells.of_look("failing")
        if self.incident.type == Incident.Type.FAILING:
            well, is_judged, fewest = cells.ok > 0, cells.ok + cells.failed > 0, 1
            too_few, are = "no link was tested", "work"
        else:
            well, is_judged = np.isin(cells.level, (USUAL, FASTER)), cells.level != UNKNOWN
            fewest, are = FEWEST_JUDGED, "are as usual"
            too_few = "too few links have a baseline"
        judged = int(np.count_nonzero(links & (is_judged | fails)))
        if judged < fewest:
            return f"{subject} {too_few}."
        number = format_count(int(np.count_nonzero(links & well & ~fails)))
        are = "works" if judged == 1 else are
        return f"{subject} {number} of {format_counted(judged, 'link')} {are}."


def what_changed(
    incident: Incident, reader: Anyone
) -> tuple[Sequence[NearbyNote], Sequence[HistoryLine]]:
    """Read the notes, downtimes and registry changes at its endpoints near the start.

    Only what the reader may see. At most four SQL queries.
    """
    ends = [end for end in (incident.source, incident.destination) if end]
    sites = {end.site for end in ends} | ({incident.site} if incident.site else set())
    low, high = incident.began_at, incident.began_at
    if incident.cause is not None:
        low, high = incident.cause.since_low, incident.cause.since_high
    begun = Beginning(low, high, incident.source_id, incident.destination_id)
    near = WrittenNear.read([begun], reader)
    kinds = HistoryEntry.Kind
    of_ends = Q(kind=kinds.ENDPOINT, key__in=[end.pk for end in ends])
    of_sites = Q(kind__in=(kinds.SITE, kinds.DOWNTIME), site__in=[site.pk for site in sites])
    rows = registry_history.visible_to(reader).filter(
        of_ends | of_sites, at__gte=low - BEFORE, at__lte=high + AFTER
    )
    entries = rows.order_by(*registry_history.ORDER)[:MOST_CHANGES]
    names = sorted(str(site) for site in sites)
    return notes_near(begun, names, near), list(registry_history.lines_of(entries))


MOST_ROWS, MOST_ERRORS, LONGEST_ERROR = 10, 3, 300
TICKET_HEAD = (
    "source", "destination", "size class", "baseline", "rate since", "of baseline", "start (UTC)",
)  # fmt: skip
NO_RATE = "-"


class Ticket(NamedTuple):
    """Text for a ticket; the address of the page of the incident goes between the two."""

    head: str
    rest: str

    @classmethod
    def of(cls, facts: IncidentEvidence) -> Self:
        """Write object, state, start and figures, then the first action and the link.

        The details follow: sites, the worst links, the most frequent errors, and other links.
        """
        incident, links = facts.incident, facts.links[:MOST_ROWS]
        ends = (incident.source, incident.destination)
        sites = [end.site for end in ends if end] + ([incident.site] if incident.site else [])
        condition = words.condition_of(incident)
        head = [condition_words.sentence(condition, write=with_year)]
        if incident.is_open:
            head.append(f"First action: {words.advice(incident)}")
        worst = f"Affected links, the {len(links)} worst of {format_count(facts.many)}:"
        parts = [
            [
                *(f"Site: {name}" for name in dict.fromkeys(map(str, sites))),
                "Sonar copies test files between storage endpoints and records the transfer rates.",
                f"Sonar opened this incident at {dated(incident.opened_at)}.",
            ],
            [
                worst if facts.many > len(links) else "Affected links:",
                *table([TICKET_HEAD, *map(cells, links)]),
            ]
            if links
            else [],
            [
                f"{counted(group.count, 'test')} failed {WHERE.get(group.where, '')}".strip()
                + f", the last at {dated(group.last)}: "
                + shortened(group.example.error, LONGEST_ERROR)
                for group in facts.failures[:MOST_ERRORS]
            ],
            facts.beside.sentences() if facts.beside else [],
        ]
        rest = "\n\n".join("\n".join(lines) for lines in parts if lines)
        return cls("\n\n".join([*head, "Incident page: "]), f"\n\n{rest}")

    def text(self, url: str) -> str:
        return f"{self.head}{url}{self.rest}"


def with_year(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


def dated(moment: datetime) -> str:
    return f"{with_year(moment)} UTC"


def cells(row: Member) -> tuple[str, ...]:
    rates = [format_rate(rate) if rate else NO_RATE for rate in (row.baseline, row.rate)]
    share = row.type if row.share is None else format_share(row.share)
    ends = str(row.source), str(row.destination)
    return *ends, str(row.size_class), *rates, share, with_year(row.since)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows with columns that are as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
