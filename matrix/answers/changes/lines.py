"""Changes of level in words: what changed, since when, by how much, and what is noted near it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from matrix.answers.changes.near import NearbyNote, notes_near
from matrix.query.addresses import address, link_path
from matrix.query.comparison import LONGEST_AROUND
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store.changes import WrittenNear
from sonar.models import Change
from sonar.notation.units import MB, format_chance, format_count, format_factor, three_digits
from sonar.notation.windows import format_minute


@dataclass(frozen=True)
class ChangeLine:
    """A change with the endpoints that it is of: None where it is of no single one."""

    change: Change
    source: EndpointInfo | None
    destination: EndpointInfo | None
    near: tuple[NearbyNote, ...] = ()

    @property
    def size(self) -> str:
        return self.change.size_class.name

    @property
    def earliest(self) -> datetime:
        return self.change.earliest

    @property
    def latest(self) -> datetime:
        return self.change.latest

    @property
    def source_id(self) -> int | None:
        return self.change.source_id

    @property
    def destination_id(self) -> int | None:
        return self.change.destination_id

    @property
    def sites(self) -> list[str]:
        """Return the names of the sites that it is of."""
        return sorted({end.site for end in (self.source, self.destination) if end})

    @property
    def factor_words(self) -> str:
        return format_factor(self.change.factor, self.change.low, self.change.high)

    @property
    def rates(self) -> str:
        """Say both levels of a link in MB/s; nothing of others: their links have each their own."""
        before, after = self.change.before, self.change.after
        if before is None or after is None:
            return ""
        return f"{three_digits(before / MB)} to {three_digits(after / MB)}"

    @property
    def counts(self) -> str:
        before, after = (
            format_count(number) for number in (self.change.ok_before, self.change.ok_after)
        )
        return f"n = {before} before and {after} since"

    @property
    def chance(self) -> str:
        return format_chance(self.change.chance)

    @property
    def sentence(self) -> str:
        """Say all of it in one sentence, which can be quoted."""
        parts = [f"{self.factor_words} since {format_minute(self.change.at)}"]
        parts += [f"{self.rates} MB/s"] if self.rates else []
        if not (self.source and self.destination):
            parts.append(f"{format_count(self.change.links)} links")
        return f"{self.opening} {', '.join([*parts, self.counts, self.chance])}."

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


def lines_of(
    changes: Sequence[Change], endpoints: Sequence[EndpointInfo], near: WrittenNear
) -> list[ChangeLine]:
    """Say of each change what it is of, and what was written near it."""
    by_id: dict[int | None, EndpointInfo] = {endpoint.id: endpoint for endpoint in endpoints}
    return [line_of(change, by_id, near) for change in changes]


def line_of(
    change: Change, by_id: Mapping[int | None, EndpointInfo], near: WrittenNear
) -> ChangeLine:
    source, destination = by_id.get(change.source_id), by_id.get(change.destination_id)
    bare = ChangeLine(change, source, destination)
    return replace(bare, near=notes_near(bare, near))
