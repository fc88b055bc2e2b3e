"""Find sites, endpoints and links by a part of their names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from cachetools import LRUCache

from matrix.query.addresses import endpoint_url, link_url, site_url
from matrix.query.matrix_query import MatrixQuery
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import registry
from matrix.store.cache import Kept
from sonar.models import Site
from sonar.notation.endpoint_attributes import (
    ENDPOINT_ATTRIBUTES,
    EndpointAttribute,
    Value,
    texts_of,
)

MOST_MATCHES = 20
# Ends of a link are looked for among so many endpoints each.
MOST_ENDS = 6
# Longer than two names and what stands between them.
LONGEST = 200
BETWEEN = re.compile(r"(?<!\s)\s*(?:->|=>|→)\s*|(?<!\s)\s+to\s+", re.IGNORECASE)
FINDING = [attribute for attribute in ENDPOINT_ATTRIBUTES if attribute.finds]
OF_SITES = [attribute for attribute in FINDING if attribute.site_columns]
OWN = [attribute for attribute in FINDING if attribute.is_own]
Values = Sequence[tuple[EndpointAttribute, Value]]
UNFINISHED = re.compile(r"(?<!\s)\s*(?:->|=>|→)$")


@dataclass(frozen=True)
class Match:
    """Something with a page. ``kind`` is `site`, `endpoint` or `link`.

    A link has no ``site``, but the names of its source and destination as ``ends``.
    """

    kind: str
    name: str
    about: str
    url: str
    site: str = ""
    ends: tuple[str, ...] = ()


@dataclass(frozen=True)
class Findings:
    """What was found, the best first; ``more`` says that there is more than is listed."""

    text: str
    matches: tuple[Match, ...]
    more: bool

    @property
    def only(self) -> Match | None:
        """Return what is meant: what is called so, or has only its own endpoints beside it.

        Of two names without a direction it is the link from the first to the second, if each name
        means a single endpoint.
        """
        if not self.matches:
            return None
        first, *others = self.matches
        is_name = first.name.casefold() == self.text.casefold()
        is_alone = all(match.site == first.name for match in others) and not self.more
        is_pair = bool(first.ends) and [match.ends for match in others] == [first.ends[::-1]]
        return first if is_name or is_alone or is_pair else None


_sites: Kept[tuple[Site, ...]] = Kept(LRUCache(2))


def find(text: str) -> Findings:
    """Search with one SQL query, and two more after a change of the registry."""
    text = UNFINISHED.sub("", text[:LONGEST].strip())
    if not text:
        return Findings(text, (), more=False)
    versions = registry.read_versions()
    places = registry.read_places(versions)
    sites = _sites.get(versions.registry, lambda: tuple(Site.objects.listed()))
    matches = [*named(text, sites, places), *links(text, places)]
    return Findings(text, tuple(matches[:MOST_MATCHES]), len(matches) > MOST_MATCHES)


def named(text: str, sites: Iterable[Site], places: Iterable[EndpointInfo]) -> list[Match]:
    """Return the sites and endpoints with each word in a name: of that name, then sites first."""
    ranking: list[tuple[bool, int, int, str, Match]] = []
    for site in sites:
        values = [(attribute, attribute.of_site(site)) for attribute in OF_SITES]
        if (order := rank(values, text)) < NOT_FOUND:
            cloud = f", cloud {site.cloud}" if site.cloud else ""
            about = f"Tier {site.tier} site{cloud}{several(values)}"
            url = site_url(site.name, MatrixQuery())
            match = Match("site", site.name, about, url, site.name)
            ranking.append((bool(order), 0, order, site.name.casefold(), match))
    for place in places:
        values = [(attribute, place.value(attribute.key)) for attribute in OWN]
        if (order := rank(values, text)) < NOT_FOUND:
            retired = "retired " if place.retired else ""
            about = f"{retired}endpoint of {place.site}{several(values)}"
            url = endpoint_url(place.name)
            endpoint = Match("endpoint", place.name, about, url, place.site)
            ranking.append((bool(order), 1, order, place.name.casefold(), endpoint))
    return [match for *_, match in sorted(ranking, key=lambda entry: entry[:-1])]


NOT_FOUND = 4


def rank(values: Values, text: str) -> int:
    """Put the same name before one that begins so, that before one that has it inside, and last
    one that has each of its words."""
    text, best = text.casefold(), NOT_FOUND
    words = text.split()
    for _, value in values:
        for name in map(str.casefold, texts_of(value)):
            if text in name:
                best = min(best, 0 if name == text else 1 if name.startswith(text) else 2)
            elif all(word in name for word in words):
                best = min(best, 3)
    return best


def several(values: Values) -> str:
    """Say the values of attributes that may have several: with them it may have been found."""
    return "".join(
        f", {attribute.key} {', '.join(texts_of(value))}"
        for attribute, value in values
        if attribute.many and value
    )


def links(text: str, places: Iterable[EndpointInfo]) -> list[Match]:
    """Read `A to B`, `A -> B` or `A B`; the last may be meant either way."""
    parts = BETWEEN.split(text.removeprefix("from "), maxsplit=1)
    directed = len(parts) == 2
    ends = parts if directed else text.split(maxsplit=1)
    if len(ends) < 2 or not all(ends):
        return []
    first, second = (ends_with(part, places) for part in ends)
    pairs = [*product(first, second), *(() if directed else product(second, first))]
    return [
        Match(
            "link",
            f"{source.name} → {destination.name}",
            f"link from {source.site} to {destination.site}",
            link_url(source.name, destination.name, MatrixQuery()),
            ends=(source.name, destination.name),
        )
        for source, destination in dict.fromkeys(pairs)
        if source != destination
    ]


def ends_with(text: str, places: Iterable[EndpointInfo]) -> list[EndpointInfo]:
    """Return the endpoints with this in their own name or their site's; in use ones first."""
    ranked = [
        (
            rank([(attribute, place.value(attribute.key)) for attribute in FINDING], text),
            *(place.retired, place.name, place),
        )
        for place in places
    ]
    best = sorted((match for match in ranked if match[0] < NOT_FOUND), key=lambda match: match[:3])
    return [place for *_, place in best[:MOST_ENDS]]
