"""The matrix page, and the wall: what is wrong in it for readers at four metres, view by view."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from urllib.parse import urlencode

import numpy as np
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase

from matrix.answers import other_origins
from matrix.answers.comparison import all_links
from matrix.answers.conditions.lines import KIND_OF
from matrix.answers.conditions.reading import Judgement, is_now
from matrix.answers.matrix import grid, mixed_ways
from matrix.answers.matrix.grid_cells import Grid
from matrix.answers.matrix.headline import Headline, read_judgement
from matrix.answers.matrix.highlights import Highlight, Highlights, Item
from matrix.http.page_rights import for_whom, readers
from matrix.pages.base import Params
from matrix.pages.matrix import payload
from matrix.pages.matrix.controls import answer, controls_for, counts, legend, palettes
from matrix.pages.matrix.notices import downtime_line, downtimes_of, notices_for, planted_faults
from matrix.pages.matrix.payload import CellLinks
from matrix.pages.parts.events import todays_sentence
from matrix.pages.parts.incidents import IncidentsNow
from matrix.pages.parts.matrix_address import PAGE, READER, MatrixAddress, chooser_of_groups
from matrix.pages.parts.notices import Notice
from matrix.pages.parts.share import ChatCard, Share
from matrix.pages.parts.time_strip import strip_for
from matrix.pages.views import showing
from matrix.plots import display
from matrix.plots.arrangement import Arrangement, arrange
from matrix.plots.display import Display
from matrix.plots.matrix import labels_for
from matrix.plots.palettes import palette_for
from matrix.query import forms
from matrix.query.addresses import address, table_url
from matrix.query.attributes import ENDS, PREPOSITIONS
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.query.url_text import encoded
from matrix.statistics.cells.axes import AxisGroup
from matrix.statistics.compare.two_samples import CHANGES
from matrix.store import profiles
from matrix.store.data_version import DataVersion
from sonar.models import SizeClass
from sonar.notation.units import format_count, parse_duration
from sonar.people.roles import Anyone
from sonar.results import store

# Written by static/js/matrix/controls.js.
PLANTED_COOKIE = "sonar_planted"
# How many of a kind stand beside the matrix, if not three.
IN_RAIL = {"changed": 10, "failing": 6, "perhaps": 5, "slower": 5, "unconfirmed": 5}
# More rows or columns than these are grouped.
MOST_LINES = 60


def suited(groups: Sequence[AxisGroup]) -> str:
    """Return by what these endpoints should be grouped: site, or cloud if that is not enough."""
    if len(groups) <= MOST_LINES:
        return "endpoint"
    return "site" if len({group.site for group in groups}) <= MOST_LINES else "cloud"


@dataclass(frozen=True)
class GridPage(MatrixAddress):
    """A page that draws a grid."""

    def tabs(self) -> dict[str, str]:
        wall = self.displaying(self.display.replace(wall=True))
        return {"Table": table_url(self.query), "Wall": wall.url()}

    def version(self, now: datetime) -> DataVersion:
        return grid.version(self.query, now)

    def address(self, query: MatrixQuery, display: Display) -> str:
        return self.asking(query).displaying(display).url()

    def grouped(self, links: Grid, now: datetime) -> tuple[Self, Grid, Arrangement]:
        """Return the page as it draws a grid of links: grouped if rows or columns are too many.

        Unless the address says what rows or columns are. A grouped grid takes one SQL query more.
        """
        query, arranged = self.query, arrange(links, self.display)
        if self.grouped_by or arranged.is_pooled:
            return self, links, arranged
        by = {side.end: suited(side.groups) for side in (arranged.rows, arranged.columns)}
        # The lines of strips have both directions, and each is compared with its opposite.
        if arranged.own or (query.compare and query.compare.reverse):
            longer = max(arranged.rows.groups, arranged.columns.groups, key=len)
            by = dict.fromkeys(("source", "destination"), suited(longer))
        if set(by.values()) == {"endpoint"}:
            return self, links, arranged
        grouped = query.replace(rows=by["source"], columns=by["destination"])
        page = dataclasses.replace(self, query=grouped, grouped_by=PAGE)
        pooled = grid.build(grouped, now, whole=True)
        return page, pooled, arrange(pooled, self.display)

    # How many events of today, and open incidents, are named.
    most_events = 1

    def drawn(
        self,
        arranged: Arrangement,
        cell_links: CellLinks,
        links: Grid,
        now: datetime,
        reader: Anyone,
    ) -> dict[str, Any]:
        """Return the picture, its table and caption, and the incidents of now.

        ``links`` is the same grid with each link in a cell of its own.
        """
        answered, statistic = cell_links.grid, self.query.statistic
        labels, has_rows = labels_for(arranged), bool(arranged.rows.groups)
        return {
            "incidents_now": IncidentsNow.read(now, reader, links.short_names()),
            "heading": self.query.describe(),
            "unit": statistic.unit.behind,
            "grid": answered,
            "is_now": is_now(answered.window, now),
            "today": todays_sentence(links, now, self.most_events),
            "picture": payload.payload(arranged, cell_links, labels) if has_rows else None,
            "left_out": labels.left_out,
            "ramp": ", ".join(palette_for(self.display.palette_name, statistic)),
            "table_url": table_url(self.query),
            **payload.number_tables(arranged),
        }


@dataclass(frozen=True)
class MatrixPage(GridPage):
    """``asks`` says whether the reader still wants to find the faults of a sandbox."""

    template = "matrix.html"

    asks: bool = True

    def remembering(self, cookies: Mapping[str, str]) -> Self:
        page = super().remembering(cookies)
        return dataclasses.replace(page, asks=PLANTED_COOKIE not in cookies)

    def stamp(self) -> str:
        return "-found" * (not self.asks)

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        # Counts and headings are of links, also where the picture has groups.
        links = grid.build(self.query, now, version, whole=True)
        page, answered, arranged = self.grouped(links, now)
        is_grouped = page is not self
        cell_links = CellLinks(answered, self.display, opens_groups=is_grouped)
        known_ways = profiles.read()
        judgement = read_judgement(links, now)
        headline = Headline.of(links, judgement, now)
        url_of_link = CellLinks(links, self.display).url
        # Where all cells are of which the first stand out.
        kinds = ("failing", "slower", "faster", "failed", "stale")
        of_kinds = {kind: self.showing((kind,)).url() for kind in kinds}
        of_kinds["changed"] = self.showing(CHANGES).url()
        if ordering := payload.worst_first(self.query):
            of_kinds["worst"] = payload.ordered_table(self.query, ordering)
        highlights = Highlights(links, judgement, url_of_link, of_kinds).all()
        mixture = mixed_ways.mixed_in_grid(links, known_ways)
        others = other_origins.of_grid(links) if known_ways.have_others else other_origins.NONE
        soon = downtimes_of(links)
        until = store.until() if self.asks and links.simulated else None
        ends = ENDS if is_grouped else ()
        notices = notices_for(
            *(arranged, page.address, now),
            soon=soon,
            mixture=mixture,
            others=others,
            about_groups=self.about_groups(page, links),
        )
        drawn = page.drawn(arranged, cell_links, links, now, reader)
        incidents_now = drawn["incidents_now"]
        return {
            **drawn,
            # The answer names or counts the others.
            "incidents_now": incidents_now.without({each.pk for each in judgement.confirmed}),
            "page": page,
            "card": ChatCard.of(
                self,
                address("matrix-preview"),
                self.query.describe(),
                headline.words(),
                simulated=links.simulated,
            ),
            "answer": list(answer(self, headline, incidents_now.lines)),
            "downtimes": downtime_line(soon, links, now),
            "together": all_links.sentence(links, now),
            "counts": list(counts(self, headline)),
            "query": page.query,
            "controls": controls_for(page, answered, known_ways),
            "notices": notices,
            "legend": list(legend(page, answered)),
            "palettes": list(palettes(page)),
            "short": links.short_names(),
            "standouts": highlights,
            "rail": [(kind, kind.items[: IN_RAIL.get(kind.kind, 3)]) for kind in highlights],
            "strip": strip_for(self, links.window, now),
            "share": Share.of_matrix(page.query.url(address("api-matrix"))),
            "planted": planted_faults(until) if until else [],
            "group_urls": [(PREPOSITIONS[end], cell_links.group_urls(end).items()) for end in ends],
        }

    def about_groups(self, page: Self, links: Grid) -> Notice | None:
        """Explain why ``page`` draws groups of links, or how to find one among very many."""
        query = page.query
        counts = {"rows": len(links.sources), "columns": len(links.destinations)}
        many = [f"{format_count(count)} {name}" for name, count in counts.items()]
        many = many[: len(set(counts.values()))]
        if page.grouped_by == PAGE:
            by = {name: kind for name in counts if (kind := getattr(query, name)) != "endpoint"}
            subject = "Grouped" if len(by) == 2 else f"{next(iter(by)).capitalize()} are grouped"
            every = page.grouping("endpoint", "endpoint").url()
            return Notice(
                "grouped",
                f"{subject} by {' and '.join(dict.fromkeys(by.values()))}, because there are "
                f"{' and '.join(many)}.",
                "Red and orange cells show the number of failing and slower links. Click a cell to "
                "open it.",
                ((f"Show all {max(counts.values())}", every),),
                quiet=True,
            )
        is_of_links = (query.rows, query.columns) == ("endpoint", "endpoint")
        if self.grouped_by != READER or max(counts.values()) <= MOST_LINES or not is_of_links:
            return None
        return Notice(
            "ungrouped",
            f"All {' and '.join(many)} are shown.",
            "Only some rows and columns are labelled. Zoom in, or hover over a cell to see its "
            "source and destination. Squares mark failing links.",
            (("Group rows and columns", dataclasses.replace(self, grouped_by="").url()),),
            quiet=True,
        )

    def test_bytes(self) -> int | None:
        """Return the size of the test files that are shown. One SQL query."""
        sizes = SizeClass.objects.filter(name=self.query.size)
        return sizes.values_list("test_bytes", flat=True).first()


# What its address has beside the views; what a view says would be of none of them there.
OWN = ("views", "every", "view")
OF_A_VIEW = {*forms.PARAMETERS, *display.PARAMETERS, *forms.FILTER_FORM} - {"wall"}
MOST_VIEWS = 12
EVERY = "30s"
SHORTEST, LONGEST = 5, 3600
# What a wall lists, the most serious first; what is merely slow only where nothing is wrong.
KINDS = (*KIND_OF.values(), "changed", "perhaps", "stale", "failed")
CALM_KINDS = ("worst",)
# So many links have room beside the matrix, of which a heading takes one and a notice two.
LINES = 12
FEWEST = 2


@dataclass(frozen=True)
class Rotation:
    """``at`` is the place in ``views`` of what is shown, ``every`` for how long, as it is written.

    There are two views or more, or none.
    """

    views: tuple[MatrixAddress, ...] = ()
    at: int = 0
    every: str = EVERY

    @classmethod
    def read(cls, params: QueryDict) -> Self:
        """Read the parameters in OWN; raise BadQueryError with sentences."""
        texts = params.getlist("views")
        for name in ("every", "view"):
            if (count := len(params.getlist(name))) > 1:
                raise bad(name, f"“{name}” is given {count} times: give it only once.")
        every = params.get("every", "").strip() or EVERY
        seconds_of(every)
        views = read_views(texts) if texts else ()
        at, count = params.get("view", "").strip() or "1", max(len(views), 1)
        if not (at.isascii() and at.isdigit() and 1 <= int(at) <= count):
            allowed = (
                f"a number from 1 to {count}" if count > 1 else "1, because there is only one view"
            )
            raise bad("view", f"view “{at}” does not exist: use {allowed}.")
        if beside := [name for name in params if texts and name in OF_A_VIEW]:
            name = beside[0]
            raise bad(
                name,
                f"{name} must be part of a view: write it within views=…, not separately.",
            )
        return cls(views, int(at) - 1, every)

    @property
    def seconds(self) -> int:
        return seconds_of(self.every)

    def to_params(self) -> Params:
        """Return the URL parameters, defaults left out; views are counted from 1 there."""
        params = {"views": [text_of(view) for view in self.views]}
        params |= {"every": [self.every]} if self.every != EVERY else {}
        return params | ({"view": [str(self.at + 1)]} if self.at else {})


def bad(name: str, sentence: str) -> BadQueryError:
    return BadQueryError({name: [sentence]})


def text_of(view: MatrixAddress) -> str:
    """Return what stands behind the question mark in the address of a view's matrix."""
    plain = view.displaying(view.display.replace(wall=False))
    return encoded(plain.params())


