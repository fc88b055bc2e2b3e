"""One link in a criteria set: its records with what they were given for, and how it stands now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from django.db.models import Q

from matrix.answers.commissioning.standing import (
    Criterion,
    LinkStanding,
    Measurement,
    Members,
    criteria,
    measure,
)
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import commissioning as store
from sonar.models import CommissioningRecord, CommissioningSearch, CriteriaSet
from sonar.notation.endpoint_filters import fits
from sonar.notation.windows import format_day


@dataclass(frozen=True)
class Passed:
    """A record, with its criteria as they were then."""

    row: CommissioningRecord
    criteria: Sequence[Criterion]

    @classmethod
    def of(cls, row: CommissioningRecord) -> Self:
        return cls(row, criteria(row.required, Measurement.of(row)))

    @property
    def passed_words(self) -> str:
        return _with_year(self.row.passed_at)

    @property
    def lost_words(self) -> str:
        return _with_year(self.row.lost_at) if self.row.lost_at else ""

    @property
    def size(self) -> str:
        return str(self.row.required["size"])

    @property
    def period_hours(self) -> int:
        return int(self.row.required["period_hours"])


def _with_year(moment: datetime) -> str:
    """Write a full hour so that it can be read in years to come: `20 Nov 2026 09:00 UTC`."""
    return f"{format_day(moment, 0)} {moment:%H:%M} UTC"


@dataclass(frozen=True)
class LinkRecords:
    """How a link stands as of the last search, and its records, the newest first.

    ``is_judged`` says whether the set has it still.
    """

    row: CriteriaSet
    search: CommissioningSearch | None
    now: LinkStanding
    records: Sequence[Passed]
    is_judged: bool

    @classmethod
    def read(cls, row: CriteriaSet, source: EndpointInfo, destination: EndpointInfo) -> Self | None:
        """Read them; None for a link that the set neither judges nor has judged."""
        ends = Q(source=source.id, destination=destination.id)
        records = store.of_link(row, ends)
        members = Members.of(row)
        is_judged = source.id in members.sources and destination.id in members.destinations
        if not (records or is_judged):
            return None
        search = CommissioningSearch.objects.filter(criteria_set=row).first()
        alone = Members((source.id,), (destination.id,))
        by_link = measure(row, alone, search.end) if search and is_judged else {}
        measured = by_link.get((source.id, destination.id), Measurement())
        newest = records[0] if records else None
        of_link = criteria(row.required, measured)
        now = LinkStanding(source, destination, measured, of_link, newest)
        return cls(row, search, now, [Passed.of(record) for record in records], is_judged)


@dataclass(frozen=True)
class InSet:
    """What the page of a link says of a set: its newest record there, if it ever passed.

    ``below_words`` say what a link that has passed does not reach now.
    """

    row: CriteriaSet
    record: CommissioningRecord | None
    below_words: str = ""


def of_link(source: EndpointInfo, destination: EndpointInfo) -> list[InSet]:
    """Return the sets that judge a link, or have given it a record.

    At most two SQL queries, and for each set that it has passed what is measured now.
    """
    rows = list(CriteriaSet.objects.select_related("size_class"))
    if not rows:
        return []
    records = store.newest_of_link(Q(source=source.id, destination=destination.id))
    ends = {"sources": source, "destinations": destination}
    in_use = not (source.retired or destination.retired)
    judging = []
    for row in rows:
        if record := records.get(row.pk):
            link = None if record.lost_at else LinkRecords.read(row, source, destination)
            judging.append(InSet(row, record, link.now.below_words if link else ""))
        elif in_use and all(fits(row.filter_of(end), at.texts) for end, at in ends.items()):
            judging.append(InSet(row, None))
    return judging
