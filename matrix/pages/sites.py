"""The page of all sites."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from django.http import QueryDict

from matrix.answers import grid
from matrix.answers.site import overview
from matrix.answers.site.overview import KEYS, SiteOverview
from matrix.answers.site.question import sites_question
from matrix.pages.base import Params, QueryPage
from matrix.pages.controls import bounds_of, filter_chips, kept, size_choices, window_choices
from matrix.pages.share import Share
from matrix.pages.site_cells import ON_CARDS, TEXTS, OverviewCell, aligned, columns_of
from matrix.query.addresses import address, matrix_url, site_url
from matrix.query.attributes import SITE_FACTS, SITE_LISTS
from matrix.store.data_version import DataVersion
from sonar.people.roles import Anyone

# What is wrong comes first.
WORST_FIRST = "-trouble"
# Heads of the columns, and what they mean where that needs words.
HEADS = {
    "name": ("site", ""),
    "trouble": (
        "links failing",
        "from and to it, newest three tests all failed; sorts by these, then by slower ones",
    ),
    "slower_source": ("slower as source", "links from it that are slower than usual"),
    "slower_destination": ("slower as destination", "links to it that are slower than usual"),
    "ratio_source": (
        "vs usual as source",
        "rate now (newest three tests) divided by the usual rate (28 days before): the median of "
        "the links from it",
    ),
    "ratio_destination": (
        "vs usual as destination",
        "rate now divided by the usual rate: the median of the links to it",
    ),
    **{key: (attribute.title, "") for key, attribute in SITE_FACTS.items()},
    "cloud": ("cloud", "sites of one region that work together"),
    "tier": ("tier", "role of the site in the grid, from 0, the centre, to 3"),
    **{key: (key, "those of the site itself; its endpoints may have more") for key in SITE_LISTS},
    "endpoints": ("endpoints", "its storage areas in use"),
    "wan": ("WAN in Gbit/s", "nominal capacity"),
    "source": ("mean as source", "plain mean of the rates to each site: its row in the matrix"),
    "destination": ("mean as destination", "plain mean of the rates from each site: its column"),
    "success": ("success", "share of tests from and to it that succeeded"),
    "last": ("last result", ""),
}
# Numbers are of interest from the other end.
DESCENDING = (
    *("endpoints", "wan", "source", "destination", "last"),
    *("trouble", "slower_source", "slower_destination"),
)


@dataclass(frozen=True)
class SitesHead:
    """A column's head, which sorts by it if it has a ``url``; ``sort`` is what aria-sort says."""

    label: str
    title: str
    url: str
    sort: str
    look: str


@dataclass(frozen=True)
class SiteRow:
    """A site with the cells of the columns that are shown, in their order."""

    site: SiteOverview
    url: str
    cells: list[OverviewCell]


@dataclass(frozen=True)
class SitesPage(QueryPage):
    search: str = ""
    ordering: str = WORST_FIRST

    template = "sites.html"
    nav = route = "sites"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        return cls(*sites_question(params, ordering=WORST_FIRST))

    def own_params(self) -> Params:
        own = {
            "search": self.search,
            "ordering": "" if self.ordering == WORST_FIRST else self.ordering,
        }
        return {name: [text] for name, text in own.items() if text}

    def version(self, now: datetime) -> DataVersion:
        return grid.version(self.query, now)

    def is_shown(self, name: str, cells: Sequence[OverviewCell]) -> bool:
        """Leave out a column with nothing in it, unless it is what they are sorted by.

        So that one finds back to what is wrong, its column stays while they are sorted otherwise.
        """
        own = () if self.ordering == WORST_FIRST else (self.ordering, WORST_FIRST)
        is_kept = name in [ordering.removeprefix("-") for ordering in own]
        return is_kept or any(cell.says_something for cell in cells)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        report, sites = overview.build(self.query, now)
        lines = overview.ordered(overview.searched(sites, self.search), self.ordering)
        columns = columns_of(lines, now)
        shown = [name for name in columns if self.is_shown(name, columns[name])]
        cells = zip(*(aligned(columns[name]) for name in shown), strict=True)
        own_texts = {name: texts[0] for name, texts in self.own_params().items()}
        return {
            "query": self.query,
            "window_words": self.query.window_words(),
            "sizes": size_choices(self),
            "windows": window_choices(self),
            "bounds": bounds_of(self, report.window),
            "chips": filter_chips(self),
            "kept": kept(self, ("search",)),
            "heads": [head(self, name) for name in ("name", *shown)],
            "rows": [
                SiteRow(line, site_url(line.site.name, self.query), list(own))
                for line, own in zip(lines, cells, strict=True)
            ],
            "marks": len({line.simulated for line in lines}) > 1,
            "listed": len(sites),
            "simulated": any(line.simulated for line in lines),
            "unsearched": dataclasses.replace(self, search="").url(),
            "unfiltered": dataclasses.replace(
                self, search="", query=self.query.replace(filters=())
            ).url(),
            "matrix_url": matrix_url(self.query.replace(rows="site", columns="site")),
            "share": Share.of(
                self.query.url(address("api-sites"), **own_texts | {"ordering": self.ordering})
            ),
        }


def head(page: SitesPage, name: str) -> SitesHead:
    """Sort by a column, if it can be, and the other way where that is done already."""
    label, title = HEADS[name]
    usual = f"-{name}" if name in DESCENDING else name
    other = name if usual.startswith("-") else f"-{name}"
    ordering = other if page.ordering == usual else usual
    url = dataclasses.replace(page, ordering=ordering).url() if name in KEYS else ""
    sort = {name: "ascending", f"-{name}": "descending"}.get(page.ordering, "")
    look = "" if name in ("name", *TEXTS) else "number"
    if name in ("name", *ON_CARDS):
        look = f"{look} carded".strip()
    return SitesHead(label, title, url, sort, look)
