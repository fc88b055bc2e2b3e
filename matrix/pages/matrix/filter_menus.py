"""The menus that choose links: from anywhere, to anywhere, and views that many want."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from matrix.answers.grid import Grid
from matrix.pages.base import QueryPage
from matrix.pages.controls import Choice, Select, kept, select
from matrix.pages.matrix.address import MatrixAddress
from matrix.query.attributes import BY_NAME, OF_ENDPOINTS, OF_PROFILES
from matrix.query.filters import LINK_FILTERS, Filter, alternatives, either
from matrix.query.matrix_query import MatrixQuery
from matrix.store import registry
from matrix.store.profiles import ProfileChoices
from sonar.models import Mesh

TITLES = {name: attribute.title for name, attribute in BY_NAME.items()}
# What the box of each menu is called.
LABELS = {
    "source": "from a site, cloud, tier, country, label, tag or endpoint",
    "destination": "to a site, cloud, tier, country, label, tag or endpoint",
    "either": "source or destination, or how it was measured",
}


@dataclass(frozen=True)
class FilterMenu:
    """A form that adds a filter at an end; ``words`` say what is chosen there already.

    ``names`` are the attributes whose values its box offers.
    """

    end: str
    label: str
    words: str
    names: str
    attributes: Select
    kept: list[tuple[str, str]]


def filter_menu(page: QueryPage, end: str) -> FilterMenu:
    names = tuple(BY_NAME) if end == "either" else tuple(OF_ENDPOINTS)
    return FilterMenu(
        end=end,
        label=LABELS[end],
        words=words_at(page.query, end),
        names=" ".join(names),
        attributes=select("filter_on", "by", names, names[0], TITLES),
        kept=kept(page, ()),
    )


def words_at(query: MatrixQuery, end: str) -> str:
    """Say which ends are chosen: `UK or DE, not RAL`; `anywhere` where none are."""
    options = [option for option in query.filters if option.end == end]
    groups = sorted(alternatives(options, LINK_FILTERS), key=lambda group: group[0].exclude)
    parts = [
        f"{'not ' if group[0].exclude else ''}{either([value_words(option) for option in group])}"
        for group in groups
    ]
    return ", ".join(parts) or "anywhere"


def value_words(option: Filter) -> str:
    return (OF_ENDPOINTS[option.attribute].row or "{}").format(option.value)


def known_values(grid: Grid, profiles: ProfileChoices) -> list[tuple[str, str, list[str]]]:
    """Return name, title and values in use of what can be filtered by. One SQL query."""
    places = registry.read_places(grid.version)
    meshes = list(Mesh.objects.values_list("name", flat=True))
    of_endpoints = {
        name: sorted(values - {""}, key=str.casefold)
        for name in OF_ENDPOINTS
        for values in [{text for place in places for text in place.texts(name)}]
    }
    of_profiles = {name: profiles.values(name) for name in OF_PROFILES} | {"mesh": meshes}
    return [(name, TITLES[name], texts) for name, texts in (of_endpoints | of_profiles).items()]


def presets(page: MatrixAddress) -> Iterator[Choice]:
    """Yield views that many want, of the same window, size and statistic."""
    for source, destination in (("1", "2"), ("2", "1"), ("1", "1")):
        tiers = Filter("destination_tier", destination), Filter("source_tier", source)
        chosen = set(page.query.filters) == set(tiers)
        url = page.asking(page.query.replace(filters=() if chosen else in_order(tiers))).url()
        words = f"Only links from Tier {source} to Tier {destination} sites"
        yield Choice(f"T{source} to T{destination}", url, chosen, words)
    for state, label in (("failing", "Only failing"), ("slower", "Only slower than usual")):
        chosen = page.display.only == (state,)
        yield Choice(label, page.showing(() if chosen else (state,)).url(), chosen)


def in_order(filters: tuple[Filter, ...]) -> tuple[Filter, ...]:
    """Return filters in the order of their parameters: one view has one URL."""
    return tuple(sorted(filters, key=lambda option: LINK_FILTERS.index(option.parameter)))


def any_site(page: MatrixAddress) -> str:
    """Return the address of this view for the links of one site, whose name is to follow."""
    url = page.asking(page.query.replace(filters=(Filter("site", ":"),))).url()
    head, tail = url.split("site=:", 1)
    return f"{head}{tail.removeprefix('&')}{'&' if tail else ''}site="
