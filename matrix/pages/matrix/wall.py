"""The wall: a matrix and what is wrong in it for readers at four metres, several views in turn."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from urllib.parse import urlencode

import numpy as np
from django.http import QueryDict

from matrix.answers import grid
from matrix.answers.change_headline import ChangeHeadline, headline_of
from matrix.answers.grid import Grid
from matrix.answers.headline import Headline
from matrix.answers.highlights import Highlights, Item
from matrix.answers.mixed_ways import NOTHING
from matrix.answers.short_names import short_names
from matrix.pages.base import Params
from matrix.pages.events.headline import todays_sentence
from matrix.pages.matrix.address import MatrixAddress
from matrix.pages.matrix.cell_links import CellLinks
from matrix.pages.matrix.legend import legend
from matrix.pages.matrix.notices import View, notices_for
from matrix.pages.matrix.number_table import summary_for, table_for
from matrix.pages.matrix.payload import payload
from matrix.pages.matrix.rotation import OWN, Rotation
from matrix.pages.notices import Notice
from matrix.plots import display
from matrix.plots.arrangement import arrange
from matrix.plots.display import Display
from matrix.plots.palettes import palette_for
from matrix.query.addresses import table_url
from matrix.query.matrix_query import MatrixQuery
from matrix.store import changes
from matrix.store.data_version import DataVersion
from sonar.models import SizeClass
from sonar.people.roles import Anyone

# What a wall lists, the most serious first; what is merely slow only where nothing is wrong.
KINDS = ("failing", "changed", "perhaps", "slower", "faster", "failed", "stale")
CALM_KINDS = ("worst",)
# So many links have room beside the matrix, of which a heading takes one and a notice two.
LINES = 12
FEWEST = 2
UNMARKED = ("measured", "not_applicable")
NO_ROTATION = Rotation()


@dataclass(frozen=True)
class WallPage(MatrixAddress):
    """Without a rotation its one view is that of the address itself."""

    template = "wall.html"
    nav = "matrix"

    rotation: Rotation = NO_ROTATION

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        rotation = Rotation.read(params)
        own = params.copy()
        for name in OWN:
            own.pop(name, None)
        query, drawn = display.read(own)
        if not rotation.views:
            return cls(query, drawn)
        page = cls(query, drawn, rotation).turned(rotation.at)
        # Of one view there is nothing to turn to.
        several = len(rotation.views) > 1
        return page if several else dataclasses.replace(page, rotation=NO_ROTATION)

    def turned(self, at: int) -> Self:
        """Return the wall with another of its views before the eyes."""
        view = self.rotation.views[at % len(self.rotation.views)]
        return dataclasses.replace(
            self,
            query=view.query,
            display=view.display.replace(wall=self.display.wall),
            rotation=dataclasses.replace(self.rotation, at=at % len(self.rotation.views)),
        )

    def params(self) -> Params:
        if not self.rotation.views:
            return super().params()
        return {"wall": ["1"]} | self.rotation.to_params()

    def url(self) -> str:
        if not self.rotation.views:
            return super().url()
        return f"{self.path()}?{urlencode(self.params(), True, ':!=')}"

    def version(self, now: datetime) -> DataVersion:
        return grid.version(self.query, now)

    def stamp(self) -> str:
        return changes.searched()

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        answered = grid.build(self.query, now, version, whole=True)
        arranged = arrange(answered, self.display)
        cell_links = CellLinks(answered, self.display)
        headline = headline_of(answered)
        notices = self.alarms(View(arranged, address_of), answered, now)
        return {
            "heading": self.query.describe(),
            "unit": self.query.statistic.unit.behind,
            "headline": headline.words(),
            "today": todays_sentence(answered, now),
            "answer": coloured(headline),
            "as_usual": headline.tally.usual if isinstance(headline, Headline) else 0,
            "grid": answered,
            "newest": newest(answered),
            "notices": notices,
            "picture": payload(arranged, cell_links) if arranged.rows.groups else None,
            "lists": lists(answered, cell_links, LINES - 2 * len(notices)),
            "marks": [
                entry
                for entry in legend(self, answered)
                if entry.count and entry.state not in UNMARKED
            ],
            "turns": [self.turned(at) for at in range(len(self.rotation.views))],
            "next": self.turned(self.rotation.at + 1) if self.rotation.views else self,
            "ramp": ", ".join(palette_for(self.display.palette_name, self.query.statistic)),
            "all_sizes": self.all_sizes(),
            "leave": address_of(self.query, self.display.replace(wall=False)),
            "table": table_for(arranged),
            "summary": summary_for(arranged),
            "table_url": table_url(self.query),
        }

    def alarms(self, view: View, answered: Grid, now: datetime) -> list[Notice]:
        """Return what must be read from four metres: nothing that is merely good to know."""
        return [notice for notice in notices_for(view, NOTHING, now) if not notice.quiet]

    def all_sizes(self) -> str:
        """Return the wall with this view in each size class in turn. One SQL query."""
        sizes = SizeClass.objects.values_list("name", flat=True)
        views = tuple(self.asking(self.query.replace(size=size)) for size in sizes)
        if self.rotation.views or len(views) < 2:
            return ""
        return dataclasses.replace(self, rotation=Rotation(views)).url()


def coloured(headline: Headline | ChangeHeadline) -> list[tuple[str, str]]:
    """Return the parts of the answer, each with the kind of list that it is about, or nothing."""
    parts = headline.parts()
    if isinstance(headline, Headline):
        look, words = parts[-1]
        parts[-1] = look, words + headline.tail()
    # Without a success is as red as failing.
    return [("failing" if look == "failed" else look, words) for look, words in parts]


def address_of(query: MatrixQuery, drawn: Display) -> str:
    return MatrixAddress(query, drawn).url()


def newest(answered: Grid) -> float | None:
    """Return when the newest result started, in Unix s."""
    last = answered.cells.last
    return None if np.isnan(last).all() else float(np.nanmax(last))


@dataclass(frozen=True)
class WallLine:
    """A link of a list, its ends by what tells them apart."""

    source: str
    destination: str
    item: Item


@dataclass(frozen=True)
class WallList:
    """The first of the ``count`` links of a kind."""

    kind: str
    title: str
    count: int
    lines: list[WallLine]


def lists(answered: Grid, cell_links: CellLinks, room: int) -> list[WallList]:
    """List what is wrong, as far as there is room, or the slowest links where nothing is."""
    highlights = {
        highlight.kind: highlight for highlight in Highlights(answered, cell_links.url, {}).all()
    }
    is_calm = not highlights.keys() & {"changed", "failing", "slower", "failed"}
    chosen = [highlights[kind] for kind in (KINDS + CALM_KINDS * is_calm) if kind in highlights]
    names = short_names(answered)
    counts = [len(highlight.items) for highlight in chosen]
    shown = zip(chosen, shares(counts, room - len(chosen)), strict=True)
    return [
        WallList(
            highlight.kind,
            highlight.title,
            highlight.count,
            [
                WallLine(names[item.source], names[item.destination], item)
                for item in highlight.items[:share]
            ],
        )
        for highlight, share in shown
    ]


def shares(counts: Sequence[int], room: int) -> list[int]:
    """Share out so many lines: a few to each kind, the rest to the most serious first."""
    few = max(1, min(FEWEST, room // max(len(counts), 1)))
    shown = [min(count, few) for count in counts]
    for at, count in enumerate(counts):
        shown[at] += max(0, min(count - shown[at], room - sum(shown)))
    return shown