def seconds_of(text: str) -> int:
    """Read how long a view is shown; raise BadQueryError."""
    try:
        seconds = int(parse_duration(f"{text}s" if text.isdigit() else text).total_seconds())
    except ValueError:
        seconds = 0
    if not SHORTEST <= seconds <= LONGEST:
        raise bad(
            "every",
            f"“every” is “{text}”, which is not a duration from 5 seconds to an hour. Enter a "
            "number of seconds, or a number with s, m or h, for example, 30s.",
        )
    return seconds


def read_views(texts: Sequence[str]) -> tuple[MatrixAddress, ...]:
    if len(texts) > MOST_VIEWS:
        raise bad(
            "views",
            f"“views” is given {len(texts)} times: at most {MOST_VIEWS} views are allowed.",
        )
    errors: list[str] = []
    views = []
    for number, text in enumerate(texts, 1):
        params = QueryDict(text.strip().removeprefix("?"))
        try:
            for name in (*OWN, "wall"):
                if name in params:
                    sentence = (
                        f"“{name}” applies to the whole wall display: omit it from the views."
                    )
                    raise bad(name, sentence)
            views.append(MatrixAddress.read(params))
        except BadQueryError as error:
            place = f"In view {number}, “{text}”"
            errors += [f"{place}: {each}" for texts in error.errors.values() for each in texts]
    if errors:
        raise BadQueryError({"views": errors})
    return tuple(views)


