"""The table page: every link with its rate, file size and counts by size class."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Self, cast

import numpy as np
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import QueryDict

from matrix.answers import other_origins
from matrix.answers.conditions.reading import read_open, state_moment
from matrix.answers.conditions.words import as_of
from matrix.answers.matrix import mixed_ways
from matrix.answers.matrix.mixed_ways import MixedWays
from matrix.answers.other_origins import OtherOrigins
from matrix.answers.table import column_filters, link_table, table_query
from matrix.answers.table.column_filters import links_with_look
from matrix.answers.table.link_table import TROUBLE, LinkTable
from matrix.answers.table.table_query import PER_PAGE, TableQuery
from matrix.answers.words.names import shared_ending, shortened
from matrix.answers.words.phrases import counted
from matrix.pages.base import Params, QueryPage
from matrix.pages.parts import controls
from matrix.pages.parts import notices as common
from matrix.pages.parts.controls import Choice
from matrix.pages.parts.notices import Notice
from matrix.pages.parts.pager import pager, shown_words
from matrix.pages.parts.share import Share
from matrix.pages.table.columns import (
    ColumnFilter,
    Context,
    LinkColumn,
    TableCell,
    TableRow,
    all_columns,
    rows_of,
)
from matrix.query.addresses import address, matrix_url
from matrix.query.catalogue import TABLE_QUANTILES
from matrix.query.filters import Filter, on_profiles
from matrix.query.forms import BadQueryError
from matrix.query.matrix_query import MatrixQuery
from matrix.query.url_text import encoded
from matrix.statistics.arrays import Integers
from matrix.statistics.cells.axes import EndpointInfo
from matrix.store import profiles, registry
from matrix.store.data_version import DataVersion
from matrix.templatetags.figures import pads, whole
from matrix.templatetags.long_parts import escaped, joined
from sonar.models import Endpoint, SizeClass
from sonar.notation.units import format_age, format_count
from sonar.notation.windows import format_minute
from sonar.people.roles import Anyone

# In the order of what to look at first.
LOOK_WORDS = {
    "failing": "failing",
    "slower": "slower than usual",
    "silent": "silent",
    "failed": "failed",
    "faster": "faster than usual",
    "partly": "partly failing",
    "stale": "stale",
    "down": "down",
}
# What the page has first where its address says no order; calls of the API say it.
TROUBLE_FIRST = f"-{TROUBLE}"
COMPARED_WORDS = {"slower": "significantly slower", "faster": "significantly faster"}
FILTER_SHEET = ("filter_column", "filter_how", "filter_value")


@dataclass(frozen=True)
class TablePage(QueryPage):
    template = "table.html"
    route = "table"

    listing: TableQuery

    @classmethod
    def read(cls, params: QueryDict, **path: str) -> Self:
        sizes = list(SizeClass.objects.values_list("name", flat=True))
        # The fields of the sheet are the parameter of their filter; without a value it is none.
        whole = params.copy()
        column, how, value = (whole.pop(name, [""])[-1].strip() for name in FILTER_SHEET)
        name = f"{column}.{how}" if how else column
        if value and name not in column_filters.names(sizes, *sizes):
            sentence = f"“{name}” is not a filter: choose a filter from the list."
            raise BadQueryError({"filter_column": [sentence]})
        if value:
            whole[name] = value
        return cls(*table_query.read(whole, sizes, usual=TROUBLE_FIRST))

    def own_params(self) -> Params:
        return self.listing.params()

    def tabs(self) -> dict[str, str]:
        wall = encoded(self.query.to_params() | {"wall": ["1"]})
        return {"Matrix": matrix_url(self.query), "Wall": f"{address('matrix')}?{wall}"}

    def version(self, now: datetime) -> DataVersion:
        return link_table.version(self.query, now)

    def asking(self, query: MatrixQuery) -> Self:
        listing = self.listing.replace()
        if query.compare is None or query.size != self.query.size:
            listing = listing.without_fields(link_table.COMPARED)
        return dataclasses.replace(self, query=query, listing=listing)

    def listed(self, changed: TableQuery) -> str:
        return dataclasses.replace(self, listing=changed).url()

    def context(self, now: datetime, version: DataVersion | None, reader: Anyone) -> dict[str, Any]:
        whole = self.table(now, version)
        ends = whole.ends()
        names, left_out = shortened(ends, ending := shared_ending(ends))
        meant = self.meant(ends, names)
        table = whole if meant is self else meant.table(now, version)
        rows = meant.listing.rows(table, now)
        at = Paginator(rows, self.listing.per_page).get_page(self.listing.page)
        shown = table.taken(cast("Integers", at.object_list))
        records = rows_of(shown)
        ids = np.unique(shown.column(f"{self.query.size}.condition")).tolist()
        judgement = read_open(state_moment(table.window, now), Q(condition__in=ids))
        simulated = {endpoint.simulated for endpoint in ends}
        written_with = Context(
            self.query,
            now,
            min(now, table.window.end),
            marks=len(simulated) > 1,
            ending=ending,
            names=names,
            conditions={each.id: each for each in judgement.conditions},
        )
        quantiles = self.listing.columns
        every = all_columns(written_with, table.sizes, quantiles, lines=self.listing.lines)
        # What all links have alike is left out, unless it is asked for or ordered by; it is said.
        candidates = every if len(whole) > 1 and not self.listing.constant else []
        same = {name: text for name, own in candidates if (text := own.constant(whole))}
        same.pop(self.listing.column, None)
        columns = [each for each in every if each[0] not in same]
        by = self.listing.column
        written = [written_column(name, column, records, by) for name, column in columns]
        profile_choices = profiles.read()
        mixture = mixed_ways.mixed_in_table(table, meant.query, version, profile_choices)
        others = other_origins.NONE
        if profile_choices.have_others:
            others = other_origins.of_table(table, meant.query, version)
        total = f" (filtered from {format_count(len(whole))})" if len(rows) != len(whole) else ""
        return {
            "heading": table_query.heading(self.query),
            "sizes": controls.size_choices(self, table.sizes),
            "windows": controls.window_choices(self),
            "compare": controls.compare_control(self, table.window, profile_choices, table.sizes),
            "looks": list(self.look_choices(meant, table, now)),
            "bounds": controls.bounds_of(self, table.window),
            "more_columns": list(self.column_choices()),
            "same": list(dict.fromkeys(same.values())),
            "all_columns": self.listed(self.listing.replace(constant=True)),
            "filters": filter_forms(column for _, column in every),
            "filters_kept": controls.kept(self, {"page"}),
            "chips": list(self.chips(meant)),
            "notices": list(self.notices(whole, len(rows), mixture, others, now)),
            "simulated": True in simulated,
            "total": len(whole),
            "assessed": as_of(judgement),
            "of_all_tests": bool(on_profiles(self.query.filters)),
            # Which rows are shown: `Showing 1 to 24 of 24 links (filtered from 39 800)`.
            "count": f"{shown_words(at, 'link', 'links')}{total}",
            "trouble_first": ""
            if self.listing.ordering == TROUBLE_FIRST
            else self.listed(self.listing.replace(ordering=TROUBLE_FIRST)),
            "groups": [
                (name, len(list(members)))
                for name, members in groupby(column.group for _, column in columns)
            ],
            "heads": [self.head(column) for _, column in columns],
            "hidden": controls.kept(self, {"search", "page", "per_page"}),
            "rows": at,
            # There are thousands of cells, for which a template takes too long.
            "lines": joined(f"<tr>{''.join(cells)}</tr>\n" for cells in zip(*written, strict=True)),
            "left_out": left_out,
            **pager(at, lambda number: self.listed(self.listing.replace(page=number))),
            "per_page": PER_PAGE,
            "share": Share.of(meant.api_url()),
        }

    def table(self, now: datetime, version: DataVersion | None) -> LinkTable:
        names = [quantile.name for quantile in self.listing.columns]
        return link_table.build(self.query, now, version, names, lines=self.listing.lines)

    def meant(self, ends: Iterable[EndpointInfo], names: Mapping[str, str]) -> Self:
        """Return the page of a site's links, if the search is for the name of a site alone.

        RAL is not RALPP: other links have that text somewhere, too, but nobody means them.
        """
        text = self.listing.search.casefold()
        # A site is called by its whole name, or by that of its endpoint as it is shortened.
        sites = {
            place.site
            for place in ends
            if text in (place.site.casefold(), names[place.name].casefold())
        }
        # Of two sites both would be shown.
        is_chosen = any(own.attribute == "site" for own in self.query.filters)
        if len(sites) != 1 or is_chosen:
            return self
        query = self.query.replace(filters=(*self.query.filters, Filter("site", sites.pop())))
        return dataclasses.replace(self, query=query, listing=self.listing.replace(search=""))

    def chips(self, meant: Self) -> Iterator[Choice]:
        yield from controls.filter_chips(self)
        if self.listing.search:
            words = f"search “{self.listing.search}”"
            if meant is not self:
                words += f": site {meant.query.filters[-1].value}"
            yield Choice(words, self.listed(self.listing.replace(search="")), True)
        for condition in self.listing.conditions:
            yield Choice(condition.words(), self.listed(self.listing.without(condition)), True)

    def look_choices(
        self, meant: Self, table: LinkTable, now: datetime
    ) -> Iterator[tuple[str, int, Choice]]:
        """Yield what shows only links that are so now, with how many of those listed are."""
        parameter = f"{self.query.size}.state"
        own = [each for each in self.listing.conditions if each.column == parameter]
        others = self.listing.without(own[0]) if own else self.listing
        searched = others.replace(search=meant.listing.search)
        listed = table.taken(searched.rows(table, now))
        compared = COMPARED_WORDS if self.query.compare else {}
        for look, words in (LOOK_WORDS | compared).items():
            count = int(links_with_look(listed, self.query.size, look).sum())
            is_chosen = bool(own) and look in own[0].text.split(",")
            if count or is_chosen:
                only = column_filters.Condition(parameter, "is", look)
                changed = others.replace(conditions=(*others.conditions, only))
                url = self.listed(others if is_chosen else changed)
                yield look, count, Choice(words, url, is_chosen)

    def column_choices(self) -> Iterator[Choice]:
        """Yield what puts a column of a quantile into the table, or takes it out again."""
        listing = self.listing
        for quantile in TABLE_QUANTILES.values():
            names = {*listing.quantiles, quantile.name}
            changed = listing.replace(
                quantiles=tuple(own for own in TABLE_QUANTILES if own in names)
            )
            if is_shown := quantile in listing.columns:
                changed = listing.without_column(quantile)
            title = f"A column with the {quantile.label} of the rates for each size class"
            yield Choice(quantile.label, self.listed(changed), is_shown, title)
        changed = listing.without_lines() if listing.lines else listing.replace(overhead=True)
        title = (
            "Columns with the overhead and bandwidth of each link, estimated from all size classes"
        )
        yield Choice("overhead and bandwidth", self.listed(changed), listing.lines, title)
        url = self.listed(listing.replace(constant=not listing.constant))
        title = "Also show columns with the same value in all rows"
        yield Choice("columns with one value", url, listing.constant, title)

    def notices(
        self, table: LinkTable, shown: int, mixture: MixedWays, others: OtherOrigins, now: datetime
    ) -> Iterator[Notice]:

        def url_of(query: MatrixQuery) -> str:
            return self.asking(query).url()

        if about := common.about_others(self.query, url_of, others):
            yield about
        bare = self.asking(self.query.replace(filters=()))
        everything = bare.url() if self.query.filters else ""
        if not len(table):
            yield about_empty(everything)
            return
        yield from common.about_work(common.work_at_hand(self.query.size), now)
        if not shown:
            every_link = self.listing.replace(search="", conditions=())
            links = [("Clear the search and the column filters", self.listed(every_link))]
            links += [("Clear all filters", bare.listed(every_link))] if everything else []
            yield Notice(
                "nothing-found",
                "No link matches the search and the column filters.",
                "Links exist for this time range, but none of them matches all of these filters.",
                tuple(links),
            )
            return
        longest = self.asking(self.query.replace(window="90d")).url()
        notice = about_results(table, now, longest)
        if notice is None and mixture.are_many:
            notice = common.mixed(self.query, url_of, mixture, "rates")
        if notice:
            yield notice

    def head(self, column: LinkColumn) -> dict[str, Any]:
        """Return the head of a column, and its titles, each of which orders the table.

        `sorted` is what aria-sort says of it, or nothing.
        """
        direction = "descending" if self.listing.descending else "ascending"
        titles = []
        for sort in column.sorts:
            is_sorted = self.listing.column == sort.ordering
            is_turned = not self.listing.descending if is_sorted else column.greatest_first
            ordering = f"{'-' * is_turned}{sort.ordering}"
            url = self.listed(self.listing.replace(ordering=ordering))
            titles.append(Choice(sort.title, url, is_sorted, sort.words))
        return {
            "group": column.group,
            "look": column.look,
            "place": column.place,
            "titles": titles,
            "sorted": direction if any(title.chosen for title in titles) else "",
        }

    def api_url(self) -> str:
        query = self.query.replace(stat="mean", rows="endpoint", columns="endpoint")
        listing = dataclasses.replace(self.listing, usual=TableQuery.usual)
        text = encoded(query.to_params() | listing.choosing())
        return f"{address('api-links')}?{text}".removesuffix("?")


def about_empty(drop_filters: str) -> Notice:
    """Say why there is not a single link; ``drop_filters`` leads to all, if any are set."""
    if drop_filters:
        return Notice(
            "nothing-matches",
            "No link matches these filters.",
            "No scheduled link and no result in this time range matches all filters.",
            (("Clear the filters", drop_filters),),
        )
    count = Endpoint.objects.in_use().count()
    if not count:
        return common.no_endpoints()
    return Notice(
        "no-mesh",
        "No link is tested by a mesh.",
        f"{format_count(count)} endpoints are registered, but no enabled mesh has an interval, "
        "and there are no results in this time range.",
        (("An operator can add a mesh", address("meshes")),),
    )


def about_results(table: LinkTable, now: datetime, longer: str) -> Notice | None:
    """Say so if no link has a result, or none that is ok.

    ``longer`` leads to the longest window. One SQL query for each class where there are none.
    """
    if any(table.column(f"{size}.ok").any() for size in table.sizes):
        return None
    failed = sum(int(table.column(f"{size}.failed").sum()) for size in table.sizes)
    if failed:
        return Notice(
            "all-failed",
            "Every test in this time range failed.",
            f"{counted(failed, 'test')} ran and none succeeded. The page of "
            "each link groups its errors by location.",
        )
    lasts = [last for size in table.sizes if (last := registry.read_last(size))]
    sentence = "Sonar has no results yet."
    if lasts:
        newest = max(lasts)
        sentence = f"The last result was {format_age(now - newest)}, at {format_minute(newest)}."
    links = (("Show the last 90 days", longer),)
    return Notice("no-results", "No results in this time range.", sentence, links)


def written_column(
    name: str, head: LinkColumn, rows: Sequence[TableRow], ordered_by: str
) -> Iterator[str]:
    """Yield the cells below one head; those that rows are ordered by are on cards.

    A number is as long as the longest fraction below its head makes it.
    """
    cells = [head.render(row) for row in rows]
    place, label = head.place, ""
    if "carded" in place or name == ordered_by:
        label = head.label
        place = place if "carded" in place else f"{place} carded"
    padding = pads([cell.text for cell in cells]) if "number" in head.look else [""] * len(cells)
    for cell, pad, row in zip(escaped_cells(cells), padding, rows, strict=True):
        if name not in ("source", "destination"):
            yield written_cell(cell, place, label, pad)
            continue
        marks = written_marks(cell)
        looks = f'class="{place}" title="{cell.title}"'
        if name == "source":
            to = f'<span class="visually-hidden"> to {escape(row.destination.name)}</span>'
            link = f'<a href="{cell.url}">{cell.text}{to}</a>'
            yield f'<th scope="row" {looks}>{link}{marks}</th>'
        else:
            arrow = '<span aria-hidden="true">→ </span>'
            link = f'<a href="{cell.url}" tabindex="-1">{cell.text}</a>'
            yield f"<td {looks}>{arrow}{link}{marks}</td>"


def escaped_cells(cells: Sequence[TableCell]) -> Iterator[TableCell]:
    """Escape cells all at once, in a tenth of the time; marks are escaped as they are written."""
    fields = attrgetter("text", "title", "url", "lead")
    parts = iter(escaped(part for cell in cells for part in fields(cell)))
    for cell, (text, title, url, lead) in zip(cells, zip(*[parts] * 4, strict=True), strict=True):
        yield TableCell(text, title, cell.look, url, cell.marks, lead)


def written_cell(cell: TableCell, place: str, label: str, pad: str) -> str:
    """Write a cell whose texts are escaped."""
    title = f' title="{cell.title}"' if cell.title else ""
    on_card = f' data-label="{escape(label)}"' if label else ""
    lead = f'<small class="state-word">{cell.lead}</small> ' if cell.lead else ""
    padded = f'<span data-pad="{pad}">{cell.text}</span>' if pad else cell.text
    look = f"{cell.look} {place}"
    return f'<td class="{look}"{title}{on_card}>{lead}{padded}{written_marks(cell)}</td>'


def written_marks(cell: TableCell) -> str:
    return "".join(f" <small>{whole(mark)}</small>" for mark in cell.marks)


def filter_forms(
    columns: Iterable[LinkColumn],
) -> Mapping[str, list[tuple[str, list[ColumnFilter]]]]:
    """Return what can be filtered, as two forms: columns of text, and of numbers with two bounds.

    Each by what stands above it.
    """
    offered = [(column.group or "link", own) for column in columns for own in column.filters]
    return {
        words: [
            (group, [own for _, own in members])
            for group, members in groupby(
                (pair for pair in offered if pair[1].is_number is is_number), itemgetter(0)
            )
        ]
        for words, is_number in (("text", False), ("number", True))
    }
