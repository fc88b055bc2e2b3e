"""The door for what an assessment found: days that were judged, and the conditions of all of them.

An assessment holds a lock from before it reads until all is written, so that two at once cannot mix
what they found. A condition that is found again keeps its id and `seen_at`, and only what differs
is written: each statement on conditions makes all answers new.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, reduce
from operator import or_
from typing import Any, NamedTuple, TypeVar

from django.db.models import F, Model, Q

from sonar.database.cursors import lock_until_commit
from sonar.models import AssessedDay, Assessment, Condition, ConditionLink, ConditionPart, SizeClass

# Advisory, with one other number.
LOCK = 0x636F6E64
# So long after its end a condition may still be changed by the tests of a day.
STAYS = timedelta(days=28)
NEVER = datetime.max.replace(tzinfo=UTC)
# More subjects than these are read with all others.
FEW_SUBJECTS = 30
Row = TypeVar("Row", Condition, ConditionPart)


class ConditionSubject(NamedTuple):
    """What a condition is of, in ids, and what is the matter with it."""

    scope: str
    source_id: int | None
    destination_id: int | None
    site_id: int | None
    type: str

    @classmethod
    def of(cls, condition: Condition) -> ConditionSubject:
        return cls(*(getattr(condition, name) for name in cls._fields))


class MemberLink(NamedTuple):
    """A link of a condition and its rate (bytes/s) before that, None where it is not known."""

    source_id: int
    destination_id: int
    baseline: float | None


@dataclass(frozen=True)
class FoundFigures:
    """From when until when, and by how much; fields as in the model."""

    since: datetime
    since_low: datetime
    since_high: datetime
    confirmed_at: datetime | None
    ended_at: datetime | None
    factor: float | None
    factor_low: float | None
    factor_high: float | None
    links: int
    of_links: int


@dataclass(frozen=True)
class FoundPart(FoundFigures):
    """What a size class says of a condition; fields as in the model."""

    size_class_id: int
    subject: ConditionSubject
    shown_at: datetime
    tests: int
    failed: int
    members: Sequence[MemberLink] = ()

    @cached_property
    def members_digest(self) -> str:
        return hashlib.blake2b(repr(sorted(self.members)).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class FoundCondition(FoundFigures):
    """A condition of all size classes, made of ``parts``; fields as in the model."""

    size_classes: Sequence[str]
    parts: Sequence[int]


class Recorded(NamedTuple):
    """How many conditions are new, were changed, and were found no more."""

    new: int = 0
    changed: int = 0
    gone: int = 0


OF_PART = [each.name for each in fields(FoundPart) if each.name not in ("subject", "members")]
OF_PART += ["members_digest"]
OF_CONDITION = [each.name for each in fields(FoundCondition) if each.name != "parts"]
# A part as it was found, and its row, which may be new.
Pair = tuple[FoundPart, ConditionPart]
# Makes conditions of the parts that one subject has; they name their parts by place.
Together = Callable[[Sequence[FoundPart]], Sequence[FoundCondition]]


def lock(*, wait: bool = True) -> bool:
    """Let one assessment at a time read and write, until the end of the transaction.

    Return whether it may: with ``wait`` always, else not while another one does.
    """
    return lock_until_commit(LOCK, 0, wait=wait)


def record(
    parts: Sequence[FoundPart], begins: Mapping[int, datetime], together: Together, now: datetime
) -> Recorded:
    """Store what was found since the days that ``begins`` has by the id of a size class.

    ``parts`` take the place of all that are open, or ended less than 28 days before that day.
    The caller holds the lock since before it read them.
    """
    return Recording(parts, begins, now).run(together)


class Recording:
    """Parts as they were found, and the rows that are the same or are found no more."""

    def __init__(
        self, parts: Sequence[FoundPart], begins: Mapping[int, datetime], now: datetime
    ) -> None:
        self.parts, self.now = parts, now
        replaceable = Q(pk__in=[])
        for size_class, begin in begins.items():
            # What was silent cannot be found again: schedules and pauses of the past are not kept.
            recent = Q(ended_at__gte=begin - STAYS) & ~Q(condition__type=Condition.Type.SILENT)
            recent |= Q(ended_at=None)
            replaceable |= recent & Q(size_class=size_class)
        rows = ConditionPart.objects.filter(replaceable).select_related("condition")
        self.rows = list(rows.order_by("id"))
        self.subject_of = {row.pk: ConditionSubject.of(row.condition) for row in self.rows}
        self.same = _matched(
            [(part.size_class_id, part.subject) for part in parts],
            parts,
            [(row.size_class_id, self.subject_of[row.pk]) for row in self.rows],
            self.rows,
        )
        self.gone = set(self.subject_of) - {row.pk for row in self.same.values()}
        self.relinked = [
            place
            for place, part in enumerate(parts)
            if place not in self.same or self.same[place].members_digest != part.members_digest
        ]
        self.changed = {
            row.pk for place, row in self.same.items() if _update(row, OF_PART, parts[place])
        }
        self.new: list[Condition] = []
        self.renewed: list[Condition] = []
        self.dropped: set[int] = set()

    def run(self, together: Together) -> Recorded:
        of_subjects = self.read_subjects()
        if not of_subjects:
            return Recorded()
        for subject, (conditions, pairs) in of_subjects.items():
            self.put_together(subject, conditions, pairs, together)
        # No subject ever has two open ones: those that are dropped end first. One that ends and one
        # that is open again are never rows of one subject: they would overlap.
        if self.dropped:
            Condition.objects.filter(pk__in=self.dropped).update(ended_at=F("since"))
        _renew(Condition, self.renewed, OF_CONDITION)
        Condition.objects.bulk_create(self.new)
        pairs = [pair for _, pairs in of_subjects.values() for pair in pairs]
        for _, row in pairs:
            row.condition_id = row.condition.pk
        changed = [row for _, row in pairs if row.pk in self.changed]
        _renew(ConditionPart, changed, [*OF_PART, "condition"])
        ConditionPart.objects.bulk_create(row for _, row in pairs if not row.pk)
        row_of = {id(part): row for part, row in pairs}
        relinked = [(part, row_of[id(part)]) for part in map(self.parts.__getitem__, self.relinked)]
        ConditionLink.objects.filter(part__in=[row.pk for _, row in relinked if row.pk]).delete()
        ConditionLink.objects.bulk_create(
            (
                ConditionLink(part=row, **member._asdict())
                for part, row in relinked
                for member in part.members
            ),
            batch_size=10_000,
        )
        if self.gone:
            ConditionPart.objects.filter(pk__in=self.gone).delete()
        if self.dropped:
            Condition.objects.filter(pk__in=self.dropped).delete()
        return Recorded(len(self.new), len(self.renewed), len(self.dropped))

    def read_subjects(self) -> dict[ConditionSubject, tuple[list[Condition], list[Pair]]]:
        """Return all of the subjects of which anything differs: conditions, and parts with rows."""
        of_subjects: dict[ConditionSubject, tuple[list[Condition], list[Pair]]] = {
            part.subject: ([], [])
            for place, part in enumerate(self.parts)
            if place not in self.same or self.same[place].pk in self.changed
        }
        of_subjects |= {self.subject_of[pk]: ([], []) for pk in self.gone}
        if not of_subjects:
            return of_subjects
        own = Q()
        if len(of_subjects) <= FEW_SUBJECTS:
            own = reduce(or_, (Q(**subject._asdict()) for subject in of_subjects))
        for condition in Condition.objects.filter(own).order_by("id"):
            if (subject := ConditionSubject.of(condition)) in of_subjects:
                of_subjects[subject][0].append(condition)
        for place, part in enumerate(self.parts):
            if part.subject in of_subjects:
                row = self.same.get(place) or ConditionPart(**_columns(part, OF_PART))
                of_subjects[part.subject][1].append((part, row))
        # Parts that no test of these days can change belong to it all the same.
        ids = [condition.pk for conditions, _ in of_subjects.values() for condition in conditions]
        final = ConditionPart.objects.filter(condition__in=ids).exclude(pk__in=self.subject_of)
        for row in final.select_related("condition"):
            subject = ConditionSubject.of(row.condition)
            of_subjects[subject][1].append((_part_of(row), row))
        return of_subjects

    def put_together(
        self,
        subject: ConditionSubject,
        conditions: Sequence[Condition],
        pairs: list[Pair],
        together: Together,
    ) -> None:
        """Make the conditions of a subject of its parts, and give each part its condition."""
        pairs.sort(key=lambda pair: (pair[0].since, pair[0].size_class_id))
        items = together([part for part, _ in pairs])
        same = _matched([None] * len(items), items, [None] * len(conditions), conditions)
        self.dropped |= {each.pk for each in conditions} - {each.pk for each in same.values()}
        for place, item in enumerate(items):
            if (condition := same.get(place)) is None:
                columns = _columns(item, OF_CONDITION)
                condition = Condition(**subject._asdict(), **columns, seen_at=self.now)
                self.new.append(condition)
            elif _update(condition, OF_CONDITION, item):
                self.renewed.append(condition)
            for number in item.parts:
                row = pairs[number][1]
                if row.pk and row.condition_id != condition.pk:
                    self.changed.add(row.pk)
                row.condition = condition


def _columns(item: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(item, name) for name in names}


def _matched(
    keys: Sequence[Hashable],
    items: Sequence[FoundPart | FoundCondition],
    keys_of_rows: Sequence[Hashable],
    rows: Sequence[Row],
) -> dict[int, Row]:
    """Return by the place of an item the row that is the same: alike in key, and overlapping.

    Each row is that of one item at most; pairs whose beginnings are nearest come first.
    """
    by_key: dict[Hashable, list[int]] = defaultdict(list)
    for number, key in enumerate(keys_of_rows):
        by_key[key].append(number)
    pairs = sorted(
        (abs(item.since - rows[number].since), place, number)
        for place, (key, item) in enumerate(zip(keys, items, strict=True))
        for number in by_key.get(key, ())
        if item.since <= (rows[number].ended_at or NEVER)
        and rows[number].since <= (item.ended_at or NEVER)
    )
    matched: dict[int, Row] = {}
    used: set[int] = set()
    for _, place, number in pairs:
        if place not in matched and number not in used:
            matched[place] = rows[number]
            used.add(number)
    return matched


def _update(row: Model, names: Sequence[str], item: object) -> bool:
    """Set fields of a row to those of an item; say whether any differs."""
    differing = [name for name in names if getattr(row, name) != getattr(item, name)]
    for name in differing:
        setattr(row, name, getattr(item, name))
    return bool(differing)


def _renew(model: type[Condition | ConditionPart], rows: Sequence[Any], names: list[str]) -> None:
    """Update columns of many rows, one after the other, in a tenth of the time of a CASE."""
    if rows:
        model.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["id"], update_fields=names
        )


class JudgedVersion(NamedTuple):
    """As of which results a day was judged; fields as in AssessedDay."""

    id: int
    until: datetime
    version: str
    digest: str


def judged_days(size_class: SizeClass) -> dict[date, JudgedVersion]:
    """Return the days of a class that were judged. One SQL query."""
    rows = AssessedDay.objects.filter(size_class=size_class)
    columns = rows.values_list("day", *JudgedVersion._fields)
    return {day: JudgedVersion(*values) for day, *values in columns}


def note_unchanged(day: int, until: datetime, version: str) -> None:
    """Note that the tests of a judged day (id), up to a moment, are those of this version, too."""
    AssessedDay.objects.filter(pk=day).update(until=until, version=version)


def days_to_record(today: date) -> list[AssessedDay]:
    """Return today, and the days that were judged since conditions were stored; one SQL query."""
    rows = AssessedDay.objects.filter(Q(is_recorded=False) | Q(day=today))
    return list(rows.order_by("size_class_id", "day"))


def earlier_parts(parts: Sequence[FoundPart], begins: Mapping[int, datetime]) -> list[FoundPart]:
    """Return stored parts that no test of these days can change, but that overlap found ones."""
    first = min((part.since for part in parts), default=NEVER)
    ended = Q(pk__in=[])
    for size_class, begin in begins.items():
        if first < begin - STAYS:
            ended |= Q(size_class=size_class, ended_at__gte=first, ended_at__lt=begin - STAYS)
    if first >= max(begins.values(), default=NEVER) - STAYS:
        return []
    rows = ConditionPart.objects.filter(ended).exclude(condition__type=Condition.Type.SILENT)
    return [_part_of(row) for row in rows.select_related("condition").order_by("id")]


def _part_of(row: ConditionPart, members: Sequence[MemberLink] = ()) -> FoundPart:
    columns = _columns(row, [name for name in OF_PART if name != "members_digest"])
    return FoundPart(**columns, subject=ConditionSubject.of(row.condition), members=members)


def open_silent(size_class: SizeClass) -> list[FoundPart]:
    """Return what is stored as silent in a size class and lasts; two SQL queries at most."""
    rows = ConditionPart.objects.filter(
        size_class=size_class, ended_at=None, condition__type=Condition.Type.SILENT
    )
    parts = []
    for row in rows.select_related("condition").prefetch_related("members").order_by("id"):
        members = [
            MemberLink(each.source_id, each.destination_id, each.baseline)
            for each in row.members.all()
        ]
        parts.append(_part_of(row, members))
    return parts


def note_quiet(now: datetime) -> None:
    """Note that all size classes were assessed, and that nothing was new."""
    Assessment.objects.update(assessed_at=now)


def note_recorded(assessments: Iterable[Assessment]) -> None:
    """Note that size classes were assessed, and that the conditions of all days are stored."""
    AssessedDay.objects.filter(is_recorded=False).update(is_recorded=True)
    Assessment.objects.bulk_create(
        assessments,
        update_conflicts=True,
        unique_fields=["size_class"],
        update_fields=["assessed_at", "awake_since", "free_since", "intervals"],
    )


def forget_days(since: date, size_class: SizeClass | None = None) -> None:
    """Let days be judged again from this one on, of a size class or of all."""
    rows = AssessedDay.objects.filter(day__gte=since)
    (rows.filter(size_class=size_class) if size_class else rows).delete()


def forget(now: datetime, keep_days: int) -> int:
    """Delete what ended before the results that are kept; return how many conditions."""
    before = now - timedelta(days=keep_days)
    old = Condition.objects.filter(ended_at__lt=before)
    AssessedDay.objects.filter(day__lt=before.date()).delete()
    # A statement makes all answers new, even one that finds nothing.
    return old.delete()[1].get("sonar.Condition", 0) if old.exists() else 0
