"""What speaks for the cause of an incident: its links, their tests, and all that is beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np
from django.db.models import Q

from matrix.answers import registry_history
from matrix.answers.diagnosis import evidence
from matrix.answers.events.nearby import NearbyNote, notes_near
from matrix.answers.link import samples
from matrix.answers.link.samples import Results
from matrix.answers.matrix import grid
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.registry_history import HistoryLine
from matrix.query.filters import counted
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.arrays import Flags
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.cells.standing import FASTER, UNKNOWN, USUAL
from matrix.store import incidents, transfers
from matrix.store.profiles import made_so
from matrix.store.transfers import SimilarFailures
from matrix.store.written_near import WrittenNear
from sonar.models import HistoryEntry, Incident, IncidentLink, Transfer
from sonar.notation.units import format_count
from sonar.notation.windows import Window
from sonar.people.roles import Anyone

Level = Incident.Level
# Of so many links rows are shown, of the worst of them their tests.
MOST_LINKS, MOST_DRAWN = 100, 12
# Fewer say nothing of the others.
FEWEST_JUDGED = 3
# Tests are shown from as long before it began as since, within these bounds.
SHORTEST, LONGEST = timedelta(hours=12), timedelta(days=7)
# What changed so long before it began may have made it begin.
BEFORE = timedelta(days=1)
MOST_CHANGES = 20


@dataclass(frozen=True)
class Beginning:
    """When an incident began and of which ends it is, for what was written about then."""

    earliest: datetime
    latest: datetime
    source_id: int | None
    destination_id: int | None


@dataclass(frozen=True)
class IncidentEvidence:
    """``links`` are the worst of ``many`` rows of links; ``tests`` are those of MOST_DRAWN of them.

    ``failures`` are groups of what its links failed with since it began. ``beside`` is one that is
    open within all links.
    """

    incident: Incident
    links: Sequence[IncidentLink]
    many: int
    window: Window
    tests: Results
    failures: Sequence[SimilarFailures]
    beside: Beside | None

    def tests_of(self, row: IncidentLink) -> Results:
        """Return the tests of a link with its size class."""
        link = row.source_id << 16 | row.destination_id
        of_link = self.tests.taken((self.tests.keys >> np.uint64(32)) == link)
        return of_link.of_class(row.size_class_id)


def read(incident: Incident, now: datetime) -> IncidentEvidence:
    """Read what is known of an incident. The number of SQL queries does not depend on the data."""
    rows = incidents.members(incident)
    links, window = list(rows[:MOST_LINKS]), window_of(incident, now)
    drawn = [(row.source_id, row.destination_id) for row in links[:MOST_DRAWN]]
    return IncidentEvidence(
        incident,
        links,
        many=rows.count(),
        window=window,
        tests=samples.read_links(drawn, window, ()),
        failures=failures_of(incident, links, now),
        beside=Beside.of(incident, links, now),
    )


def window_of(incident: Incident, now: datetime) -> Window:
    """Return the time in which its tests are shown."""
    end = incident.closed_at or now
    since = min(max(end - incident.began_at, SHORTEST), LONGEST)
    return Window(max(incident.began_at, end - LONGEST) - since, end)


def failures_of(
    incident: Incident, links: Sequence[IncidentLink], now: datetime
) -> list[SimilarFailures]:
    """Group the failed tests of its links, if they fail, since it began. Two SQL queries."""
    if incident.condition != Incident.Condition.FAILING:
        return []
    window = window_of(incident, now)
    pairs = [(row.source_id, row.destination_id) for row in links[:MOST_LINKS]]
    start = max(incident.began_at, window.start)
    tests = Transfer.objects.filter(
        transfers.between_ends(pairs), started_at__gte=start, started_at__lt=window.end
    )
    return transfers.failures(made_so(tests, counted(())))


@dataclass(frozen=True)
class Beside:
    """An open incident within all links of the size class that shows it."""

    incident: Incident
    links: Grid

    @classmethod
    def of(cls, incident: Incident, links: Sequence[IncidentLink], now: datetime) -> Beside | None:
        if not incident.is_open:
            return None
        size = links[0].size_class.name if links else incident.sizes[0]
        return cls(incident, grid.build(evidence.beside_query(MatrixQuery(size=size)), now))

    @cached_property
    def well(self) -> Flags:
        """Say which links are known to be as usual, or faster."""
        cells = self.links.cells
        return np.isin(cells.level, (USUAL, FASTER)) & ~cells.of_look("failing")

    @cached_property
    def judged(self) -> Flags:
        cells = self.links.cells
        judged: Flags = (cells.level != UNKNOWN) | cells.of_look("failing")
        return judged

    def sentences(self) -> list[str]:
        """Say how the other direction is, and how other links are that have none of its ends."""
        incident = self.incident
        if incident.level == Level.GRID:
            return []
        rows, columns = self.own(self.links.sources), self.own(self.links.destinations)
        others = {}
        if incident.level == Level.SOURCE:
            others["As a destination"] = np.logical_and.outer(~rows, columns)
        if incident.level == Level.DESTINATION:
            others["As a source"] = np.logical_and.outer(rows, ~columns)
        others["Elsewhere"] = np.logical_and.outer(~rows, ~columns)
        return [self.words(*each) for each in others.items()]

    def own(self, groups: Sequence[AxisGroup]) -> Flags:
        """Say which rows or columns are of its ends."""
        incident = self.incident
        ends = {str(end) for end in (incident.source, incident.destination) if end}
        site = incident.site.name if incident.site else ""
        own = [each.name in ends or each.site == site for each in groups]
        return np.array(own, dtype=bool)

    def words(self, subject: str, links: Flags) -> str:
        judged = int((links & self.judged).sum())
        if judged < FEWEST_JUDGED:
            return f"{subject} too few links have a usual rate yet to compare with."
        well = int((links & self.judged & self.well).sum())
        return f"{subject} {format_count(well)} of {format_count(judged)} links are as usual."


@dataclass(frozen=True)
class WhatChanged:
    """What people wrote, declared or changed at its ends about when it began."""

    notes: Sequence[NearbyNote]
    changes: Sequence[HistoryLine]


def what_changed(incident: Incident, reader: Anyone) -> WhatChanged:
    """Read what changed then, as far as somebody may see it. At most four SQL queries."""
    ends = [end for end in (incident.source, incident.destination) if end]
    sites = {end.site for end in ends} | ({incident.site} if incident.site else set())
    begun = Beginning(
        incident.began_at, incident.opened_at, incident.source_id, incident.destination_id
    )
    near = WrittenNear.read([begun], reader)
    kinds = HistoryEntry.Kind
    of_ends = Q(kind=kinds.ENDPOINT, key__in=[end.pk for end in ends])
    of_sites = Q(kind__in=(kinds.SITE, kinds.DOWNTIME), site__in=[site.pk for site in sites])
    rows = registry_history.visible_to(reader).filter(
        of_ends | of_sites, at__gte=incident.began_at - BEFORE, at__lt=incident.opened_at
    )
    entries = rows.order_by(*registry_history.ORDER)[:MOST_CHANGES]
    names = sorted(str(site) for site in sites)
    return WhatChanged(notes_near(begun, names, near), list(registry_history.lines_of(entries)))
