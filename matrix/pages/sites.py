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
from matrix.answers.site.sites_query import DEFAULT_ORDERING, read
from matrix.pages.base import Params, QueryPage
from matrix.pages.controls import bounds_of, filter_chips, kept, size_choices, window_choices
from matrix.pages.share import Share
from matrix.query.addresses import address, matrix_url, site_url
from matrix.query.attributes import SITE_FACTS, SITE_LISTS
from matrix.store.data_version import DataVersion
from sonar.roles import Anyone

# Heads of the columns, and what they mean where that needs words.
HEADS = {
    "name": ("site", ""),
    **{key: (attribute.title, "") for key, attribute in SITE_FACTS.items()},
    **{key: (key, "those of the site itself; its endpoints may have more") for key in SITE_LISTS},
    "endpoints": ("endpoints", "those in use"),
    "wan": ("WAN in Gbit/s", "nominal capacity"),
    "source": ("mean as source", "plain mean of its measured cells: of its row in the matrix"),
    "destination": ("mean as destination", "plain mean of its measured cells: of its column"),
    "success": ("success", "of all tests from it and to it"),
    "last": ("last result", ""),
}
# Numbers are of interest from the other end.
DESCENDING = ("endpoints", "wan", "source", "destination", "last")


@dataclass(frozen=True)
class SitesHead:
    """A column's head, which sorts by it if it has a ``url``; ``sort`` is what aria-sort says."""

    label: str
    title: str
    url: str
    sort: str
    number: bool


@dataclass(frozen=True)
class SitesPage(QueryPage):
    search: str = ""
    ordering: str = DEFAULT_ORDERING

    template = "sites.html"
    nav = route = "sites"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        return cls(*read(params))

    def own_params(self) -> Params:
        own = {
            "search": self.search,
            "ordering": "" if self.ordering == DEFAULT_ORDERING else self.ordering,
        }
        return {name: [text] for name, text in own.items() if text}

    def version(self, now: datetime) -> DataVersion:
        return grid.version(self.query, now)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        report, sites = overview.build(self.query, now)
        lines = overview.ordered(overview.searched(sites, self.search), self.ordering)
        lists = lists_of(lines)
        own_texts = {name: texts[0] for name, texts in self.own_params().items()}
        return {
            "query": self.query,
            "window_words": self.query.window_words(),
            "sizes": size_choices(self),
            "windows": window_choices(self),
            "bounds": bounds_of(self, report.window),
            "chips": filter_chips(self),
            "kept": kept(self, ("search",)),
            "heads": [head(self, name) for name in HEADS if name in KEYS or name in lists],
            "lines": [
                (line, site_url(line.site.name, self.query), line.lists(lists)) for line in lines
            ],
            "listed": len(sites),
            "simulated": any(line.simulated for line in lines),
            "unsearched": dataclasses.replace(self, search="").url(),
            "unfiltered": dataclasses.replace(
                self, search="", query=self.query.replace(filters=())
            ).url(),
            "matrix_url": matrix_url(self.query.replace(rows="site", columns="site")),
            "share": Share.of(self.query.url(address("api-sites"), **own_texts)),
        }


def lists_of(lines: Sequence[SiteOverview]) -> list[str]:
    """Return which lists to show: those that are not empty for all of these sites."""
    return [
        key
        for key, attribute in SITE_LISTS.items()
        if any(attribute.of_site(line.site) for line in lines)
    ]


def head(page: SitesPage, name: str) -> SitesHead:
    """Sort by a column, if it can be, and the other way where that is done already."""
    label, title = HEADS[name]
    usual = f"-{name}" if name in DESCENDING else name
    other = name if usual.startswith("-") else f"-{name}"
    ordering = other if page.ordering == usual else usual
    url = dataclasses.replace(page, ordering=ordering).url() if name in KEYS else ""
    sort = {name: "ascending", f"-{name}": "descending"}.get(page.ordering, "")
    return SitesHead(label, title, url, sort, name not in ("name", *SITE_FACTS, *SITE_LISTS))
