"""The door for changes of level: what a search found is stored here, each change once.

Outages, which the same search finds (sonar.results.outages), are stored with them.

A search looks at a window anew and finds the changes in it. Those of the part that it ``renews``
take the place of what stood there; one that is found again keeps its row, and the moment at which
it was first found. What is older stands as it was found last.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from django.db import connection, transaction

from sonar.models import Change, ChangeSearch
from sonar.results import outages
from sonar.results.outages import FoundOutage
from sonar.results.searches import Search, Stored, update

Whose = tuple[str, int | None, int | None]
# Beside the names of other locks (advisory, by two numbers).
LOCK = 0x6368616E


@dataclass(frozen=True)
class FoundChange:
    """A change of level as it was found; fields as in the model. Rates are in bytes/s."""

    kind: str
    source_id: int | None
    destination_id: int | None
    at: datetime
    earliest: datetime
    latest: datetime
    factor: float
    low: float
    high: float
    before: float | None
    after: float | None
    ok_before: int
    ok_after: int
    links: int
    chance: float
    sure: bool
    course: list[float | None]

    @property
    def whose(self) -> Whose:
        return self.kind, self.source_id, self.destination_id

    @property
    def link(self) -> int:
        """Return its link as keys of segments have it (sonar.results.segments); of a link only."""
        return (self.source_id or 0) << 16 | (self.destination_id or 0)

    def overlaps(self, row: Change) -> bool:
        return self.earliest <= row.latest and row.earliest <= self.latest


def last_search(size_class_id: int) -> ChangeSearch | None:
    return ChangeSearch.objects.filter(size_class=size_class_id).first()


@transaction.atomic
def store(
    search: Search,
    changes: Iterable[FoundChange],
    found_outages: Iterable[FoundOutage],
    now: datetime,
) -> tuple[Stored, Stored]:
    """Put what was found in the place of what stood, and note the search; all or nothing.

    Return what became of the changes, and of the outages. Two searches of one class at once do not
    mix: the second waits for the first.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK, search.size_class_id])
    rows = list(Change.objects.filter(size_class=search.size_class_id, latest__gte=search.start))
    stored = (
        _replace(search, list(changes), rows, now),
        outages.replace(search, found_outages, now),
    )
    ChangeSearch.objects.update_or_create(
        size_class_id=search.size_class_id,
        defaults={
            "searched_at": now,
            "start": search.start,
            "end": search.end,
            "sequences": search.sequences,
            "days": dict(search.days),
            "method": search.method,
        },
    )
    return stored


def note(last: ChangeSearch, now: datetime) -> None:
    """Note that a class was looked at, and that nothing has changed since its last search."""
    ChangeSearch.objects.filter(pk=last.pk).update(searched_at=now)


def _replace(
    search: Search, changes: list[FoundChange], rows: list[Change], now: datetime
) -> Stored:
    standing: dict[Whose, list[Change]] = defaultdict(list)
    for row in rows:
        standing[row.kind, row.source_id, row.destination_id].append(row)
    new: list[Change] = []
    renewed: list[Change] = []
    kept: set[int] = set()
    for change in changes:
        same = _same(change, (row for row in standing[change.whose] if row.pk not in kept))
        if same is not None:
            kept.add(same.pk)
            # What is older stays as it is, and what is the same as that is no news.
            if same.at >= search.renews and update(same, vars(change)):
                renewed.append(same)
        elif change.at >= search.renews:
            new.append(Change(**vars(change), size_class_id=search.size_class_id, found_at=now))
    gone = [row.pk for row in rows if row.at >= search.renews and row.pk not in kept]
    Change.objects.filter(pk__in=gone).delete()
    Change.objects.bulk_create(new)
    Change.objects.bulk_update(renewed, [column.name for column in fields(FoundChange)])
    return Stored(len(new), len(renewed), len(gone))


def _same(change: FoundChange, rows: Iterable[Change]) -> Change | None:
    """Return the row that is the same change: in the same direction, at about the same time.

    Of several the one nearest in time.
    """
    candidates = [
        row for row in rows if change.overlaps(row) and (row.factor < 1) == (change.factor < 1)
    ]
    return min(candidates, key=lambda row: abs(row.at - change.at), default=None)


def forget(now: datetime, keep_days: int) -> int:
    """Delete changes and outages whose results are kept no longer; return how many."""
    before = now - timedelta(days=keep_days)
    deleted, _ = Change.objects.filter(latest__lt=before).delete()
    return deleted + outages.forget(before)