@dataclass(frozen=True)
class WallPage(GridPage):
    """Without a rotation its one view is that of the address itself."""

    template = "wall.html"
    most_events = 3

    rotation: Rotation = Rotation()

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        rotation = Rotation.read(params)
        own = params.copy()
        for name in OWN:
            own.pop(name, None)
        query, drawn = display.read(own)
        if not rotation.views:
            return cls(query, drawn, chooser_of_groups(own))
        page = cls(query, drawn, rotation=rotation).turned(rotation.at)
        # Of one view there is nothing to turn to.
        several = len(rotation.views) > 1
        return page if several else dataclasses.replace(page, rotation=Rotation())

    def turned(self, at: int) -> Self:
        """Return the wall with another of its views before the eyes."""
        at %= len(self.rotation.views)
        view = self.rotation.views[at]
        return dataclasses.replace(
            self,
            query=view.query,
            display=view.display.replace(wall=self.display.wall),
            grouped_by=view.grouped_by,
            rotation=dataclasses.replace(self.rotation, at=at),
        )

    def params(self) -> Params:
        if not self.rotation.views:
            return super().params()
        return {"wall": ["1"]} | self.rotation.to_params()

    def url(self) -> str:
        if not self.rotation.views:
            return super().url()
        return f"{self.path()}?{urlencode(self.params(), True, ':!=')}"

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        links = grid.build(self.query, now, version, whole=True)
        page, answered, arranged = self.grouped(links, now)
        cell_links = CellLinks(answered, self.display)
        url_of_link = CellLinks(links, self.display).url
        judgement = read_judgement(links, now)
        headline = Headline.of(links, judgement, now)
        last = links.cells.last
        sizes = SizeClass.objects.values_list("name", flat=True)
        of_sizes = tuple(self.asking(self.query.replace(size=size)) for size in sizes)
        # Nothing that is merely good to know must be read from four metres.
        notices = [
            notice
            for notice in notices_for(arranged, address_of, now, soon=downtimes_of(links))
            if not notice.quiet
        ]
        return {
            **page.drawn(arranged, cell_links, links, now, reader),
            "headline": headline.words(),
            "answer": headline.parts(),
            "as_usual": headline.tally.usual,
            "newest": None if np.isnan(last).all() else float(np.nanmax(last)),
            "notices": notices,
            "lists": list(lists(links, judgement, url_of_link, LINES - 2 * len(notices))),
            "short": links.short_names(),
            "marks": [
                each
                for each in legend(page, answered)
                if each.count and each.state not in ("measured", "not_applicable")
            ],
            "turns": [self.turned(at) for at in range(len(self.rotation.views))],
            "next": self.turned(self.rotation.at + 1) if self.rotation.views else self,
            # The wall with this view in each size class in turn.
            "all_sizes": ""
            if self.rotation.views or len(of_sizes) < 2
            else dataclasses.replace(self, rotation=Rotation(of_sizes)).url(),
            "leave": address_of(self.query, self.display.replace(wall=False)),
        }


