"""Notes and downtimes that began or ended about when something happened, in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from matrix.store.downtimes import DeclaredDowntime, declared
from matrix.store.written_near import Timed, WrittenNear, turns_near
from sonar.models import Annotation
from sonar.notation.windows import format_minute


class Happened(Timed, Protocol):
    """What came to pass between two times, to links of some endpoints; None for any."""

    @property
    def source_id(self) -> int | None: ...
    @property
    def destination_id(self) -> int | None: ...


@dataclass(frozen=True)
class NearbyNote:
    """A note or downtime that began or ended about then, in words.

    ``source`` names where a downtime was declared if that was elsewhere, ``url`` is its page there.
    """

    text: str
    is_downtime: bool
    source: str = ""
    url: str = ""

    @property
    def words(self) -> str:
        """Say all of it where there are no links."""
        return f"{self.text} ({self.source})" if self.source else self.text


def notes_near(
    happened: Happened, sites: Sequence[str], near: WrittenNear
) -> tuple[NearbyNote, ...]:
    """Return what was written on these sites or its links, and began or ended about its time."""
    notes = [
        NearbyNote(f"{words_of_time(note.starts_at, note.ends_at)}: {note.text}", False)
        for note in near.annotations
        if turns_near(happened, [note.starts_at, note.ends_at])
        and note_concerns(note, happened, sites)
    ]
    downtimes = declared(
        down
        for down in near.downtimes
        if turns_near(happened, [down.starts_at, down.ends_at])
        and (
            down.site.name in sites
            if down.site
            else down.endpoint_id in (happened.source_id, happened.destination_id)
        )
    )
    return (*notes, *map(note_of, downtimes))


def note_concerns(note: Annotation, happened: Happened, sites: Sequence[str]) -> bool:
    """Say whether a note is on one of the sites, or on its link or one of the endpoint's."""
    if note.site_id is not None:
        return bool(note.site and note.site.name in sites)
    same_source = happened.source_id in (None, note.source_id)
    same_destination = happened.destination_id in (None, note.destination_id)
    return bool(sites) and same_source and same_destination


def note_of(downtime: DeclaredDowntime) -> NearbyNote:
    """Say whose it was and when, what for, and that it stopped no test if it did not."""
    risk = "" if downtime.stops_tests else "at risk, "
    text = f"{risk}{downtime.subject}, {downtime.times_words}: {downtime.reason}"
    return NearbyNote(text, True, downtime.source, downtime.url)


def words_of_time(start: datetime, end: datetime | None) -> str:
    return f"{format_minute(start)} to {format_minute(end)}" if end else format_minute(start)
