"""The page of all sites, and the cells of its table."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from django.http import QueryDict

from matrix.answers.conditions import reading, words
from matrix.answers.matrix import grid
from matrix.answers.site import overview
from matrix.answers.site.overview import KEYS, SiteOverview, sites_question
from matrix.pages.add_site import steps
from matrix.pages.base import Params, QueryPage
from matrix.pages.parts.controls import kept, question_controls
from matrix.pages.parts.share import Share
from matrix.query.addresses import address, matrix_url, site_url
from matrix.query.attributes import SITE_FACTS, SITE_LISTS
from matrix.store.data_version import DataVersion
from matrix.templatetags.figures import NO_RESULT, age_words, pads
from sonar.notation.endpoint_attributes import texts_of
from sonar.notation.units import DASH, format_count, format_factor, format_share, three_digits
from sonar.notation.windows import format_moment
from sonar.people import roles
from sonar.people.roles import Anyone

# What is wrong comes first.
WORST_FIRST = "-trouble"
# Heads of the columns, and what they mean where that needs words.
HEADS = {
    "name": ("site", ""),
    "trouble": (
        "failing links",
        "failing links from and to the site; sorted by failing links, then by slower links",
    ),
    "slower_source": (
        "slower as source",
        "number of links from the site that are slower than usual",
    ),
    "slower_destination": (
        "slower as destination",
        "number of links to the site that are slower than usual",
    ),
    "ratio_source": (
        "vs baseline as source",
        "median ratio of the rate now (latest three tests) to the baseline, for the links from the "
        "site",
    ),
    "ratio_destination": (
        "vs baseline as destination",
        "median ratio of the rate now (latest three tests) to the baseline, for the links to the "
        "site",
    ),
    **{key: (attribute.title, "") for key, attribute in SITE_FACTS.items()},
    "cloud": ("cloud", "group of sites in one region that work together"),
    "tier": ("tier", "level of the site in the grid, from 0 (the centre) to 3"),
    **{key: (key, f"{key} of the site itself; its endpoints may have more") for key in SITE_LISTS},
    "endpoints": ("endpoints", "number of storage endpoints of the site that are in use"),
    "wan": ("WAN in Gbit/s", "nominal capacity of the site's WAN connection"),
    "source": (
        "mean as source",
        "plain mean of the rates to every other site, in MB/s: the site's row in the matrix",
    ),
    "destination": (
        "mean as destination",
        "plain mean of the rates from every other site, in MB/s: the site's column in the matrix",
    ),
    "success": ("success", "share of tests from and to the site that succeeded"),
    "last": ("last result", ""),
}
# Numbers are of interest from the other end.
DESCENDING = (
    *("endpoints", "wan", "source", "destination", "last"),
    *("trouble", "slower_source", "slower_destination"),
)

# What a narrow screen has on the card of a site, each with what stands before it there.
ON_CARDS = {
    "trouble": "failing links",
    "slower_source": "slower as source",
    "slower_destination": "slower as destination",
    "ratio_source": "vs baseline as source",
    "ratio_destination": "vs baseline as destination",
    "source": "MB/s as source",
    "destination": "MB/s as destination",
    "last": "last result",
}
TEXTS = (*SITE_FACTS, *SITE_LISTS)


@dataclass(frozen=True)
class SitesPage(QueryPage):
    search: str = ""
    ordering: str = WORST_FIRST

    template = "sites.html"
    route = "sites"

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        return cls(*sites_question(params, ordering=WORST_FIRST))

    def own_params(self) -> Params:
        ordering = "" if self.ordering == WORST_FIRST else self.ordering
        own = {"search": self.search, "ordering": ordering}
        return {name: [text] for name, text in own.items() if text}

    def version(self, now: datetime) -> DataVersion:
        return grid.version(self.query, now)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        report, sites = overview.build(self.query, now)
        lines = overview.ordered(overview.searched(sites, self.search), self.ordering)
        rows = [cells_of(line, now) for line in lines]
        columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
        # A column with nothing in it is left out, unless it is what they are sorted by. So that one
        # finds back to what is wrong, its column stays while they are sorted otherwise.
        own = () if self.ordering == WORST_FIRST else (self.ordering, WORST_FIRST)
        lasting = [ordering.removeprefix("-") for ordering in own]
        shown = [
            name
            for name, cells in columns.items()
            if name in lasting or any(cell.text not in ("", "0", DASH) for cell in cells)
        ]
        # Each cell with its label on cards, and what a number lacks of a fraction: so the points of
        # a column stand in one line.
        aligned = []
        for name in shown:
            cells, label = columns[name], ON_CARDS.get(name, "")
            padding = [""] * len(cells)
            if "number" in cells[0].look:
                padding = pads([cell.text for cell in cells])
            aligned.append([(cell, label, pad) for cell, pad in zip(cells, padding, strict=True)])
        own_texts = {name: texts[0] for name, texts in self.own_params().items()}
        everything = self.query.replace(filters=())
        moment = reading.state_moment(report.window, now)
        judgement = reading.read_open(moment, reading.OF_GRID)
        return {
            **question_controls(self, report.window),
            "window_words": self.query.window_words(),
            "kept": kept(self, ("search",)),
            "heads": [self.head(name) for name in ("name", *shown)],
            "rows": [
                (line, site_url(line.site.name, self.query), [column[at] for column in aligned])
                for at, line in enumerate(lines)
            ],
            "assessed": words.as_of(judgement),
            "doubtful": judgement.doubtful and words.doubtful(judgement.doubtful),
            "may_add": roles.may(reader, steps.ADD_SITE),
            "drafts": steps.drafts(reader),
            "marks": len({line.simulated for line in lines}) > 1,
            "listed": len(sites),
            "simulated": any(line.simulated for line in lines),
            "unsearched": dataclasses.replace(self, search="").url(),
            "unfiltered": dataclasses.replace(self, search="", query=everything).url(),
            "matrix_url": matrix_url(self.query.replace(rows="site", columns="site")),
            "share": Share.of(
                self.query.url(address("api-sites"), **own_texts | {"ordering": self.ordering})
            ),
        }

    def head(self, name: str) -> dict[str, str]:
        """Sort by a column, if it can be, or the other way; `sort` is what aria-sort says."""
        label, title = HEADS[name]
        usual = f"-{name}" if name in DESCENDING else name
        other = name if usual.startswith("-") else f"-{name}"
        ordering = other if self.ordering == usual else usual
        look = "" if name in ("name", *TEXTS) else "number"
        return {
            "label": label,
            "title": title,
            "url": dataclasses.replace(self, ordering=ordering).url() if name in KEYS else "",
            "sort": {name: "ascending", f"-{name}": "descending"}.get(self.ordering, ""),
            "look": f"{look} carded".strip() if name in ("name", *ON_CARDS) else look,
        }


class OverviewCell(NamedTuple):
    text: str
    title: str = ""
    look: str = "number"


def cells_of(site: SiteOverview, now: datetime) -> dict[str, OverviewCell]:
    def counted(number: int, trouble: str = "", title: str = "") -> OverviewCell:
        look = f"number {trouble}".strip() if number else "number"
        return OverviewCell(format_count(number), title, look)

    def written(value: float, write: Callable[[float], str], reason: str) -> OverviewCell:
        return OverviewCell(DASH, reason) if math.isnan(value) else OverviewCell(write(value))

    source, destination, wan = site.source, site.destination, site.site.wan_gbit_s
    no_usual = "no link {} this site has a baseline"
    no_mean = "no link {} this site was measured in this time range"
    endpoints = ", ".join(f"{each.name}{' (retired)' * each.retired}" for each in site.endpoints)
    last = OverviewCell(DASH, NO_RESULT)
    if not math.isnan(site.last):
        moment = format_moment(datetime.fromtimestamp(site.last, UTC))
        last = OverviewCell(age_words(site.last, now), moment)
    return {
        "trouble": counted(site.failing, "failing"),
        "slower_source": counted(source.slower, "slower"),
        "slower_destination": counted(destination.slower, "slower"),
        "ratio_source": written(source.to_usual, format_factor, no_usual.format("from")),
        "ratio_destination": written(destination.to_usual, format_factor, no_usual.format("to")),
        **{
            key: OverviewCell(text or DASH, "" if text else f"no {each.title} registered", "")
            for key, each in SITE_FACTS.items()
            for text in [str(each.of_site(site.site))]
        },
        **{
            key: OverviewCell(", ".join(texts_of(each.of_site(site.site))), "", "list")
            for key, each in SITE_LISTS.items()
        },
        "endpoints": counted(site.in_use, title=endpoints),
        "wan": OverviewCell(f"{wan:g}")
        if wan
        else OverviewCell(DASH, "no nominal WAN capacity registered"),
        "source": written(source.mean, three_digits, no_mean.format("from")),
        "destination": written(destination.mean, three_digits, no_mean.format("to")),
        "success": written(site.success, format_share, NO_RESULT),
        "last": last,
    }
