"""The door for outages: what a search found is stored here, each outage once.

Those whose newest failed test is in the part that a search ``renews`` take the place of what stood
there; one that is found again keeps its row, and the moment at which it was first found. One that
had no end yet gets it, however old it is. What began before the days of a search keeps its
beginning.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q

from sonar.models import Outage
from sonar.results.searches import Search, Stored, update

Whose = tuple[str, int | None, int | None]
# Later than all that ends.
NEVER = datetime.max.replace(tzinfo=UTC)
RENEWED = ["last_ok", "began", "newest", "ended", "tests", "links", "course"]


@dataclass(frozen=True)
class FoundOutage:
    """An outage as it was found; fields as in the model, and when its tests failed (Unix ms)."""

    kind: str
    source_id: int | None
    destination_id: int | None
    last_ok: datetime | None
    began: datetime
    newest: datetime
    ended: datetime | None
    tests: int
    links: int
    course: list[float | None]
    failures: Sequence[int]

    @property
    def whose(self) -> Whose:
        return self.kind, self.source_id, self.destination_id

    def columns(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "failures"}

    def going_on(self, row: Outage) -> dict[str, Any]:
        """Return what is new of a row that began before the days that were searched."""
        counted = round(row.newest.timestamp() * 1000)
        since = len(self.failures) - bisect_right(self.failures, counted)
        return {
            "newest": max(row.newest, self.newest),
            "ended": self.ended,
            "tests": row.tests + since,
            "links": max(row.links, self.links),
        }


def replace(search: Search, outages: Iterable[FoundOutage], now: datetime) -> Stored:
    """Put outages in the place of what stood, in bulk; the caller holds the lock of the class."""
    rows = list(
        Outage.objects.filter(
            Q(newest__gte=search.start) | Q(ended=None), size_class=search.size_class_id
        )
    )
    standing: dict[Whose, list[Outage]] = defaultdict(list)
    for row in rows:
        standing[row.kind, row.source_id, row.destination_id].append(row)
    new: list[Outage] = []
    renewed: list[Outage] = []
    kept: set[int] = set()
    for outage in outages:
        others = [row for row in standing[outage.whose] if row.pk not in kept]
        same = _same(outage, others, search.start)
        if same is not None:
            kept.add(same.pk)
            if _renew(same, outage, search):
                renewed.append(same)
        elif outage.newest >= search.renews:
            columns = outage.columns()
            new.append(Outage(**columns, size_class_id=search.size_class_id, found_at=now))
    gone = [
        row.pk
        for row in rows
        if row.pk not in kept and row.newest >= search.renews and row.began >= search.start
    ]
    Outage.objects.filter(pk__in=gone).delete()
    Outage.objects.bulk_create(new)
    # Of thousands that last, this takes a tenth of an UPDATE with a CASE for each.
    Outage.objects.bulk_create(
        renewed, update_conflicts=True, unique_fields=["id"], update_fields=RENEWED
    )
    return Stored(len(new), len(renewed), len(gone))


def _same(outage: FoundOutage, rows: Iterable[Outage], start: datetime) -> Outage | None:
    """Return the row that is the same outage: one that has a moment in common with it.

    Of several the one that began nearest to it. A row of a link that began before the days of the
    search can go on only until the first success in them.
    """
    candidates = [
        row
        for row in rows
        if row.began < (outage.ended or NEVER)
        and outage.began < (row.ended or NEVER)
        and not (row.began < start and outage.kind == Outage.Kind.LINK and outage.last_ok)
    ]
    return min(candidates, key=lambda row: abs(row.began - outage.began), default=None)


def _renew(row: Outage, outage: FoundOutage, search: Search) -> bool:
    """Take over what was found; say whether anything differs. What is older stays as it is."""
    if row.ended is not None and outage.newest < search.renews:
        return False
    reaches_back = row.began < search.start
    return update(row, outage.going_on(row) if reaches_back else outage.columns())


def forget(before: datetime) -> int:
    """Delete outages whose last failed test was before a moment; return how many."""
    deleted, _ = Outage.objects.filter(newest__lt=before).delete()
    return deleted
