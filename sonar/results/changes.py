"""The door for what a search of results found: changes of level and outages, each stored once.

A search looks at a window anew and finds what is in it. What is in the part that it ``renews``
takes the place of what stood there; one that is found again keeps its row, and the moment at which
it was first found. What is older stands as it was found last, but for outages: one that had no end
yet gets it, however old it is, and what began before the days of a search keeps its beginning.
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from django.db import connection, transaction
from django.db.models import Model, Q

from sonar.models import Change, ChangeSearch, Outage

Whose = tuple[str, int | None, int | None]
# Beside the names of other locks (advisory, by two numbers).
LOCK = 0x6368616E
# What no search changes of a row, and what has no column.
FIXED = ("kind", "source_id", "destination_id", "failures")
# Later than all that ends.
NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Search:
    """What was searched: the size class, the window, and from when on it renews what stands."""

    size_class_id: int
    start: datetime
    renews: datetime
    end: datetime
    sequences: int
    days: Mapping[str, str]
    method: int


@dataclass(frozen=True)
class Stored:
    """How many rows came, changed and went."""

    new: int
    renewed: int
    gone: int


@dataclass(frozen=True)
class FoundChange:
    """A change of level as it was found; fields as in the model. Rates are in bytes/s."""

    model: ClassVar[Any] = Change

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
    def link(self) -> int:
        """Return its link as keys of segments have it (sonar.results.segments); of a link only."""
        return (self.source_id or 0) << 16 | (self.destination_id or 0)

    @property
    def moment(self) -> datetime:
        return self.at

    def columns(self) -> dict[str, Any]:
        return vars(self)

    def same(self, rows: Iterable[Change], _: Search) -> Change | None:
        """Return the row that is the same change: in the same direction, at about the same time.

        Of several the one nearest in time.
        """
        candidates = [
            row
            for row in rows
            if self.earliest <= row.latest
            and row.earliest <= self.latest
            and (row.factor < 1) == (self.factor < 1)
        ]
        return min(candidates, key=lambda row: abs(row.at - self.at), default=None)

    def renew(self, row: Change, search: Search) -> bool:
        """Take over what was found; say whether anything differs. What is older stays as it is."""
        return row.at >= search.renews and update(row, self.columns())

    @staticmethod
    def is_replaceable(row: Change, search: Search) -> bool:
        """Say whether a row goes where nothing that was found is the same."""
        return row.at >= search.renews


@dataclass(frozen=True)
class FoundOutage:
    """An outage as it was found; fields as in the model, and when its tests failed (Unix ms)."""

    model: ClassVar[Any] = Outage

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
    def moment(self) -> datetime:
        return self.newest

    def columns(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "failures"}

    def same(self, rows: Iterable[Outage], search: Search) -> Outage | None:
        """Return the row that is the same outage: one that has a moment in common with it.

        Of several the one that began nearest to it. A row of a link that began before the days of
        the search can go on only until the first success in them.
        """
        candidates = [
            row
            for row in rows
            if row.began < (self.ended or NEVER)
            and self.began < (row.ended or NEVER)
            and not (row.began < search.start and self.kind == Outage.Kind.LINK and self.last_ok)
        ]
        return min(candidates, key=lambda row: abs(row.began - self.began), default=None)

    def renew(self, row: Outage, search: Search) -> bool:
        """Take over what was found; say whether anything differs. What is older stays as it is."""
        if row.ended is not None and self.newest < search.renews:
            return False
        return update(row, self._going_on(row) if row.began < search.start else self.columns())

    @staticmethod
    def is_replaceable(row: Outage, search: Search) -> bool:
        """Say whether a row goes where nothing that was found is the same."""
        return row.newest >= search.renews and row.began >= search.start

    def _going_on(self, row: Outage) -> dict[str, Any]:
        """Return what is new of a row that began before the days that were searched."""
        counted = round(row.newest.timestamp() * 1000)
        since = len(self.failures) - bisect_right(self.failures, counted)
        return {
            "newest": max(row.newest, self.newest),
            "ended": self.ended,
            "tests": row.tests + since,
            "links": max(row.links, self.links),
        }


def update(row: Model, values: Mapping[str, Any]) -> bool:
    """Set the fields of a row; say whether any differs."""
    differs = False
    for name, value in values.items():
        if not _equal(getattr(row, name), value):
            setattr(row, name, value)
            differs = True
    return differs


def _equal(old: Any, new: Any) -> bool:  # noqa: ANN401 - a value of any column
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=1e-9)
    return bool(old == new)


def last_search(size_class_id: int) -> ChangeSearch | None:
    return ChangeSearch.objects.filter(size_class=size_class_id).first()


@transaction.atomic
def store(
    search: Search,
    changes: Iterable[FoundChange],
    outages: Iterable[FoundOutage],
    now: datetime,
) -> tuple[Stored, Stored]:
    """Put what was found in the place of what stood, and note the search; all or nothing.

    Return what became of the changes, and of the outages. Two searches of one class at once do not
    mix: the second waits for the first.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK, search.size_class_id])
    changed = Change.objects.filter(size_class=search.size_class_id, latest__gte=search.start)
    out = Outage.objects.filter(
        Q(newest__gte=search.start) | Q(ended=None), size_class=search.size_class_id
    )
    stored = (
        _replace(search, FoundChange, changes, list(changed), now),
        _replace(search, FoundOutage, outages, list(out), now),
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
    search: Search,
    kind: type[FoundChange | FoundOutage],
    items: Iterable[Any],
    rows: Sequence[Any],
    now: datetime,
) -> Stored:
    """Put what was found in the place of the rows of its kind, in bulk."""
    standing: dict[Whose, list[Any]] = defaultdict(list)
    for row in rows:
        standing[row.kind, row.source_id, row.destination_id].append(row)
    new, renewed, kept = [], [], set()
    for item in items:
        others = standing[item.kind, item.source_id, item.destination_id]
        same = item.same([row for row in others if row.pk not in kept], search)
        if same is not None:
            kept.add(same.pk)
            if item.renew(same, search):
                renewed.append(same)
        elif item.moment >= search.renews:
            columns = item.columns() | {"size_class_id": search.size_class_id, "found_at": now}
            new.append(kind.model(**columns))
    gone = [row.pk for row in rows if row.pk not in kept and kind.is_replaceable(row, search)]
    rows_of_kind = kind.model.objects
    rows_of_kind.filter(pk__in=gone).delete()
    rows_of_kind.bulk_create(new)
    # Of thousands that are renewed, this takes a tenth of an UPDATE with a CASE for each.
    changing = [field.name for field in fields(kind) if field.name not in FIXED]
    rows_of_kind.bulk_create(
        renewed, update_conflicts=True, unique_fields=["id"], update_fields=changing
    )
    return Stored(len(new), len(renewed), len(gone))


def forget(now: datetime, keep_days: int) -> int:
    """Delete changes and outages whose results are kept no longer; return how many."""
    before = now - timedelta(days=keep_days)
    changes, _ = Change.objects.filter(latest__lt=before).delete()
    outages, _ = Outage.objects.filter(newest__lt=before).delete()
    return changes + outages
