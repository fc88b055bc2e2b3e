"""What a well-formed record must also be to become a result here: known ends, a likely time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.conf import settings

from sonar.models import Probe, Profile, SizeClass
from sonar.notation.result_columns import RECORD, Home
from sonar.notation.units import FASTEST
from sonar.notation.windows import format_time
from sonar.records.end_names import ENDS, Ends, named_by
from sonar.records.record import ALLOWED, Problem, Record, WrongRecordError, from_json, shown
from sonar.redaction.servers import Servers
from sonar.registry import redacted
from sonar.registry.aliases import Unknown
from sonar.results.store import Profiles, Result


class WrongRecordsError(Exception):
    """Values of which some cannot be results: what is wrong, by their places among ``count``.

    ``unknown`` are names of their ends that stand for nothing.
    """

    def __init__(
        self, records: dict[int, WrongRecordError], count: int, unknown: Collection[Unknown]
    ) -> None:
        wrong = f"{len(records):,} of {count:,} result{'s' * (count != 1)}"
        super().__init__(f"{wrong} {'is' if len(records) == 1 else 'are'} wrong")
        self.records, self.count, self.unknown = records, count, unknown


# A clock that runs ahead of ours by this much is still believed.
CLOCK_SKEW = timedelta(minutes=5)
# Ids of profiles have 16 bits. A script that puts a job's number where the mover belongs
# must not use them up.
MOST_PROFILES = 10_000

PROFILE_FIELDS = (*(column.name for column in RECORD if column.home is Home.PROFILE), "concurrent")
ProfileFields = tuple[str | int | None, ...]
profile_fields_of: Callable[[Record], ProfileFields] = attrgetter(*PROFILE_FIELDS)
"""Returns what decides the profile of a record."""
# The rest of a profile, which imported results do not say.
NOT_IN_A_RECORD = {"mesh_id": None, "activity": ""}


@dataclass(frozen=True, slots=True)
class Admission:
    """What records are checked against, read once for a batch: the registry and the clock."""

    ends: Ends
    size_begins: list[int]
    size_ids: list[int]
    open_probes: frozenset[UUID]
    oldest: datetime
    newest: datetime
    profiles: dict[ProfileFields, int | None]
    servers: Servers

    @classmethod
    def at(cls, now: datetime) -> Admission:
        classes = list(SizeClass.objects.order_by("from_bytes"))
        # A filter for NULL is "isnull", not "= None".
        imported = Profile.objects.filter(mesh__isnull=True, activity="")
        return cls(
            ends=Ends.read(),
            size_begins=[size_class.from_bytes for size_class in classes],
            size_ids=[size_class.id for size_class in classes],
            open_probes=frozenset(Probe.objects.values_list("id", flat=True)),
            oldest=now - timedelta(days=settings.SONAR_KEEP_DAYS),
            newest=now + CLOCK_SKEW,
            profiles={row[1:]: row[0] for row in imported.values_list("id", *PROFILE_FIELDS)},
            servers=redacted.servers(),
        )

    def has_the_registry_of(self, other: Admission) -> bool:
        """Say whether names and sizes still mean the ids that they meant."""
        self.ends.learn(other.ends.own_names)
        return all(
            getattr(self, name) == getattr(other, name)
            for name in ("ends", "size_begins", "size_ids")
        )

    def admit(self, values: Iterable[object]) -> list[Record]:
        """Read and check every decoded JSON object; raise WrongRecordsError if one is wrong."""
        values = list(values)
        self.ends.learn(named_by(links_of(values)))
        records: list[Record] = []
        errors: dict[int, WrongRecordError] = {}
        for place, value in enumerate(values):
            try:
                record = from_json(value)
                self.check(record)
                records.append(record)
            except WrongRecordError as error:
                errors[place] = error
        if errors:
            raise WrongRecordsError(errors, len(values), self.ends.unknown.values())
        return records

    def check(self, record: Record) -> None:
        """Raise WrongRecordError if a well-formed record cannot be a result here.

        Other names than those of endpoints are known if `ends` has learned them.
        """
        problems = [*self._wrong_ends(record)]
        if not self.oldest <= record.started_at <= self.newest:
            why = "is in the future: more than 5 minutes ahead of Sonar's clock"
            if record.started_at < self.oldest:
                since = f"is too old: only results since {format_time(self.oldest)} are kept"
                why = f"{since}. Raise SONAR_KEEP_DAYS to import the result"
            sentence = f"started_at {format_time(record.started_at)} {why}"
            problems.append(("started_at", sentence))
        if not self.size_ids:
            sentence = (
                f"bytes {record.bytes} does not belong to a size class, because no size class is "
                "registered"
            )
            problems.append(("bytes", sentence))
        problems += _wrong_outcome(record)
        fields = profile_fields_of(record)
        if len(self.profiles) < MOST_PROFILES:
            self.profiles.setdefault(fields, None)
        elif fields not in self.profiles:
            kind = f"mover {shown(record.mover)} with {record.streams} streams"
            sentence = (
                f"{kind} would exceed the limit of {MOST_PROFILES} combinations of settings in "
                "imported results"
            )
            problems.append(("mover", sentence))
        if record.id in self.open_probes:
            sentence = f"id {record.id} belongs to a Sonar test that has not ended"
            problems.insert(0, ("id", sentence))
        if problems:
            raise WrongRecordError(problems)

    def _wrong_ends(self, record: Record) -> Iterator[Problem]:
        for field, name in zip(ENDS, (record.source, record.destination), strict=True):
            if why := self.ends.problem(name):
                yield field, f"{field} {shown(name)} {why}"
        source, destination = map(self.ends.own_name, (record.source, record.destination))
        if source == destination:
            sentence = f"destination {shown(record.destination)} must differ from the source"
            yield "destination", sentence

    def result(self, record: Record) -> Result:
        """Turn a checked record into a result: names into ids, bytes into a size class.

        Makes its profile if it is the first with it.
        """
        return Result(
            id=record.id,
            source_id=self.ends.ids[record.source],
            destination_id=self.ends.ids[record.destination],
            size_class_id=self.size_class_of(record.bytes),
            profile_id=self.profile_of(profile_fields_of(record)),
            state=record.state,
            started_at=record.started_at,
            seconds=record.seconds,
            bytes=record.bytes,
            error=self.error_for_all(record.error, record.source, record.destination),
            error_where=record.error_where,
            **record.account,
        )

    def error_for_all(self, error: str, *ends: str) -> str:
        """Return an error from elsewhere as all may read it: without where endpoints are."""
        return self.servers.hide(error, [self.ends.own_name(end) for end in ends])

    def size_class_of(self, size: int) -> int:
        return self.size_ids[bisect_right(self.size_begins, size) - 1]

    def profile_of(self, fields: ProfileFields) -> int:
        """Return the id of the profile with these fields; make it for the first result with it."""
        profile = self.profiles.get(fields)
        if profile is None:
            named: dict[str, Any] = dict(zip(PROFILE_FIELDS, fields, strict=True))
            profile = self.profiles[fields] = Profiles().id_of(**NOT_IN_A_RECORD, **named)
        return profile


def links_of(values: Iterable[object]) -> Iterator[tuple[str, str]]:
    """Yield the ends that decoded JSON objects name, whatever else is wrong with them."""
    for value in values:
        if isinstance(value, dict):
            source, destination = (value.get(end) for end in ENDS)
            if isinstance(source, str) and isinstance(destination, str):
                yield source, destination


def _wrong_outcome(record: Record) -> Iterator[Problem]:
    """Done took time and has no error; failed says where and why."""
    fields = (("error", record.error), ("error_where", record.error_where))
    if record.state == "done":
        if record.seconds == 0:
            yield "seconds", "seconds 0 is not possible for a transfer that is done"
        elif record.bytes / record.seconds > FASTEST:
            sentence = f"seconds {record.seconds:g} is not possible for {record.bytes} bytes"
            yield "seconds", f"{sentence}: at most 10^12 bytes per second are accepted"
    for field, text in fields:
        if text and record.state == "done":
            yield field, f"{field} {shown(text)} is not possible with state 'done': leave it empty"
        elif not text and record.state == "failed":
            yield field, f"{field} is missing: a failed result needs {ALLOWED[field]}"