def address_of(query: MatrixQuery, drawn: Display) -> str:
    return MatrixAddress(query, drawn).url()


def lists(
    links: Grid, judgement: Judgement, url: Callable[[int, int], str], room: int
) -> Iterator[tuple[Highlight, list[Item]]]:
    """Yield what is wrong, as far as there is room, or the slowest links where nothing is.

    With each kind come its first items.
    """
    highlights = {each.kind: each for each in Highlights(links, judgement, url, {}).all()}
    is_calm = not highlights.keys() & {*KIND_OF.values(), "changed"}
    chosen = [highlights[kind] for kind in (KINDS + CALM_KINDS * is_calm) if kind in highlights]
    counts = [len(highlight.items) for highlight in chosen]
    for each, share in zip(chosen, shares(counts, room - len(chosen)), strict=True):
        yield each, each.items[:share]


def shares(counts: Sequence[int], room: int) -> list[int]:
    """Share out so many lines: a few to each kind, the rest to the most serious first."""
    few = max(1, min(FEWEST, room // max(len(counts), 1)))
    shown = [min(count, few) for count in counts]
    for at, count in enumerate(counts):
        shown[at] += max(0, min(count - shown[at], room - sum(shown)))
    return shown


VIEWS = {page: showing(page) for page in (MatrixPage, WallPage)}


@for_whom(GET=readers)
def front(request: HttpRequest) -> HttpResponseBase:
    """Show the front page: the matrix or, with `wall=1`, the same for a wall."""
    return VIEWS[WallPage if "wall" in request.GET else MatrixPage](request)
