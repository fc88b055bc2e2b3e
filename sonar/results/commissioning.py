"""The door for what a search found of links that passed a set of criteria, and that lost it.

What came to pass since the moment from which a search ``renews`` takes the place of what stood
there: late results may move it. A record that is found again keeps its row. What is older stands.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from sonar.database.cursors import lock_until_commit
from sonar.models import CommissioningRecord, CommissioningSearch, CriteriaSet

# Beside the names of other locks (advisory, by two numbers).
LOCK = 0x636F6D6D
MEASURED = ("lost_at", "required", "tests", "ok", "bytes", "seconds")
Ends = tuple[int, int]


@dataclass(frozen=True)
class Search:
    """What was searched: which set, from when on it renews what stands, up to when, by what."""

    row: CriteriaSet
    renews: datetime
    end: datetime
    days: Mapping[str, str]
    basis: str


@dataclass(frozen=True)
class FoundPass:
    """A time for which a link passed; fields as in the model.

    Without ``passed_at`` it is the one that had passed before, of which only its end is new.
    """

    ends: Ends
    passed_at: datetime | None
    lost_at: datetime | None
    tests: int = 0
    ok: int = 0
    bytes: int = 0
    seconds: float = 0.0


class Stored(NamedTuple):
    """How many records came, changed and went."""

    new: int
    changed: int
    gone: int


NOTHING = Stored(0, 0, 0)


def lock(row: CriteriaSet) -> None:
    """Let searches of one set wait for each other, until the transaction ends."""
    lock_until_commit(LOCK, row.pk % 2**31)


def last_search(row: CriteriaSet) -> CommissioningSearch | None:
    return CommissioningSearch.objects.filter(criteria_set=row).first()


def standing(row: CriteriaSet, renews: datetime) -> QuerySet[CommissioningRecord]:
    """Return the records of a set that a search may change: all but those that were over then."""
    since = Q(lost_at=None) | Q(lost_at__gt=renews)
    return CommissioningRecord.objects.filter(since, criteria_set=row).order_by()


def store(
    search: Search, passages: Iterable[FoundPass], judged: Collection[Ends], now: datetime
) -> Stored:
    """Put what was found in the place of what stood of the links that were judged.

    In a transaction that holds the lock.
    """
    rows: dict[Ends, dict[datetime | None, CommissioningRecord]] = defaultdict(dict)
    for row in standing(search.row, search.renews):
        key = row.passed_at if row.passed_at > search.renews else None
        rows[row.source_id, row.destination_id][key] = row
    new, changed = [], []
    for each in passages:
        old = rows[each.ends].pop(each.passed_at, None)
        if old is None:
            new.append(_new(search, each, now))
        elif _renew(old, search, each):
            changed.append(old)
    gone = [row for ends in judged for key, row in rows[ends].items() if key is not None]
    _write(new, changed, gone)
    CommissioningSearch.objects.update_or_create(
        criteria_set=search.row,
        defaults={
            "searched_at": now,
            "end": search.end,
            "days": dict(search.days),
            "basis": search.basis,
        },
    )
    return Stored(len(new), len(changed), len(gone))


def _new(search: Search, each: FoundPass, now: datetime) -> CommissioningRecord:
    source, destination = each.ends
    ends = {"source_id": source, "destination_id": destination}
    values = _measured(each) | {"passed_at": each.passed_at, "required": search.row.required}
    return CommissioningRecord(criteria_set=search.row, found_at=now, **ends, **values)


def _measured(each: FoundPass) -> dict[str, Any]:
    names = ("lost_at", "tests", "ok", "bytes", "seconds")
    return {name: getattr(each, name) for name in names}


def _renew(row: CommissioningRecord, search: Search, each: FoundPass) -> bool:
    """Take over what was found; say whether anything differs."""
    values: dict[str, Any] = {"lost_at": each.lost_at}
    if each.passed_at is not None:
        values = {**_measured(each), "required": search.row.required}
    differs = [name for name, value in values.items() if getattr(row, name) != value]
    for name in differs:
        setattr(row, name, values[name])
    return bool(differs)


def _write(
    new: list[CommissioningRecord],
    changed: list[CommissioningRecord],
    gone: list[CommissioningRecord],
) -> None:
    """Write in an order in which no link has two records that last."""
    records = CommissioningRecord.objects
    records.filter(pk__in=[row.pk for row in gone]).delete()
    # First those that end: another may begin where they do.
    for rows in (
        [row for row in changed if row.lost_at],
        [row for row in changed if not row.lost_at],
    ):
        records.bulk_update(rows, MEASURED, batch_size=500)
    records.bulk_create(new)


def note(last: CommissioningSearch, now: datetime) -> None:
    """Note that a set was looked at, and that nothing has changed since its last search."""
    CommissioningSearch.objects.filter(pk=last.pk).update(searched_at=now)


def keep_counts(row: CriteriaSet, counts: Mapping[str, int]) -> None:
    """Keep how the links of a set stand, as lists show it."""
    CommissioningSearch.objects.filter(criteria_set=row).update(counts=dict(counts))
