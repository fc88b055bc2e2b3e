"""Changes of level in words: what changed, since when, by how much, and what is noted near it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from matrix.query.addresses import address, link_path
from matrix.query.comparison import LONGEST_AROUND
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store.changes import Timed, WrittenNear, turns_near
from matrix.store.downtimes import DeclaredDowntime, declared
from sonar.models import Annotation, Change
from sonar.notation.units import MB, format_chance, format_count, format_factor, three_digits
from sonar.notation.windows import format_minute


@dataclass(frozen=True)
class ChangeLine:
    """A change with the endpoints that it is of: None where it is of no single one."""

    change: Change
    source: EndpointInfo | None
    destination: EndpointInfo | None

    @property
    def size(self) -> str:
        return self.change.size_class.name

    @property
    def sites(self) -> list[str]:
        """Return the names of the sites that it is of."""
        return sorted({end.site for end in (self.source, self.destination) if end})

    @property
    def sentence(self) -> str:
        """Say all of it in one sentence to be quoted, with both levels of a link in MB/s."""
        change = self.change
        factor = format_factor(change.factor, change.low, change.high)
        parts = [f"{factor} since {format_minute(change.at)}"]
        if change.before is not None and change.after is not None:
            before, after = (three_digits(rate / MB) for rate in (change.before, change.after))
            parts.append(f"{before} to {after} MB/s")
        if not (self.source and self.destination):
            parts.append(f"{format_count(change.links)} links")
        before, after = map(format_count, (change.ok_before, change.ok_after))
        parts += [f"n = {before} before and {after} since", format_chance(change.chance)]
        return f"{self.opening} {', '.join(parts)}."

    @property
    def opening(self) -> str:
        if self.source and self.destination:
            ends = f"from {self.source.name} to {self.destination.name}"
            return f"{self.size.capitalize()} files {ends}:"
        if self.source:
            return f"{self.source.name} sends {self.size} files at"
        if self.destination:
            return f"{self.destination.name} receives {self.size} files at"
        return f"All links together move {self.size} files at"

    def comparison_url(self, now: datetime) -> str:
        """Return the page that compares up to 7 days of the new level with the 7 days before."""
        query = MatrixQuery(size=self.size)
        return query.around(min(self.change.at, now), now, LONGEST_AROUND).url(self.path)

    @property
    def path(self) -> str:
        """Return the page of what it is of: the link, the site of the endpoint, or the matrix."""
        if self.source and self.destination:
            return link_path(self.source.name, self.destination.name)
        end_info = self.source or self.destination
        return address("site", end_info.site) if end_info else address("matrix")


def lines_of(changes: Iterable[Change], endpoints: Iterable[EndpointInfo]) -> list[ChangeLine]:
    """Say of each change what it is of."""
    by_id: dict[int | None, EndpointInfo] = {endpoint.id: endpoint for endpoint in endpoints}
    return [
        ChangeLine(change, by_id.get(change.source_id), by_id.get(change.destination_id))
        for change in changes
    ]


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
