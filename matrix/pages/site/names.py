"""What the page of a site calls sites and endpoints: without what many names share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from matrix.answers.short_names import uncut_names_of
from matrix.answers.site.site_links import SiteLink
from matrix.statistics.cells.axes import AxisGroup, EndpointInfo


@dataclass(frozen=True)
class ShortNames:
    """The short names of sites and of endpoints, by their full names."""

    sites: Mapping[str, str]
    endpoints: Mapping[str, str]

    @classmethod
    def of(cls, places: Sequence[EndpointInfo]) -> Self:
        members: dict[str, list[EndpointInfo]] = {}
        for place in places:
            members.setdefault(place.site, []).append(place)
        groups = [AxisGroup.of(name, of_site) for name, of_site in members.items()]
        return cls(uncut_names_of(groups), uncut_names_of(places))

    def site(self, name: str) -> str:
        return self.sites.get(name, name)

    def link(self, link: SiteLink, *, alone: bool) -> str:
        """Name a link by its partner, or by both ends where the partner has several."""
        if alone:
            return self.site(link.partner)
        return f"{self.endpoints[link.source]} → {self.endpoints[link.destination]}"
