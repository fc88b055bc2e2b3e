"""What people wrote or declared near something that happened: notes and downtimes in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from matrix.store.changes import Timed, WrittenNear, turns_near
from sonar.models import Annotation, Downtime
from sonar.notation.windows import format_minute


class Happened(Timed, Protocol):
    """What came to pass between two times, to some ``sites`` and endpoints; None for any."""

    @property
    def sites(self) -> Sequence[str]: ...
    @property
    def source_id(self) -> int | None: ...
    @property
    def destination_id(self) -> int | None: ...


@dataclass(frozen=True)
class NearbyNote:
    """A note or downtime that began or ended about then, in words."""

    words: str
    is_downtime: bool


def notes_near(happened: Happened, near: WrittenNear) -> tuple[NearbyNote, ...]:
    """Return what was written on its sites or links, and began or ended about its time."""
    notes = [
        NearbyNote(f"{words_of_time(note.starts_at, note.ends_at)}: {note.text}", False)
        for note in near.annotations
        if turns_near(happened, [note.starts_at, note.ends_at]) and note_concerns(note, happened)
    ]
    downtimes = [
        NearbyNote(f"{words_of_time(down.starts_at, down.ends_at)}: {down.reason}", True)
        for down in near.downtimes
        if turns_near(happened, [down.starts_at, down.ends_at])
        and downtime_concerns(down, happened)
    ]
    return (*notes, *downtimes)


def note_concerns(note: Annotation, happened: Happened) -> bool:
    """Say whether a note is on one of its sites, or on its link or one of the endpoint's."""
    if note.site_id is not None:
        return bool(note.site and note.site.name in happened.sites)
    same_source = happened.source_id in (None, note.source_id)
    same_destination = happened.destination_id in (None, note.destination_id)
    return bool(happened.sites) and same_source and same_destination


def downtime_concerns(downtime: Downtime, happened: Happened) -> bool:
    if downtime.site is not None:
        return downtime.site.name in happened.sites
    return downtime.endpoint_id in (happened.source_id, happened.destination_id)


def words_of_time(start: datetime, end: datetime | None) -> str:
    return f"{format_minute(start)} to {format_minute(end)}" if end else format_minute(start)
