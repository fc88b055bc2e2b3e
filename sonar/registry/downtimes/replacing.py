"""The rows of one source are brought in line with its last answer, in one transaction.

Rows keep their ids as long as their downtime is announced, and what does not change is not written:
so nobody who reads sees a new version of the registry every ten minutes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from sonar.models import Downtime

CHANGING = ("starts_at", "ends_at", "severity", "reason", "url")
Identity = tuple[str, int | None, int | None]


@dataclass(frozen=True)
class Differences:
    """What an answer changes: rows to add, to change and to remove, and how many stay."""

    new: tuple[Downtime, ...]
    changed: tuple[Downtime, ...]
    gone: tuple[Downtime, ...]
    unchanged: int

    @property
    def count(self) -> int:
        return len(self.new) + len(self.changed) + len(self.gone)

    @property
    def words(self) -> str:
        numbers = (len(self.new), len(self.changed), len(self.gone), self.unchanged)
        return "{} new, {} changed, {} withdrawn, {} unchanged".format(*numbers)


def identity(row: Downtime) -> Identity:
    return row.key, row.site_id, row.endpoint_id


def differences(
    origin: str,
    rows: Collection[Downtime],
    keys: Collection[str],
    since: datetime,
    unread: Collection[str] = (),
) -> Differences:
    """Compare the rows of an answer with those that are there. One SQL query.

    ``keys`` are all that the answer has, whomever they concern. What it has not is withdrawn if it
    ends after ``since``: the source was asked for nothing that ended before. Nothing is withdrawn
    of ``unread`` keys, of which the answer has an element that cannot be read; and nothing at all
    if the key of such an element is unknown (empty).
    """
    own = Downtime.objects.filter(origin=origin).select_related("site", "endpoint")
    stored = {identity(row): row for row in own.filter(Q(key__in=keys) | Q(ends_at__gt=since))}
    new, changed, unchanged = [], [], 0
    for row in rows:
        before = stored.pop(identity(row), None)
        if before is None:
            new.append(row)
        elif differs(before, row):
            changed.append(before)
        else:
            unchanged += 1
    gone = [row for row in stored.values() if row.key not in unread and "" not in unread]
    unchanged += len(stored) - len(gone)
    return Differences(tuple(new), tuple(changed), tuple(gone), unchanged)


def differs(before: Downtime, row: Downtime) -> bool:
    """Give a row the values of another of its identity, and say whether it had others."""
    columns = [name for name in CHANGING if getattr(before, name) != getattr(row, name)]
    for name in columns:
        setattr(before, name, getattr(row, name))
    return bool(columns)


def keep(changes: Differences) -> None:
    """Write what differs, all of it or nothing. No SQL query if nothing does."""
    with transaction.atomic():
        if changes.gone:
            Downtime.objects.filter(pk__in=pks(changes.gone)).delete()
        if changes.changed:
            Downtime.objects.bulk_update(changes.changed, CHANGING)
        if changes.new:
            Downtime.objects.bulk_create(changes.new)


def pks(rows: Iterable[Downtime]) -> list[int]:
    return [row.pk for row in rows]
