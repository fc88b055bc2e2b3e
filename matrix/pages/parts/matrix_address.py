"""The address of the matrix page, and the menus that choose its links, from and to anywhere."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from cachetools import LRUCache
from django.http import QueryDict
from django.utils.safestring import SafeString

from matrix.answers.matrix.grid_cells import Grid
from matrix.pages.base import Params, QueryPage
from matrix.pages.parts.controls import Choice, kept, select
from matrix.plots import display
from matrix.plots.display import Display
from matrix.plots.palettes import DEFAULT_PALETTE, PALETTES
from matrix.query.attributes import BY_NAME, OF_PROFILES, OFFERED
from matrix.query.catalogue import VS_USUAL
from matrix.query.filters import LINK_FILTERS, Filter, alternatives
from matrix.store import registry
from matrix.store.cache import Kept
from matrix.store.data_version import DataVersion
from matrix.store.profiles import ProfileChoices
from matrix.templatetags.long_parts import offered
from sonar.models import Mesh
from sonar.notation.endpoint_attributes import OF_ENDPOINTS
from sonar.notation.enumeration import either

AXES = ("rows", "columns")
# Written by static/js/matrix/palette.js.
PALETTE_COOKIE = "sonar_palette"


# Whether the reader or a page chose how rows and columns are grouped; a page may if neither did.
READER, PAGE = "reader", "page"


@dataclass(frozen=True)
class MatrixAddress(QueryPage):
    """The question of a matrix and how it is drawn.

    ``grouped_by`` is READER where the address says what rows or columns are, and PAGE where the
    page grouped them because there are too many: its address leaves that out.
    """

    display: Display
    grouped_by: str = ""

    route = "matrix"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        return cls(*display.read(params), grouped_by=chooser_of_groups(params))

    def remembering(self, cookies: Mapping[str, str]) -> Self:
        palette = cookies.get(PALETTE_COOKIE, "")
        if self.display.palette or palette not in PALETTES or palette == DEFAULT_PALETTE:
            return self
        return self.displaying(self.display.replace(palette=palette))

    def params(self) -> Params:
        params = display.write(self.query, self.display)
        if self.grouped_by == PAGE:
            return {name: texts for name, texts in params.items() if name not in AXES}
        if self.grouped_by == READER and not params.keys() & set(AXES):
            return params | {AXES[0]: [self.query.rows]}
        return params

    def grouping(self, rows: str, columns: str) -> Self:
        """Return the view with rows and columns that the reader chose."""
        query = self.query.replace(rows=rows, columns=columns)
        return dataclasses.replace(self, query=query, grouped_by=READER)

    def displaying(self, display: Display) -> Self:
        return dataclasses.replace(self, display=display)

    def showing(self, only: tuple[str, ...]) -> Self:
        """Return the same view with only the cells of these looks, of any value."""
        return self.displaying(self.display.unfocused().replace(only=only)).telling_levels()

    def telling_levels(self) -> Self:
        """Show what is slower or faster than usual as such; not while comparing.

        Bounds that are in another unit are dropped.
        """
        if self.query.compare or not self.display.shows_levels or self.query.stat == VS_USUAL.name:
            return self
        unbounded = self.display.replace(**dict.fromkeys(display.BOUNDS))
        unbounded = unbounded.for_statistic(VS_USUAL.name)
        return self.asking(self.query.replace(stat=VS_USUAL.name)).displaying(unbounded)


def chooser_of_groups(params: QueryDict) -> str:
    return READER if any(filter(None, map(params.get, AXES))) else ""


# What endpoints and meshes are called, as boxes offer it, by the version of the registry.
VALUES: Kept[dict[str, SafeString]] = Kept(LRUCache(2))
TITLES = {name: attribute.title for name, attribute in BY_NAME.items()}
# What the box of each menu is called.
LABELS = {
    "source": "from a site, cloud, tier, country, label, tag or endpoint",
    "destination": "to a site, cloud, tier, country, label, tag or endpoint",
    "either": "source, destination or transfer settings",
}


def filter_menu(page: QueryPage, end: str) -> dict[str, Any]:
    """Return a form that adds a filter at an end; `words` say what is chosen there already.

    That is `UK or DE, not RAL`, or `anywhere`. `names` are the attributes whose values its box
    offers.
    """
    names = OFFERED if end == "either" else tuple(OF_ENDPOINTS)
    options = [option for option in page.query.filters if option.end == end]
    groups = sorted(alternatives(options, LINK_FILTERS), key=lambda group: group[0].exclude)
    parts = []
    for group in groups:
        values = [(OF_ENDPOINTS[own.attribute].row or "{}").format(own.value) for own in group]
        parts.append(f"{'not ' if group[0].exclude else ''}{either(values)}")
    return {
        "end": end,
        "label": LABELS[end],
        "words": ", ".join(parts) or "anywhere",
        "names": " ".join(names),
        "attributes": select("filter_on", "by", names, names[0], TITLES),
        "kept": kept(page, ()),
    }


def known_values(grid: Grid, profiles: ProfileChoices) -> list[tuple[str, str, SafeString]]:
    """Return name, title and values in use of what can be filtered by, as a box offers them.

    One SQL query for each version of the registry.
    """
    registered = VALUES.get(grid.version.registry, lambda: values_in_use(grid.version))
    of_endpoints = {name: registered[name] for name in OF_ENDPOINTS}
    of_profiles = {name: offered(profiles.values(name)) for name in OF_PROFILES}
    whole = of_endpoints | of_profiles | {"mesh": registered["mesh"]}
    return [(name, TITLES[name], values) for name, values in whole.items()]


def values_in_use(version: DataVersion) -> dict[str, SafeString]:
    places = registry.read_places(version)
    names = {
        name: {text for place in places for text in place.texts(name)} for name in OF_ENDPOINTS
    }
    in_order = {name: sorted(texts - {""}, key=str.casefold) for name, texts in names.items()}
    in_order["mesh"] = list(Mesh.objects.values_list("name", flat=True))
    return {name: offered(texts) for name, texts in in_order.items()}


def presets(page: MatrixAddress) -> Iterator[Choice]:
    """Yield views that many want, of the same window, size and statistic."""
    for source, destination in (("1", "2"), ("2", "1"), ("1", "1")):
        tiers = [Filter("destination_tier", destination), Filter("source_tier", source)]
        # In the order of their parameters: one view has one URL.
        tiers.sort(key=lambda option: LINK_FILTERS.index(option.parameter))
        chosen = set(page.query.filters) == set(tiers)
        url = page.asking(page.query.replace(filters=() if chosen else tuple(tiers))).url()
        words = f"Only links from Tier {source} to Tier {destination} sites"
        yield Choice(f"T{source} to T{destination}", url, chosen, words)
    labels = {"failing": "Only failing links", "slower": "Only links slower than usual"}
    for state, label in labels.items():
        chosen = page.display.only == (state,)
        yield Choice(label, page.showing(() if chosen else (state,)).url(), chosen)


def any_site(page: MatrixAddress) -> str:
    """Return the address of this view for the links of one site, whose name is to follow."""
    url = page.asking(page.query.replace(filters=(Filter("site", ":"),))).url()
    head, tail = url.split("site=:", 1)
    return f"{head}{tail.removeprefix('&')}{'&' if tail else ''}site="
