"""Find sites, endpoints and links by a part of their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from cachetools import LRUCache

from matrix.query.addresses import endpoint_url, link_url, site_url
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.axes import EndpointInfo
from matrix.store import registry
from matrix.store.cache import Kept
from sonar.models import Site

MOST = 20
# Ends of a link are looked for among so many endpoints each.
MOST_ENDS = 6
# Longer than two names and what stands between them.
LONGEST = 200
BETWEEN = re.compile(r"\s*(?:->|=>|→)\s*|\s+to\s+", re.IGNORECASE)
UNFINISHED = re.compile(r"\s*(?:->|=>|→)$")


@dataclass(frozen=True)
class Found:
    """Something with a page. ``kind`` is `site`, `endpoint` or `link`."""

    kind: str
    name: str
    about: str
    url: str


@dataclass(frozen=True)
class Findings:
    """What was found, the best first; ``more`` says that there is more than is listed."""

    found: tuple[Found, ...]
    more: bool

    @property
    def only(self) -> Found | None:
        return self.found[0] if len(self.found) == 1 else None


_sites: Kept[tuple[Site, ...]] = Kept(LRUCache(2))


def find(text: str) -> Findings:
    """Search with one SQL query, and two more after a change of the registry."""
    text = UNFINISHED.sub("", text[:LONGEST].strip())
    if not text:
        return Findings((), more=False)
    versions = registry.read_versions()
    places = registry.read_places(versions)
    sites = _sites.get(versions.registry, lambda: tuple(Site.objects.all()))
    found = [*named(text, sites, places), *links(text, places)]
    return Findings(tuple(found[:MOST]), len(found) > MOST)


def named(text: str, sites: Iterable[Site], places: Iterable[EndpointInfo]) -> list[Found]:
    """Return the sites and endpoints with this in their name; sites go before their endpoints."""
    subjects: list[tuple[int, Site | EndpointInfo]] = [
        *((0, site) for site in sites),
        *((1, place) for place in places),
    ]
    ranked = [
        (rank(subject.name, text), kind, subject.name.casefold(), subject)
        for kind, subject in subjects
    ]
    hits = sorted((hit for hit in ranked if hit[0] < NOT_FOUND), key=lambda hit: hit[:3])
    return [page_of(subject) for *_, subject in hits]


NOT_FOUND = 3


def rank(name: str, text: str) -> int:
    """Put the same name before one that begins so, and that before one that has it inside."""
    name, text = name.casefold(), text.casefold()
    if name == text:
        return 0
    if name.startswith(text):
        return 1
    return 2 if text in name else NOT_FOUND


def page_of(subject: Site | EndpointInfo) -> Found:
    name = subject.name
    if isinstance(subject, EndpointInfo):
        about = f"{'retired ' if subject.retired else ''}endpoint of {subject.site}"
        return Found("endpoint", name, about, endpoint_url(name))
    cloud = f", cloud {subject.cloud}" if subject.cloud else ""
    return Found("site", name, f"Tier {subject.tier} site{cloud}", site_url(name, MatrixQuery()))


def links(text: str, places: Iterable[EndpointInfo]) -> list[Found]:
    """Read `A to B`, `A -> B` or `A B`; the last may be meant either way."""
    parts = BETWEEN.split(text.removeprefix("from "), maxsplit=1)
    directed = len(parts) == 2
    ends = parts if directed else text.split(maxsplit=1)
    if len(ends) < 2 or not all(ends):
        return []
    one, other = (ends_with(part, places) for part in ends)
    pairs = [*product(one, other), *(() if directed else product(other, one))]
    return [
        Found(
            kind="link",
            name=f"{source.name} → {destination.name}",
            about=f"link from {source.site} to {destination.site}",
            url=link_url(source.name, destination.name, MatrixQuery()),
        )
        for source, destination in dict.fromkeys(pairs)
        if source != destination
    ]


def ends_with(text: str, places: Iterable[EndpointInfo]) -> list[EndpointInfo]:
    """Return the endpoints with this in their own name or their site's; in use ones first."""
    ranked = [
        (min(rank(place.name, text), rank(place.site, text)), place.retired, place.name, place)
        for place in places
    ]
    found = sorted((one for one in ranked if one[0] < NOT_FOUND), key=lambda one: one[:3])
    return [place for *_, place in found[:MOST_ENDS]]
